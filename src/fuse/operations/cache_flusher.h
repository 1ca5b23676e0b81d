// Makes the kernel write back what it caches of a file before the filesystem answers a question about its content.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse/transport/transport.h"

namespace varve::fuse {

// The kernel has no request for this. But told to drop its cache of a range it first writes back what is dirty there, and that call
// returns when the WRITEs have been answered. So it needs a thread that serves nobody.
class CacheFlusher {  // thread-safe
 public:
  // Starts the thread: when it is needed there may be none to be had, and a user can see to that.
  explicit CacheFlusher(Transport& transport) : transport_(transport), thread_([this] { run(); }) {}
  ~CacheFlusher() { stop(); }

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

  void add(Job job);
  bool is_stopping();
  void run();
  void drop_cache(Ino ino, std::uint64_t offset);
  bool write_back(const std::string& directory, std::size_t most);

  Transport& transport_;
  Mutex mutex_;
  Condition changed_;
  std::deque<Job> jobs_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace varve::fuse
