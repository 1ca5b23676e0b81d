// fsck.varve as a function, so that tests run the whole command in-process.
#pragma once

#include <iosfwd>

#include "base/clock.h"
#include "repair/repair.h"

namespace varve::fsck {

// Exit codes of fsck(8), summed. 2, a reboot, is never needed.
enum ExitCode : int {
  kClean = 0,
  kCorrected = 1,
  kErrorsLeft = 4,
  kOperationalError = 8,
  kUsageError = 16,
  kCancelled = 32,
};

struct World {
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;    // `out` is one: progress is shown there
  repair::Recover recover;  // the engine's
  Clock& clock = Clock::system();  // of progress
};

int run(int argc, const char* const* argv, const World& world);

}  // namespace varve::fsck
