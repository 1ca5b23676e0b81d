#include "cleaner/plugger.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/invariant.h"
#include "segments/log_clock.h"
#include "space/holes.h"
#include "space/space.h"
#include "store/store.h"
#include "tree/trees.h"

namespace varve::cleaner {

namespace {

// A run of holes is looked for in no more segments than that: each has a part of the reverse map that must be written.
constexpr std::size_t kMostDestinations = 256;

// Neighbours on the device that are neighbours in their file.
void add_pieces(const std::vector<LiveBlock>& live, std::size_t source, std::vector<Piece>& pieces) {
  for (std::size_t i = 0; i < live.size(); ++i) {
    const bool goes_on = i > 0 && live[i].ino == live[i - 1].ino && live[i].block == live[i - 1].block + 1 &&
                         live[i].address == live[i - 1].address + 1;
    if (goes_on) ++pieces.back().blocks;
    else pieces.push_back({live[i].address, 1, source});
  }
}

}  // namespace

// The fullest, because their holes are of no other use; but where so many of them have too few, the next ones.
std::span<const SegmentFacts* const> Plugger::destinations(std::span<const SegmentFacts* const> fullest, std::uint64_t room) {
  std::uint64_t dead = 0;
  std::size_t first = 0, end = 0;
  while (end < fullest.size() && dead < room) {
    dead += fullest[end++]->dead();
    if (end - first > kMostDestinations) dead -= fullest[first++]->dead();
  }
  return fullest.subspan(first, end - first);
}

Status Plugger::gather_holes(std::span<const SegmentFacts> others, std::uint64_t wanted, bool open, Intent& intent) {
  const tree::TreeView& view = store_.trees().own_view();
  segments::SegmentTable& segments = store_.segments();
  std::vector<const SegmentFacts*> fullest;
  for (const SegmentFacts& segment : others)
    if (segments.info(segment.id).has_holes(view.generation, segments.geometry().blocks)) fullest.push_back(&segment);
  std::ranges::stable_sort(fullest, std::greater{}, [](const SegmentFacts* f) { return f->live; });
  const auto room = static_cast<std::uint64_t>(static_cast<double>(wanted) * rules_.choice);
  tree::BlockingSource source = store_.trees().source();
  unmapped_.clear();
  for (const SegmentFacts* segment : destinations(fullest, room)) {
    const auto found = space::holes_of(source, view, segments.geometry(), segment->id);
    if (!found.ok()) continue;  // others have holes, too
    const auto& holes = *found;
    if (holes.empty()) continue;
    if (!space::check_reverse_map(source, view, holes).ok()) {
      unmapped_.push_back(*segment);
      continue;
    }
    if (open && !segments.open_holes(segment->id, view.generation)) continue;
    intent.destinations.push_back(segment->id);
    intent.holes.insert(intent.holes.end(), holes.begin(), holes.end());
  }
  return {};
}

Result<Plugger::Intent> Plugger::look(std::span<const SegmentFacts> sources, std::span<const SegmentFacts> others, bool open) {
  Intent intent;
  std::uint64_t wanted = 0;
  for (const SegmentFacts& source : sources) {
    intent.live.push_back(TRY(mover_.live_blocks(source.id)));
    intent.nodes.push_back(mover_.nodes_beside());
    add_pieces(intent.live.back(), intent.live.size() - 1, intent.pieces);
    wanted += intent.live.back().size();
  }
  if (Status status = gather_holes(others, wanted, open, intent); !status.ok()) {
    if (open) close(intent);
    return status.error();
  }
  return intent;
}

Result<Plugged> Plugger::run(std::span<const SegmentFacts> sources, std::span<const SegmentFacts> others,
                             const std::function<bool()>& stop) {
  const Intent intent = TRY(look(sources, others, true));
  Plugged done;
  done.plan = plan_plugs(intent.pieces, sources.size(), intent.holes, rules_.least_part);
  const Status status = carry_out(intent, sources, stop, done);
  close(intent);
  if (!status.ok() && !status.error().is(Errc::no_space)) return status.error();
  if (!status.ok()) done.why = status.error().message();
  return done;
}

Result<PlugPlan> Plugger::forecast(std::span<const SegmentFacts> sources, std::span<const SegmentFacts> others) {
  const Intent intent = TRY(look(sources, others, false));
  return plan_plugs(intent.pieces, sources.size(), intent.holes, rules_.least_part);
}

// Source by source, so that an end halfway has emptied some of them.
Status Plugger::carry_out(const Intent& intent, std::span<const SegmentFacts> sources, const std::function<bool()>& stop,
                          Plugged& done) {
  const auto& geometry = store_.segments().geometry();
  std::map<BlockAddr, PlugMove> moves;  // by where they come from
  for (const PlugMove& move : done.plan.moves) moves.emplace(move.from, move);
  std::set<SegmentId> written;
  for (const std::size_t number : done.plan.emptied) {
    if (!written.empty() && stop && stop()) return {};
    std::vector<Plug> plugs;
    for (const LiveBlock& block : intent.live[number]) {
      const auto behind = moves.upper_bound(block.address);
      MEMORY_INVARIANT(behind != moves.begin());
      const PlugMove& move = std::prev(behind)->second;
      MEMORY_INVARIANT(block.address - move.from < move.blocks);  // or it would be written over what lives
      plugs.push_back({block, move.to + (block.address - move.from)});
      written.insert(geometry.segment_of(plugs.back().to));
    }
    store_.segments().set_being_cleaned(sources[number].id, true);
    store_.space().plan_evacuation(intent.nodes[number]);
    const Status plugged = mover_.plug(plugs, stop);
    if (!plugged.ok() || mover_.bad() || mover_.stopped()) store_.space().cancel_evacuation(intent.nodes[number]);
    TRY(Status(plugged));
    done.destinations = written.size();
    if (mover_.stopped()) return {};
    if (mover_.bad()) {
      done.pinned.push_back(sources[number].id);
      continue;
    }
    done.emptied.push_back(sources[number].id);
    store_.space().note_emptied();
  }
  return {};
}

void Plugger::close(const Intent& intent) {
  for (SegmentId segment : intent.destinations) store_.segments().close(segment, store_.log_clock().now());
}

}  // namespace varve::cleaner
