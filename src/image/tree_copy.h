// Copies the nodes of trees, each once. What is damaged is copied as it is, and what is below it is not found.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/buffer.h"
#include "format/item.h"
#include "format/node.h"
#include "image/names.h"
#include "image/report.h"
#include "io/block_device.h"

namespace varve::image {

struct CopiedTree {
  format::TreeId tree{};
  unsigned level = 0;
  // Says where a node stands that the tree calls so; empty: there.
  std::function<BlockAddr(BlockAddr)> place_of = {};
};

// One thread.
class TreeCopy {
 public:
  // For each item of a leaf that is whole, before it is copied. It may change the value, but not its length.
  using Editor = std::function<void(const format::Key&, std::span<std::byte>)>;
  using Write = std::function<Status(BlockAddr, std::span<const std::byte>)>;

  // `names`: null: they stay as they are.
  TreeCopy(io::BlockDevice& source, std::uint64_t identity, std::uint64_t blocks, Names* names, Write write, Report& report)
      : source_(source), identity_(identity), names_(names), write_(std::move(write)), report_(report), done_(blocks) {}

  // Returns the CRC of the copy of the root, where it could be read; else of the root. Errors only of writing.
  Result<std::uint32_t> copy(const format::NodeRef& root, const CopiedTree& tree, const Editor& editor = {});
  // A node without what is below it, to which no tree leads any more.
  Status copy_alone(BlockAddr place);
  // Damaged nodes with items are left out from now on: what they hold cannot be told from content of files.
  void leave_out_damaged() { leaves_out_damaged_ = true; }
  // For a node that is not a tree's: false: it is outside, or has been copied.
  bool claim(BlockAddr place);

 private:
  struct Walk {
    const CopiedTree& tree;
    const Editor& editor;
  };
  BlockAddr place_of(const Walk& walk, BlockAddr named) const { return walk.tree.place_of ? walk.tree.place_of(named) : named; }
  std::uint32_t crc_of(BlockAddr place, std::uint32_t expected) const;
  void note(BlockAddr place, std::uint32_t crc, std::uint32_t expected);
  Result<std::vector<std::uint32_t>> copy_nodes(const Walk& walk, std::span<const format::NodeRef> refs, unsigned level);
  Result<std::uint32_t> copy_node(const Walk& walk, const format::NodeRef& ref, BlockAddr place, std::span<std::byte> block,
                                  unsigned level);
  Result<std::uint32_t> copy_leaf(const Walk& walk, const format::NodeHeader& header, BlockAddr place, std::span<std::byte> block);
  Result<std::uint32_t> copy_interior(const Walk& walk, const format::NodeHeader& header, BlockAddr place, std::span<std::byte> block);
  Result<std::uint32_t> put(BlockAddr place, std::span<const std::byte> block);
  Status copy_map_node(const Walk& walk, const format::NodeHeader& header, BlockAddr place, std::span<std::byte> block);
  Status copy_damaged(format::TreeId tree, BlockAddr place, std::span<const std::byte> block);

  io::BlockDevice& source_;
  const std::uint64_t identity_;
  Names* const names_;
  const Write write_;
  Report& report_;
  std::vector<bool> done_;                                    // by address
  std::unordered_map<std::uint64_t, std::uint32_t> changed_;  // CRCs of those that are others now
  bool leaves_out_damaged_ = false;
};

}  // namespace varve::image
