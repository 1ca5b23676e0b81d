// Where data of a file begins, and where it ends: all of the file may have to be looked at for that. The inode stays
// locked meanwhile.
#pragma once

#include <cstdint>

#include "changes/layers.h"

namespace varve::changes {

// One attempt at it.
class BlockSeek {
 public:
  BlockSeek(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source) REQUIRES_SHARED(inode.mutex);

  // Moves `at` on to the first block that has data, or to `end`. `at` also moves when this fails, over blocks that have none:
  // the next attempt goes on there. would_block with nothing wanted: enough for one attempt, let others have their turn.
  Status data(std::uint64_t& at, std::uint64_t end);
  Status hole(std::uint64_t& at, std::uint64_t end);  // likewise; unwritten blocks have no data

 private:
  Status step();
  std::uint64_t after_cleared(std::uint64_t at) const;
  std::uint64_t next_in_deltas(std::uint64_t at, std::uint64_t end) const;
  Status next_candidate(std::uint64_t& at, std::uint64_t end);
  Status find_in_window(std::uint64_t& at, std::uint64_t end, bool data, bool& found);
  Status go_to(std::uint64_t block);
  void look_ahead();

  const Ino ino_;
  const segments::SegmentGeometry segments_;
  const Layers layers_;
  tree::Cursor cursor_;
  std::uint64_t cursor_for_;  // the block from which on it knows the extents
  tree::NodePtr leaf_;  // it was in when leaves were last fetched ahead
  unsigned steps_ = 0;
};

}  // namespace varve::changes
