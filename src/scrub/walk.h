// Goes once over everything that the newest checkpoint refers to and reads it from the device: superblocks, tree nodes,
// blocks of files, and what only snapshots hold (kept_blocks.h). In small steps, on a filesystem that is being used.
//
// Nothing is locked while it reads. A checkpoint's blocks are written once and not used for anything else before the
// next checkpoint has taken its place (docs/design.md 8). So what does not match counts only if the checkpoint is still
// the newest afterwards. Otherwise the step is repeated on the new one. What is written after the walk has passed its
// place is not read; neither is what no checkpoint holds yet. What a deleted snapshot leaves to an older one may pass by the walk, too.
//
// A mount that shows a snapshot has that one's tree read instead of the newest.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "scrub/finding.h"
#include "scrub/kept_blocks.h"
#include "tree/node_cache.h"
#include "tree/tree_view.h"

namespace varve::scrub {

struct Position {
  format::TreeId tree = format::TreeId::inode_file;  // in the order of their numbers; with .sfile what snapshots hold
  format::Key next = format::kMinKey;                // everything before it has been verified

  bool operator==(const Position&) const = default;
};

// Belongs to one thread, whichever it is.
class Walk {
 public:
  using Report = std::function<void(const Finding&)>;
  // A step reads at most about this much: 1 MiB of data and the nodes on the way.
  static constexpr std::uint64_t kStepBlocks = 256;

  Walk(store::Store& store, const Position& from, Report report);

  struct Step {
    std::uint64_t blocks = 0;      // read from the device
    std::uint64_t unreadable = 0;  // of them, those that the device refused
    std::uint64_t looked_up = 0;   // blocks read for finding others, about
    bool done = false;             // everything has been visited
  };
  // Findings are reported from inside.
  Step step() EXCLUDES(the_gate);
  const Position& position() const { return position_; }

 private:
  struct Frame {  // an interior node on the way to the leaf
    tree::NodePtr node;
    format::Key bound;  // the first key that is not below it
  };
  struct Child {
    format::NodeRef ref;
    format::Key first, bound;
  };
  struct Place {  // where a leaf is gone on with
    format::Key next;
    std::uint64_t left = 0;  // of the piece there: blocks at its end that have not been verified; 0: all of them
  };

  void refresh();
  bool is_current();
  void begin_tree(format::TreeId tree);
  format::NodeRef root() const;
  std::uint8_t root_level() const;
  const tree::MapRoot& map() const;
  bool is_map() const { return !format::is_item_tree(position_.tree); }
  bool shows_snapshot() const { return view_.kept && position_.tree == format::TreeId::inode_file; }

  bool find_leaf();
  bool enter(const Child& child, std::uint8_t level, bool is_root);
  std::optional<Child> next_child(const Frame& frame) const;
  std::uint64_t records_below(unsigned level) const;
  Result<tree::NodePtr> read_node(const Child& child, std::uint8_t level, bool is_root);
  Result<BlockAddr> place_of(const format::NodeRef& ref);
  void report_node(const Child& child, std::uint8_t level, const Error& error);

  void verify_leaf();
  Place collect(std::vector<Block>& blocks);
  Place collect_kept(std::vector<Block>& blocks);
  void find_places(std::vector<Block>& blocks, std::size_t from);
  void read_blocks(std::vector<Block>& blocks);
  void read_run(std::span<Block> run);
  void verify(std::span<const std::byte> bytes, Block& block);
  bool is_superseded(const Block& block);
  bool is_of_nobody(Block& block);
  void report_blocks(std::vector<Block>& bad);
  void report_block(const Block& block, std::uint64_t blocks);

  store::Store& store_;
  Position position_;
  const Report report_;
  tree::TreeView view_;
  KeptBlocks kept_;
  std::uint64_t left_ = 0;    // Place::left, of the piece at the position
  bool doubtful_ = false;     // something could not be looked up
  std::vector<Frame> path_;  // root first, all of view_
  std::optional<Frame> leaf_;
  Step step_;
};

// The superblocks, anchors included, and their image in the log. Each copy is read again for half a
// second before it is called bad: one may just be written.
void verify_superblocks(store::Store& store, const Walk::Report& report);

}  // namespace varve::scrub
