// Why a mount ends: the kernel said so, or a signal did.
#pragma once

#include <csignal>

#include "base/result.h"

namespace varve::fuse {

enum class End : std::uint8_t { unmounted, signalled, detached };

// Blocks the signals that end a mount for this thread and those it starts, and waits for them. One per process.
class Lifetime {
 public:
  Lifetime();
  void unmounted();  // thread-safe
  void detached();   // thread-safe
  End wait();
  // After a signal: End::unmounted, or End::detached when detached() has been called; further signals do not count.
  End wait_detached();
  // After a signal: a second one, or the unmounting, within the time. False: neither came.
  bool wait_more(int milliseconds);

 private:
  End wait_for(const sigset_t& signals);

  sigset_t signals_, ours_;
};

}  // namespace varve::fuse
