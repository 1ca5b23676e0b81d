#include "segments/segment_table.h"

#include <algorithm>
#include <utility>

#include "base/invariant.h"

namespace varve::segments {

SegmentTable::SegmentTable(SegmentGeometry geometry)
    : first_(geometry.first), blocks_(geometry.blocks), count_(geometry.count), limit_(geometry.count), segments_(geometry.count),
      samples_(geometry.count) {}

// To others, what is clean but cannot be had is another state.
SegmentInfo SegmentTable::shown(std::uint64_t index, const SegmentInfo& info) const {
  SegmentInfo copy = info;
  if (!can_be_taken(index) && info.state == SegmentState::clean) copy.state = SegmentState::leaving;
  return copy;
}

void SegmentTable::load(SegmentId id, const format::SegmentRecord& record) {
  const Lock lock(mutex_);
  if (record == format::SegmentRecord{}) return;  // clean, as all are
  SegmentInfo& s = segments_.change(id.v);
  s.tree_live = record.live;
  s.group = record.group;
  s.flags = record.flags;
  s.youngest = record.youngest;
  s.clock_sum = record.clock_sum;
  s.rate_sum = record.rate_sum;
  s.state = record.live ? SegmentState::used : SegmentState::clean;
}

void SegmentTable::set_open(SegmentId id, std::uint8_t group) {
  const Lock lock(mutex_);
  SegmentInfo& s = segments_.change(id.v);
  INVARIANT(s.state == SegmentState::used || s.state == SegmentState::clean || is_open(s.state));
  s.state = SegmentState::open;
  s.group = group;
  s.touched = generation_;
}

void SegmentTable::occupy(SegmentId id) {
  if (id.v >= count_) return;
  const Lock lock(mutex_);
  SegmentInfo& s = segments_.change(id.v);
  if (s.state == SegmentState::clean) s.state = SegmentState::used;
  s.touched = generation_;
}

void SegmentTable::finish_loading() {
  const Lock lock(mutex_);
  clean_ = count_clean(limit_);
  in_use_ = count_ - count_clean(count_);
}

std::uint64_t SegmentTable::count_clean(std::uint64_t limit) const {
  std::uint64_t others = 0;
  segments_.for_each_changed([&](std::uint64_t index, const SegmentInfo& s) { others += index < limit && s.state != SegmentState::clean; });
  INVARIANT(others <= limit);
  return limit - others;
}

std::optional<SegmentId> SegmentTable::take(std::uint8_t group, std::uint64_t clock, From from) {
  const Lock lock(mutex_);
  const std::uint64_t first = lowest_wanted_ ? 0 : cursor_;
  const std::uint64_t limit = limit_;
  for (std::uint64_t step = 0; step < limit; ++step) {
    const std::uint64_t at = (first + step) % limit;
    if (std::as_const(segments_)[at].state != SegmentState::clean) continue;
    SegmentInfo& s = segments_.change(at);
    INVARIANT(s.in_flight == 0 && s.discards == 0);
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
    in_use_.fetch_add(1, std::memory_order_relaxed);
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
  const Lock lock(mutex_);
  SegmentInfo& s = segments_.change(id.v);
  INVARIANT(is_open(s.state));
  if (s.state == SegmentState::open) s.sealed_clock = clock;  // holes are few beside what filled it then
  s.state = SegmentState::used;
}

// Tree nodes are no company for blocks of files (H37).
bool SegmentInfo::has_holes(std::uint64_t settled, std::uint32_t blocks) const {
  return state == SegmentState::used && group != format::kGroupNodes && touched <= settled && in_flight == 0 && discards == 0 &&
         !being_cleaned && live() > 0 && tree_live < blocks;
}

bool SegmentTable::open_holes(SegmentId id, std::uint64_t settled) {
  const Lock lock(mutex_);
  if (!can_be_taken(id.v) || !std::as_const(segments_)[id.v].has_holes(settled, blocks_)) return false;
  segments_.change(id.v).state = SegmentState::refilling;
  return true;
}

void SegmentTable::touch(BlockAddr address) {
  const SegmentGeometry at = geometry();
  if (!at.contains(address)) return;
  const Lock lock(mutex_);
  SegmentInfo& s = segments_.change(at.segment_of(address).v);
  INVARIANT(s.state != SegmentState::clean && s.state != SegmentState::discarding);
  s.touched = generation_;
}

void SegmentTable::add_live(BlockAddr address, std::uint32_t blocks, std::uint32_t clock) {
  const SegmentGeometry at = geometry();
  if (!at.contains(address)) return;
  const Lock lock(mutex_);
  const SegmentId id = at.segment_of(address);
  samples_.written(id, at.index_of(address), blocks, clock);
  SegmentInfo& s = segments_.change(id.v);
  INVARIANT(s.state != SegmentState::clean && s.state != SegmentState::discarding);
  INVARIANT(at.index_of(address) + blocks <= blocks_);
  s.delta_live[generation_ & 1] += static_cast<std::int32_t>(blocks);
  s.touched = generation_;
  s.youngest = std::max(s.youngest, clock);
  s.clock_sum += std::uint64_t{clock} * blocks;
}

void SegmentTable::sub_live(BlockAddr address, std::uint32_t blocks) {
  const SegmentGeometry at = geometry();
  if (!at.contains(address)) return;
  const Lock lock(mutex_);
  const SegmentId id = at.segment_of(address);
  samples_.died(id, at.index_of(address), blocks);
  segments_.change(id.v).delta_live[generation_ & 1] -= static_cast<std::int32_t>(blocks);
}

void SegmentTable::add_in_flight(BlockAddr address, std::uint32_t blocks) {
  const SegmentGeometry at = geometry();
  MEMORY_INVARIANT(at.contains(address));
  const Lock lock(mutex_);
  SegmentInfo& s = segments_.change(at.segment_of(address).v);
  s.in_flight += blocks;
  INVARIANT(s.in_flight <= blocks_);
  INVARIANT(s.state != SegmentState::clean);
}

void SegmentTable::sub_in_flight(BlockAddr address, std::uint32_t blocks) {
  const SegmentGeometry at = geometry();
  MEMORY_INVARIANT(at.contains(address));
  const Lock lock(mutex_);
  SegmentInfo& s = segments_.change(at.segment_of(address).v);
  INVARIANT(s.state != SegmentState::clean);
  if (INVARIANT(s.in_flight >= blocks)) s.in_flight -= blocks;
}

void SegmentTable::set_being_cleaned(SegmentId id, bool value) {
  const Lock lock(mutex_);
  segments_.change(id.v).being_cleaned = value;
}

std::uint64_t SegmentTable::freeze() {
  const Lock lock(mutex_);
  return generation_++;
}

void SegmentTable::merged(std::uint64_t frozen_generation,
                          const std::vector<std::pair<SegmentId, format::SegmentRecord>>& changed) {
  const Lock lock(mutex_);
  INVARIANT(frozen_generation + 1 == generation_);
  segments_.for_each_changed([&](std::uint64_t, SegmentInfo& s) { s.delta_live[frozen_generation & 1] = 0; });
  for (const auto& [id, record] : changed) {
    SegmentInfo& s = segments_.change(id.v);
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
  std::uint64_t clean = 0, held_back = 0;
  segments_.for_each_changed([&](std::uint64_t index, SegmentInfo& s) {
    s.being_cleaned = false;  // what has not become clean now could not be emptied
    if (s.state != SegmentState::used || s.tree_live || s.touched > frozen_generation || s.in_flight) return;
    s.discards += discarding;
    s.state = s.discards ? SegmentState::discarding : SegmentState::clean;
    s.delta_live[0] = s.delta_live[1] = 0;
    freed.push_back(SegmentId{index});
    if (s.discards) ++held_back;
    else clean += can_be_taken(index);
  });
  discarding_ += held_back;
  clean_.fetch_add(clean, std::memory_order_relaxed);
  in_use_.fetch_sub(freed.size() - held_back, std::memory_order_relaxed);
  INVARIANT(clean_ + discarding_ <= count_);
  return freed;
}

bool SegmentTable::begin_discard(SegmentId id, std::optional<std::uint64_t> holes_of) {
  const Lock lock(mutex_);
  if (holes_of) return begin_discard_of_holes(id, *holes_of);
  if (!can_be_taken(id.v) || std::as_const(segments_)[id.v].state != SegmentState::clean) return false;
  INVARIANT(clean_ > 0);
  SegmentInfo& s = segments_.change(id.v);
  s.state = SegmentState::discarding;
  ++s.discards;
  in_use_.fetch_add(1, std::memory_order_relaxed);
  clean_.fetch_sub(1, std::memory_order_relaxed);
  ++discarding_;
  return true;
}

bool SegmentTable::begin_discard_of_holes(SegmentId id, std::uint64_t settled) {
  if (id.v >= count_) return false;
  const SegmentInfo& now = std::as_const(segments_)[id.v];
  if (now.state != SegmentState::used || now.touched > settled || now.in_flight || !now.tree_live) return false;
  ++segments_.change(id.v).discards;
  return true;
}

bool SegmentTable::discarded(SegmentId id) {
  const Lock lock(mutex_);
  MEMORY_INVARIANT(id.v < count_);
  SegmentInfo& s = segments_.change(id.v);
  if (!INVARIANT(s.discards > 0) || --s.discards || s.state != SegmentState::discarding) return false;
  INVARIANT(discarding_ > 0);
  s.state = SegmentState::clean;
  if (can_be_taken(id.v)) clean_.fetch_add(1, std::memory_order_relaxed);
  in_use_.fetch_sub(1, std::memory_order_relaxed);
  --discarding_;
  return true;
}

// Of one that is not there any more: as of one that has left.
SegmentInfo SegmentTable::info(SegmentId id) const {
  const Lock lock(mutex_);
  return id.v < count_ ? shown(id.v, segments_[id.v]) : shown(id.v, {});
}

void SegmentTable::for_each(const std::function<void(SegmentId, const SegmentInfo&)>& visit, Which which) const {
  const Lock lock(mutex_);
  if (which == Which::in_use)
    return segments_.for_each_changed([&](std::uint64_t index, const SegmentInfo& info) {
      if (info.state != SegmentState::clean) visit(SegmentId{index}, info);
    });
  for (std::uint64_t i = 0; i < segments_.size(); ++i) {
    if (can_be_taken(i)) visit(SegmentId{i}, segments_[i]);
    else visit(SegmentId{i}, shown(i, segments_[i]));
  }
}

std::uint64_t SegmentTable::reclaimable() const {
  const Lock lock(mutex_);
  std::uint64_t count = 0;
  segments_.for_each_changed([&](std::uint64_t index, const SegmentInfo& s) {
    count += can_be_taken(index) && s.state == SegmentState::used && s.live() == 0 && s.in_flight == 0;
  });
  return count;
}

// --- another number of segments ------------------------------------------------------------------------------------------

std::uint64_t SegmentTable::End::limit() const { return table_.limit_.load(std::memory_order_acquire); }

void SegmentTable::End::set_limit(std::uint64_t limit) {
  const Lock lock(table_.mutex_);
  INVARIANT(limit > 0 && limit <= table_.count_);
  table_.limit_ = limit;
  table_.clean_ = table_.count_clean(limit);
}

std::uint64_t SegmentTable::End::in_use() const { return table_.in_use_.load(std::memory_order_relaxed); }

std::uint64_t SegmentTable::End::clean_below(std::uint64_t limit) const {
  const Lock lock(table_.mutex_);
  return table_.count_clean(limit);
}

std::uint64_t SegmentTable::End::in_use_from(std::uint64_t limit) const {
  const Lock lock(table_.mutex_);
  return table_.count_ - limit - (table_.count_clean(table_.count_) - table_.count_clean(limit));
}

void SegmentTable::End::resize(std::uint64_t count) {
  const Lock lock(table_.mutex_);
  INVARIANT(count >= table_.count_ || table_.count_ - count == table_.count_clean(table_.count_) - table_.count_clean(count));
  table_.segments_.resize(count);
  table_.samples_.resize(count);
  table_.count_ = table_.limit_ = count;
  table_.clean_ = table_.count_clean(count);
}

}  // namespace varve::segments
