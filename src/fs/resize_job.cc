#include "fs/resize_job.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/waiters.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/reshaping.h"
#include "checkpoint/superblock_keeper.h"
#include "device/faults.h"
#include "fs/clean_job.h"
#include "fs/engine.h"
#include "fs/maintenance.h"
#include "fs/wait_times.h"
#include "io/block_device.h"
#include "log/log.h"
#include "segments/segment_table.h"
#include "space/charge.h"
#include "store/store.h"

namespace varve::fs {

namespace {

using space::Space;

constexpr unsigned kMostFruitless = 8;    // rounds in a row
constexpr std::size_t kMostNamed = 32;    // segments

std::string mib_text(std::uint64_t blocks) { return fmt::format("{} MiB", divide_up(blocks, (1u << 20) >> kBlockShift)); }

}  // namespace

const char* name_of(ResizeState::Phase phase) {
  switch (phase) {
    case ResizeState::Phase::never: return "never";
    case ResizeState::Phase::running: return "running";
    case ResizeState::Phase::stopped: return "stopped";
    case ResizeState::Phase::finished: return "finished";
    case ResizeState::Phase::failed: return "failed";
  }
  return "?";
}

// --- sizes ----------------------------------------------------------------------------------------------------------------

std::uint64_t ResizeJob::present_blocks() const { return engine_.store().superblocks().written().device_blocks; }

// With so many segments, and the block behind them for the second copy.
std::uint64_t ResizeJob::least_blocks() const {
  store::Store& store = engine_.store();
  std::uint64_t segments = 0;
  {
    const Gate::Pass pass(store.gate());
    segments = store.charge().fewest_segments();
  }
  const auto geometry = store.segments().geometry();
  const std::uint64_t blocks = std::max(geometry.start_of(SegmentId{segments}).v + 1, format::kMinDeviceBlocks);
  return std::min(divide_up(blocks, (1u << 20) >> kBlockShift) * ((1u << 20) >> kBlockShift), present_blocks());
}

Result<std::uint64_t> ResizeJob::wanted_blocks(const ResizeRequest& request) {
  io::BlockDevice& device = engine_.store().device();
  TRY(device.look_again());
  const std::uint64_t blocks = request.bytes ? block_of(request.bytes) : device.geometry().blocks();
  TRY(check(blocks));
  if (blocks <= device.geometry().blocks()) return blocks;
  const Status longer = device.set_length(blocks << kBlockShift);
  if (longer.fails_with(Errc::unsupported))
    return Error(Errc::invalid, fmt::format("{} has {}, not {}: make the device larger first", device.name(),
                                            mib_text(device.geometry().blocks()), mib_text(blocks)));
  TRY(Status(longer));
  return blocks;
}

Status ResizeJob::check(std::uint64_t blocks) const {
  const format::Superblock& super = engine_.store().super();
  if (blocks > format::kMaxAddress) return Error(Errc::invalid, "a filesystem has at most 1 EiB");
  const std::uint64_t segments = format::segments_in(blocks, super.first_segment, super.segment_blocks);
  const std::uint64_t least = least_blocks();
  if (blocks < format::kMinDeviceBlocks || segments < format::kFewestSegments)
    return Error(Errc::invalid, fmt::format("{} are too small: this filesystem needs {}", mib_text(blocks), mib_text(least)));
  const Gate::Pass pass(engine_.store().gate());
  if (blocks < present_blocks() && segments < engine_.store().charge().fewest_segments())
    return Error(Errc::no_space, fmt::format("what it holds does not fit in {}: the smallest possible size is {}", mib_text(blocks),
                                             mib_text(least)));
  return {};
}

// --- by any thread --------------------------------------------------------------------------------------------------------

Status ResizeJob::claim() {
  if (engine_.store().faults().read_only()) return engine_.store().faults().refusal();
  const Lock lock(mutex_);
  if (ended_) return Error(Errc::busy, "the filesystem is being unmounted");
  if (active_ || starting_) return Error(Errc::busy, "its size is being changed already");
  if (engine_.clean_job().is_active()) return Error(Errc::busy, "it is being cleaned: wait for that, or stop it");
  starting_ = true;
  return {};
}

Status ResizeJob::start(const ResizeRequest& request) {
  TRY(claim());
  const std::uint64_t present = present_blocks();
  const auto blocks = wanted_blocks(request);
  const Lock lock(mutex_);
  starting_ = false;
  if (!blocks.ok()) return blocks.error();
  state_ = {};
  state_.from = present;
  state_.to = *blocks;
  state_.phase = ResizeState::Phase::running;
  if (*blocks == present) {
    state_.phase = ResizeState::Phase::finished;
    state_.reason = "it has this size already";
    return {};
  }
  kind_ = *blocks > present ? Kind::growing : Kind::shrinking;
  begun_ = stop_ = waits_ = false;
  active_ = true;
  return {};
}

void ResizeJob::stop() { stop_ = true; }

void ResizeJob::end() {
  const Lock lock(mutex_);
  ended_ = stop_ = true;
}

ResizeState ResizeJob::state() const {
  ResizeState state;
  {
    const Lock lock(mutex_);
    state = state_;
  }
  if (state.phase == ResizeState::Phase::running) state.doing = engine_.cleaner().state();
  state.device_blocks = engine_.store().device().geometry().blocks();
  state.blocks = present_blocks();
  state.least_blocks = least_blocks();
  state.segment_blocks = engine_.store().segments().geometry().blocks;
  return state;
}

// --- by the thread that makes checkpoints ---------------------------------------------------------------------------------

void ResizeJob::step() {
  if (!begun_) started_ns_ = engine_.store().options().clock->monotonic_ns();
  if (engine_.store().faults().read_only())
    return finish(ResizeState::Phase::failed, engine_.store().faults().reason());
  if (kind_ == Kind::growing) {
    const Status grown = grow();
    finish(grown.ok() ? ResizeState::Phase::finished : ResizeState::Phase::failed, grown.ok() ? "" : grown.error().message());
  } else if (!begun_) {
    begin_shrinking();
  } else {
    shrink_step();
  }
}

// The length of the image is on the medium before anything says that it is so long.
Status ResizeJob::grow() {
  store::Store& store = engine_.store();
  TRY(store.log().durability().flush_now());  // which sees to it that a failure is heard by those whose data it lost
  const std::uint64_t to = state().to;
  TRY(store.checkpoints().make({.evacuate = {}, .device_blocks = to}));
  return engine_.cleaner().rescale();
}

// What is staged is in the maps after a checkpoint, and users find as much room from now on as there will be.
void ResizeJob::begin_shrinking() {
  store::Store& store = engine_.store();
  begun_ = true;
  aim_ = format::segments_in(state().to, store.super().first_segment, store.super().segment_blocks);
  store.charge().aim_at(aim_);
  rules_ = engine_.cleaner().leaving_rules();
  rules_.strategy->begin(store);
  fruitless_ = 0;
  least_left_ = lowest_limit_ = least_in_use_ = ~0ULL;
  most_clean_ = 0;
  if (const Status settled = store.checkpoints().make({}); !settled.ok())
    return finish(ResizeState::Phase::failed, settled.error().message());
  const Lock lock(mutex_);
  state_.left = state_.left_at_first = live_from(aim_);
}

void ResizeJob::shrink_step() {
  store::Store& store = engine_.store();
  if (stop_) return finish(ResizeState::Phase::stopped, "it was stopped");
  const Status fits = check(state().to);
  if (!fits.ok()) return finish(ResizeState::Phase::failed, "it has been filled meanwhile: " + fits.error().message());
  retreat();
  if (store.segments().end().limit() == aim_ && store.segments().end().in_use_from(aim_) == 0) return reach_end();
  waits_ = engine_.options().background && only_discards_are_left();
  if (waits_) return;
  const cleaner::Round round = move_some();
  // What was open at the end is in no map before a checkpoint has seen it, and what has died there is clean after the next.
  const Status settled = store.checkpoints().make({.evacuate = round.emptied});
  note(round);
  if (!settled.ok()) return finish(ResizeState::Phase::failed, settled.error().message());
  if (round.failure) return give_up(round.failure->message());
  if (stop_) return finish(ResizeState::Phase::stopped, "it was stopped");
  if (!gains() && !engine_.maintenance().is_waited_for()) give_up(round.why);
}

// As far as users do not notice; only if nothing is gained in this way, as far as it goes.
void ResizeJob::retreat() {
  store::Store& store = engine_.store();
  const std::uint64_t limit = store.segments().end().limit();
  if (limit == aim_) return;
  for (const Space::Margin margin : {Space::Margin::of_users, Space::Margin::least}) {
    if (margin == Space::Margin::least && fruitless_ < 2) return;
    const std::uint64_t next = store.reshaping().next_limit(aim_, margin);
    if (next >= limit) continue;
    (void)store.reshaping().retreat(next, margin).ok();  // an error has made it read-only, which the next step finds
    return;
  }
}

cleaner::Round ResizeJob::move_some() {
  cleaner::Task task;
  task.for_room = false;
  task.told = true;
  task.wanted = engine_.cleaner().ahead() * engine_.store().segments().geometry().blocks;
  task.stop = [this, gives_way = engine_.maintenance().giving_way()] { return stop_ || gives_way(); };
  return engine_.cleaner().run_round(task, rules_);
}

void ResizeJob::note(const cleaner::Round& round) {
  const std::uint64_t left = live_from(aim_);
  const Lock lock(mutex_);
  ++state_.rounds;
  state_.moved += round.written;
  state_.left = left;
  state_.left_at_first = std::max(state_.left_at_first, left);
  state_.seconds = static_cast<double>(engine_.store().options().clock->monotonic_ns() - started_ns_) / 1e9;
}

// Less than ever lives behind the end, or is in use behind the limit, or more room than ever is below.
bool ResizeJob::gains() {
  const segments::SegmentTable& segments = engine_.store().segments();
  const std::uint64_t limit = segments.end().limit(), in_use = segments.end().in_use_from(limit);
  const std::uint64_t clean = segments.clean(), left = state().left;
  if (limit < lowest_limit_) least_in_use_ = ~0ULL, most_clean_ = 0;
  const bool any = limit < lowest_limit_ || left < least_left_ || in_use < least_in_use_ || clean > most_clean_;
  lowest_limit_ = std::min(lowest_limit_, limit);
  least_left_ = std::min(least_left_, left);
  least_in_use_ = std::min(least_in_use_, in_use);
  most_clean_ = std::max(most_clean_, clean);
  fruitless_ = any || segments.discarding() > 0 ? 0 : fruitless_ + 1;
  return fruitless_ < kMostFruitless;
}

void ResizeJob::reach_end() {
  store::Store& store = engine_.store();
  const std::uint64_t to = state().to;
  if (const Status settled = store.checkpoints().make({.evacuate = {}, .device_blocks = to}); !settled.ok())
    return finish(ResizeState::Phase::failed, settled.error().message());
  store.charge().aim_at(0);
  std::string reason;
  const Status cut = store.device().set_length(to << kBlockShift);
  if (!cut.ok() && !cut.fails_with(Errc::unsupported)) reason = "but the image has kept its length: " + cut.error().message();
  if (const Status told = engine_.cleaner().rescale(); !told.ok()) reason = told.error().message();
  finish(ResizeState::Phase::finished, std::move(reason));
}

void ResizeJob::give_up(std::string why) {
  const auto stuck = stuck_from(engine_.store().segments().end().limit());
  const bool bad = std::ranges::any_of(stuck, [this](std::uint64_t id) { return engine_.cleaner().is_pinned(SegmentId{id}); });
  if (bad)
    why = fmt::format("segments {} hold bad blocks that cannot be moved: varve scrub names the files", fmt::join(stuck, ", "));
  {
    const Lock lock(mutex_);
    state_.stuck = stuck;
  }
  finish(ResizeState::Phase::failed, why.empty() ? "nothing more could be moved" : std::move(why));
}

void ResizeJob::finish(ResizeState::Phase phase, std::string reason) {
  store::Store& store = engine_.store();
  if (rules_.strategy) rules_.strategy->end(store);
  rules_ = {};
  if (kind_ == Kind::shrinking && phase != ResizeState::Phase::finished) {
    store.reshaping().stay();
    store.charge().aim_at(0);
  }
  engine_.cleaner().set_state("idle: enough clean segments");
  store.waiters().wake();
  const Lock lock(mutex_);
  kind_ = Kind::none;
  state_.phase = phase;
  state_.reason = std::move(reason);
  state_.seconds = static_cast<double>(store.options().clock->monotonic_ns() - started_ns_) / 1e9;
  active_ = false;
}

void ResizeJob::abandon() {
  if (is_active()) finish(ResizeState::Phase::stopped, "it was unmounted");
}

// --- what stands behind a segment -----------------------------------------------------------------------------------------

std::uint64_t ResizeJob::live_from(std::uint64_t segment) const {
  std::uint64_t live = 0;
  engine_.store().segments().for_each([&](SegmentId id, const segments::SegmentInfo& s) {
    if (id.v >= segment) live += s.live();
  }, segments::SegmentTable::Which::in_use);
  return live;
}

// Nothing is to be moved or settled: what is emptied is being discarded.
bool ResizeJob::only_discards_are_left() const {
  const segments::SegmentTable& segments = engine_.store().segments();
  if (segments.end().limit() != aim_ || segments.discarding() == 0) return false;
  bool only = true;
  segments.for_each([&](SegmentId id, const segments::SegmentInfo& s) {
    only = only && (id.v < aim_ || s.state == segments::SegmentState::discarding);
  }, segments::SegmentTable::Which::in_use);
  return only;
}

std::vector<std::uint64_t> ResizeJob::stuck_from(std::uint64_t segment) const {
  std::vector<std::uint64_t> ids;
  engine_.store().segments().for_each([&](SegmentId id, const segments::SegmentInfo& s) {
    if (id.v >= segment && s.state == segments::SegmentState::used && ids.size() < kMostNamed) ids.push_back(id.v);
  }, segments::SegmentTable::Which::in_use);
  return ids;
}

}  // namespace varve::fs
