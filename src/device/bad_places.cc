#include "device/bad_places.h"

#include <algorithm>

namespace varve::device {

namespace {
bool is_within(std::uint64_t when, std::uint64_t window_ns, std::uint64_t now_ns) { return now_ns - std::min(now_ns, when) <= window_ns; }
}  // namespace

bool BadPlaces::add(BlockAddr place, std::uint64_t now_ns) {
  const auto known = seen_.find(place);
  if (known != seen_.end()) {
    const bool was_forgotten = !is_within(known->second, kDayNs, now_ns);
    known->second = now_ns;
    return was_forgotten;
  }
  if (seen_.size() == kMost) std::erase_if(seen_, [&](const auto& one) { return !is_within(one.second, kDayNs, now_ns); });
  return seen_.size() < kMost && seen_.emplace(place, now_ns).second;
}

std::uint64_t BadPlaces::within(std::uint64_t window_ns, std::uint64_t now_ns) const {
  const auto is_recent = [&](const auto& one) { return is_within(one.second, window_ns, now_ns); };
  return static_cast<std::uint64_t>(std::ranges::count_if(seen_, is_recent));
}

}  // namespace varve::device
