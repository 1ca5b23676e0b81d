// Asks the kernel what it caches of a file. With writeback it may know a longer file than the filesystem does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse/transport/transport.h"

namespace varve::fuse {

// The kernel answers with a message of its own, which takes no lock of the file: it may be asked while a change of the file waits.
class CacheProbes {  // thread-safe
 public:
  explicit CacheProbes(Transport& transport) : transport_(transport) {}

  // Calls `done(cached)` once, on any thread, which must not be held up: does the kernel cache the byte at `offset`, and does its file
  // reach beyond it? False also where it cannot be asked.
  void ask(Ino ino, std::uint64_t offset, std::function<void(bool cached)> done);
  // NOTIFY_REPLY has come, with so many bytes. One that nobody waits for is ignored.
  void answer(std::uint64_t unique, std::uint64_t bytes);
  // Callers that wait hear "false" now, later ones at once. Call it before the serving threads stop.
  void stop();

 private:
  std::function<void(bool)> take(std::uint64_t unique);

  Transport& transport_;
  Mutex mutex_;
  std::map<std::uint64_t, std::function<void(bool)>> waiting_ GUARDED_BY(mutex_);
  std::uint64_t last_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace varve::fuse
