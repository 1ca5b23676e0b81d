#include "changes/extent_merge.h"

#include <algorithm>

#include "base/invariant.h"

namespace varve::changes {

namespace {

using format::Extent;

struct Stretch {
  std::uint64_t from = 0, to = 0;
};

// The first stretch of changed blocks that ends after `block`, clipped to start there.
std::optional<Stretch> change_after(const FileDelta& delta, std::uint64_t block) {
  std::optional<Stretch> best;
  if (auto entry = delta.blocks.lower_bound(block); entry.valid()) best = Stretch{entry->block, entry->block + 1};
  if (auto range = delta.cleared.first_after(block)) {
    const Stretch cleared{std::max(range->from, block), range->to};
    if (!best || cleared.from <= best->from) best = cleared;
  }
  return best;
}

void keep_rest_of_old(const PlacedExtent& old, const FileDelta& delta, ExtentMerge& merge) {
  const std::uint64_t end = old.first + old.second.length;
  for (std::uint64_t at = old.first; at < end;) {
    const auto change = change_after(delta, at);
    const std::uint64_t kept_to = change ? std::min(end, change->from) : end;
    if (kept_to > at) merge.extents.push_back(part_of(old, at, kept_to));
    if (!change || change->from >= end) return;
    const std::uint64_t gone_to = std::min(end, change->to);
    merge.replaced.push_back(part_of(old, change->from, gone_to));
    at = gone_to;
  }
}

void add_written(const FileDelta& delta, std::uint64_t from, std::uint64_t to, ExtentMerge& merge) {
  for (auto entry = delta.blocks.lower_bound(from); entry.valid() && entry->block < to; entry.next()) {
    if (entry->place.is_tail()) {
      merge.tails.emplace_back(entry->block, delta.tails.at(entry->block));
      continue;
    }
    Extent extent;
    INVARIANT(!entry->place.is_pending());
    extent.address = entry->place.address();
    extent.length = 1;
    extent.clock = entry->clock;
    extent.estimate = entry->place.estimate();
    extent.crcs = {entry->crc};
    merge.extents.emplace_back(entry->block, std::move(extent));
    ++merge.added;
  }
}

void add_unwritten(const FileDelta& delta, std::uint64_t from, std::uint64_t to, ExtentMerge& merge) {
  auto put = [&](std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    Extent extent;
    extent.unwritten = true;
    extent.length = end - begin;
    merge.extents.emplace_back(begin, std::move(extent));
    merge.added_unwritten += end - begin;
  };
  for (auto range = delta.cleared.first_after(from); range && range->from < to;
       range = delta.cleared.first_after(range->to)) {
    if (range->kind != tree::Cleared::unwritten) continue;
    std::uint64_t at = std::max(range->from, from);
    const std::uint64_t end = std::min(range->to, to);
    for (auto entry = delta.blocks.lower_bound(at); entry.valid() && entry->block < end; entry.next()) {
      put(at, entry->block);
      at = entry->block + 1;
    }
    put(at, end);
  }
}

bool joins(const PlacedExtent& left, const PlacedExtent& right) {
  const auto& [l, a] = left;
  const auto& [r, b] = right;
  if (l + a.length != r || a.unwritten != b.unwritten) return false;
  if (a.unwritten) return true;
  return a.address + a.length == b.address && a.clock == b.clock && a.estimate == b.estimate &&
         a.length + b.length <= format::kMaxExtentBlocks;
}

void join_neighbours(std::vector<PlacedExtent>& extents) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (joins(extents[last], extents[i])) {
      auto& crcs = extents[last].second.crcs;
      crcs.insert(crcs.end(), extents[i].second.crcs.begin(), extents[i].second.crcs.end());
      extents[last].second.length += extents[i].second.length;
    } else if (++last != i) {
      extents[last] = std::move(extents[i]);
    }
  }
  if (!extents.empty()) extents.resize(last + 1);
}

}  // namespace

PlacedExtent part_of(const PlacedExtent& whole, std::uint64_t from, std::uint64_t to) {
  const auto& [start, extent] = whole;
  Extent part = extent;
  MEMORY_INVARIANT(from >= start && from < to && to - start <= extent.length);
  part.length = to - from;
  if (!extent.unwritten) {
    part.address = extent.address + (from - start);
    part.crcs.assign(extent.crcs.begin() + static_cast<std::ptrdiff_t>(from - start),
                     extent.crcs.begin() + static_cast<std::ptrdiff_t>(to - start));
  }
  return {from, std::move(part)};
}

bool is_changed(const FileDelta& delta, std::uint64_t block) { return delta.blocks.find(block) || delta.cleared.find(block); }

std::optional<std::uint64_t> next_change(const FileDelta& delta, std::uint64_t block) {
  auto change = change_after(delta, block);
  if (!change) return std::nullopt;
  return change->from;
}

ExtentMerge merge_extents(const std::vector<PlacedExtent>& old_extents, const FileDelta& delta, std::uint64_t from,
                          std::uint64_t to) {
  ExtentMerge merge;
  for (const PlacedExtent& old : old_extents) keep_rest_of_old(old, delta, merge);
  add_written(delta, from, to, merge);
  add_unwritten(delta, from, to, merge);
  std::sort(merge.extents.begin(), merge.extents.end(),
            [](const PlacedExtent& a, const PlacedExtent& b) { return a.first < b.first; });
  join_neighbours(merge.extents);
  return merge;
}

}  // namespace varve::changes
