#include "control/patience.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

namespace varve::control {

namespace {

constexpr std::chrono::seconds kPatience{2};
thread_local bool is_silent = false;

}  // namespace

Patience::Patience(const std::string& directory) {
  if (is_silent) return;
  watch_.start("varve-patience", [this, directory] {
    if (!watch_.rest(kPatience)) return;
    fmt::print(stderr, "varve: {}: waiting for its daemon, which does not answer. If it is stopped, kill -CONT lets it go on\n", directory);
  });
}

void Patience::keep_silent() { is_silent = true; }

}  // namespace varve::control
