// Makes a failing script small: leaves out steps as long as it still fails (delta debugging, Zeller 2002).
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>

#include "support/script.h"

namespace varve::test {

// `fails` runs a script from scratch. At most `budget` runs.
inline Script shrink(Script script, const std::function<bool(const Script&)>& fails, std::size_t budget = 400) {
  for (std::size_t piece = std::max<std::size_t>(script.size() / 2, 1); budget > 0;) {
    bool smaller = false;
    for (std::size_t at = 0; at < script.size() && budget > 0; --budget) {
      Script candidate = script;
      const auto from = candidate.begin() + static_cast<std::ptrdiff_t>(at);
      candidate.erase(from, from + static_cast<std::ptrdiff_t>(std::min(piece, candidate.size() - at)));
      if (fails(candidate)) {
        script = std::move(candidate);
        smaller = true;
      } else {
        at += piece;
      }
    }
    if (piece > 1) piece /= 2;
    else if (!smaller) break;
  }
  return script;
}

}  // namespace varve::test
