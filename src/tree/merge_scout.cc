#include "tree/merge_scout.h"

#include <algorithm>

namespace varve::tree {

using format::Key;

namespace {

constexpr std::size_t kBatch = 128;  // nodes; the last parent's children come on top

}  // namespace

bool Evacuation::wants(BlockAddr address, unsigned level, const Key& lower, const Key& bound) const {
  if (options_.evacuate && options_.evacuate(address)) return true;
  const auto& places = options_.evacuate_keys;
  for (auto at = std::ranges::lower_bound(places, NodePlace{lower, 0}); at != places.end() && at->first < bound; ++at)
    if (at->level <= level) return true;
  return false;
}

void MergeScout::start(NodePtr root) {
  const unsigned level = root->header().level;
  ahead_.resize(level + 1);
  if (level > 0) ahead_[level].push_back({std::move(root), format::kMinKey, format::kMaxKey});
}

Status MergeScout::reach(const Key& lower) {
  if (lower < horizon_) return {};
  std::vector<Place> places;
  TRY(fetch_batch(0, places));
  horizon_ = places.empty() ? format::kMaxKey : places.back().bound;
  return {};
}

NodePtr MergeScout::take(const format::NodeRef& ref) {
  const auto at = fetched_.find(ref.address);
  if (at == fetched_.end()) return nullptr;
  NodePtr node = std::move(at->second);
  fetched_.erase(at);
  return node;
}

Result<std::vector<NodeWant>> MergeScout::fetch_batch(unsigned level, std::vector<Place>& places) {
  std::vector<NodeWant> wants;
  while (wants.size() < kBatch && TRY(has_parents(level))) {
    auto& parents = ahead_[level + 1];
    expand(parents.front(), wants, places);
    parents.pop_front();
  }
  // A batch of one gains nothing by being fetched ahead.
  if (wants.size() > 1) source_.prefetch(wants);
  return wants;
}

// There are nodes above `level` to look into, fetched now if need be.
Result<bool> MergeScout::has_parents(unsigned level) {
  if (level + 1 >= ahead_.size()) return false;
  if (ahead_[level + 1].empty() && level + 2 < ahead_.size()) TRY(fetch_interior(level + 1));
  return !ahead_[level + 1].empty();
}

Status MergeScout::fetch_interior(unsigned level) {
  std::vector<Place> places;
  const auto wants = TRY(fetch_batch(level, places));
  for (std::size_t i = 0; i < wants.size(); ++i) {
    places[i].node = TRY(source_.get(wants[i]));
    fetched_[wants[i].ref.address] = places[i].node;
    ahead_[level].push_back(std::move(places[i]));
  }
  return {};
}

void MergeScout::expand(const Place& parent, std::vector<NodeWant>& wants, std::vector<Place>& places) {
  const auto children = parent.node->children();
  const auto level = static_cast<std::uint8_t>(parent.node->header().level - 1);
  std::optional<Key> edit = editor_.peek_key(parent.lower);
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Key lower = i == 0 ? parent.lower : children[i].first;
    const Key bound = i + 1 < children.size() ? children[i + 1].first : parent.bound;
    if (edit && *edit < lower) edit = editor_.peek_key(lower);
    const bool has_edit = edit && *edit < bound;
    if (!has_edit && !evacuation_.wants(children[i].ref.address, level, lower, bound)) continue;
    wants.push_back({children[i].ref, tree_, level});
    places.push_back({nullptr, lower, bound});
  }
}

}  // namespace varve::tree
