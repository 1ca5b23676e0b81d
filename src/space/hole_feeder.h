// Threaded heads: finds used segments whose holes users' payload goes into, in address order, wrapping round, skipping what
// is live (a threaded log: Rosenblum and Ousterhout 1992, 3.2; ScherlFS). The chain and tree nodes stay in clean segments:
// a chunk must find room for its header wherever the log goes on, nodes must die together.
//
// begin() and end() may be called by any thread; feed() by the one that runs checkpoints; the others by anyone, but for what
// says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/gate.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "format/chunk.h"

namespace varve::device {
class Faults;
}

namespace varve::log {
class Log;
}

namespace varve::segments {
class SegmentTable;
}

namespace varve::tree {
class Trees;
}

namespace varve::space {

class Charge;
class Space;

struct HoleFeederRules {
  std::uint32_t least_run = 4;     // blocks; smaller holes are skipped until the next round through the device
  // Only while there are no more clean segments than this: whole ones first, holes when they run short.
  std::uint64_t below = ~0ULL;
  // Pieces of a file that are longer than this stay in one piece: they go to heads, as long as there would be room for
  // them without holes.
  std::uint32_t most_piece = ~0U;
  // Instead of cleaning: as long as there are holes, no segments are cleaned ahead of users.
  bool spares_cleaning = false;
};

class HoleFeeder {
 public:
  struct Parts {
    Gate& gate;
    segments::SegmentTable& segments;
    log::Log& log;
    tree::Trees& trees;
    const Charge& charge;
    Space& space;
    const device::Faults& faults;
  };
  explicit HoleFeeder(const Parts& parts);

  // The owner that came last sets the rules; when no owner is left it ends. The holes that are ready by then are still used, until
  // the next checkpoint freezes: operations may have been let in because there are these.
  void begin(const void* owner, const HoleFeederRules& rules);
  void end(const void* owner);

  std::uint32_t most_piece() const { return most_piece_.load(std::memory_order_relaxed); }

  // Do users' blocks go into holes, and instead of cleaning?
  bool spares_cleaning() const { return spares_cleaning_.load(std::memory_order_relaxed) && feeds(); }
  // Returns how many blocks were in holes when the last checkpoint had settled, small ones included; 0 where cleaning is not spared.
  std::uint64_t room() const EXCLUDES(the_gate);
  // Are there so few holes ready that feed() should be called?
  bool is_hungry() const EXCLUDES(the_gate);
  // Opens segments until enough holes are ready for the heads. Returns whether there are more than before. When it looks for some and
  // finds none it is not hungry again before the next checkpoint has settled: only that makes new ones.
  bool feed() EXCLUDES(the_gate);
  // Where feed() goes on: strategies that make room there look ahead of it. For the thread of feed().
  SegmentId cursor() const { return cursor_; }
  // With all payload sealed, before the next generation: what is written to one segment belongs to one checkpoint, which
  // has reckoned with its part of the reverse map (headroom.h).
  void freeze() REQUIRES(the_gate);
  // Closes all segments with holes that stand ready if a segment's worth of blocks has died in them since they were opened,
  // which neither heads nor the cleaner can have before. Unless somebody may have been let in because of these holes.
  // Returns whether it did.
  bool give_up_stale() EXCLUDES(the_gate);

 private:
  bool feeds() const;  // and there are more holes than stand ready, as far as is known
  std::uint64_t stale_blocks() const;
  std::uint64_t most_ready() const;
  void adapt() EXCLUDES(the_gate);
  std::uint64_t ready_blocks() const EXCLUDES(the_gate);
  bool has_enough() const EXCLUDES(the_gate);
  std::uint64_t most_segments() const;
  void apply() REQUIRES(mutex_);
  HoleFeederRules rules() const;
  struct Fill {
    std::vector<format::Run> holes;
    std::uint64_t left_out = 0;  // blocks, in holes that are too small
  };
  Fill holes_to_fill(SegmentId segment, std::uint32_t least_run);
  bool feed_segment(SegmentId segment, std::uint32_t least_run, bool& no_room);

  const Parts parts_;
  mutable Mutex mutex_;
  std::vector<std::pair<const void*, HoleFeederRules>> rules_ GUARDED_BY(mutex_);
  std::atomic<bool> on_{false}, spares_cleaning_{false};
  std::atomic<std::uint64_t> below_{0};
  std::atomic<std::uint32_t> most_piece_{~0U};
  std::atomic<std::uint64_t> found_nothing_in_{~0ULL};  // the settled checkpoint at whose holes it has looked in vain
  // Blocks that should stand ready: what users take until feed() comes again, which may be after a round of cleaning and a checkpoint.
  std::atomic<std::uint64_t> wanted_;
  std::uint64_t ready_ = 0;  // when feed() had ended; of its thread
  SegmentId cursor_;  // of the thread of feed()
  std::unordered_map<SegmentId, std::uint64_t> left_out_ GUARDED_BY(the_gate);  // of those that were opened
  // Of which the reverse map could not be read, and how they looked then (touched, live): not again before that has changed.
  std::unordered_map<SegmentId, std::pair<std::uint64_t, std::uint32_t>> unmapped_;
};

}  // namespace varve::space
