#include "cleaner/plug_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/invariant.h"

namespace varve::cleaner {

namespace {

// Steps that looking for combinations may take: fits are not worth more than that.
constexpr std::uint64_t kMostSteps = 1u << 24;

// One attempt for a fixed set of sources.
class Fit {
 public:
  Fit(std::span<const format::Run> holes, std::uint32_t least_part) : least_part_(std::max<std::uint32_t>(least_part, 1)) {
    for (const format::Run& hole : holes) add_hole(hole);
  }

  void add(const Piece& piece) { pieces_[piece.blocks].push_back(piece.start); }

  // False: something finds no place.
  bool run(PlugPlan& plan) {
    match_perfectly(plan);
    combine(plan);
    fit_loosely(plan);
    return split_rest(plan);
  }

 private:
  using BySize = std::map<std::uint32_t, std::vector<BlockAddr>, std::greater<>>;

  void add_hole(const format::Run& hole) {
    if (hole.blocks) holes_[hole.blocks].push_back(hole.start);
  }
  static BlockAddr take(BySize& from, BySize::iterator at) {
    const BlockAddr address = at->second.back();
    at->second.pop_back();
    if (at->second.empty()) from.erase(at);
    return address;
  }
  // Of a hole of `size` blocks the rest stays one.
  void place(PlugPlan& plan, BlockAddr from, std::uint32_t blocks, BySize::iterator hole) {
    const std::uint32_t size = hole->first;
    INVARIANT(blocks > 0 && blocks <= size);
    const BlockAddr to = take(holes_, hole);
    plan.moves.push_back({from, to, blocks});
    add_hole({to + blocks, size - blocks});
  }

  void match_perfectly(PlugPlan& plan) {
    for (auto piece = pieces_.begin(); piece != pieces_.end();) {
      const auto at = piece++;
      const auto hole = holes_.find(at->first);
      if (hole == holes_.end()) continue;
      for (std::size_t n = std::min(at->second.size(), hole->second.size()); n > 0; --n, ++plan.perfect) {
        const std::uint32_t blocks = at->first;
        plan.moves.push_back({take(pieces_, at), take(holes_, hole), blocks});
      }
    }
  }

  void combine(PlugPlan& plan) {
    std::uint64_t steps = 0;
    std::vector<std::uint32_t> sizes;
    for (const auto& [size, starts] : holes_) sizes.insert(sizes.end(), starts.size(), size);
    for (const std::uint32_t size : sizes) {
      steps += std::uint64_t{size} * pieces_.size();
      if (steps > kMostSteps) return;
      const auto parts = parts_of(size);
      if (parts.empty()) continue;
      BlockAddr to = take(holes_, holes_.find(size));
      for (const std::uint32_t part : parts) {
        plan.moves.push_back({take(pieces_, pieces_.find(part)), to, part});
        to = to + part;
        ++plan.combined;
      }
    }
  }

  // Sizes of pieces that there are, with the given sum; empty when there is no such set. Subset sum, each size as often as
  // there are pieces of it: reached[s] is the size that came last, used[s] how many of it.
  std::vector<std::uint32_t> parts_of(std::uint32_t sum) const {
    std::vector<std::uint32_t> reached(sum + 1, 0), used(sum + 1, 0);
    for (const auto& [size, starts] : pieces_) {
      if (size > sum || reached[sum]) continue;
      std::fill(used.begin(), used.end(), 0);
      for (std::uint32_t s = size; s <= sum; ++s) {
        const bool is_there = s == size || reached[s - size];
        if (reached[s] || !is_there || used[s - size] >= starts.size()) continue;
        reached[s] = size;
        used[s] = used[s - size] + 1;
      }
    }
    std::vector<std::uint32_t> parts;
    for (std::uint32_t s = sum; s > 0 && reached[s]; s -= reached[s]) parts.push_back(reached[s]);
    return std::accumulate(parts.begin(), parts.end(), 0U) == sum ? parts : std::vector<std::uint32_t>{};
  }

  // The smallest hole that takes so many; they are sorted from the largest on.
  BySize::iterator smallest_for(std::uint32_t blocks) {
    auto after = holes_.upper_bound(blocks);
    return after == holes_.begin() ? holes_.end() : std::prev(after);
  }

  void fit_loosely(PlugPlan& plan) {
    for (auto piece = pieces_.begin(); piece != pieces_.end();) {
      const auto at = piece++;
      const std::uint32_t blocks = at->first;
      for (std::size_t n = at->second.size(); n > 0; --n) {
        const auto hole = smallest_for(blocks);
        if (hole == holes_.end()) break;
        place(plan, take(pieces_, at), blocks, hole);
        ++plan.loose;
      }
    }
  }

  bool split_rest(PlugPlan& plan) {
    while (!pieces_.empty()) {
      const std::uint32_t blocks = pieces_.begin()->first;
      if (!split(plan, take(pieces_, pieces_.begin()), blocks)) return false;
      ++plan.split;
    }
    return true;
  }
  bool split(PlugPlan& plan, BlockAddr from, std::uint32_t left) {
    while (left > 0) {
      if (const auto whole = smallest_for(left); whole != holes_.end()) {
        place(plan, from, left, whole);
        return true;
      }
      if (holes_.empty()) return false;
      std::uint32_t part = holes_.begin()->first;  // the largest, and yet less than what is left
      if (left - part < least_part_) part = left - std::min(left, least_part_);
      if (part < least_part_) return false;
      place(plan, from, part, holes_.begin());
      from = from + part;
      left -= part;
    }
    return true;
  }

  const std::uint32_t least_part_;
  BySize pieces_, holes_;
};

std::uint64_t sum_of(std::span<const format::Run> holes) {
  std::uint64_t sum = 0;
  for (const format::Run& hole : holes) sum += hole.blocks;
  return sum;
}

std::uint64_t blocks_of(std::span<const PlugMove> moves) {
  std::uint64_t sum = 0;
  for (const PlugMove& move : moves) sum += move.blocks;
  return sum;
}

}  // namespace

PlugPlan plan_plugs(std::span<const Piece> pieces, std::size_t sources, std::span<const format::Run> holes,
                    std::uint32_t least_part) {
  std::vector<std::uint64_t> live(sources, 0);
  for (const Piece& piece : pieces) live[piece.source] += piece.blocks;
  std::uint64_t wanted = std::accumulate(live.begin(), live.end(), std::uint64_t{0});
  const std::uint64_t room = sum_of(holes);
  for (; sources > 0; wanted -= live[--sources]) {
    if (wanted > room) continue;
    Fit fit(holes, least_part);
    for (const Piece& piece : pieces)
      if (piece.source < sources) fit.add(piece);
    PlugPlan plan;
    if (!fit.run(plan)) continue;
    INVARIANT(blocks_of(plan.moves) == wanted);  // all of them, each once
    plan.emptied.resize(sources);
    std::iota(plan.emptied.begin(), plan.emptied.end(), 0);
    return plan;
  }
  return {};
}

}  // namespace varve::cleaner
