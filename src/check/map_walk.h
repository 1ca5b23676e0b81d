// Walks the radix tree of a map twice: first its interior nodes, which tells where all its nodes stand; then, when every
// block has found its owner, the records.
#pragma once

#include <functional>

#include "check/claims.h"
#include "check/node_reader.h"

namespace varve::check {

class MapWalk {
 public:
  // Called for each leaf that exists, in order; `records` is the whole payload, empty when the leaf is unreadable.
  using LeafVisitor = std::function<void(std::uint64_t first_record, std::span<const std::byte> records)>;

  MapWalk(Context& context, format::TreeId tree, const format::NodeRef& root, const format::MapShape& shape)
      : context_(context), tree_(tree), root_(root), shape_(shape), reader_(context) {}

  void claim_nodes(Claims& claims);
  void visit_leaves(const LeafVisitor& visitor);

 private:
  struct Subtree {
    format::NodeRef ref;
    std::uint64_t index;  // among the nodes of its level
  };

  bool claim(Claims& claims, BlockAddr address, unsigned level);
  void claim_below(Claims& claims, std::span<const Subtree> nodes, unsigned level);
  void visit_below(std::span<const Subtree> nodes, unsigned level, const LeafVisitor& visitor);
  NodeBatch fetch(std::span<const Subtree> nodes, unsigned level);
  bool is_well_placed(const FetchedNode& node, std::uint64_t index, unsigned level);
  std::vector<Subtree> children_of(const FetchedNode& node, std::uint64_t index, unsigned level);

  Context& context_;
  format::TreeId tree_;
  format::NodeRef root_;
  format::MapShape shape_;
  NodeReader reader_;
};

}  // namespace varve::check
