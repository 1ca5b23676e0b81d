#include "tree/block_map.h"

#include <algorithm>

#include "base/invariant.h"

namespace varve::tree {

std::size_t BlockMap::leaf_of(std::uint64_t block) const {
  auto after = std::upper_bound(leaves_.begin(), leaves_.end(), block,
                                [](std::uint64_t b, const Leaf& leaf) { return b < leaf.first; });
  return after == leaves_.begin() ? 0 : static_cast<std::size_t>(after - leaves_.begin()) - 1;
}

namespace {
auto position_in(const std::vector<BlockEntry>& entries, std::uint64_t block) {
  return std::lower_bound(entries.begin(), entries.end(), block,
                          [](const BlockEntry& e, std::uint64_t b) { return e.block < b; });
}
}  // namespace

BlockEntry* BlockMap::find(std::uint64_t block) {
  if (leaves_.empty()) return nullptr;
  auto& entries = leaves_[leaf_of(block)].entries;
  auto at = position_in(entries, block);
  if (at == entries.end() || at->block != block) return nullptr;
  return &entries[static_cast<std::size_t>(at - entries.begin())];
}

BlockEntry& BlockMap::insert(std::uint64_t block) {
  if (leaves_.empty()) leaves_.push_back({block, {}});
  std::size_t index = leaf_of(block);
  if (leaves_[index].entries.size() >= kLeafEntries) {
    // Appending keeps full leaves full; anything else splits in the middle.
    const bool append = index + 1 == leaves_.size() && block > leaves_[index].entries.back().block;
    const std::size_t cut = append ? kLeafEntries : kLeafEntries / 2;
    Leaf right;
    right.entries.reserve(kLeafEntries);
    auto& entries = leaves_[index].entries;
    right.entries.assign(entries.begin() + static_cast<std::ptrdiff_t>(cut), entries.end());
    entries.resize(cut);
    right.first = right.entries.empty() ? block : right.entries[0].block;
    leaves_.insert(leaves_.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::move(right));
    if (block >= leaves_[index + 1].first) ++index;
  }
  auto& entries = leaves_[index].entries;
  auto at = position_in(entries, block);
  if (at != entries.end() && at->block == block) return entries[static_cast<std::size_t>(at - entries.begin())];
  INVARIANT(entries.size() < kLeafEntries);
  auto placed = entries.insert(at, BlockEntry{block, {}, 0, 0});
  leaves_[index].first = entries[0].block;
  ++size_;
  return *placed;
}

std::uint64_t BlockMap::end_block() const {
  if (leaves_.empty()) return 0;
  MEMORY_INVARIANT(!leaves_.back().entries.empty());
  return leaves_.back().entries.back().block + 1;
}

BlockMap::Position BlockMap::lower_bound(std::uint64_t block) const {
  if (leaves_.empty()) return {*this, 0, 0};
  const std::size_t leaf = leaf_of(block);
  const auto& entries = leaves_[leaf].entries;
  const auto at = static_cast<std::size_t>(position_in(entries, block) - entries.begin());
  return at < entries.size() ? Position(*this, leaf, at) : Position(*this, leaf + 1, 0);
}

}  // namespace varve::tree
