// The backends that every contract test runs over, and small tools to drive them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>

#include "base/buffer.h"
#include "io/block_device.h"
#include "io/mem_device.h"
#include "io/reactor.h"

namespace varve::io::test {

// A sparse image file that goes away with the object.
class TempImage {
 public:
  explicit TempImage(std::uint64_t bytes, const std::string& directory = temp_directory());
  ~TempImage();
  TempImage(const TempImage&) = delete;
  TempImage& operator=(const TempImage&) = delete;

  const std::string& path() const { return path_; }

  static std::string temp_directory();

 private:
  std::string path_;
};

// What carries requests out, and on which reactor: rings and threads go with either.
enum class Backend { uring, threads, uring_buffered, threads_buffered, uring_tmpfs, memory, threads_on_ring, uring_on_poll,
                     nbd, nbd_on_poll, rbd };
std::string name_of(Backend backend);

class NbdServer;
class RbdDisk;

struct Opened {
  Opened();
  Opened(Opened&&) noexcept;
  Opened& operator=(Opened&&) noexcept;
  ~Opened();

  std::unique_ptr<TempImage> image;
  std::unique_ptr<NbdServer> server;
  std::unique_ptr<RbdDisk> disk;
  std::unique_ptr<io::BlockDevice> device;
};

// Adds a skip or failure to the running test and returns no device when that cannot be had.
Opened open_backend(Backend backend, std::uint64_t bytes);
std::unique_ptr<io::Reactor> make_reactor(Backend backend, unsigned depth = 256);

// Runs the reactor until nothing is in flight.
void drain(io::Reactor& reactor);

// Requests with their buffers, to be submitted in any number.
class Batch {
 public:
  io::IoRequest& read(std::uint64_t block, std::size_t blocks = 1);
  io::IoRequest& write(std::uint64_t block, std::uint64_t seed, std::size_t blocks = 1);
  io::IoRequest& flush();
  io::IoRequest& discard(std::uint64_t block, std::uint64_t blocks);

  void submit_all(io::BlockDevice& device, io::Reactor& reactor);
  std::size_t completed() const { return completed_; }
  std::size_t failed() const;
  std::byte* data(std::size_t index) { return buffers_[index].data(); }
  io::IoRequest& operator[](std::size_t index) { return requests_[index]; }

 private:
  io::IoRequest& add(io::IoKind kind, std::uint64_t block, std::size_t blocks);

  std::deque<io::IoRequest> requests_;
  std::deque<AlignedBuffer> buffers_;
  std::size_t completed_ = 0;
};

// Bytes that tell which block and which write they belong to.
void fill_pattern(std::byte* data, std::uint64_t block, std::uint64_t seed, std::size_t blocks = 1);
bool has_pattern(const std::byte* data, std::uint64_t block, std::uint64_t seed, std::size_t blocks = 1);
bool is_zero(const std::byte* data, std::size_t bytes);

constexpr std::uint64_t kSmallBytes = 4 << 20;  // a device for tests of a few writes

// Blocks with that pattern, written one after the other; a block has a pattern, or with seed 0 is zero.
Status put(io::BlockDevice& device, std::uint64_t block, std::uint64_t seed, std::size_t blocks = 1);
bool block_has(io::BlockDevice& device, std::uint64_t block, std::uint64_t seed);
bool block_has(const io::MemDevice& device, std::uint64_t block, std::uint64_t seed);

}  // namespace varve::io::test
