// Detaching a mount from within the process that serves it.
#pragma once

#include <functional>
#include <future>
#include <thread>

namespace varve::fuse {

class MountPoint;

// Detaches on a thread of its own: the kernel ends a call that gives up the last use of a mounted block device only when
// DESTROY has been answered, and that is up to whoever ends the mount. The serving threads go on meanwhile, since
// unmounting makes the kernel write back what it caches.
class Departure {
 public:
  enum class Outcome { detached, failed };

  // Begins. `done` is called by that thread when outcome() may be asked, unless the mount ends before. Detached, it may still
  // be used: MountPoint::is_connected().
  Departure(const MountPoint& point, std::function<void()> done);
  ~Departure();  // waits for that thread: DESTROY must have been answered, or the connection closed

  Outcome outcome() { return outcome_.get(); }  // once

 private:
  std::future<Outcome> outcome_;
  std::thread thread_;
};

}  // namespace varve::fuse
