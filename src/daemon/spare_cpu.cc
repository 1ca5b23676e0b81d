#include "daemon/spare_cpu.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace varve::daemon {

namespace {
constexpr std::uint64_t kWindow = 100'000'000;  // ns
constexpr std::uint64_t kPart = 4;              // of a CPU that has to be idle
constexpr std::uint64_t kSecond = 1'000'000'000;
}  // namespace

SpareCpu::SpareCpu(std::uint64_t now, const char* file)
    : file_(::open(file, O_RDONLY | O_CLOEXEC)), last_ns_(now), last_ticks_(idle_ticks()) {}

std::uint64_t SpareCpu::idle_ticks() const {
  std::array<char, 256> text{};
  if (!file_ || ::pread(file_.get(), text.data(), text.size() - 1, 0) <= 0) return 0;
  unsigned long long idle = 0, waiting = 0;  // while a CPU waits for a device only, it is idle, too
  if (std::sscanf(text.data(), "cpu %*u %*u %*u %llu %llu", &idle, &waiting) < 1) return 0;
  return idle + waiting;
}

bool SpareCpu::was_left(std::uint64_t now) {
  if (now < last_ns_ + kWindow) return was_left_;
  const std::uint64_t ticks = idle_ticks();
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const std::uint64_t one_cpu = (now - last_ns_) / (kSecond / per_second);
  was_left_ = ticks == 0 || ticks < last_ticks_ || (ticks - last_ticks_) * kPart >= one_cpu;
  last_ns_ = now, last_ticks_ = ticks;
  return was_left_;
}

}  // namespace varve::daemon
