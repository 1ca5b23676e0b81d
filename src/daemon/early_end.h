// The end of a mount that is still beginning. It may wait for a former holder of the device, for a server, or recover for long.
#pragma once

#include <csignal>
#include <thread>

#include "base/descriptor.h"

namespace varve::daemon {

// While it lives, each of these signals, which are blocked, ends the process as it does by default. For the filesystem that is a power cut:
// nobody has been told of anything that could be lost.
class EarlyEnd {
 public:
  // std::system_error: no thread or descriptor is to be had.
  explicit EarlyEnd(const sigset_t& signals);
  ~EarlyEnd();
  EarlyEnd(const EarlyEnd&) = delete;
  EarlyEnd& operator=(const EarlyEnd&) = delete;

 private:
  void watch() const;

  Descriptor signals_, over_;
  std::thread thread_;
};

}  // namespace varve::daemon
