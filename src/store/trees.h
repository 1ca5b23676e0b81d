// The trees of the newest checkpoint, and the cache of their nodes. A root is immutable and shared: whatever still reads an older one
// keeps it by its pointer, as long as the blocks it names are not given away.
#pragma once

#include <memory>

#include "format/snapshot.h"
#include "format/superblock.h"
#include "log/gate.h"
#include "store/tree/node_cache.h"
#include "store/tree_view.h"

namespace varve::store {

class LogClock;
class Snapshots;

using TreesPtr = std::shared_ptr<const TreeView>;

// What a snapshot shows, with the maps and tables of `newest`.
TreeView as_of(const TreeView& newest, const format::SnapshotItem& snapshot);

class Trees {
 public:
  Trees(const format::Superblock& super, const log::SegmentGeometry& segments, std::size_t cache_bytes, const LogClock& clock);
  ~Trees();

  NodeCache& cache() { return cache_; }
  Snapshots& snapshots() { return *snapshots_; }  // those of former checkpoints that are kept
  const Snapshots& snapshots() const { return *snapshots_; }

  const TreeView& view() const REQUIRES_SHARED(log::the_gate) { return *newest_; }
  // For the thread that makes checkpoints, which alone replaces them; and where there is only one thread.
  const TreeView& own_view() const NO_THREAD_SAFETY_ANALYSIS { return *newest_; }

  // Instead of the newest state that of a snapshot. Before there are other threads.
  void show(const format::SnapshotItem& snapshot) NO_THREAD_SAFETY_ANALYSIS;
  // At mount: what the list of snapshots says of this checkpoint. Before there are other threads.
  void note_snapshots() NO_THREAD_SAFETY_ANALYSIS;
  // Returns the former ones, to be destroyed when the gate is open again.
  TreesPtr replace(TreesPtr next) REQUIRES(log::the_gate);

 private:
  NodeCache cache_;
  const std::unique_ptr<Snapshots> snapshots_;
  TreesPtr newest_ GUARDED_BY(log::the_gate);
};

}  // namespace varve::store
