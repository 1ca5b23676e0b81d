#include "log/segment_table.h"

#include <algorithm>

#include "base/invariant.h"

namespace varve::log {

SegmentTable::SegmentTable(SegmentGeometry geometry) : geometry_(geometry), segments_(geometry.count), samples_(geometry.count) {}

void SegmentTable::load(SegmentId id, const format::SegmentRecord& record) {
  MEMORY_INVARIANT(id.v < geometry_.count);
  const Lock lock(mutex_);
  SegmentInfo& s = segments_[id.v];
  s.tree_live = record.live;
  s.group = record.group;
  s.flags = record.flags;
  s.youngest = record.youngest;
  s.clock_sum = record.clock_sum;
  s.rate_sum = record.rate_sum;
  s.state = record.live ? SegmentState::used : SegmentState::clean;
}

void SegmentTable::set_open(SegmentId id, std::uint8_t group) {
  MEMORY_INVARIANT(id.v < geometry_.count);
  const Lock lock(mutex_);
  INVARIANT(segments_[id.v].state == SegmentState::used || segments_[id.v].state == SegmentState::clean || is_open(segments_[id.v].state));
  segments_[id.v].state = SegmentState::open;
  segments_[id.v].group = group;
  segments_[id.v].touched = generation_;
}

void SegmentTable::occupy(SegmentId id) {
  if (id.v >= geometry_.count) return;
  const Lock lock(mutex_);
  SegmentInfo& s = segments_[id.v];
  if (s.state == SegmentState::clean) s.state = SegmentState::used;
  s.touched = generation_;
}

void SegmentTable::finish_loading() {
  const Lock lock(mutex_);
  std::uint64_t clean = 0;
  for (const SegmentInfo& s : segments_) clean += s.state == SegmentState::clean;
  clean_ = clean;
}

std::optional<SegmentId> SegmentTable::take(std::uint8_t group, std::uint64_t clock, From from) {
  const Lock lock(mutex_);
  const std::uint64_t first = lowest_wanted_ ? 0 : cursor_;
  for (std::uint64_t step = 0; step < segments_.size(); ++step) {
    const std::uint64_t at = (first + step) % segments_.size();
    SegmentInfo& s = segments_[at];
    if (s.state != SegmentState::clean) continue;
    INVARIANT(s.in_flight == 0);
    INVARIANT(clean_ > 0);
    s.state = SegmentState::open;
    s.group = group;
    s.touched = generation_;
    s.youngest = 0;
    s.clock_sum = s.rate_sum = 0;
    s.opened_clock = clock;
    samples_.emptied(SegmentId{at});
    cursor_ = at + 1;
    // In this order: a thread that looks in between sees too little room rather than too much.
    clean_.fetch_sub(1, std::memory_order_relaxed);
    if (from == From::promised && promised()) promised_.fetch_sub(1, std::memory_order_relaxed);
    return SegmentId{at};
  }
  INVARIANT(clean_ == 0);
  return std::nullopt;
}

void SegmentTable::prefer_lowest(bool wanted) {
  const Lock lock(mutex_);
  if (wanted) ++lowest_wanted_;
  else if (INVARIANT(lowest_wanted_ > 0)) --lowest_wanted_;
}

void SegmentTable::close(SegmentId id, std::uint64_t clock) {
  MEMORY_INVARIANT(id.v < geometry_.count);
  const Lock lock(mutex_);
  SegmentInfo& s = segments_[id.v];
  INVARIANT(is_open(s.state));
  if (s.state == SegmentState::open) s.sealed_clock = clock;  // holes are few beside what filled it then
  s.state = SegmentState::used;
}

// Tree nodes are no company for blocks of files (H37).
bool SegmentTable::has_holes(const SegmentInfo& s, std::uint64_t settled) const {
  return s.state == SegmentState::used && s.group != format::kGroupNodes && s.touched <= settled && s.in_flight == 0 &&
         !s.being_cleaned && s.live() > 0 && s.tree_live < geometry_.blocks;
}

bool SegmentTable::open_holes(SegmentId id, std::uint64_t settled) {
  MEMORY_INVARIANT(id.v < geometry_.count);
  const Lock lock(mutex_);
  if (!has_holes(segments_[id.v], settled)) return false;
  segments_[id.v].state = SegmentState::refilling;
  return true;
}

void SegmentTable::touch(BlockAddr address) {
  if (!geometry_.contains(address)) return;
  const Lock lock(mutex_);
  SegmentInfo& s = segments_[geometry_.segment_of(address).v];
  INVARIANT(s.state != SegmentState::clean && s.state != SegmentState::discarding);
  s.touched = generation_;
}

void SegmentTable::add_live(BlockAddr address, std::uint32_t blocks, std::uint32_t clock) {
  if (!geometry_.contains(address)) return;
  const Lock lock(mutex_);
  const SegmentId id = geometry_.segment_of(address);
  samples_.written(id, geometry_.index_of(address), blocks, clock);
  SegmentInfo& s = segments_[id.v];
  INVARIANT(s.state != SegmentState::clean && s.state != SegmentState::discarding);
  INVARIANT(geometry_.index_of(address) + blocks <= geometry_.blocks);
  s.delta_live[generation_ & 1] += static_cast<std::int32_t>(blocks);
  s.touched = generation_;
  s.youngest = std::max(s.youngest, clock);
  s.clock_sum += std::uint64_t{clock} * blocks;
}

void SegmentTable::sub_live(BlockAddr address, std::uint32_t blocks) {
  if (!geometry_.contains(address)) return;
  const Lock lock(mutex_);
  const SegmentId id = geometry_.segment_of(address);
  samples_.died(id, geometry_.index_of(address), blocks);
  segments_[id.v].delta_live[generation_ & 1] -= static_cast<std::int32_t>(blocks);
}

void SegmentTable::add_in_flight(BlockAddr address, std::uint32_t blocks) {
  MEMORY_INVARIANT(geometry_.contains(address));
  const Lock lock(mutex_);
  SegmentInfo& s = segments_[geometry_.segment_of(address).v];
  s.in_flight += blocks;
  INVARIANT(s.in_flight <= geometry_.blocks);
  INVARIANT(s.state != SegmentState::clean);
}

void SegmentTable::sub_in_flight(BlockAddr address, std::uint32_t blocks) {
  MEMORY_INVARIANT(geometry_.contains(address));
  const Lock lock(mutex_);
  SegmentInfo& s = segments_[geometry_.segment_of(address).v];
  INVARIANT(s.state != SegmentState::clean);
  if (INVARIANT(s.in_flight >= blocks)) s.in_flight -= blocks;
}

void SegmentTable::set_being_cleaned(SegmentId id, bool value) {
  MEMORY_INVARIANT(id.v < geometry_.count);
  const Lock lock(mutex_);
  segments_[id.v].being_cleaned = value;
}

std::uint64_t SegmentTable::freeze() {
  const Lock lock(mutex_);
  return generation_++;
}

void SegmentTable::merged(std::uint64_t frozen_generation,
                          const std::vector<std::pair<SegmentId, format::SegmentRecord>>& changed) {
  const Lock lock(mutex_);
  INVARIANT(frozen_generation + 1 == generation_);
  for (SegmentInfo& s : segments_) s.delta_live[frozen_generation & 1] = 0;
  for (const auto& [id, record] : changed) {
    MEMORY_INVARIANT(id.v < geometry_.count);
    SegmentInfo& s = segments_[id.v];
    s.tree_live = record.live;
    s.flags = record.flags;
    s.clock_sum = record.clock_sum;
    s.rate_sum = record.rate_sum;
  }
}

std::vector<SegmentId> SegmentTable::settle(std::uint64_t frozen_generation, bool discarding) {
  const Lock lock(mutex_);
  INVARIANT(frozen_generation <= generation_);
  std::vector<SegmentId> freed;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    SegmentInfo& s = segments_[i];
    s.being_cleaned = false;  // what has not become clean now could not be emptied
    if (s.state != SegmentState::used || s.tree_live || s.touched > frozen_generation || s.in_flight) continue;
    s.state = discarding ? SegmentState::discarding : SegmentState::clean;
    s.delta_live[0] = s.delta_live[1] = 0;
    freed.push_back(SegmentId{i});
  }
  if (discarding) discarding_ += freed.size();
  else clean_.fetch_add(freed.size(), std::memory_order_relaxed);
  INVARIANT(clean_ + discarding_ <= geometry_.count);
  return freed;
}

bool SegmentTable::begin_discard(SegmentId id) {
  MEMORY_INVARIANT(id.v < geometry_.count);
  const Lock lock(mutex_);
  if (segments_[id.v].state != SegmentState::clean) return false;
  INVARIANT(clean_ > 0);
  segments_[id.v].state = SegmentState::discarding;
  clean_.fetch_sub(1, std::memory_order_relaxed);
  ++discarding_;
  return true;
}

void SegmentTable::discarded(SegmentId id) {
  MEMORY_INVARIANT(id.v < geometry_.count);
  const Lock lock(mutex_);
  if (segments_[id.v].state != SegmentState::discarding) return;
  INVARIANT(discarding_ > 0);
  segments_[id.v].state = SegmentState::clean;
  clean_.fetch_add(1, std::memory_order_relaxed);
  --discarding_;
}

SegmentInfo SegmentTable::info(SegmentId id) const {
  if (id.v >= geometry_.count) return {};
  const Lock lock(mutex_);
  return segments_[id.v];
}

void SegmentTable::for_each(const std::function<void(SegmentId, const SegmentInfo&)>& visit) const {
  const Lock lock(mutex_);
  for (std::size_t i = 0; i < segments_.size(); ++i) visit(SegmentId{i}, segments_[i]);
}

std::uint64_t SegmentTable::reclaimable() const {
  const Lock lock(mutex_);
  std::uint64_t count = 0;
  for (const SegmentInfo& s : segments_)
    count += s.state == SegmentState::used && s.live() == 0 && s.in_flight == 0;
  return count;
}

}  // namespace varve::log
