// Makes the kernel write back what it caches of a file before the filesystem answers a question about its content.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse/transport/transport.h"

namespace varve::fuse {

// The kernel has no request for this. But told to drop its cache of a range it first writes back what is dirty there. That call returns
// when the WRITEs have been answered: all of them since Linux 6.16, before only those that it has begun itself. So it needs threads that
// serve nobody: one for single files, since a writer may wait for that, and one for all files, which takes its time.
class CacheFlusher {  // thread-safe
 public:
  // Starts the threads: when they are needed there may be none to be had, and a user can see to that.
  explicit CacheFlusher(Transport& transport) : transport_(transport) {}
  ~CacheFlusher() { stop(); }

  // For such an older kernel, before anything is asked for: WRITEs are waited for as well. `most`: as in Transport::settle().
  void wait_for_writes_too(std::size_t most) { most_ = most; }
  void wait_for_writes();  // if so

  // Calls `done` when everything written before the call from `offset` (bytes) on has come in as WRITEs, on a thread
  // that must not be held up.
  void flush(Ino ino, std::uint64_t offset, std::function<void()> done);

  // The same of all files, without a drop of what is clean. `directory`: where the filesystem is mounted. `most`: as in
  // Transport::settle(). Under a load that does not end, some of what was written right before the call may be missing; that is logged.
  void flush_all(const std::string& directory, std::size_t most, std::function<void()> done);

  // Finishes what was asked for, the last with what has come by then. Messages must still be served meanwhile: to be called before the
  // serving threads stop.
  void stop();

 private:
  struct Job {
    std::function<void()> work, done;
  };

  class Worker {
   public:
    // `behind` comes once between the work of all that wait and their answers. Without it each job stands for itself.
    explicit Worker(std::function<void()> behind) : behind_(std::move(behind)), thread_([this] { run(); }) {}
    ~Worker() { stop(); }
    void add(Job job);
    bool is_stopping();
    void stop();

   private:
    void run();

    const std::function<void()> behind_;
    Mutex mutex_;
    Condition changed_;
    std::deque<Job> jobs_ GUARDED_BY(mutex_);
    bool stopping_ GUARDED_BY(mutex_) = false;
    std::thread thread_;
  };

  bool settle(std::size_t most);
  void drop_cache(Ino ino, std::uint64_t offset);
  bool write_back(const std::string& directory, std::size_t most);

  Transport& transport_;
  std::atomic<std::size_t> most_{0};
  Mutex settling_{LockRank::settling};
  Worker of_files_{[this] { wait_for_writes(); }}, of_all_{{}};
};

}  // namespace varve::fuse
