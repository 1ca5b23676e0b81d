#include "tree/neighbours.h"

#include <algorithm>

namespace varve::tree {

namespace {

constexpr std::size_t kSureAfter = 2;              // nodes of a walk
constexpr std::size_t kLeast = 4, kFarLeast = 16;  // ahead of one; where reads seek
constexpr std::size_t kBehind = 8;                 // where reads seek, and no walk has come from there

NodeWant child_of(const Siblings& siblings, std::size_t at, std::uint8_t level) {
  return {siblings.children[at].ref, siblings.tree, level};
}

// Siblings that a walk has left behind, up to what is missing now.
std::size_t walked(const NodeCache& cache, const Siblings& siblings, std::uint8_t level) {
  std::size_t nodes = 0;
  while (nodes < siblings.at && nodes < kMostNodesInRun && cache.contains(child_of(siblings, siblings.at - nodes - 1, level))) ++nodes;
  return nodes;
}

// Collects in both directions what stands near enough to what is there already.
class Collection {
 public:
  Collection(const NodeCache& cache, BlockAddr start, bool seeks)
      : cache_(cache), first_(start), last_(start), most_(most_between(seeks)) {}

  void add_ahead(const NodeWant& want) {
    const BlockAddr place = want.ref.address;
    if (place <= last_ || place - last_ > most_ + 1 || place - first_ >= kMostNodesInRun || cache_.contains(want)) return;
    last_ = place;
    found_.push_back(want);
  }
  void add_behind(const NodeWant& want) {
    const BlockAddr place = want.ref.address;
    if (!place || place >= first_ || first_ - place > most_ + 1 || last_ - place >= kMostNodesInRun || cache_.contains(want)) return;
    first_ = place;
    found_.push_back(want);
  }
  std::size_t size() const { return found_.size(); }
  std::vector<NodeWant> take() { return std::move(found_); }

 private:
  const NodeCache& cache_;
  BlockAddr first_, last_;
  const std::uint64_t most_;
  std::vector<NodeWant> found_;
};

}  // namespace

// As far ahead as the walk has come, so that at most half of what is read is read for nothing. Some siblings have been rewritten
// elsewhere since: the others are near all the same.
std::vector<NodeWant> neighbours_of(const NodeCache& cache, const Siblings& siblings, std::uint8_t level, bool seeks) {
  const std::size_t behind = walked(cache, siblings, level);
  if (behind < kSureAfter && !seeks) return {};
  const std::size_t ahead = std::max(seeks ? kFarLeast : kLeast, 2 * behind);
  Collection found(cache, siblings.children[siblings.at].ref.address, seeks);
  const std::size_t end = std::min(siblings.children.size(), siblings.at + 1 + 2 * ahead);
  for (std::size_t i = siblings.at + 1; i < end && found.size() < ahead; ++i) found.add_ahead(child_of(siblings, i, level));
  if (behind > 0 || !seeks) return found.take();
  const std::size_t begin = siblings.at - std::min(siblings.at, 2 * kBehind);
  for (std::size_t i = siblings.at; i > begin && found.size() < ahead + kBehind; --i) found.add_behind(child_of(siblings, i - 1, level));
  return found.take();
}

std::size_t run_length(std::span<const NodeWant> wants, std::uint64_t most_between) {
  std::size_t n = 1;
  while (n < wants.size() && wants[n].where() - wants[n - 1].where() <= most_between + 1 &&
         wants[n].where() - wants[0].where() < kMostNodesInRun)
    ++n;
  return n;
}

}  // namespace varve::tree
