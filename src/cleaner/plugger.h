// Empties segments into the holes of others: no clean segment is needed for what moves. Its price is that files are spread
// (parted extents) and that blocks of different temperature meet.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cleaner/mover.h"
#include "cleaner/plug_plan.h"
#include "cleaner/segment_facts.h"

namespace varve::cleaner {

struct PlugRules {
  std::uint32_t least_part = 1;  // blocks; pieces are not split into smaller ones
  // Free space of the destinations that are opened, for each block that is to be moved: the more, the better the fit.
  double choice = 1.5;
};

struct Plugged {
  std::vector<SegmentId> emptied;
  std::vector<SegmentId> pinned;   // sources in which bad blocks are left
  std::uint64_t destinations = 0;  // segments whose holes were written
  PlugPlan plan;                   // as it was intended
  std::string why;                 // not more
};

// For the thread that runs checkpoints.
class Plugger {
 public:
  Plugger(store::Store& store, Mover& mover, const PlugRules& rules) : store_(store), mover_(mover), rules_(rules) {}

  // Empties sources, best first, as many as find room in the fullest of the other segments. `stop`: asked between sources
  // and lots, once something has been moved.
  Result<Plugged> run(std::span<const SegmentFacts> sources, std::span<const SegmentFacts> others,
                      const std::function<bool()>& stop = {});
  // Others into whose holes nothing can be written, because a checkpoint could not read their part of the reverse map; as
  // far as the last call has met them.
  std::span<const SegmentFacts> unmapped() const { return unmapped_; }
  // The same, of which nothing is done.
  Result<PlugPlan> forecast(std::span<const SegmentFacts> sources, std::span<const SegmentFacts> others);

 private:
  struct Intent {
    std::vector<std::vector<LiveBlock>> live;  // of each source
    std::vector<std::uint64_t> nodes;          // likewise
    std::vector<Piece> pieces;
    std::vector<SegmentId> destinations;
    std::vector<format::Run> holes;
  };
  Result<Intent> look(std::span<const SegmentFacts> sources, std::span<const SegmentFacts> others, bool open);
  static std::span<const SegmentFacts* const> destinations(std::span<const SegmentFacts* const> fullest, std::uint64_t room);
  Status gather_holes(std::span<const SegmentFacts> others, std::uint64_t wanted, bool open, Intent& intent);
  Status carry_out(const Intent& intent, std::span<const SegmentFacts> sources, const std::function<bool()>& stop,
                   Plugged& done);
  void close(const Intent& intent);

  store::Store& store_;
  Mover& mover_;
  const PlugRules rules_;
  std::vector<SegmentFacts> unmapped_;
};

}  // namespace varve::cleaner
