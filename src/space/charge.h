// Room at all: what files and metadata take, against what the filesystem has (docs/design.md, Space). Inside the gate.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/gate.h"

namespace varve::changes {
class Changes;
class Staging;
}  // namespace varve::changes

namespace varve::segments {
class SegmentTable;
}

namespace varve::snapshots {
class Snapshots;
}  // namespace varve::snapshots

namespace varve::tree {
class Trees;
}

namespace varve::space {

struct Demand;
class Charge {
 public:
  Charge(const segments::SegmentTable& segments, const tree::Trees& trees, const snapshots::Snapshots& snapshots,
         const changes::Changes& changes, const changes::Staging& staging);

  // --- any thread ---
  // Of all segments, or of as many as it is to have.
  std::uint64_t capacity_blocks() const;
  std::uint64_t reserve_blocks() const;  // nobody's to fill
  // From now on only so many segments count. 0: all there are.
  void aim_at(std::uint64_t segments) { aim_ = segments; }

  // What automatic snapshots hold alone that are not given up at present, as a tool reads them: so much of what is loose is charged.
  void hold(std::uint64_t blocks) { held_ = blocks; }
  std::uint64_t held_blocks() const { return held_.load(std::memory_order_relaxed); }

  std::uint64_t blocks() const REQUIRES_SHARED(the_gate) { return charge(Counted::at_worst); }
  std::uint64_t inodes() const REQUIRES_SHARED(the_gate);
  bool has_estimates() const REQUIRES_SHARED(the_gate);  // it may be above the truth

  // Can the new blocks and inodes of `demand` be charged?
  bool fits(const Demand& demand) const REQUIRES_SHARED(the_gate);
  // The same if everything was there that others have written over without looking it up, or has gone that may have.
  bool fits_at_best(const Demand& demand) const REQUIRES_SHARED(the_gate);
  // With how few segments would that which is charged now have room, at best? At least format::kFewestSegments.
  std::uint64_t fewest_segments() const REQUIRES_SHARED(the_gate);
  // What is nobody's, for users to fill. What only automatic snapshots hold is in it: that goes before it is missed, but for
  // what is held for a tool.
  std::uint64_t free_blocks() const REQUIRES_SHARED(the_gate);
  // What only automatic ones that are not given up hold, with what they may come to hold at the next checkpoint.
  std::uint64_t pending_loose_blocks() const REQUIRES_SHARED(the_gate);
  // What does not fit: might it, should automatic snapshots hold more alone than is known?
  bool may_fit_without_automatic(const Demand& demand) const REQUIRES_SHARED(the_gate);
  // Would there be room for all changes of nodes that a snapshot makes the filesystem keep both sides of? Then deletes always have it.
  bool fits_snapshot() const REQUIRES_SHARED(the_gate);
  // The same if an automatic one was kept: what it and later ones list might be held for good.
  bool fits_kept(std::uint64_t listed) const REQUIRES_SHARED(the_gate);
  // What a snapshot may come to hold of metadata alone.
  std::uint64_t nodes_to_hold() const REQUIRES_SHARED(the_gate);

 private:
  enum class Counted : std::uint8_t { at_worst, at_best, without_automatic };
  std::uint64_t charge(Counted counted) const REQUIRES_SHARED(the_gate);
  std::uint64_t owed_to_snapshots(std::uint64_t data, std::uint64_t shared_nodes) const;
  bool has_room(Counted counted, std::uint64_t blocks, std::uint64_t inodes) const REQUIRES_SHARED(the_gate);

  std::uint64_t segments() const;

  const segments::SegmentTable& segments_;
  std::atomic<std::uint64_t> aim_{0}, held_{0};
  const tree::Trees& trees_;
  const snapshots::Snapshots& snapshots_;
  const changes::Changes& changes_;
  const changes::Staging& staging_;
};

}  // namespace varve::space
