// Room now: which operations are let in, and what the cleaner and a checkpoint may take (docs/design.md, Space). The rules are
// pure functions (admission.h); here is what they look at.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/gate.h"
#include "base/tunable.h"
#include "base/types.h"
#include "format/chunk.h"
#include "format/superblock.h"

namespace varve::changes {
class Changes;
class Staging;
}  // namespace varve::changes

namespace varve::device {
class StreamMeter;
}

namespace varve::log {
class Log;
}

namespace varve::segments {
class SegmentTable;
struct Counters;
}  // namespace varve::segments

namespace varve::snapshots {
class Snapshots;
struct DeletionStep;
}  // namespace varve::snapshots

namespace varve::tree {
class Trees;
}

namespace varve::space {

struct Demand;
struct SpaceView;

struct SpaceParts {
  segments::SegmentTable& segments;
  log::Log& log;
  Gate& gate;
  const tree::Trees& trees;
  const snapshots::Snapshots& snapshots;
  changes::Changes& changes;
  changes::Staging& staging;
  segments::Counters& counters;
  Tunable<std::size_t>::View memory_bytes;
  format::DeviceProfile device;  // of the superblock, and what the user says
  const device::StreamMeter& meter;
  bool is_disk = false;  // a block device, not an image: here it is found out which places are cheap
};

class Space {
 public:
  explicit Space(const SpaceParts& parts);

  // --- operations: inside the gate ---
  // Lets an operation in. chunk_full: leave the gate, seal, and try again; no_segment: what it adds might not find the segments to
  // be sealed and merged in, wait for a checkpoint. What is granted is withdrawn before the gate is left: by then it is staged.
  enum class Room : std::uint8_t { granted, chunk_full, no_segment };
  Room admit(const Demand& demand) REQUIRES_SHARED(the_gate);
  void withdraw(const Demand& demand) REQUIRES_SHARED(the_gate);
  // Bytes of memory that others take and nothing here can bound: changes leave them of theirs, up to a half. Any thread.
  void note_memory_taken(std::uint64_t bytes) { memory_taken_.store(bytes, std::memory_order_relaxed); }
  // Changes have all the memory that the bound leaves them: a checkpoint cannot keep up with what operations stage.
  bool changes_fill_memory() const REQUIRES_SHARED(the_gate);
  // Bytes that they leave of it, which payload may use until it is sealed.
  std::uint64_t memory_beside_changes() const EXCLUDES(the_gate);

  // --- the cleaner ---
  // May it move so much, to the head of `group` or, if demand.scattered, to holes?
  bool may_move(const Demand& demand, unsigned group = 0) const REQUIRES_SHARED(the_gate);
  // Cleaning has emptied a segment, which the next checkpoint frees: until then users may take as much out of what they must leave
  // clean otherwise. By the thread that makes checkpoints.
  void note_emptied();
  // Tree nodes in a segment that is being emptied, for the next checkpoint to rewrite: no operation is let in from now on that would
  // take the segments for that. The freeze takes over what has been planned.
  void plan_evacuation(std::uint64_t nodes) { planned_evacuation_ += nodes; }
  void cancel_evacuation(std::uint64_t nodes);

  // --- where payload goes: inside the gate; what changes something, with it closed ---
  // Where blocks of a group are to be written. That is at its own head, or at the nearest open one where it has none and may not
  // have one. What is let in is sure to find room at the head of group 0 only.
  unsigned head_for(unsigned group) const REQUIRES_SHARED(the_gate);
  unsigned most_open_groups() const;  // any thread
  format::DeviceProfile device_profile() const;  // as far as it is known by now; any thread
  // The device keeps one place cheap. Then users' payload stands in the chain, between its headers, and not at heads. Any thread.
  bool has_one_stream() const { return device_profile().streams == 1; }
  // For users' payload, by the sealer; an empty run when there are no holes.
  format::Run allocate_in_hole(std::uint32_t blocks) REQUIRES(the_gate);
  // For blocks that a cleaner moves: `run` is of a segment that it has opened, and in flight (SegmentTable) from now on.
  void hand_out_hole(const format::Run& run) REQUIRES(the_gate);
  // The log writes here and there into the segment of this block.
  void note_thin(BlockAddr address) REQUIRES(the_gate);
  // Could all that waits go to heads, with nothing taken from what is kept for others?
  bool has_room_without_holes() const REQUIRES_SHARED(the_gate);
  // All of it to the chain, with what a checkpoint needs left?
  bool has_room_in_chain() const REQUIRES_SHARED(the_gate);
  bool admits_users_into_holes(const Demand& more) const REQUIRES_SHARED(the_gate);
  std::uint64_t spare_segments() const REQUIRES_SHARED(the_gate);  // taking some takes a closed gate
  bool anything_waits() const REQUIRES_SHARED(the_gate) { return waiting_payload() > 0; }

  // --- when to look for space: not inside the gate ---
  std::uint64_t low_water() const EXCLUDES(the_gate);  // with fewer clean segments than this, users wait
  std::uint64_t low_water_beside_holes() const EXCLUDES(the_gate);
  // A checkpoint would let operations in that soon must wait for one, or changes take a sixth of the memory.
  bool relief_is_due() const EXCLUDES(the_gate);

  // --- another size ---
  // Could what is needed now be had from the segments below, if all that stands beyond was closed? With what users want to find, or
  // with the least that a checkpoint and the cleaner need.
  enum class Margin : std::uint8_t { of_users, least };
  bool admits_retreat(std::uint64_t limit, Margin margin) const REQUIRES(the_gate);

  // --- a checkpoint ---
  bool has_room_to_evacuate(std::uint64_t nodes) const REQUIRES(the_gate);
  // At the freeze: what it may write stays promised to it until note_published().
  // `deletion`: what it gives back of deleted snapshots.
  void promise_nodes(std::uint64_t evacuated, const snapshots::DeletionStep& deletion) REQUIRES(the_gate);
  // The largest step for which there is room; none if nothing is `left` to give back.
  snapshots::DeletionStep deletion_step(bool left) const REQUIRES(the_gate);
  // How many blocks it has written. `expected`: they were reckoned with.
  void note_written(std::uint64_t nodes, bool expected);
  void note_published() { emptied_ = 0; }  // what has been emptied is clean now

 private:
  SpaceView view() const REQUIRES_SHARED(the_gate);
  unsigned most_open_now() const;
  std::uint64_t room_at_head() const REQUIRES_SHARED(the_gate);
  std::uint64_t memory_of_changes() const;
  std::uint64_t waiting_payload() const;  // blocks let in and in no chunk yet
  void scatter(const format::Run& run) REQUIRES(the_gate);

  const SpaceParts parts_;
  std::atomic<std::uint64_t> admitted_places_{0}, admitted_item_bytes_{0}, admitted_payload_{0}, admitted_freed_{0};  // not yet staged
  std::atomic<std::uint64_t> memory_taken_{0};
  std::atomic<std::uint64_t> emptied_{0};             // segments, by cleaning, since the last checkpoint
  std::atomic<std::uint64_t> planned_evacuation_{0};  // nodes
  std::atomic<std::uint64_t> usual_nodes_{0};         // blocks that the last checkpoint wrote
  std::uint64_t frozen_nodes_ = 0;                    // what the running or last checkpoint writes, at most; changed with the gate closed
};

}  // namespace varve::space
