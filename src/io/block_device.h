// The one door to storage: a device of 4 KiB blocks, to which requests are submitted for a reactor to complete.
//
// Durability contract: nothing is durable before a flush, submitted after the completion of the write, has completed
// without error. Only a write marked `durable` is so by itself when it completes, and says nothing about others.
// Unflushed writes may reach the medium in any order, in part (torn at 512 bytes), or not at all.
// A flush that failed says nothing about the writes before it and must never be retried as if it could succeed.
// Reads of a range with a write in flight give undefined bytes. Discards are not ordered against anything in flight.
//
// Alignment: offsets, lengths and buffer addresses are multiples of kBlockSize.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "io/request.h"
#include "io/write_guard.h"

namespace varve::io {

// A number of bytes that may change while other threads read it: devices grow.
class ChangingSize {
 public:
  ChangingSize(std::uint64_t bytes = 0) : bytes_(bytes) {}  // NOLINT: it stands for a number
  ChangingSize(const ChangingSize& other) : bytes_(other.get()) {}
  ChangingSize& operator=(const ChangingSize& other) { return *this = other.get(); }
  ChangingSize& operator=(std::uint64_t bytes) {
    bytes_.store(bytes, std::memory_order_release);
    return *this;
  }
  ~ChangingSize() = default;
  operator std::uint64_t() const { return get(); }  // NOLINT
  std::uint64_t get() const { return bytes_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> bytes_;
};

struct Geometry {
  ChangingSize size_bytes;              // rounded down to whole blocks
  std::uint64_t missing_bytes = 0;      // at the end: never there to be read (of a device that is cut off)
  std::uint32_t physical_block = 4096;  // bytes
  std::uint64_t erase_unit = 0;         // bytes, as the device tells; 0: it does not
  std::uint64_t before = 0;             // bytes of the disk in front of it: a partition's beginning
  std::uint32_t request_bytes = 0;      // of blocks anywhere in memory, the kernel passes on so much as one request; 0: any
  bool is_block_device = false;
  bool rotational = false;
  bool supports_discard = false;
  std::uint32_t discard_unit = kBlockSize;  // bytes: what is not a whole one, counted from the disk's beginning, is not discarded
  bool direct = false;  // page cache bypassed
  bool may_be_shared = false;  // by another machine, or through a name that the lock of this opening does not cover
  bool is_roots_alone = false;  // nobody else can have written to what was opened, by its owner and mode
  std::string backend;  // "io_uring", "threads", "memory"

  std::uint64_t blocks() const { return size_bytes.get() >> kBlockShift; }
  std::uint64_t blocks_there() const { return (size_bytes.get() - missing_bytes) >> kBlockShift; }
};

// From which clients a storage's own lock is taken by force.
enum class ShutOut : std::uint8_t {
  nobody,
  dead_neighbour,  // a client on this machine, which is known to have ended
  all,             // also one that lives
};

// Of a device that is a server's.
struct Connection {
  bool is_there = true;
  std::uint64_t away_ms = 0;      // for so long it is not
  std::uint64_t patience_ms = 0;  // after which the device has failed
  std::uint64_t renewals = 0;     // since it was opened
};

// Thread-safe. Must outlive the requests submitted to it.
class BlockDevice {
 public:
  virtual ~BlockDevice() = default;

  virtual const Geometry& geometry() const = 0;
  virtual const std::string& name() const = 0;  // path, or what to call it in messages
  virtual bool read_only() const = 0;
  // Carries the request out and has it completed by `reactor`, which belongs to the calling thread; never from inside this
  // call. May be held back until the reactor's kick(), poll() or wait(). A device that stands on another one hands the request
  // down, or completes it by Reactor::finish_later(). If it throws, nothing has been submitted.
  virtual void submit(Reactor& reactor, IoRequest& request) = 0;
  // Why every write is refused from now on, for messages; empty as long as none is. Any thread.
  virtual std::string refusal() const { return ""; }
  // What to ask before a write is sent, where it may have waited since it was submitted; null: nothing. Any thread.
  virtual void ask(WriteGuard*) {}
  // The longest time from there until it arrives, or never will: what a guard says must hold for as long. Nanoseconds.
  virtual std::uint64_t delivery_ns() const { return 0; }

  // Where the storage has a lock that holds for all machines: takes it for as long as the device is open. Then nothing that another
  // sends, or has sent, arrives any more. False: there is no such lock. Errc::in_use: one that lives has it. May take as long as the
  // storage needs to find that its owner is gone.
  virtual Result<bool> shut_out(ShutOut) { return false; }
  // Whether another client that lives has that lock. False also where that cannot be found out. Any thread.
  virtual bool is_locked_by_another() { return false; }
  // Nothing: it has none of its own, as a local one or Ceph's. Any thread.
  virtual std::optional<Connection> connection() const { return {}; }

  // A device that holds back writes for want of room (holding_device.h) holds none for longer than this from now on. What is then
  // still held ends with its error, and no more is held. Of several limits the earliest counts. Nanoseconds. Any thread.
  virtual void limit_holding(std::uint64_t) {}

  // What it stands on may have grown since it was opened: geometry() says how long it is now. Any thread. The answer is the same as
  // before where that cannot be found out.
  virtual Status look_again() { return {}; }
  // Gives an image another length, in whole blocks; what comes new reads as zeros. Durable after a flush. Nothing may be under way
  // to what goes. Errc::unsupported: it is no image. Any thread.
  virtual Status set_length(std::uint64_t bytes);

  // Blocking conveniences, for tools and cold paths. Errors name the device and the range.
  Status read(std::uint64_t offset, std::span<std::byte> out);
  Status write(std::uint64_t offset, std::span<const std::byte> data);
  Status flush();
  Status discard(std::uint64_t offset, std::uint64_t length);

  // Carries out one request and waits for it; returns 0 or an errno; `done` is not called. What the conveniences use: a
  // device that has a shorter way than a lent reactor overrides it. Any thread.
  virtual int execute(IoRequest& request);
};

enum class Access : std::uint8_t { read_only, read_write };

struct OpenOptions {
  Access access = Access::read_write;
  bool exclusive = true;       // lock against other Varve processes; O_EXCL probe on block devices
  bool names_holder = true;    // of a device in use: for that all open files of all processes are looked at
  bool force_threads = false;  // not by the reactor's ring; also by environment VARVE_IO=threads
  bool buffered = false;       // no O_DIRECT; also by environment VARVE_IO_BUFFERED=1
  unsigned patience_s = 30;    // network: how long a connection may be away, or an answer take, before the device has failed
};

}  // namespace varve::io
