// Reads tree nodes in batches and reports those that cannot be what their referrer says.
#pragma once

#include <functional>
#include <vector>

#include "base/buffer.h"
#include "check/context.h"
#include "format/node.h"

namespace varve::check {

struct FetchedNode {
  bool good = false;  // otherwise a problem was reported
  format::NodeHeader header;
  std::span<const std::byte> block;
};

struct NodeBatch {
  AlignedBuffer buffer;
  std::vector<FetchedNode> nodes;  // one for each reference
};

class NodeReader {
 public:
  // `place_of`: where a node stands that is referred to by another address; empty: nowhere else.
  using PlaceOf = std::function<BlockAddr(BlockAddr)>;
  explicit NodeReader(Context& context, PlaceOf place_of = {}) : context_(context), place_of_(std::move(place_of)) {}

  NodeBatch fetch(std::span<const format::NodeRef> refs, format::TreeId tree, unsigned level);

 private:
  void complain(Code code, BlockAddr address, std::string detail);
  void judge(const format::NodeRef& ref, format::TreeId tree, unsigned level, FetchedNode& node);

  Context& context_;
  const PlaceOf place_of_;
};

}  // namespace varve::check
