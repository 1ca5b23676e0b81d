// Goes ahead of a merge and fetches, in large batches, the nodes that it will need. The tree is read level by level for
// a stretch of keys, so that scattered edits in an uncached tree still keep a deep queue busy.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "tree/item_merge.h"

namespace varve::tree {

// Which nodes must be rewritten although nothing in them changes.
class Evacuation {
 public:
  explicit Evacuation(const MergeOptions& options) : options_(options) {}
  // The node itself, of `level` with keys in [lower, bound), or one below it.
  bool wants(BlockAddr address, unsigned level, const format::Key& lower, const format::Key& bound) const;

 private:
  const MergeOptions& options_;
};

class MergeScout {
 public:
  MergeScout(NodeSource& source, ItemEditor& editor, const Evacuation& evacuation, format::TreeId tree)
      : source_(source), editor_(editor), evacuation_(evacuation), tree_(tree) {}

  void start(NodePtr root);
  // The merge goes on at a node that begins at `lower`: fetches what comes from there on, unless that has been done.
  Status reach(const format::Key& lower);
  // An interior node that has been fetched ahead, or null.
  NodePtr take(const format::NodeRef& ref);

 private:
  struct Place {
    NodePtr node;
    format::Key lower, bound;
  };

  Status fetch_interior(unsigned level);
  Result<std::vector<NodeWant>> fetch_batch(unsigned level, std::vector<Place>& places);
  Result<bool> has_parents(unsigned level);
  void expand(const Place& parent, std::vector<NodeWant>& wants, std::vector<Place>& places);

  NodeSource& source_;
  ItemEditor& editor_;
  const Evacuation& evacuation_;
  const format::TreeId tree_;
  std::vector<std::deque<Place>> ahead_;  // [level]: interior nodes whose children have not been fetched yet
  std::unordered_map<BlockAddr, NodePtr> fetched_;  // interior nodes that the merge has not come to yet
  format::Key horizon_ = format::kMinKey;           // leaves that begin before it have been fetched
};

}  // namespace varve::tree
