// The one door to storage: a device of 4 KiB blocks, driven through queues.
//
// Durability contract: nothing is durable before a flush, submitted after the completion of the write, has completed
// without error; only a write marked `durable` is so by itself when it completes, and says nothing about others.
// Unflushed writes may reach the medium in any order, in part (torn at 512 bytes), or not at all.
// A flush that failed says nothing about the writes before it and must never be retried as if it could succeed.
// Reads of a range with a write in flight give undefined bytes. Discards are not ordered against anything in flight.
//
// Alignment: offsets, lengths and buffer addresses are multiples of kBlockSize.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <boost/container/small_vector.hpp>

#include "base/result.h"
#include "base/types.h"

namespace varve::io {

struct Geometry {
  std::uint64_t size_bytes = 0;         // rounded down to whole blocks
  std::uint64_t missing_bytes = 0;      // at the end: never there to be read (of a device that is cut off)
  std::uint32_t physical_block = 4096;  // bytes
  bool is_block_device = false;
  bool rotational = false;
  bool supports_discard = false;
  bool direct = false;  // page cache bypassed
  bool may_be_shared = false;  // by another machine, or through a name that the lock of this opening does not cover
  std::string backend;  // "io_uring", "threads", "memory"

  std::uint64_t blocks() const { return size_bytes >> kBlockShift; }
  std::uint64_t blocks_there() const { return (size_bytes - missing_bytes) >> kBlockShift; }
};

enum class IoKind : std::uint8_t { read, write, flush, discard };

// One request. Owned by the submitter; it and its buffers stay untouched from submit() until `done` is called.
struct IoRequest {
  IoKind kind = IoKind::read;
  std::uint64_t offset = 0;                         // bytes; read, write, discard
  std::uint64_t length = 0;                         // bytes; for discard; sum of iov for read and write
  boost::container::small_vector<iovec, 2> iov;     // read, write; at most kMaxIov entries
  bool durable = false;                             // write: completes when it is on the medium
  int error = 0;                                    // out: 0 or a positive errno
  std::function<void(IoRequest&)> done;             // called once, by the queue's owner inside poll() or wait()

  void add(void* data, std::size_t bytes) {
    iov.push_back(iovec{data, bytes});
    length += bytes;
  }
};

inline constexpr std::size_t kMaxIov = 1024;

// A submission and completion queue that belongs to one thread; only post() and wake() may be called by others.
// `done` callbacks are never called from submit() or kick(). They may submit further requests.
class IoQueue {
 public:
  virtual ~IoQueue() = default;

  virtual void submit(IoRequest& request) = 0;  // queues; may be held back until kick(), poll() or wait()
  virtual void kick() = 0;                      // hands everything held back to the device, in one system call if it can
  virtual unsigned poll() = 0;                  // kick(), then runs callbacks of what has completed; returns how many
  // kick(), then sleeps until a completion, a readable watched descriptor, post() or wake(), or the timeout
  // (negative: for ever); runs the callbacks of all of them, even if one throws; returns how many ran. Watches stay.
  virtual unsigned wait(std::int64_t timeout_ns) = 0;
  // Whether wait() may keep the CPU busy for a moment while requests are in flight, which shortens it. Off at first.
  virtual void may_spin(bool) {}
  virtual std::size_t in_flight() const = 0;  // submitted requests whose `done` was not called yet

  // Calls `readable` from poll()/wait() whenever fd is readable (level-triggered). One watch per fd.
  virtual void watch(int fd, std::function<void()> readable) = 0;
  virtual void unwatch(int fd) = 0;

  virtual void post(std::function<void()> task) = 0;  // thread-safe: runs task in the owner's poll()/wait()
  virtual void wake() = 0;                            // thread-safe: makes wait() return
};

// Thread-safe. Must outlive its queues.
class BlockDevice {
 public:
  virtual ~BlockDevice() = default;

  virtual const Geometry& geometry() const = 0;
  virtual const std::string& name() const = 0;  // path, or what to call it in messages
  virtual bool read_only() const = 0;
  virtual std::unique_ptr<IoQueue> make_queue() = 0;
  // Why every write is refused from now on, for messages; empty as long as none is. Any thread.
  virtual std::string refusal() const { return ""; }

  // Blocking conveniences over a queue of their own, for tools and cold paths. Errors name the device and the range.
  Status read(std::uint64_t offset, std::span<std::byte> out);
  Status write(std::uint64_t offset, std::span<const std::byte> data);
  Status flush();
  Status discard(std::uint64_t offset, std::uint64_t length);

  // Carries out one request and waits for it; returns 0 or an errno; `done` is not called. What the conveniences use: a
  // backend or decorator that has a shorter way than a queue made for this overrides it. Any thread.
  virtual int execute(IoRequest& request);
};

enum class Access : std::uint8_t { read_only, read_write };

struct OpenOptions {
  Access access = Access::read_write;
  bool exclusive = true;       // lock against other Varve processes; O_EXCL probe on block devices
  bool force_threads = false;  // no io_uring; also by environment VARVE_IO=threads
  bool buffered = false;       // no O_DIRECT; also by environment VARVE_IO_BUFFERED=1
  unsigned queue_depth = 256;
};

// Opens a block device or image file with the best backend that works here.
Result<std::unique_ptr<BlockDevice>> open_device(const std::string& path, const OpenOptions& options);

}  // namespace varve::io
