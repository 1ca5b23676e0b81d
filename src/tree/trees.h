// The trees of the newest checkpoint, and the cache of their nodes. A root is immutable and shared: whatever still reads an older one
// keeps it by its pointer, as long as the blocks it names are not given away.
#pragma once

#include <memory>

#include "base/gate.h"
#include "format/snapshot.h"
#include "format/superblock.h"
#include "tree/node_cache.h"
#include "tree/tree_view.h"

namespace varve::tree {

using TreesPtr = std::shared_ptr<const TreeView>;

// What a snapshot shows, with the maps and tables of `newest`.
TreeView as_of(const TreeView& newest, const format::SnapshotItem& snapshot);

class Trees {
 public:
  // `device` outlives it.
  Trees(io::BlockDevice& device, const format::Superblock& super, const segments::SegmentGeometry& segments, std::size_t cache_bytes);

  NodeCache& cache() { return cache_; }
  // Reads nodes, and waits for the device. `cache_reads`: as BlockingSource has it.
  BlockingSource source(bool cache_reads = true) { return BlockingSource(cache_, device_, cache_reads); }

  const TreeView& view() const REQUIRES_SHARED(the_gate) { return *newest_; }
  // For the thread that makes checkpoints, which alone replaces them; and where there is only one thread.
  const TreeView& own_view() const NO_THREAD_SAFETY_ANALYSIS { return *newest_; }

  // Instead of the newest state that of a snapshot. Before there are other threads.
  void show(const format::SnapshotItem& snapshot) NO_THREAD_SAFETY_ANALYSIS;
  // At mount: what the list of snapshots says of this checkpoint. Before there are other threads.
  void note_automatic(const AutomaticHoldings& holdings) NO_THREAD_SAFETY_ANALYSIS;
  // Returns the former ones, to be destroyed when the gate is open again.
  TreesPtr replace(TreesPtr next) REQUIRES(the_gate);

 private:
  io::BlockDevice& device_;
  NodeCache cache_;
  TreesPtr newest_ GUARDED_BY(the_gate);
};

}  // namespace varve::tree
