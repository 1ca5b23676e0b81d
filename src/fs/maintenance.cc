#include "fs/maintenance.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/duration.h"
#include "base/logging.h"
#include "base/waiters.h"
#include "changes/changes.h"
#include "changes/staging.h"
#include "changes/unsealed.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/protection.h"
#include "cleaner/patience.h"
#include "device/device_timer.h"
#include "device/faults.h"
#include "device/io_context.h"
#include "fs/clean_job.h"
#include "fs/engine.h"
#include "fs/operation.h"
#include "fs/reaper.h"
#include "fs/references.h"
#include "fs/resize_job.h"
#include "fs/tidier.h"
#include "io/block_device.h"
#include "io/reactor.h"
#include "log/log.h"
#include "segments/counters.h"
#include "segments/log_clock.h"
#include "segments/segment_table.h"
#include "snapshots/snapshots.h"
#include "space/admission.h"
#include "space/hole_feeder.h"
#include "space/space.h"
#include "store/store.h"

namespace varve::fs {

namespace {
constexpr std::uint64_t kIdleNs = 60'000'000'000ULL;

// Between two looks at whether a checkpoint or cleaning is due, while there is anything that is not in the trees. What is
// waited for is told at once, so that looking now and then is enough.
constexpr std::chrono::milliseconds kShortestPause{20}, kLongestPause{320};
}  // namespace

Maintenance::Maintenance(Engine& engine)
    : engine_(engine),
      heap_(options().memory_limit_bytes),
      clock_watch_(*store().options().clock),
      sync_times_(engine.started_ns()),
      last_operation_ns_(engine.started_ns()),
      tidied_at_(store().log_clock().now()),
      futile_until_(tidied_at_ + 1) {}

store::Store& Maintenance::store() { return engine_.store(); }
cleaner::Cleaner& Maintenance::cleaner() { return engine_.cleaner(); }
const Options& Maintenance::options() const { return engine_.options(); }

void Maintenance::start() {
  thread_ = std::thread([this] { maintain(); });
}

void Maintenance::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Maintenance::kick() {
  {
    const Lock lock(mutex_);
    poked_ = true;
  }
  if (options().background) store().io().wake_service();
  changed_.notify_all();
}

void Maintenance::request_checkpoint(bool space) {
  (space ? space_wanted_ : checkpoint_wanted_) = true;
  kick();
}

// After each successful operation. Costs one relaxed load while the threads are awake anyway.
void Maintenance::after_operation(io::Reactor* reactor) {
  if (seal_is_due()) (void)store().seal(store::Store::Seal::append, reactor);
  if (store().hole_feeder().is_hungry() && !holes_asked_.exchange(true)) options().background ? kick() : (void)feed_holes();
  const bool waits = store().unawaited_since_ns() != 0;
  if (waits) engine_.tidier().note_use();
  if (!armed_.load(std::memory_order_relaxed) && (waits || engine_.tidier().has_work()) && !armed_.exchange(true)) kick();
  if (!options().background && (checkpoint_is_due() || look_for_space())) work(false);
}

bool Maintenance::seal_is_due() {
  const changes::Unsealed& unsealed = store().staging().unsealed();
  if (unsealed.held_bytes() < kLeastUnsealed) return false;  // as mostly
  const auto& segments = store().segments();
  SealView view;
  view.payload = unsealed.payload_bytes();
  view.held = unsealed.held_bytes();
  view.stream = unsealed.stream_bytes();
  view.quiet_ns = sync_times_.since_last_ns(store().options().clock->monotonic_ns());
  view.bytes_per_second = store().log().flow().bytes_per_second();
  view.memory = store().space().memory_beside_changes();
  view.room = std::uint64_t{segments.clean()} * segments.geometry().blocks << kBlockShift;
  view.seeks = store().device().geometry().rotational;
  return fs::seal_is_due(view);
}

// While users write into holes instead, nothing need be cleaned ahead of them: each round has a checkpoint, which writes most nodes again.
bool Maintenance::space_is_low() {
  if (!options().cleaner) return false;
  const std::uint64_t clean = store().segments().clean(), ahead = store().space().low_water() + cleaner().ahead();
  return clean <= (store().hole_feeder().spares_cleaning() ? std::min(ahead, store().space().low_water_beside_holes()) : ahead);
}

bool Maintenance::checkpoint_is_due() {
  if (store().faults().read_only()) return false;
  if (checkpoint_wanted_ || store().snapshots().anything_asked() || store().protection().is_due()) return true;
  if (store().changes().count_records() >= options().checkpoint_records) return true;
  if (store().changes().count_bytes() >= options().memory_bytes / 6 || store().space().relief_is_due()) return true;
  const auto& segments = store().segments();
  const std::uint64_t free_blocks = std::max((segments.clean() + 1) * segments.geometry().blocks, store().hole_feeder().room());
  return store().checkpoints().log_blocks_since() > std::max<std::uint64_t>(free_blocks / 2, 2048);
}

void Maintenance::look_at_the_clock() {
  const std::int64_t jump = clock_watch_.jump();
  if (jump == 0) return;
  log_warn("the system's clock was set {} by {}: ages of snapshots go by the time that has passed, and new times of files by the clock",
               jump > 0 ? "forward" : "back", rough_duration_text(static_cast<std::uint64_t>(std::abs(jump))));
}

// While the host is full nothing is begun that would write more, and what is under way waits for its writes.
bool Maintenance::work(bool space_wanted) {
  if (store().faults().read_only() || store().faults().host_full()) return false;
  look_at_the_clock();
  store().space().note_memory_taken(engine_.references().bytes());  // as many names as the kernel knows
  if (seal_is_due()) (void)store().seal();  // the bound of memory has become smaller, and no operation comes
  heap_.bound(options().memory_limit_bytes);
  heap_.look();  // checkpoints leave much behind
  bool worked = false;
  if (store().checkpoints().epoch_due()) {
    (void)store().checkpoints().write_epoch();
    worked = true;
  }
  worked |= engine_.reaper().reap_waiting();
  worked |= feed_holes();

  // What was refused during the last round has been let in since, or asks again: that round is not followed by another for it.
  const bool operations_wait = space_wanted_.exchange(false) && store().waiters().any(), noted = space_noted_.exchange(false);
  if (operations_wait) checkpoint_wanted_ = true;
  const bool waited_for = operations_wait || noted || space_wanted;
  const bool low = waited_for || look_for_space();
  if (!low && !checkpoint_is_due() && !store().snapshots().deletion_is_left()) return worked;
  if (store().hole_feeder().spares_cleaning()) (void)store().hole_feeder().feed();  // for all that time
  clean_and_checkpoint(low, waited_for);
  feed_holes();
  return true;
}

bool Maintenance::feed_holes() {
  holes_asked_ = false;
  cleaner().reconsider();
  if (!store().hole_feeder().is_hungry() || !store().hole_feeder().feed()) return false;
  store().waiters().wake();  // holes let operations in that no clean segment would
  return true;
}

// Low on space, somebody has written since the mount, and it has not just been found that nothing can be done about it (H33).
bool Maintenance::look_for_space() { return space_is_low() && store().log_clock().now() >= futile_until_; }

bool Maintenance::cleaning_helps() {
  const auto& segments = store().segments();
  if (store().snapshots().deletion_is_left()) {  // that gives back space without moving anything
    // But what snapshots held is scattered, and automatic ones always leave some: where segments are short both take turns.
    const bool is_short = segments.clean() <= store().space().low_water() + cleaner().ahead() / 2;
    if (!is_short || store().checkpoints().settled().v % 2) return false;
  }
  // What a checkpoint alone releases comes first: cleaning moves blocks only when that is not enough.
  return options().cleaner && segments.clean() + segments.reclaimable() <= store().space().low_water() + cleaner().ahead();
}

// The checkpoint that makes room of what a round has moved.
Status Maintenance::settle(const checkpoint::CheckpointRequest& request) {
  const std::uint64_t began = store().options().clock->monotonic_ns(), host_fulls = store().faults().host_fulls();
  const bool was_full = store().faults().host_full();
  const device::DeviceTimer timer(store().io());
  Status status = store().checkpoints().make(request);
  if (!was_full && store().faults().host_fulls() == host_fulls)
    cleaner().note_settling(store().options().clock->monotonic_ns() - began, timer.span());
  return status;
}

// False: there was nothing to move, so no checkpoint is needed for it.
bool Maintenance::clean_round(bool waited_for, checkpoint::CheckpointRequest& request) {
  cleaner::Round round = cleaner().run_round(waited_for);
  request.evacuate = std::move(round.emptied);
  return round.moved || !request.evacuate.empty();
}

void Maintenance::clean_and_checkpoint(bool low, bool waited_for) {
  const auto& segments = store().segments();
  checkpoint::Protection& protection = store().protection();
  // The cleaner lags behind, and no checkpoint releases enough by itself: automatic snapshots make room before anybody waits.
  if (low && segments.clean() + segments.reclaimable() <= store().space().low_water() + cleaner().ahead() / 2)
    protection.ask_for_room(checkpoint::Protection::Need::half);
  const bool wanted = checkpoint_wanted_.exchange(false) || checkpoint_is_due() || store().snapshots().deletion_is_left();
  checkpoint::CheckpointRequest request;
  const std::uint64_t clean_before = segments.clean(), written_before = store().log_clock().now();
  bool moved = low && cleaning_helps() && clean_round(waited_for, request);
  // For want of space, but nothing to release (H33): it would only spread the nodes over more segments.
  const bool asked = store().snapshots().deletion_is_left() || store().snapshots().anything_asked();
  const bool has_work = wanted && (store().dirty() || asked || protection.is_due());
  const bool pointless = low && !moved && segments.reclaimable() == 0 && !has_work;
  if (pointless) store().checkpoints().note_pointless_round();
  else (void)settle(request);
  // The delta may have kept the room that moving needs; now it is merged.
  if (low && !pointless && !moved && cleaning_helps()) {
    moved = clean_round(waited_for, request);
    if (moved) (void)settle(request);
  }
  if (cleaner().pinned_segments()) cleaner().count_pinned();
  if (moved) cleaner().note_meanwhile(store().log_clock().now() - written_before);
  if (!low || segments.clean() > clean_before) return;
  const bool makes_room = space_is_low() && protection.ask_for_room(checkpoint::Protection::Need::half);
  if (!makes_room) futile_until_ = store().log_clock().now() + 4 * segments.geometry().blocks;
}

bool Maintenance::room_is_waited_for() { return space_noted_ || (space_wanted_ && store().waiters().any()); }

void Maintenance::note_sync() { sync_times_.note(store().options().clock->monotonic_ns()); }

bool Maintenance::is_waited_for() {
  return room_is_waited_for() || checkpoint_wanted_ || store().checkpoints().epoch_due() || store().snapshots().anything_asked();
}

std::function<bool()> Maintenance::giving_way() {
  return [this, before = store().counters().cleaned_blocks.load()] {
    return is_waited_for() && (!checkpoint_wanted_ || room_is_waited_for() || store().counters().cleaned_blocks != before);
  };
}

bool Maintenance::job_is_active() { return engine_.clean_job().is_active() || engine_.resize_job().is_active(); }

// A step of a job; then a rest of the same length if operations came meanwhile, which need the device.
std::chrono::nanoseconds Maintenance::job_step() {
  const std::uint64_t began = store().options().clock->monotonic_ns(), written = store().log_clock().now();
  if (engine_.clean_job().is_active()) engine_.clean_job().step();
  if (engine_.resize_job().is_active()) engine_.resize_job().step();
  if (engine_.resize_job().is_active() && engine_.resize_job().waits()) return kShortestPause;
  if (store().log_clock().now() == written) return {};
  return std::chrono::nanoseconds(store().options().clock->monotonic_ns() - began);
}

// Strategies may use idle time; when nothing is left to do, or nothing is gained any more, not again before something has
// been written: an idle filesystem comes to rest.
bool Maintenance::idle_work_is_left() {
  return options().cleaner && !store().faults().read_only() && store().log_clock().now() != tidied_at_ && cleaner().works_when_idle();
}

void Maintenance::use_idle_time() {
  const std::uint64_t clock = store().log_clock().now();
  auto disturbed = [this, clock] {
    const Lock lock(mutex_);
    return stopping_ || poked_ || store().log_clock().now() != clock;
  };
  cleaner::Patience patience;
  while (!disturbed()) {
    const cleaner::Round round = cleaner().run_idle_round(disturbed);
    if (!round.moved && round.emptied.empty()) break;
    if (!store().checkpoints().make({.evacuate = round.emptied}).ok()) break;
    if (!patience.lasts(round.left)) break;
  }
  if (!disturbed()) tidied_at_ = clock;
  seen_operations_ = store().log().chunks() + store().changes().count_records();  // these were nobody's
}

void Maintenance::tidy() {
  engine_.tidier().run([this] {
    const Lock lock(mutex_);
    return stopping_ || poked_;
  });
  seen_operations_ = store().log().chunks() + store().changes().count_records();
}

void Maintenance::maintain() {
  auto pause = kShortestPause;
  std::chrono::nanoseconds rest{};  // until the next step of a job
  for (;;) {
    {
      Lock lock(mutex_);
      auto due = [this]() REQUIRES(mutex_) { return stopping_ || poked_; };
      const bool deletes = store().snapshots().deletion_is_left() && !store().faults().read_only();
      const bool has_job = job_is_active(), busy = armed_.load() || deletes || has_job;
      if (has_job && !store().faults().host_full()) changed_.wait_for(lock, std::min<std::chrono::nanoseconds>(rest, kLongestPause), due);
      else if (busy) changed_.wait_for(lock, pause, due);
      else changed_.wait(lock, due);
      if (stopping_) return;
      poked_ = false;
    }
    const bool waits = store().snapshots().deletion_is_left() && !store().faults().read_only();  // read-only, nothing more is given back
    if (job_is_active() && !waits && !store().faults().host_full()) rest = job_step();
    store().faults().settle_alarm();
    if (store().faults().read_only()) {
      armed_ = false;
      continue;
    }
    if (store().faults().host_full()) {
      pause = std::min(2 * pause, kLongestPause);
      continue;
    }
    while (work(false)) {
      {
        const Lock lock(mutex_);
        if (stopping_) return;
      }
      if (!look_for_space()) break;  // not under the mutex: it passes the gate, and the thread that has closed that may kick us
    }
    const std::uint64_t now = store().options().clock->monotonic_ns();
    const std::uint64_t operations = store().log().chunks() + store().changes().count_records();
    pause = std::min(2 * pause, kLongestPause);
    if (operations != seen_operations_) {
      seen_operations_ = operations;
      last_operation_ns_ = now;
      pause = kShortestPause;
    }
    if (!engine_.clean_job().is_active() && engine_.tidier().is_due(now)) tidy();
    if (!store().dirty() && !engine_.reaper().anything_waits() && !idle_work_is_left() && !engine_.tidier().has_work() &&
        !store().protection().is_pending()) {
      armed_ = false;
      if (store().dirty() && !armed_.exchange(true)) kick();  // something came between; the seal timer may not know
    } else if (now - last_operation_ns_ > kIdleNs) {
      if (store().dirty()) (void)store().checkpoints().make({});
      else if (idle_work_is_left()) use_idle_time();
    }
  }
}

}  // namespace varve::fs
