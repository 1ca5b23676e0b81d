// All segments in memory: what is in them, and which may be handed out. What the last ones are kept for is decided where
// operations are let in (store/store.h).
//
// A block may be written again only if it is not live in the settled checkpoint, not live now, and was not handed out
// since that checkpoint froze. A segment all of whose blocks are such is clean (docs/design.md 8; H8, H26, H28, H29, H32).
// Of others the holes may be written; but which blocks were handed out is known by segment only, so all must be old.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/gate.h"
#include "base/mutex.h"
#include "base/types.h"
#include "format/chunk.h"
#include "format/map_record.h"
#include "segments/segment_pages.h"
#include "segments/segment_samples.h"

namespace varve::segments {

enum class SegmentState : std::uint8_t {
  clean,       // may be handed out
  open,        // a head or the chain writes into it
  used,        // full, or given up by its head
  discarding,  // clean, but discards are in flight
  refilling,   // its holes are being written; to all others it is open
  leaving,     // clean, but at or beyond the limit: the filesystem is about to end before it
};

constexpr bool is_open(SegmentState state) { return state == SegmentState::open || state == SegmentState::refilling; }

struct SegmentInfo {
  SegmentState state = SegmentState::clean;
  std::uint8_t group = 0;
  std::uint8_t flags = 0;
  bool being_cleaned = false;
  std::uint32_t tree_live = 0;          // live blocks as of the newest merged checkpoint, exact
  std::int32_t delta_live[2] = {0, 0};  // change since, by generation parity; what is known of it
  std::uint32_t in_flight = 0;          // blocks written for the cleaner but not yet named by a record
  std::uint32_t discards = 0;           // in flight, of all of it or of holes
  std::uint32_t youngest = 0;           // clock of the youngest block
  std::uint64_t clock_sum = 0;
  std::uint64_t rate_sum = 0;
  std::uint64_t touched = 0;  // generation in which a block of it was last handed out
  std::uint64_t opened_clock = 0;  // log clock when its first block was handed out, and…
  std::uint64_t sealed_clock = 0;  // …when it was filled; 0: before this mount
  bool has_holes(std::uint64_t settled, std::uint32_t blocks) const;  // would SegmentTable::open_holes() succeed?
  std::uint32_t live() const {
    const std::int64_t sum = std::int64_t{tree_live} + delta_live[0] + delta_live[1];
    return sum < 0 ? 0 : static_cast<std::uint32_t>(sum);
  }
};

struct SegmentGeometry {
  BlockAddr first;
  std::uint32_t blocks = 0;  // per segment
  std::uint64_t count = 0;

  SegmentId segment_of(BlockAddr address) const { return SegmentId{(address - first) / blocks}; }
  std::uint32_t index_of(BlockAddr address) const { return static_cast<std::uint32_t>((address - first) % blocks); }
  BlockAddr start_of(SegmentId id) const { return first + id.v * blocks; }
  bool contains(BlockAddr address) const { return address >= first && address - first < count * blocks; }
  // All of a run of at least one block. What comes from the device must be asked for this before it indexes anything.
  bool contains(BlockAddr start, std::uint64_t length) const { return contains(start) && contains(start + (length - 1)); }
};

// Thread-safe. What is outside the segments is ignored, and has nothing in it: a last line: addresses are checked where they are read.
class SegmentTable {
 public:
  explicit SegmentTable(SegmentGeometry geometry);

  SegmentGeometry geometry() const { return {first_, blocks_, count_.load(std::memory_order_acquire)}; }

  // At mount, before anything is handed out.
  void load(SegmentId id, const format::SegmentRecord& record);
  void set_open(SegmentId id, std::uint8_t group);
  void occupy(SegmentId id);  // something in it is needed: not clean, whatever the map says
  void finish_loading();

  // Hands out a clean segment, if there is one. promised: one of those that a running checkpoint may take.
  enum class From : std::uint8_t { clean, promised };
  std::optional<SegmentId> take(std::uint8_t group, std::uint64_t clock = 0, From from = From::clean);
  // While anybody wants it (calls are counted), the lowest clean segment is handed out, else the next one.
  void prefer_lowest(bool wanted);
  // The clean segments that a running checkpoint may still take; only a number to reckon with.
  void promise(std::uint64_t count) { promised_ = count; }
  std::uint64_t promised() const { return promised_.load(std::memory_order_relaxed); }
  void close(SegmentId id, std::uint64_t clock);
  // Makes a used segment one whose holes may be written: exactly the blocks that are free in the settled `.ffile`, until
  // close(). False: something of it may be needed that is not in that map, or it is about to become clean. `settled`:
  // generation of that checkpoint. For the thread that runs checkpoints: the map must not change in between.
  bool open_holes(SegmentId id, std::uint64_t settled);
  void touch(BlockAddr address);  // a block of it was handed out in the current generation

  // Liveness as operations know it.
  void add_live(BlockAddr address, std::uint32_t blocks, std::uint32_t clock);
  void sub_live(BlockAddr address, std::uint32_t blocks);
  void add_in_flight(BlockAddr address, std::uint32_t blocks);
  void sub_in_flight(BlockAddr address, std::uint32_t blocks);
  // What policies know of single blocks, if one of them wants to.
  SegmentSamples& samples() const { return samples_; }
  void set_being_cleaned(SegmentId id, bool value);  // until the next checkpoint settles, at most

  // A checkpoint freezes everything handed out so far: starts the next generation, returns the number of the old one.
  std::uint64_t freeze();
  std::uint64_t generation() const { return generation_; }
  // The checkpoint's exact counts, once it is merged; drops the frozen estimates.
  void merged(std::uint64_t frozen_generation,
              const std::vector<std::pair<SegmentId, format::SegmentRecord>>& changed);
  // The checkpoint that froze `generation` is settled: what it emptied becomes clean. Returns the segments freed. `discarding`:
  // a discard of each of them is in flight from now on.
  std::vector<SegmentId> settle(std::uint64_t frozen_generation, bool discarding);
  // A discard is about to be in flight: nothing of the segment is handed out before discarded() has been called as often. Of a clean
  // one, which that takes out of circulation; or of holes of a used one, which are free in the checkpoint that froze `holes_of`, and has
  // settled. False: it is none, or some of its blocks may have been handed out since.
  bool begin_discard(SegmentId id, std::optional<std::uint64_t> holes_of = std::nullopt);
  bool discarded(SegmentId id);  // whether it can be handed out now
  std::uint64_t discarding() const { return discarding_.load(); }  // those that will be clean without a checkpoint

  std::uint64_t clean() const { return clean_.load(std::memory_order_relaxed); }
  SegmentInfo info(SegmentId id) const;
  // in_use: without those that are clean; quick where most of many segments have never been used.
  enum class Which : std::uint8_t { all, in_use };
  void for_each(const std::function<void(SegmentId, const SegmentInfo&)>& visit, Which which = Which::all) const;
  // Segments that would become clean if a checkpoint settled now.
  std::uint64_t reclaimable() const;

  // Where the segments end, and where they are to end (checkpoint/reshaping.h). Thread-safe.
  class End {
   public:
    explicit End(SegmentTable& table) : table_(table) {}

    // Nothing at or beyond it is handed out, and nothing there counts as clean. Usually there are no such segments.
    std::uint64_t limit() const;
    void set_limit(std::uint64_t limit);
    // How many of those below would be clean with that limit; how many of those at or beyond it are not leaving.
    std::uint64_t clean_below(std::uint64_t limit) const;
    std::uint64_t in_use_from(std::uint64_t limit) const;
    std::uint64_t in_use() const;  // of all: those that are not clean, nor leaving
    // Those that go are all leaving; those that come are clean.
    void resize(std::uint64_t count) REQUIRES(the_gate);

   private:
    SegmentTable& table_;
  };
  End& end() const { return end_; }

 private:
  std::uint64_t count_clean(std::uint64_t limit) const REQUIRES(mutex_);  // of those below
  bool begin_discard_of_holes(SegmentId id, std::uint64_t settled) REQUIRES(mutex_);
  bool can_be_taken(std::uint64_t index) const { return index < limit_.load(std::memory_order_relaxed); }
  SegmentInfo shown(std::uint64_t index, const SegmentInfo& info) const;

  mutable End end_{*this};
  const BlockAddr first_;
  const std::uint32_t blocks_;
  std::atomic<std::uint64_t> count_, limit_;  // changed under mutex_
  mutable Mutex mutex_{LockRank::segments};
  SegmentPages<SegmentInfo> segments_ GUARDED_BY(mutex_);
  mutable SegmentSamples samples_;  // has a lock of its own
  std::atomic<std::uint64_t> clean_{0}, in_use_{0}, promised_{0}, discarding_{0};
  std::atomic<std::uint64_t> generation_{1};  // changed under mutex_
  unsigned lowest_wanted_ GUARDED_BY(mutex_) = 0;
  std::uint64_t cursor_ GUARDED_BY(mutex_) = 0;  // where the search for a clean segment goes on
};

}  // namespace varve::segments
