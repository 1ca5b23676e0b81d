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
  watch_ = std::thread([this, directory] {
    Lock lock(mutex_);
    const auto is_over = [this]() REQUIRES(mutex_) { return answered_; };
    if (changed_.wait_for(lock, kPatience, is_over)) return;
    fmt::print(stderr, "varve: {}: waiting for its daemon, which does not answer. If it is stopped, kill -CONT lets it go on\n", directory);
  });
}

Patience::~Patience() {
  if (!watch_.joinable()) return;
  {
    const Lock lock(mutex_);
    answered_ = true;
    changed_.notify_all();
  }
  watch_.join();
}

void Patience::keep_silent() { is_silent = true; }

}  // namespace varve::control
