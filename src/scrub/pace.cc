#include "scrub/pace.h"

#include <algorithm>

namespace varve::scrub {

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// bytes / rate in ns, without overflow for any bytes that a device can have.
std::uint64_t duration_ns(std::uint64_t bytes, std::uint64_t rate) {
  const std::uint64_t seconds = bytes / rate;
  const auto rest = static_cast<double>(bytes % rate) / static_cast<double>(rate);
  constexpr std::uint64_t kMost = 1ULL << 33;  // seconds: centuries, and their ns fit
  return std::min(seconds, kMost) * kSecond + static_cast<std::uint64_t>(rest * static_cast<double>(kSecond));
}

}  // namespace

std::uint64_t Pace::pause_ns(std::uint64_t now_ns, std::uint64_t bytes) {
  if (rate_ == 0) return 0;
  const std::uint64_t oldest = now_ns - std::min(now_ns, kCreditNs);
  due_ns_ = std::max(due_ns_, oldest) + duration_ns(bytes, rate_);
  return due_ns_ > now_ns ? due_ns_ - now_ns : 0;
}

}  // namespace varve::scrub
