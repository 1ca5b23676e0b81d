#include "checkpoint/reshaping.h"

#include <algorithm>

#include "checkpoint/checkpoints.h"
#include "checkpoint/sealer.h"
#include "device/faults.h"
#include "log/log.h"
#include "tree/trees.h"

namespace varve::checkpoint {

namespace {
constexpr std::uint64_t kMostLeaves = 1u << 20;  // of the reverse map: their addresses are in memory while they are released
}  // namespace

Result<bool> Reshaping::retreat_closed(std::uint64_t limit, space::Space::Margin margin) {
  // What waits has been let in because of heads and holes that are given up now.
  parts_.sealer.give_blocks_to_tails();
  TRY(parts_.sealer.run(false, nullptr));
  if (!parts_.space.admits_retreat(limit, margin)) return false;
  parts_.segments.end().set_limit(limit);
  parts_.log.heads().leave();
  parts_.log.heads().give_up_holes();
  parts_.checkpoints.leave();
  TRY(parts_.log.leave(parts_.sealer.stamp(), parts_.clock.monotonic_ns()));
  return true;
}

Result<bool> Reshaping::close_and_retreat(std::uint64_t limit, space::Space::Margin margin) {
  const Gate::Closure closed(parts_.gate);
  if (parts_.faults.read_only()) return parts_.faults.refusal();
  return retreat_closed(limit, margin);
}

Result<bool> Reshaping::retreat(std::uint64_t limit, space::Space::Margin margin) {
  const Result<bool> done = close_and_retreat(limit, margin);
  parts_.faults.settle_alarm();
  if (!done.ok()) parts_.faults.go_read_only(done.error());
  if (parts_.faults.read_only()) parts_.log.give_up();
  return done;
}

// How many are clean below grows with the limit, so halving finds it.
std::uint64_t Reshaping::next_limit(std::uint64_t aim, space::Space::Margin margin) {
  const tree::MapRoot& owners = parts_.trees.own_view().reverse_map;
  const std::uint64_t most =
      std::max<std::uint64_t>(kMostLeaves * owners.shape.per_leaf() / parts_.segments.geometry().blocks, 1);
  std::uint64_t high = parts_.segments.end().limit(), low = std::max(aim, high - std::min(high, most));
  const Gate::Closure closed(parts_.gate);
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (parts_.space.admits_retreat(middle, margin)) high = middle;
    else low = middle + 1;
  }
  return high;
}

void Reshaping::stay() {
  const Gate::Closure closed(parts_.gate);
  parts_.segments.end().set_limit(parts_.segments.geometry().count);
}

}  // namespace varve::checkpoint
