// Why a mount ends: the kernel said so, or a signal did.
#pragma once

#include <csignal>

#include "base/result.h"

namespace varve::fuse {

enum class End : std::uint8_t { unmounted, signalled };

// Blocks the signals that end a mount for this thread and those it starts, and waits for them. One per process.
class Lifetime {
 public:
  Lifetime();
  void unmounted();  // thread-safe
  End wait();
  // After a signal: a second one, or the unmounting, within the time. False: neither came.
  bool wait_more(int milliseconds);

 private:
  sigset_t signals_;
};

}  // namespace varve::fuse
