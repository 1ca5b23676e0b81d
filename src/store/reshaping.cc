#include "store/reshaping.h"

#include <algorithm>

#include "format/map_record.h"
#include "log/log.h"
#include "store/charge.h"
#include "store/checkpoints.h"
#include "store/faults.h"
#include "store/log_clock.h"
#include "store/sealer.h"
#include "store/store.h"
#include "store/trees.h"
#include "store/waiters.h"

namespace varve::store {

namespace {

constexpr std::uint64_t kMostLeaves = 1u << 20;  // of the reverse map: their addresses are in memory while they are released

Result<bool> retreat_inside(Store& store, std::uint64_t limit, Space::Margin margin) REQUIRES(log::the_gate);
Result<bool> retreat_inside(Store& store, std::uint64_t limit, Space::Margin margin) {
  // What waits has been let in because of heads and holes that are given up now.
  TRY(store.sealer().run(false, nullptr));
  if (!store.space().admits_retreat(limit, margin)) return false;
  store.segments().end().set_limit(limit);
  store.log().heads().leave();
  store.log().heads().give_up_holes();
  store.checkpoints().leave();
  const log::ChunkStamp stamp{store.log_clock().now(), store.staging().next_ino(), store.checkpoints().settled()};
  TRY(store.log().leave(stamp, store.options().clock->monotonic_ns()));
  return true;
}

Result<bool> retreat_closed(Store& store, std::uint64_t limit, Space::Margin margin) {
  const Gate::Closure closed(store.gate());
  if (store.faults().read_only()) return store.faults().refusal();
  return retreat_inside(store, limit, margin);
}

}  // namespace

Result<bool> retreat(Store& store, std::uint64_t limit, Space::Margin margin) {
  const Result<bool> done = retreat_closed(store, limit, margin);
  store.faults().settle_alarm();
  if (!done.ok()) store.faults().go_read_only(done.error());
  if (store.faults().read_only()) store.log().give_up();
  return done;
}

// How many are clean below grows with the limit, so halving finds it.
std::uint64_t next_limit(Store& store, std::uint64_t aim, Space::Margin margin) {
  const log::SegmentTable& segments = store.segments();
  const MapRoot& owners = store.trees().own_view().reverse_map;
  const std::uint64_t most = std::max<std::uint64_t>(kMostLeaves * owners.shape.per_leaf() / segments.geometry().blocks, 1);
  std::uint64_t high = segments.end().limit(), low = std::max(aim, high - std::min(high, most));
  const Gate::Closure closed(store.gate());
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (store.space().admits_retreat(middle, margin)) high = middle;
    else low = middle + 1;
  }
  return high;
}

void stay(Store& store) {
  {
    const Gate::Closure closed(store.gate());
    store.segments().end().set_limit(store.segments().geometry().count);
  }
  store.charge().aim_at(0);
  store.waiters().wake();
}

}  // namespace varve::store
