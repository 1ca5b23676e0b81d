// A device behind a file descriptor: by the reactor's ring where it has one, else by threads with blocking system calls.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "io/block_device.h"
#include "io/thread_pool.h"

namespace varve::io {

// An opened and locked block device or image file. Owns the descriptor and the lock. The lock goes with the object even
// where a fork shares the descriptor: a program that becomes a daemon opens the device in the process that goes on.
struct OpenFile {
  int fd = -1;
  std::string name;
  Geometry geometry;
  bool read_only = false;

  OpenFile() = default;
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile();
};

class FileDevice : public BlockDevice {
 public:
  FileDevice(OpenFile file, bool by_ring);

  const Geometry& geometry() const override { return file_.geometry; }
  const std::string& name() const override { return file_.name; }
  bool read_only() const override { return file_.read_only; }
  void submit(Reactor& reactor, IoRequest& request) override;
  int execute(IoRequest& request) override;
  // Asked where requests wait for a thread. What the ring takes is with the kernel a moment after submit().
  void ask(WriteGuard* guard) override { guard_.store(guard); }
  Status look_again() override;
  Status set_length(std::uint64_t bytes) override;

  // For the pool: execute(), once the guard lets a write through.
  int execute_late(IoRequest& request);

  int fd() const { return file_.fd; }
  // Whether the kernel discards through rings on this block device: assumed until it refuses.
  bool ring_discards() const { return ring_discards_.load(std::memory_order_relaxed); }
  void no_ring_discards() { ring_discards_.store(false, std::memory_order_relaxed); }

 private:
  static void prepare(RingEntry& entry, io_uring_sqe& to);
  static bool complete(RingEntry& entry, int result);

  bool needs_thread(const IoRequest& request) const;
  int wait_for_leave(const IoRequest& request) const;
  int meant_by(int error, const IoRequest& request) const;
  void hand_to_pool(Reactor& reactor, IoRequest& request);
  void prepare_discard(io_uring_sqe& to, const IoRequest& request) const;
  bool ring_refuses(const IoRequest& request, int result) const;
  ThreadPool& pool();  // started when first asked for

  OpenFile file_;
  const bool by_ring_;
  std::atomic<WriteGuard*> guard_{nullptr};
  std::atomic<bool> ring_discards_{true};
  std::once_flag pool_started_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace varve::io
