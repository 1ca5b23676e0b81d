#include "mkfs/unit_search.h"

#include <fmt/format.h>

#include <algorithm>

namespace varve::mkfs {

namespace {

// Of the time for a whole unit: a jump inside one may cost what is jumped over.
constexpr double kPart = 0.7, kWhole = 0.85;

double share(std::uint64_t ns, std::uint64_t of) { return static_cast<double>(ns) / static_cast<double>(of); }

}  // namespace

Result<std::vector<std::uint64_t>> fill(TimedDevice& device, std::uint64_t at, std::uint64_t bytes) {
  std::vector<std::uint64_t> rows;
  for (std::uint64_t done = 0; done < bytes; done += TimedDevice::kRowBytes) {
    const std::uint64_t length = std::min(TimedDevice::kRowBytes, bytes - done);
    rows.push_back(TRY(device.write(at + done, length)) * TimedDevice::kRowBytes / length);
  }
  return rows;
}

Result<std::uint64_t> UnitSearch::find() {
  if (streams_ == 1) return find_single();
  const Kind in_a_row{2, Pace::slow}, anywhere{streams_ + 1ULL, Pace::quick};
  for (const Kind& kind : {in_a_row, anywhere})
    if (const std::uint64_t unit = TRY(search(kind))) return TRY(is_confirmed(kind, unit)) ? unit : 0;
  return std::uint64_t{0};
}

// From large distances, at which each place has a unit of its own, to the first at which they share one.
Result<std::uint64_t> UnitSearch::search(const Kind& kind) {
  for (std::uint64_t distance = most_ / 2; 2 * distance >= kLeastBytes; distance /= 2) {
    const Pace pace = TRY(spread(kind, distance));
    if (pace == Pace::unclear) return std::uint64_t{0};
    if (pace != kind.when_shared) continue;
    const std::uint64_t unit = 2 * distance, smaller = unit / 4 * 3;
    const Pace closer = TRY(spread(kind, smaller));
    if (closer == Pace::unclear) return std::uint64_t{0};
    return closer == kind.when_shared ? unit : smaller;
  }
  return std::uint64_t{0};
}

Result<Pace> UnitSearch::spread(const Kind& kind, std::uint64_t distance) {
  std::vector<Place> places;
  for (std::uint64_t i = 0; i < kind.places; ++i) {
    if (turns_.is_late()) return Pace::unclear;
    places.push_back({base_ + i * distance});
    TRY(fill(device_, places.back().at, std::min(distance, kFilledBytes)));
  }
  const Pace pace = TRY(turns_.take(places));
  say_(fmt::format("{} places {} KiB apart: {}", kind.places, distance >> 10, name_of(pace)));
  return pace;
}

// The search has shown that its first part is one unit. It is one if the last part is as well, and what meets at a boundary shares nothing.
// It is not tried from end to end: on the way back only what is behind the second place is copied.
Result<bool> UnitSearch::is_confirmed(const Kind& kind, std::uint64_t unit) {
  if (TRY(pairs(kind, unit, base_ + unit / 4, base_ + unit - Turns::kMostBytes)) != kind.when_shared) return false;
  for (const std::uint64_t boundary : {base_ + unit, base_ + 2 * unit}) {
    const Pace pace = TRY(pairs(kind, unit, boundary - Turns::kMostBytes, boundary));
    if (pace == Pace::unclear || pace == kind.when_shared) return false;
  }
  return true;
}

// These two places, and the same two in every second unit behind them, so that there are at least `kind.places`.
Result<Pace> UnitSearch::pairs(const Kind& kind, std::uint64_t unit, std::uint64_t first, std::uint64_t second) {
  std::vector<Place> places;
  for (std::uint64_t at = 0; places.size() < kind.places; at += 2 * unit) {
    places.push_back({first + at});
    places.push_back({second + at});
  }
  if (kind.when_shared == Pace::quick)
    for (const Place& place : places) TRY(fill(device_, place.at, Turns::kMostBytes));
  const Pace pace = TRY(turns_.take(places));
  say_(fmt::format("at {} and {} KiB of {}: {}", (first - base_) >> 10, (second - base_) >> 10, unit >> 10, name_of(pace)));
  return pace;
}

// --- one unit stays open ------------------------------------------------------------------------------------------------

Result<std::uint64_t> UnitSearch::find_single() {
  const std::uint64_t whole = TRY(jump(base_, base_ + most_));
  if (whole <= turns_.slow_ns()) return std::uint64_t{0};
  std::uint64_t unit = most_;
  while (unit > kLeastBytes && !turns_.is_late() && share(TRY(jump(base_, base_ + unit / 2)), whole) >= kPart) unit /= 2;
  if (share(TRY(jump(base_, base_ + unit / 4 * 3)), whole) >= kWhole) unit = unit / 4 * 3;
  return TRY(is_confirmed_single(unit, whole)) ? unit : 0;
}

Result<bool> UnitSearch::is_confirmed_single(std::uint64_t unit, std::uint64_t whole_ns) {
  const std::uint64_t quarter = unit / 4;
  if (share(TRY(jump(base_ + quarter, base_ + 3 * quarter)), whole_ns) >= kPart) return false;
  const double across = share(TRY(jump(base_ + 3 * quarter, base_ + 5 * quarter)), whole_ns);
  return across >= kWhole && across <= 1 / kWhole && !turns_.is_late();
}

// What a write to `to` takes when the unit of `from` is the open one: the better of two, since nothing makes it faster than it is.
Result<std::uint64_t> UnitSearch::jump(std::uint64_t from, std::uint64_t to) {
  const std::uint64_t away = base_ + 6 * most_;
  std::uint64_t least = ~0ULL;
  for (int i = 0; i < 2; ++i) {
    for (const std::uint64_t before : {away, from}) TRY(device_.write(before, TimedDevice::kPieceBytes));
    least = std::min(least, TRY(device_.write(to, TimedDevice::kPieceBytes)));
  }
  return least;
}

}  // namespace varve::mkfs
