// What a strategy works with in one round: what is known of the segments, the policies in use, and the steps that all
// cleaning is made of. Lives as long as the round, on the thread that runs checkpoints.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cleaner/mover.h"
#include "cleaner/placement.h"
#include "cleaner/strategy.h"
#include "cleaner/victim_rule.h"

namespace varve::cleaner {

class Workbench {
 public:
  static constexpr std::uint64_t kMaxLivePerRound = 16384;  // blocks: 64 MiB
  static constexpr double kMaxUtilisation = 0.985;          // fuller segments gain too little to be worth their metadata

  // `bad`: what former rounds found. `tell` takes what the round does, for `varve status`.
  Workbench(store::Store& store, VictimRule& rule, Placement& placement, BadBlocks& bad, const Task& task,
            std::function<void(std::string)> tell);

  store::Store& store() { return store_; }
  Mover& mover() { return mover_; }
  const Task& task() const { return task_; }
  void tell(std::string what) { tell_(std::move(what)); }

  // Used segments that may be cleaned, in ascending order: without those that are open, or hold what no map knows yet, or
  // bad blocks that were met when they were to be emptied.
  std::span<const SegmentFacts> facts() const { return facts_; }
  // These last: no victims as long as the bad blocks live, but their holes are as good as others. Without those of which the
  // maps cannot be read.
  std::span<const SegmentFacts> pinned() const { return pinned_; }
  void leave_out(std::span<const SegmentId> emptied);  // they are no victims any more
  const SegmentFacts* find(SegmentId id) const;  // null: it is not among them

  std::uint64_t garbage() const;  // blocks that are dead in all of them

  // From now on only victims with a live share in (above, up_to] are chosen; at most kMaxUtilisation in any case.
  void clean_only(double above, double up_to);

  // Victims by the policy in use, as much as there is room to move now.
  Victims choose();
  // The same if it is worth it, if need be after giving up heads: the last to be had is what those have not filled.
  std::optional<Victims> choose_worthwhile();
  // All that the policy would choose until the task is done, as if there were room to copy it.
  Victims choose_all();
  // Does it gain more than the metadata that moving it dirties?
  bool is_worth_it(const Victims& victims) const;
  // Blocks of nodes that moving so many blocks dirties.
  std::uint64_t metadata_cost(std::uint64_t blocks) const;
  // The same for each block of theirs.
  double metadata_share(const Victims& victims) const;
  // Is there room to move so many file blocks, and for a checkpoint that evacuates so many nodes after it?
  bool may_move(std::uint64_t blocks, std::uint64_t nodes);
  // May so many be moved, too, if that frees nothing, and users are to go on afterwards as they could before?
  bool may_spend(std::uint64_t blocks);
  // May so many be moved without making it necessary to clean segments soon?
  bool may_tidy(std::uint64_t blocks);

  // Closes all heads of groups other than 0: what is open cannot be cleaned. The facts are taken anew. How many it were.
  unsigned give_up_heads();

  // Where a block of a segment goes: as the placement says.
  std::uint8_t group_of(const LiveBlock& block, const SegmentFacts& from) const;
  using GroupOf = std::function<std::uint8_t(const LiveBlock&, const SegmentFacts&)>;
  // Moves the live file blocks of the victims, one segment after the other, and notes those that it emptied. Ends when there is no
  // room, or nothing can be read or written any more, or the task is stopped. Those with bad blocks are pinned, once
  // their sound blocks have been moved, if there is room to spare for that. `group`: group_of() where it is empty.
  void empty(const Victims& victims, Round& round, const GroupOf& group = {});

  // Bad blocks were left in it: it is no victim any more, from the next choice on.
  void pin(SegmentId segment, BadBlocks::Pin kind = BadBlocks::Pin::bad_only);
  std::size_t pins() const { return pins_; }  // so far
  // Pins those of which the maps cannot be read. False: there are none, or nothing can be read.
  bool pin_unmapped(std::span<const SegmentFacts> segments);
  bool is_known_bad(const LiveBlock& block) const;

 private:
  void survey();
  void leave_out_pinned();
  bool is_pinned(const SegmentFacts& segment);
  Sound beside_bad() const;
  SelectionLimits limits();
  bool leaves_users_room() const { return task_.for_room && !task_.waited_for; }
  std::uint64_t most_segments() const;  // of a round that does
  Victims choose_from_range(const SelectionLimits& limits);
  Result<bool> empty_segment(const SegmentFacts& segment, const GroupOf& group);  // false: it is pinned

  store::Store& store_;
  VictimRule& rule_;
  Placement& placement_;
  BadBlocks& bad_;
  const Task& task_;
  const std::function<void(std::string)> tell_;
  Mover mover_;
  std::vector<SegmentFacts> facts_, pinned_, unmapped_;
  std::size_t pins_ = 0;
  bool outdated_ = false;  // the facts, by pins
  std::unique_ptr<VictimRule> greedy_;
  // With clean segments all but gone only the quickest gain counts, and all that is left may be used for it.
  bool urgent_ = false;
  std::uint64_t spare_ = 0;  // clean segments above the low water when the round began
  double above_ = -1, up_to_ = kMaxUtilisation;
};

// How many more clean segments than the low water the cleaner aims at.
std::uint64_t segments_ahead(store::Store& store);

// Closes heads of groups other than 0 at which nothing was written since `before` (Log::give_up_heads).
unsigned give_up_heads(store::Store& store, std::uint64_t before);

}  // namespace varve::cleaner
