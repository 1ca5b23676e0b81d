// Says on stderr what is waited for when a daemon does not answer: one that is stopped never does, and its caller waits in the kernel.
#pragma once

#include <string>

#include "base/wakeable_thread.h"

namespace varve::control {

// For as long as something is asked of the daemon that has mounted a directory. After two seconds it says so, once. Any thread.
class Patience {
 public:
  explicit Patience(const std::string& directory);
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  // Nothing is said for the calling thread any more: its program has a limit of its own.
  static void keep_silent();

 private:
  WakeableThread watch_;  // until the daemon has answered
};

}  // namespace varve::control
