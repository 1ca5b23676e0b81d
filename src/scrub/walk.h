// Goes once over everything that the newest checkpoint refers to and reads it from the device: superblocks, tree nodes,
// blocks of files. In small steps, on a filesystem that is being used.
//
// Nothing is locked while it reads. A checkpoint's blocks are written once and not used for anything else before the
// next checkpoint has taken its place (docs/design.md 8); so what does not match counts only if the checkpoint is still
// the newest afterwards, otherwise the step is repeated on the new one. What is written after the walk has passed its
// place is not read; neither is what no checkpoint holds yet.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "store/store.h"
#include "scrub/finding.h"

namespace varve::scrub {

struct Position {
  format::TreeId tree = format::TreeId::inode_file;  // in the order of their numbers
  format::Key next = format::kMinKey;                // everything before it has been verified

  bool operator==(const Position&) const = default;
};

// Belongs to one thread, which may be any but one inside the gate.
class Walk {
 public:
  using Report = std::function<void(const Finding&)>;
  // A step reads at most about this much: 1 MiB of data and the nodes on the way.
  static constexpr std::uint64_t kStepBlocks = 256;

  Walk(store::Store& store, const Position& from, Report report);

  struct Step {
    std::uint64_t blocks = 0;      // read from the device
    std::uint64_t unreadable = 0;  // of them, those that the device refused
    bool done = false;             // everything has been visited
  };
  // Findings are reported from inside.
  Step step();
  const Position& position() const { return position_; }

 private:
  struct Frame {  // an interior node on the way to the leaf
    store::NodePtr node;
    format::Key bound;  // the first key that is not below it
  };
  struct Child {
    format::NodeRef ref;
    format::Key first, bound;
  };
  struct Block {  // of a file
    BlockAddr address;
    std::uint32_t crc = 0;
    Ino ino;
    std::uint64_t file_block = 0;
    std::string error;  // what was wrong with it, if anything
  };
  enum class Visit : std::uint8_t { good, bad, outdated };

  void refresh();
  bool is_current();
  void begin_tree(format::TreeId tree);
  format::NodeRef root() const;
  std::uint8_t root_level() const;
  const store::MapRoot& map() const;
  bool is_map() const { return position_.tree != format::TreeId::inode_file; }

  bool find_leaf();
  bool enter(const Child& child, std::uint8_t level, bool is_root);
  std::optional<Child> next_child(const Frame& frame) const;
  std::uint64_t records_below(unsigned level) const;
  Result<store::NodePtr> read_node(const Child& child, std::uint8_t level, bool is_root);
  void report_node(const Child& child, std::uint8_t level, const std::string& error);

  void verify_leaf();
  format::Key collect(std::vector<Block>& blocks);
  void read_blocks(std::vector<Block>& blocks);
  void read_run(std::span<Block> run);
  bool is_superseded(const Block& block);
  void report_blocks(std::vector<Block>& bad);

  store::Store& store_;
  Position position_;
  const Report report_;
  store::TreeView view_;
  std::vector<Frame> path_;  // root first, all of view_
  std::optional<Frame> leaf_;
  Step step_;
};

// The superblocks, anchors included, and their image in the log. Each copy is read again for half a
// second before it is called bad: one may just be written.
void verify_superblocks(store::Store& store, const Walk::Report& report);

}  // namespace varve::scrub
