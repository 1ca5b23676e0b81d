// Where blocks stand that old trees name: those that were moved since are in `.sfile` (format/snapshot.h).
#pragma once

#include <map>
#include <vector>

#include "format/snapshot.h"
#include "tree/item_tree.h"

namespace varve::snapshots {

// Of blocks [first, first + length) as the tree of checkpoint `seen` names them: those that stand elsewhere now.
Result<std::map<BlockAddr, BlockAddr>> moved_since(tree::NodeSource& source, const tree::TreeRoot& tables, BlockAddr first,
                                                   std::uint64_t length, Serial seen);

// The addresses by which old trees name the block that stands at `place`, with the checkpoints that moved it away from there.
struct OldName {
  BlockAddr named;
  Serial left;
};
Result<std::vector<OldName>> names_of(tree::NodeSource& source, const tree::TreeRoot& tables, BlockAddr place);

// Nodes for readers of an old tree, wherever they stand now. A moved node keeps its bytes, so it says its first address.
class PlaceSource : public tree::NodeSource {
 public:
  // `tables`: of the newest checkpoint, and as long as this is used.
  PlaceSource(tree::NodeSource& source, tree::NodeCache& cache, const tree::TreeRoot& tables, Serial seen)
      : source_(source), cache_(cache), tables_(tables), seen_(seen) {}

  Result<tree::NodePtr> get(const tree::NodeWant& want) override;
  void prefetch(std::span<const tree::NodeWant> wants) override;

 private:
  Result<tree::NodeWant> placed(const tree::NodeWant& want);

  tree::NodeSource& source_;
  tree::NodeCache& cache_;
  const tree::TreeRoot tables_;
  const Serial seen_;
};

}  // namespace varve::snapshots
