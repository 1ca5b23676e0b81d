// What a checkpoint changes in the free-region map, entered block by block.
//
// Blocks that lose their owner are entered as soon as the merge finds them. A file that is removed may have any number of extents,
// and what is kept here grows only with the segments they are in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "format/item.h"
#include "format/map_record.h"
#include "segments/segment_table.h"
#include "tree/block_map.h"
#include "tree/dead_runs.h"
#include "tree/map_tree.h"

namespace varve::tree {

class SegmentLedger {
 public:
  // Both outlive it; the records are written by finish(), and must not be written to the device before. `dead`: to be filled for
  // a device that is told of dead blocks.
  SegmentLedger(const segments::SegmentTable& segments, MapEditor& map, std::optional<DeadRuns> dead)
      : segments_(segments), geometry_(segments.geometry()), map_(map), dead_(std::move(dead)) {}

  // The segment of this block is going to change. Before the maps are closed.
  Status touch(BlockAddr address) { return map_.touch(geometry_.segment_of(address).v); }

  // Nothing is released after something was claimed. Errc::corrupt: the map had it so already.
  Status release(const format::Extent& extent);  // blocks of a file, inside the segments; touches them
  Status release(BlockAddr node);
  // From now on only snapshots have these, and for long: users do not rewrite them any more, so their estimate counts no longer.
  Status hold(const format::Extent& extent);
  Status claim(BlockAddr node);
  Status claim(const BlockEntry& block);
  Status claim_held(BlockAddr address, const format::ReverseEntry& owner);  // their estimate does not count either

  std::int64_t live_change() const { return live_change_; }

  using Changed = std::vector<std::pair<SegmentId, format::SegmentRecord>>;
  // frozen: the generation of the checkpoint.
  Changed finish(std::uint64_t frozen);
  // After finish(): what is dead in segments that have live blocks, too.
  std::vector<format::Run> take_dead() { return dead_ ? dead_->take() : std::vector<format::Run>(); }

 private:
  struct Page {
    format::SegmentRecord record;
    std::span<std::byte> bits;  // in the map
    std::vector<std::byte> before;  // the same as they were, if dead blocks are wanted
  };
  Result<Page*> page_of(SegmentId id);
  template <class Change>
  Status for_each_page(const format::Extent& extent, Change change);
  Status flip(Page& page, BlockAddr address, bool live);
  Result<Page*> change(BlockAddr address, bool live);
  void note_dead(SegmentId id, const Page& page, std::uint64_t frozen);

  const segments::SegmentTable& segments_;
  const segments::SegmentGeometry geometry_;  // of the trees that are read
  MapEditor& map_;
  std::map<SegmentId, Page> pages_;
  std::int64_t live_change_ = 0;
  std::optional<DeadRuns> dead_;
};

}  // namespace varve::tree
