// Keeps what the kernel holds back in proportion to the room that is left, and makes it believe what is on the disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/mutex.h"
#include "base/wakeable_thread.h"
#include "fs/filesystem.h"
#include "fuse/operations/lost_writes.h"
#include "fuse/transport/transport.h"

namespace varve::fuse {

// With writeback the kernel believes its own size of a file for as long as it knows the file. So files that lack something are
// pruned: those that nobody has open it forgets, and asks for them anew. Not where the filesystem has become read-only: then the device
// may have gone, and what the kernel has cached may be all that can be read.
class SpaceWatch {  // thread-safe
 public:
  SpaceWatch(fs::Filesystem& fs, Transport& transport, const LostWrites& lost)
      : fs_(fs), transport_(transport), lost_(lost) {
    thread_.start("varve-space", [this] { run(); });
  }

  // From now on calls limit(bytes), on a thread of its own: what the kernel may hold back.
  void limit_with(std::function<void(std::uint64_t bytes)> limit);
  // To be called after each WRITE: looks again before much of the room can be gone.
  void wrote(std::uint64_t bytes) {
    if (unseen_.fetch_add(bytes, std::memory_order_relaxed) + bytes >= patience_.load(std::memory_order_relaxed)) look();
  }
  void look() { thread_.wake(); }
  // Messages must still be served meanwhile: to be called before the serving threads stop.
  void stop() { thread_.stop(); }

 private:
  void run();
  void set_limit(const std::function<void(std::uint64_t bytes)>& limit);
  bool prunes() const { return can_prune_ && lost_.any() && !fs_.read_only(); }
  void prune();

  fs::Filesystem& fs_;
  Transport& transport_;
  const LostWrites& lost_;
  std::atomic<std::uint64_t> unseen_{0}, patience_{UINT64_MAX};  // bytes
  bool can_prune_ = true;  // of the thread
  Mutex mutex_;
  std::function<void(std::uint64_t)> limit_ GUARDED_BY(mutex_);
  WakeableThread thread_;
};

}  // namespace varve::fuse
