// Which blocks of a file are not the same in two snapshots, however its extents are cut.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compare/record.h"
#include "tree/item_tree.h"
#include "tree/tree_view.h"

namespace varve::compare {

// One of both trees, for one attempt.
struct TreeSide {
  tree::NodeSource& source;
  const tree::TreeView& view;  // of a snapshot, with the tables of this moment
};

// Where the blocks of an extent stand now, one by one. Two trees have the same block exactly if it stands at one place.
Result<std::vector<BlockAddr>> places_of(const TreeSide& side, const format::Extent& extent);

// The blocks of one file in one tree, in ascending order.
class ExtentReader {
 public:
  ExtentReader(const TreeSide& side, Ino ino) : side_(side), ino_(ino), cursor_(side.source, side.view.inode_file) {}

  struct Piece {
    BlockState state = BlockState::hole;
    std::uint64_t length = 0;      // blocks from there on that are of this kind, at most up to `end`
    const BlockAddr* places = nullptr;  // data: of each of them, until the next call
    const format::Bytes* tail = nullptr;  // data that has no place: with what it begins, until the next call
  };
  // `at` must not become less from call to call.
  Result<Piece> piece(std::uint64_t at, std::uint64_t end);

 private:
  struct Current {
    std::uint64_t first = 0, length = 0;
    bool unwritten = false;
    std::vector<BlockAddr> places;
    format::Bytes tail{};  // if not empty: it is one, and has no place
  };
  bool is_ours() const;
  Status find(std::uint64_t at);

  const TreeSide side_;
  const Ino ino_;
  tree::Cursor cursor_;
  bool began_ = false;
  std::optional<Current> current_;  // the extent that ends behind the last `at`; none: there is none
};

// Tells of each run of blocks in [from, to) that differs, until `take` returns false; returns the block where it goes on.
Result<std::uint64_t> sweep(const TreeSide& before, const TreeSide& after, Ino ino, std::uint64_t from, std::uint64_t to,
                            const std::function<bool(const Record&)>& take);

}  // namespace varve::compare
