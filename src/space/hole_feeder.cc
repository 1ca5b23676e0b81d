#include "space/hole_feeder.h"

#include <algorithm>

#include "device/faults.h"
#include "log/log.h"
#include "segments/hole_pool.h"
#include "space/charge.h"
#include "space/demand.h"
#include "space/holes.h"
#include "space/space.h"
#include "tree/trees.h"

namespace varve::space {

namespace {
constexpr std::uint64_t kReady = (4u << 20) >> kBlockShift;  // blocks: some seals ahead
constexpr std::uint64_t kFewestReady = 64, kShareOfCapacity = 64;
constexpr std::uint64_t kNever = ~0ULL;
}  // namespace

HoleFeeder::HoleFeeder(const Parts& parts) : parts_(parts), wanted_(kReady) {}

void HoleFeeder::begin(const void* owner, const HoleFeederRules& rules) {
  const Lock lock(mutex_);
  std::erase_if(rules_, [&](const auto& entry) { return entry.first == owner; });
  rules_.emplace_back(owner, rules);
  apply();
}

void HoleFeeder::end(const void* owner) {
  const Lock lock(mutex_);
  std::erase_if(rules_, [&](const auto& entry) { return entry.first == owner; });
  apply();
}

void HoleFeeder::apply() {
  const HoleFeederRules rules = rules_.empty() ? HoleFeederRules{.below = 0} : rules_.back().second;
  below_ = rules.below;
  most_piece_ = rules.most_piece;
  spares_cleaning_ = rules.spares_cleaning;
  on_ = !rules_.empty();
  found_nothing_in_ = kNever;
}

HoleFeederRules HoleFeeder::rules() const {
  const Lock lock(mutex_);
  return rules_.empty() ? HoleFeederRules{} : rules_.back().second;
}

void HoleFeeder::freeze() {
  // What is kept for the holes that stand ready must not be what cleaning lacks.
  if (on_ && parts_.space.admits_users_into_holes({})) parts_.log.heads().give_up_begun_holes();
  else parts_.log.heads().give_up_holes();
  std::erase_if(left_out_, [this](const auto& entry) {
    return parts_.segments.info(entry.first).state != segments::SegmentState::refilling;
  });
}

bool HoleFeeder::give_up_stale() {
  if (stale_blocks() < parts_.segments.geometry().blocks) return false;
  const Gate::Closure closed(parts_.gate);
  if (parts_.space.anything_waits() && !parts_.space.has_room_without_holes()) return false;
  parts_.log.heads().give_up_holes();
  found_nothing_in_ = kNever;
  return true;
}

// Free, but not ready to be written, though not too small for that. It looks at all segments, so users are not kept out meanwhile.
std::uint64_t HoleFeeder::stale_blocks() const {
  const Gate::Pass pass(parts_.gate);
  std::uint64_t free = 0;
  parts_.segments.for_each([&](SegmentId id, const segments::SegmentInfo& segment) REQUIRES_SHARED(the_gate) {
    if (segment.state != segments::SegmentState::refilling) return;
    const auto left_out = left_out_.find(id);
    const std::uint64_t usable = parts_.segments.geometry().blocks - (left_out == left_out_.end() ? 0 : left_out->second);
    free += usable - std::min<std::uint64_t>(usable, segment.live());
  }, segments::SegmentTable::Which::in_use);
  return free - std::min(free, parts_.log.heads().holes().blocks());
}

std::uint64_t HoleFeeder::most_ready() const { return std::max(parts_.charge.capacity_blocks() / kShareOfCapacity, kFewestReady); }

// Twice what users took since the last time, if that was most of it. Usually half of it is left, and so much is enough.
void HoleFeeder::adapt() {
  const std::uint64_t left = ready_blocks(), taken = ready_ - std::min(ready_, left), wanted = wanted_;
  const std::uint64_t next = taken > wanted / 4 * 3 ? 2 * taken : wanted - wanted / 16;
  wanted_ = std::min(std::max(next, kReady), most_ready());
  ready_ = left;
}

std::uint64_t HoleFeeder::ready_blocks() const {
  const Gate::Pass pass(parts_.gate);
  return parts_.log.heads().holes().blocks();
}

bool HoleFeeder::has_enough() const {
  const Gate::Pass pass(parts_.gate);
  const segments::HolePool& holes = parts_.log.heads().holes();
  return holes.blocks() >= wanted_ || holes.untouched() >= most_segments();
}

// Open segments cannot be cleaned, and a checkpoint keeps room for the reverse maps of all of them.
std::uint64_t HoleFeeder::most_segments() const {
  return std::clamp<std::uint64_t>(parts_.segments.geometry().count / 8, 2, 256);
}

bool HoleFeeder::feeds() const {
  return on_ && parts_.segments.clean() <= below_ && found_nothing_in_ != parts_.log.settled().v;
}

std::uint64_t HoleFeeder::room() const {
  if (!spares_cleaning()) return 0;
  const std::uint64_t in_use = parts_.segments.end().in_use() * parts_.segments.geometry().blocks;
  const Gate::Pass pass(parts_.gate);
  return in_use - std::min(in_use, parts_.trees.view().live_blocks);
}

bool HoleFeeder::is_hungry() const {
  if (!feeds() || parts_.faults.read_only()) return false;
  const Gate::Pass pass(parts_.gate);
  const segments::HolePool& holes = parts_.log.heads().holes();
  return holes.blocks() < wanted_ / 2 && holes.untouched() < most_segments() / 2 + 1;
}

bool HoleFeeder::feed() {
  adapt();
  if (has_enough()) return false;
  const HoleFeederRules rules = this->rules();
  const std::uint64_t count = parts_.segments.geometry().count;
  const std::uint64_t settled = parts_.log.settled().v;
  bool fed = false, no_room = false;
  for (std::uint64_t step = 0; step < count && !no_room && !has_enough(); ++step) {
    const SegmentId segment{(cursor_.v + step) % count};
    if (!feed_segment(segment, rules.least_run, no_room)) continue;
    fed = true;
    cursor_ = SegmentId{(segment.v + 1) % count};
    step = ~0ULL;  // from there, once round
  }
  if (!fed) found_nothing_in_ = settled;
  ready_ = ready_blocks();
  return fed;
}

HoleFeeder::Fill HoleFeeder::holes_to_fill(SegmentId segment, std::uint32_t least_run) {
  const segments::SegmentTable& segments = parts_.segments;
  const tree::TreeView& view = parts_.trees.own_view();
  const segments::SegmentInfo info = segments.info(segment);
  const std::pair looks{info.touched, info.live()};
  if (!info.has_holes(view.generation, segments.geometry().blocks)) return {};
  if (const auto at = unmapped_.find(segment); at != unmapped_.end() && at->second == looks) return {};
  tree::BlockingSource source = parts_.trees.source();
  auto holes = holes_of(source, view, segments.geometry(), segment);
  if (!holes.ok()) return {};  // an operation that needs that map will say so
  Fill fill;
  for (const format::Run& hole : *holes) {
    if (hole.blocks < least_run) fill.left_out += hole.blocks;
    else fill.holes.push_back(hole);
  }
  if (check_reverse_map(source, view, fill.holes).ok()) return fill;
  unmapped_.insert_or_assign(segment, looks);
  return {};
}

// What has to be read is, before the gate is closed.
bool HoleFeeder::feed_segment(SegmentId segment, std::uint32_t least_run, bool& no_room) {
  const Fill fill = holes_to_fill(segment, least_run);
  if (fill.holes.empty()) return false;
  const Gate::Closure closed(parts_.gate);
  if (!on_ || !parts_.space.admits_users_into_holes({.scattered = 1})) {
    no_room = true;
    return false;
  }
  if (!parts_.segments.open_holes(segment, parts_.trees.own_view().generation)) return false;
  parts_.log.heads().add_holes(segment, fill.holes);
  left_out_.insert_or_assign(segment, fill.left_out);
  return true;
}

}  // namespace varve::space
