#include "varve/volume/kernel_wait.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ostream>
#include <utility>

#include "shared/interruptible.h"
#include "shared/json_error.h"
#include "shared/progress_meter.h"

namespace varve::tool {

namespace {
constexpr std::chrono::milliseconds kBetweenLooks{100};
}

KernelWait::KernelWait(IoLayer& io, Words words) : io_(io), words_(std::move(words)) {
  ::sigemptyset(&signals_);
  for (const int signal : kInterruptions)
    if (!is_ignored(signal)) ::sigaddset(&signals_, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  watch_ = std::thread([this] { watch(); });
}

KernelWait::~KernelWait() {
  {
    const Lock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  watch_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void KernelWait::watch() {
  using Watch = std::chrono::steady_clock;
  const auto began = Watch::now();
  ProgressMeter meter(io_.err, !words_.json);
  Lock lock(mutex_);
  const auto is_over = [this]() REQUIRES(mutex_) { return is_over_; };
  while (!changed_.wait_for(lock, kBetweenLooks, is_over)) {
    const timespec at_once{};
    if (const int signal = ::sigtimedwait(&signals_, nullptr, &at_once); signal > 0) {
      meter.wipe();
      end(signal);
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Watch::now() - began).count();
    meter.show([&] { return fmt::format("{}, {}", words_.doing, rough_duration(static_cast<std::uint64_t>(seconds))); });
  }
}

void KernelWait::end(int signal) {
  const std::string message = "interrupted: " + words_.left;
  io_.err << "varve: " << message << std::endl;
  if (words_.json) io_.out << json_error(message, 128 + signal) << std::flush;
  std::_Exit(128 + signal);
}

}  // namespace varve::tool
