// Detaching a mount from within the process that serves it.
#pragma once

#include <functional>
#include <thread>

namespace varve::daemon {

class MountPoint;

// Detaches on a thread of its own. The kernel ends a call that gives up the last use of a mounted block device only when
// DESTROY has been answered, and that is up to the code that ends the mount. The serving threads go on meanwhile, since
// unmounting makes the kernel write back what it caches.
class Departure {
 public:
  // Begins. `done` is called by that thread when what can be detached is, unless the mount ends before. It may still be used:
  // MountPoint::is_connected().
  Departure(const MountPoint& point, std::function<void()> done);
  ~Departure();  // waits for that thread: DESTROY must have been answered, or the connection closed

 private:
  std::thread thread_;
};

}  // namespace varve::daemon
