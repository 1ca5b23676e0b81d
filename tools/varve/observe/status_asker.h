// Asks mounts for their status on threads of their own: a daemon that is stopped, or waits for a device that is gone, holds up
// nobody but itself.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/result.h"

namespace varve::tool {

// For one thread.
class StatusAsker {
 public:
  explicit StatusAsker(std::chrono::milliseconds patience) : patience_(patience) {}

  // One answer for each place, in their order, all within the patience. Errc::busy: there was none in time. What it owes is waited for
  // the next time, so that no more than one thread waits for each mount.
  std::vector<Result<Json>> ask(const std::vector<std::string>& places);

  // Threads of this program that still wait in the kernel. Then it ends by _Exit(): they must not meet what exit() destroys, and
  // a leak checker would wait for them.
  static bool waits();

 private:
  class Question;
  const std::chrono::milliseconds patience_;
  std::map<std::string, std::shared_ptr<Question>> open_;
};

}  // namespace varve::tool
