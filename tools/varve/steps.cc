#include "varve/steps.h"

#include <utility>

namespace varve::tool {

Steps::Steps(IoLayer& io, bool shows, std::string left) : left_(std::move(left)), meter_(io.err, shows) {}

Status Steps::next(const ProgressMeter::Text& text, double share) {
  if (Interruptible::asked()) return Error(Errc::interrupted, "interrupted: " + left_);
  meter_.show(text, share);
  return {};
}

}  // namespace varve::tool
