#include "cleaner/cleaner.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cleaner/mover.h"

namespace varve::cleaner {

namespace {
constexpr double kMaxUtilisation = 0.985;
constexpr std::uint64_t kMaxLivePerRound = 16384;  // blocks: 64 MiB
}  // namespace

Cleaner::Cleaner(meta::Store& store, std::string_view policy)
    : store_(store), policy_(make_victim_policy(policy)) {
  if (!policy_) policy_ = make_victim_policy("cost-benefit");
}

std::vector<SegmentSummary> Cleaner::summaries() const {
  std::vector<SegmentSummary> result;
  const std::uint64_t now = store_.clock_units(store_.log_clock());
  const std::uint32_t blocks = store_.segments().geometry().blocks;
  const std::uint64_t settled = store_.view().generation;
  store_.segments().for_each([&](SegmentId id, const log::SegmentInfo& s) {
    // What was handed out since the last checkpoint is in no map yet.
    if (s.state != log::SegmentState::used || s.touched > settled || s.in_flight || s.tree_live == 0 || s.live() == 0)
      return;
    result.push_back({id, s.live(), blocks, (now - std::min<std::uint64_t>(now, s.youngest)) * store_.super().clock_unit,
                      s.group, s.group == format::kGroupNodes});
  });
  return result;
}

std::uint64_t Cleaner::ahead() const { return std::max<std::uint64_t>(8, store_.segments().geometry().count / 32); }

// Blocks of nodes that moving dirties: a leaf for each block that is moved, or all there are, and the reverse map's.
std::uint64_t Cleaner::metadata_cost(const Selection& selection) const {
  const std::uint64_t leaves = store_.view().data_blocks / 150 + 4;
  return std::min(selection.live(), leaves) + selection.live() / 160 + 4;
}

std::vector<SegmentId> Cleaner::run_round() {
  const auto& segments = store_.segments();
  const std::uint32_t blocks = segments.geometry().blocks;
  // With the users' reserve gone they wait: only the quickest gain counts, and all that is left may be used for it.
  const bool urgent = segments.clean() <= store_.low_water() + 1;
  const auto greedy = urgent ? make_victim_policy("greedy") : nullptr;
  const Selection selection =
      select_victims(greedy ? *greedy : *policy_, summaries(), ahead() * blocks, kMaxUtilisation, [&](const Selection& s) {
        const std::uint64_t factor = urgent || s.live() <= blocks ? 1 : 2;
        const meta::Gate::Pass pass(store_.gate());
        // Most blocks have a neighbour that moves with them; if not, the mover stops when the room is used up.
        return s.live() <= kMaxLivePerRound &&
               store_.may_move({s.data * factor, s.data * factor / 4, s.nodes * factor, kColdGroup});
      });
  if (selection.gain <= metadata_cost(selection) / 2) {  // half: a rewritten node leaves a hole of its own size behind
    set_state("idle: no segment is worth cleaning");
    return {};
  }
  set_state(fmt::format("copying {} live blocks out of {} segments", selection.live(), selection.victims.size()));
  Mover mover(store_);
  std::vector<SegmentId> done;
  std::uint64_t nodes = 0;
  for (SegmentId victim : selection.victims) {
    auto live = mover.live_blocks(victim);
    if (live.ok()) nodes += segments.info(victim).live() - std::min<std::uint64_t>(segments.info(victim).live(), live->size());
    Status status = live.ok() ? mover.move(*live, kColdGroup, nodes) : Status(live.error());
    if (!status.ok()) {
      if (!status.error().is(Errc::no_space)) spdlog::warn("cleaning segment {}: {}", victim, status.error().message());
      break;
    }
    done.push_back(victim);
    ++store_.counters().segments_cleaned;
  }
  set_state(fmt::format("waiting for the checkpoint that frees {} segments", done.size()));
  return done;
}

std::string Cleaner::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void Cleaner::set_state(std::string state) {
  std::lock_guard lock(mutex_);
  state_ = std::move(state);
}

}  // namespace varve::cleaner
