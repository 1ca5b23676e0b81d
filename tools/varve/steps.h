// Progress of a command that reads one thing after the other, and its end where Ctrl-C asks for one.
#pragma once

#include <string>

#include "base/result.h"
#include "shared/interruptible.h"
#include "shared/progress_meter.h"
#include "varve/io_layer.h"

namespace varve::tool {

// For one thread; one at a time (interruptible.h).
class Steps {
 public:
  // `left`: what an interruption leaves, for its message.
  Steps(IoLayer& io, bool shows, std::string left = "nothing was changed, and nothing is left of it");

  // Before each step, as it costs next to nothing. Errc::interrupted: there is to be none.
  Status next(const ProgressMeter::Text& text, double share = ProgressMeter::kUnknown);
  // Before something is printed.
  void wipe() { meter_.wipe(); }

 private:
  const Interruptible interruptible_;
  const std::string left_;
  ProgressMeter meter_;
};

}  // namespace varve::tool
