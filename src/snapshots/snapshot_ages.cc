#include "snapshots/snapshot_ages.h"

#include <algorithm>
#include <ranges>

#include "format/snapshot.h"
#include "snapshots/snapshots.h"

namespace varve::snapshots {

namespace {
constexpr std::int64_t kBeforeVarve = 1'577'836'800;  // the year 2020 began
constexpr std::int64_t kMostSeconds = std::int64_t{200} * 366 * 86'400;  // longer than any protect=
constexpr std::int64_t kToleratedSeconds = 5;  // that clocks differ
constexpr std::int64_t kUntilSetSeconds = 600;  // a clock that is to be set has been set by then
constexpr std::size_t kMostCorrected = 32;      // by one checkpoint: room for a few leaves of items is planned (admission.cc)

bool is_credible(const Timestamp& made, const Timestamp& now) { return made.seconds >= kBeforeVarve && made.seconds <= now.seconds; }
}  // namespace

SnapshotAges::SnapshotAges(Clock& clock) : clock_(clock), began_seconds_(passed_seconds()), began_(clock.now()) {}

std::int64_t SnapshotAges::passed_seconds() const { return static_cast<std::int64_t>(clock_.ageing_ns() / 1'000'000'000); }

void SnapshotAges::note_made(Serial serial) { ages_[serial.v] = {0, passed_seconds(), true}; }

SnapshotAges::Age& SnapshotAges::age_of(const SnapshotItem& item) {
  const auto [at, is_new] = ages_.try_emplace(item.serial.v);
  if (!is_new) return at->second;
  Age& age = at->second;
  age.at_seconds = began_seconds_;
  age.is_believed = is_credible(item.made, began_);
  if (age.is_believed) age.found_seconds = std::min(began_.seconds - item.made.seconds, kMostSeconds);
  return age;
}

std::int64_t SnapshotAges::seconds(const SnapshotItem& item) {
  const Age& age = age_of(item);
  return age.found_seconds + passed_seconds() - age.at_seconds;
}

// Snapshots of this mount may have been made in the last second before the clock was set back a little.
Timestamp SnapshotAges::shown_made(const SnapshotItem& item) const {
  if (!item.automatic) return item.made;
  const Timestamp now = clock_.now();
  if (now.seconds < kBeforeVarve || is_credible(item.made, {now.seconds + kToleratedSeconds, 0})) return item.made;
  return {now.seconds - (passed_seconds() - began_seconds_), 0};
}

void SnapshotAges::forget_others(const SnapshotList& list) {
  std::erase_if(ages_, [&list](const auto& known) { return !list.find(Serial{known.first}); });
}

std::vector<SnapshotAges::Made> SnapshotAges::corrected(const SnapshotList& list, bool last) {
  if (ages_.size() > 2 * list.items().size()) forget_others(list);
  std::vector<Made> right;
  const Timestamp now = clock_.now();
  if (now.seconds < kBeforeVarve) return right;  // no clock has been set yet
  const bool all = last || passed_seconds() - began_seconds_ >= kUntilSetSeconds;
  for (const SnapshotItem& item : list.items() | std::views::reverse) {
    if (right.size() == kMostCorrected) break;
    if (!item.automatic || item.deleting) continue;
    const Age& age = age_of(item);
    if ((!age.is_believed && !all) || age.found_seconds >= kMostSeconds) continue;
    const Timestamp made{now.seconds - seconds(item), item.made.nanoseconds};
    const std::int64_t most = made.seconds + kToleratedSeconds, least = made.seconds - kToleratedSeconds;
    if (item.made.seconds < least || item.made.seconds > most) right.push_back({item.serial, made});
  }
  return right;
}

}  // namespace varve::snapshots
