#include "log/chain.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/invariant.h"

namespace varve::log {

namespace {

// Segments with gaps fill sooner than others. Where clean ones may become short, which is when the cleaner begins, nothing is left free.
constexpr std::uint64_t kCleanForGaps = 4;  // one in so many

// What is usual falls slowly: a segment in which the larger ones of some chunks find no room is left early. But for the largest ones no
// gap is kept.
constexpr std::uint64_t kSixteenths = 16, kFall = 32, kMostUsual = 32;

}  // namespace

bool Chain::has_room_for_gaps() const { return segments_.clean() * kCleanForGaps > segments_.end().limit(); }

void Chain::leave_segment() {
  INVARIANT(position_.rest.blocks > 0);
  segments_.close(segments_.geometry().segment_of(position_.rest.start), heads_.clock());
  give_up_gaps();
}

void Chain::give_up_gaps() {
  for (const format::Run& gap : gaps_) given_up_.fetch_add(gap.blocks, std::memory_order_relaxed);
  gaps_.clear();
}

bool Chain::advance() {
  if (!position_.next_run.blocks) return false;
  INVARIANT(!position_.rest.blocks || position_.next_run.start != position_.rest.start);
  if (position_.rest.blocks) leave_segment();
  position_.rest = position_.next_run;
  position_.next_run = {};
  left_.reset();
  return true;
}

void Chain::put_back(const format::Run& run) {
  if (!run.blocks) return;
  const auto next = std::ranges::upper_bound(gaps_, run.start, {}, &format::Run::start);
  INVARIANT(next == gaps_.end() || run.end() <= next->start);
  gaps_.insert(next, run);
}

std::uint64_t Chain::least_useful() const { return divide_up(usual_, kSixteenths); }

// The first gap at or after `begin` in which most chunks have room, from there on. What is before it stays a gap.
std::optional<format::Run> Chain::take_from(BlockAddr begin) {
  const std::uint64_t least = least_useful();
  const auto has_room = [&](const format::Run& gap) { return std::max(gap.start, begin) + least <= gap.end(); };
  const auto first = std::ranges::upper_bound(gaps_, begin, {}, [](const format::Run& gap) { return gap.end(); });
  const auto found = std::find_if(first, gaps_.end(), has_room);
  if (found == gaps_.end()) return std::nullopt;
  const format::Run gap = *found;
  gaps_.erase(found);
  const BlockAddr start = std::max(gap.start, begin);
  put_back({gap.start, static_cast<std::uint32_t>(start - gap.start)});
  return format::Run{start, static_cast<std::uint32_t>(gap.end() - start)};
}

// Where the chunk after one that ends there is to stand: no blocks if the segment has no place for it any more.
format::Run Chain::behind(BlockAddr end, const device::TurnGap::Choice& gap) {
  const format::Run rest{end, static_cast<std::uint32_t>(position_.rest.end() - end)};
  if (!gap.blocks && rest.blocks >= (gap.fills ? least_useful() : 1)) return rest;
  put_back(rest);
  if (const auto further = take_from(end + gap.blocks)) return *further;
  const segments::SegmentGeometry geometry = segments_.geometry();
  const BlockAddr start = geometry.start_of(geometry.segment_of(position_.rest.start));
  if (const auto round = gap.fills ? take_from(start) : std::nullopt) return *round;
  std::erase(gaps_, rest);
  return rest;
}

Result<ChunkPlace> Chain::place(std::uint16_t header_blocks, std::uint32_t payload_blocks, const device::TurnGap::Choice& gap) {
  ChunkPlace place;
  place.header_blocks = header_blocks;
  place.payload_blocks = payload_blocks;
  const std::uint32_t need = place.total_blocks();
  if (position_.rest.blocks < need && !advance())
    return Error(Errc::no_space, "the log has no clean segment left to go on in");
  if (position_.rest.blocks < need) return Error(Errc::invalid, fmt::format("a chunk of {} blocks fits in no run", need));
  const bool names_first = !position_.next_run.blocks;
  if (names_first) {
    if (auto id = segments_.take(format::kGroupChain))
      position_.next_run = {segments_.geometry().start_of(*id), segments_.geometry().blocks};
  }
  usual_ = std::max(std::min<std::uint64_t>(need, kMostUsual) * kSixteenths, usual_ - divide_up(usual_, kFall));
  place.address = position_.rest.start;
  place.next_run = position_.next_run;
  place.before = left_;
  const BlockAddr end = place.address + need;
  following_ = behind(end, names_first ? device::TurnGap::Choice{0, gap.fills} : gap);
  place.run = {place.address, need};
  if (following_.start == end) place.run.blocks += following_.blocks;
  else place.elsewhere = following_;
  place.is_among_gaps = place.elsewhere.blocks || !gaps_.empty();
  return place;
}

void Chain::take(const ChunkPlace& place, std::uint32_t crc) {
  INVARIANT(place.address == position_.rest.start);
  INVARIANT(place.total_blocks() <= position_.rest.blocks);
  segments_.touch(place.address);
  if (!following_.blocks) leave_segment();
  position_.rest = following_;
  position_.crc = crc;
  position_.lsn = position_.lsn + 1;
  const BlockAddr end = place.address + place.total_blocks();
  left_.reset();
  if (following_.blocks && following_.start >= end) left_ = static_cast<std::uint32_t>(following_.start - end);
}

Result<bool> Chain::prepare_to_leave() {
  const auto stands_beyond = [&](const format::Run& run) {
    return run.blocks && segments_.geometry().segment_of(run.start).v >= segments_.end().limit();
  };
  if (!stands_beyond(position_.rest) && !stands_beyond(position_.next_run)) return false;
  if (segments_.clean() == 0) return Error(Errc::no_space, "the log has no clean segment left to go on in");
  if (!position_.rest.blocks) advance();
  INVARIANT(position_.rest.blocks > 0);
  if (stands_beyond(position_.next_run)) {
    segments_.close(segments_.geometry().segment_of(position_.next_run.start), heads_.clock());
    position_.next_run = {};
  }
  if (!stands_beyond(position_.rest)) return true;
  position_.rest.blocks = 1;
  give_up_gaps();
  return true;
}

}  // namespace varve::log
