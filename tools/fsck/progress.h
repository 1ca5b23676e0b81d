// How far a check has come: a line that is overwritten on a terminal, plain lines elsewhere.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include "base/clock.h"
#include "check/check.h"

namespace varve::fsck {

struct ProgressChoice {
  bool wanted = false;  // with -C; otherwise only on a terminal
  int descriptor = 0;   // 0: the output
};

// Null when nothing is to be shown. `out` may be null.
std::unique_ptr<check::Progress> make_progress(const ProgressChoice& choice, std::ostream* out, bool terminal,
                                               const std::string& device, Clock& clock);

}  // namespace varve::fsck
