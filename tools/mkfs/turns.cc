#include "mkfs/turns.h"

#include <algorithm>

namespace varve::mkfs {

namespace {

constexpr std::size_t kFew = 6, kEnough = 12, kMost = 24;  // writes
constexpr std::size_t kEnoughWhenBusy = 20;

}  // namespace

Pace Turns::judge(std::size_t slow, std::size_t all) const {
  if (all < (busy_ ? kEnoughWhenBusy : kEnough)) return Pace::unclear;
  if (busy_) return 10 * slow <= 6 * all ? Pace::quick : 20 * slow >= 19 * all ? Pace::slow : Pace::unclear;
  if (4 * slow <= all) return Pace::quick;
  return 4 * slow >= 3 * all ? Pace::slow : Pace::unclear;
}

const char* name_of(Pace pace) { return pace == Pace::quick ? "quick" : pace == Pace::slow ? "slow" : "unclear"; }

std::uint64_t median_of(std::vector<std::uint64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

Result<Pace> Turns::take(std::span<Place> places) {
  const auto go_on = [&](Place& place) {
    const std::uint64_t at = place.at;
    place.at += TimedDevice::kPieceBytes;
    return device_.write(at, TimedDevice::kPieceBytes);
  };
  for (Place& place : places)
    if (!is_late()) TRY(go_on(place));
  std::vector<std::uint64_t> slow;
  Pace pace = Pace::unclear;
  for (std::size_t all = 0; pace == Pace::unclear && all < std::max(kMost, places.size());) {
    for (Place& place : places) {
      if (is_late()) return Pace::unclear;
      if (const std::uint64_t ns = TRY(go_on(place)); ns > slow_ns_) slow.push_back(ns);
      // They take long: where all are slow, few will do.
      if (++all >= (busy_ ? kEnough : kFew) && slow.size() == all) pace = Pace::slow;
      if (pace == Pace::slow) break;
    }
    if (pace == Pace::unclear) pace = judge(slow.size(), all);
  }
  if (pace == Pace::slow) slow_.insert(slow_.end(), slow.begin(), slow.end());
  return is_late() ? Pace::unclear : pace;
}

std::uint64_t Turns::usual_slow_ns() const { return median_of(slow_); }

}  // namespace varve::mkfs
