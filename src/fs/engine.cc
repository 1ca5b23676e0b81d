#include "fs/engine.h"

#include <algorithm>
#include <chrono>

#include <spdlog/spdlog.h>

#include "cleaner/patience.h"
#include "fs/clean_job.h"
#include "store/hole_feeder.h"
#include "scrub/scrubber.h"

namespace varve::fs {

namespace {
constexpr std::uint64_t kIdleNs = 60'000'000'000ULL;

// Between two looks at whether a checkpoint or cleaning is due, while there is anything that is not in the trees: what is
// waited for is told at once, so that looking now and then is enough.
constexpr std::chrono::milliseconds kShortestPause{20}, kLongestPause{320};
}

Engine::Engine(std::unique_ptr<store::Store> store, std::unique_ptr<cleaner::Cleaner> cleaner, const Options& options)
    : store_(std::move(store)),
      options_(options),
      cleaner_(std::move(cleaner)),
      started_ns_(options.clock->monotonic_ns()) {
  scrubber_ = std::make_unique<scrub::Scrubber>(*store_, [this] { request_checkpoint(); });
  clean_job_ = std::make_unique<CleanJob>(*this);
  last_operation_ns_ = started_ns_;
  tidied_at_ = store_->log_clock();
}

Engine::~Engine() {
  scrubber_->end();
  stop_threads();
}

void Engine::start_threads() {
  if (!options_.background) return;
  store_->on_epoch_due([this] { kick(); });
  service_ = std::thread([this] { serve(); });
  {
    Lock lock(mutex_);
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return service_ready_; });
  }
  maintenance_ = std::thread([this] { maintain(); });
}

void Engine::stop_maintenance() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (maintenance_.joinable()) maintenance_.join();
}

void Engine::stop_threads() {
  stop_maintenance();
  service_stop_ = true;
  store_->io().wake_service();
  if (service_.joinable()) service_.join();
}

// --- service: I/O of threads that have no reactor, and the seal timer -------------------------------------------------------

void Engine::serve() {
  io::Reactor& reactor = store_->io().open_service();
  {
    const Lock lock(mutex_);
    service_ready_ = true;
  }
  changed_.notify_all();
  const std::uint64_t delay_ns = options_.seal_delay_ms * 1'000'000ULL;
  while (!service_stop_) {
    std::int64_t timeout = -1;
    if (armed_) timeout = 1'000'000'000;  // something may become unsealed without a word to this thread
    if (const std::uint64_t since = store_->unawaited_since_ns(); since && !store_->read_only()) {
      const std::uint64_t now = store_->clock().monotonic_ns();
      if (now >= since + delay_ns) {
        if (auto lsn = store_->seal(store::Store::Seal::commit, &reactor); lsn.ok())
          store_->log().durability().when_durable(*lsn, [](Status) {}, &reactor);
        continue;
      }
      timeout = std::min<std::int64_t>(1'000'000'000, static_cast<std::int64_t>(since + delay_ns - now));
    }
    reactor.wait(timeout);
  }
  store_->io().end_service();
  for (reactor.poll(); reactor.in_flight();) reactor.wait(-1);  // what was handed over before that is carried out
  store_->io().close_service();
}

// --- maintenance --------------------------------------------------------------------------------------------------------------

void Engine::kick() {
  {
    const Lock lock(mutex_);
    poked_ = true;
  }
  if (options_.background) store_->io().wake_service();
  changed_.notify_all();
}

void Engine::request_checkpoint(bool space) {
  if (space) space_wanted_ = true;
  checkpoint_wanted_ = true;
  kick();
}

// After each successful operation. Costs one relaxed load while the threads are awake anyway.
void Engine::after(io::Reactor* reactor) {
  if (store_->unsealed_payload_bytes() >= seal_threshold()) (void)store_->seal(store::Store::Seal::append, reactor);
  if (store_->hole_feeder().is_hungry() && !holes_asked_.exchange(true)) options_.background ? kick() : (void)feed_holes();
  if (!armed_.load(std::memory_order_relaxed) && store_->unawaited_since_ns() && !armed_.exchange(true)) kick();
  if (!options_.background && (checkpoint_is_due() || look_for_space())) work(false);
}

bool Engine::space_is_low() {
  const auto& segments = store_->segments();
  return options_.cleaner && segments.clean() <= store_->low_water() + cleaner_->ahead();
}

bool Engine::checkpoint_is_due() {
  if (store_->read_only()) return false;
  if (checkpoint_wanted_) return true;
  if (store_->delta_records() >= options_.checkpoint_records) return true;
  if (store_->delta_bytes() >= options_.memory_bytes / 6 || store_->relief_is_due()) return true;
  const auto& segments = store_->segments();
  const std::uint64_t free_blocks = (segments.clean() + 1) * segments.geometry().blocks;
  return store_->log_blocks_since_checkpoint() > std::max<std::uint64_t>(free_blocks / 2, 2048);
}

bool Engine::work(bool space_wanted) {
  if (store_->read_only()) return false;
  bool worked = false;
  if (store_->epoch_due()) {
    (void)store_->write_epoch();
    worked = true;
  }
  worked |= reap_waiting();
  worked |= feed_holes();

  const bool waited_for = space_wanted_.exchange(false) || space_wanted;
  const bool low = waited_for || look_for_space();
  if (!low && !checkpoint_is_due()) return worked;
  clean_and_checkpoint(low, waited_for);
  feed_holes();
  return true;
}

bool Engine::feed_holes() {
  holes_asked_ = false;
  if (!store_->hole_feeder().is_hungry() || !store_->hole_feeder().feed()) return false;
  store_->wake_waiters();  // holes let operations in that no clean segment would
  return true;
}

// Low on space, and not just found that nothing can be done about it (H33).
bool Engine::look_for_space() { return space_is_low() && store_->log_clock() >= futile_until_; }

bool Engine::cleaning_helps() {
  // What a checkpoint alone releases comes first: cleaning moves blocks only when that is not enough.
  const auto& segments = store_->segments();
  return options_.cleaner && segments.clean() + segments.reclaimable() <= store_->low_water() + cleaner_->ahead();
}

// The checkpoint that makes room of what a round has moved.
Status Engine::settle(const store::Store::CheckpointRequest& request) {
  const std::uint64_t began = store_->clock().monotonic_ns();
  Status status = store_->checkpoint(request);
  cleaner_->note_settling(store_->clock().monotonic_ns() - began);
  return status;
}

// False: there was nothing to move, so no checkpoint is needed for it.
bool Engine::clean_round(bool waited_for, store::Store::CheckpointRequest& request) {
  cleaner::Round round = cleaner_->run_round(waited_for);
  request.evacuate = std::move(round.emptied);
  return round.moved || !request.evacuate.empty();
}

void Engine::clean_and_checkpoint(bool low, bool waited_for) {
  const bool wanted = checkpoint_wanted_.exchange(false) || checkpoint_is_due();
  store::Store::CheckpointRequest request;
  const auto& segments = store_->segments();
  const std::uint64_t clean_before = segments.clean(), written_before = store_->log_clock();
  bool moved = low && cleaning_helps() && clean_round(waited_for, request);
  // For want of space, but nothing to release (H33): it would only spread the nodes over more segments.
  const bool pointless = low && !moved && segments.reclaimable() == 0 && (!wanted || !store_->dirty());
  if (pointless) store_->note_pointless_round();
  else (void)settle(request);
  // The delta may have kept the room that moving needs; now it is merged.
  if (low && !pointless && !moved && cleaning_helps()) {
    moved = clean_round(waited_for, request);
    if (moved) (void)settle(request);
  }
  if (cleaner_->pinned_segments()) cleaner_->count_pinned();
  if (moved) cleaner_->note_meanwhile(store_->log_clock() - written_before);
  if (low && segments.clean() <= clean_before) futile_until_ = store_->log_clock() + 4 * segments.geometry().blocks;
}

// A step of a cleaning job; then a rest of the same length if operations came meanwhile, which need the device.
std::chrono::nanoseconds Engine::clean_job_step() {
  const std::uint64_t began = store_->clock().monotonic_ns(), written = store_->log_clock();
  clean_job_->step();
  if (store_->log_clock() == written) return {};
  return std::chrono::nanoseconds(store_->clock().monotonic_ns() - began);
}

// Strategies may use idle time; when nothing is left to do, or nothing is gained any more, not again before something has
// been written: an idle filesystem comes to rest.
bool Engine::idle_work_is_left() {
  return options_.cleaner && !store_->read_only() && store_->log_clock() != tidied_at_ && cleaner_->works_when_idle();
}

void Engine::use_idle_time() {
  const std::uint64_t clock = store_->log_clock();
  auto disturbed = [this, clock] {
    const Lock lock(mutex_);
    return stopping_ || poked_ || store_->log_clock() != clock;
  };
  cleaner::Patience patience;
  while (!disturbed()) {
    const cleaner::Round round = cleaner_->run_idle_round(disturbed);
    if (!round.moved && round.emptied.empty()) break;
    if (!store_->checkpoint({.evacuate = round.emptied}).ok()) break;
    if (!patience.lasts(round.left)) break;
  }
  if (!disturbed()) tidied_at_ = clock;
  seen_operations_ = store_->log().chunks() + store_->delta_records();  // these were nobody's
}

void Engine::maintain() {
  auto pause = kShortestPause;
  std::chrono::nanoseconds rest{};  // until the next step of a cleaning job
  for (;;) {
    {
      Lock lock(mutex_);
      auto due = [this]() REQUIRES(mutex_) { return stopping_ || poked_; };
      const bool busy = armed_.load();
      if (clean_job_->is_active()) changed_.wait_for(lock, std::min<std::chrono::nanoseconds>(rest, kLongestPause), due);
      else if (busy) changed_.wait_for(lock, pause, due);
      else changed_.wait(lock, due);
      if (stopping_) return;
      poked_ = false;
    }
    if (clean_job_->is_active()) rest = clean_job_step();
    if (store_->read_only()) {
      armed_ = false;
      continue;
    }
    while (work(false)) {
      {
        const Lock lock(mutex_);
        if (stopping_) return;
      }
      if (!look_for_space()) break;  // not under the mutex: it passes the gate, and the thread that has closed that may kick us
    }
    const std::uint64_t now = store_->clock().monotonic_ns();
    const std::uint64_t operations = store_->log().chunks() + store_->delta_records();
    pause = std::min(2 * pause, kLongestPause);
    if (operations != seen_operations_) {
      seen_operations_ = operations;
      last_operation_ns_ = now;
      pause = kShortestPause;
    }
    if (!store_->dirty() && !anything_to_reap() && !idle_work_is_left()) {
      armed_ = false;
      if (store_->dirty() && !armed_.exchange(true)) kick();  // something came between; the seal timer may not know
    } else if (now - last_operation_ns_ > kIdleNs) {
      if (store_->dirty()) (void)store_->checkpoint({});
      else use_idle_time();
    }
  }
}

void Engine::reap_later(Ino ino) {
  {
    const Lock lock(mutex_);
    to_reap_.push_back(ino);
  }
  if (options_.background) kick();
  else work(false);
}

// --- unlinked inodes --------------------------------------------------------------------------------------------------------------

Status Engine::try_reap(Operation& operation, Ino ino, Reaper reaper) {
  return attempt(operation, [&](Attempt& a) -> Status {
    auto inode = a.inode(ino);
    if (!inode.ok()) return inode.error().is(Errc::stale) ? Status{} : Status(inode.error());
    TRY(a.admit({.record_bytes = 64, .frees = true, .reaps = reaper == Reaper::hurried}));
    WriteLock lock((*inode)->mutex);
    if (!(*inode)->gone() && (*inode)->attributes.nlink == 0) a.store().stage_free(**inode);
    return {};
  });
}

void Engine::reap(Ino ino) {
  Operation operation(*this, {});
  (void)block_on(operation, [&] { return try_reap(operation, ino, Reaper::waiting); });
}

// The thread that makes the checkpoints cannot wait for one: what needs that comes again after it.
bool Engine::reap_waiting() {
  std::vector<Ino> inodes, left;
  {
    const Lock lock(mutex_);
    inodes.swap(to_reap_);
  }
  for (Ino ino : inodes) {
    Operation operation(*this, {});
    while (try_reap(operation, ino, Reaper::hurried).fails_with(Errc::would_block)) {
      if (operation.wait().for_settled) {
        left.push_back(ino);
        break;
      }
      operation.block();
    }
  }
  if (!left.empty()) {
    space_wanted_ = checkpoint_wanted_ = true;
    const Lock lock(mutex_);
    to_reap_.insert(to_reap_.end(), left.begin(), left.end());
  }
  return left.size() < inodes.size();
}

bool Engine::anything_to_reap() {
  const Lock lock(mutex_);
  return !to_reap_.empty();
}

void Engine::reap_soon(Ino ino) {
  Operation operation(*this, {});
  if (try_reap(operation, ino, Reaper::hurried).fails_with(Errc::would_block)) reap_later(ino);
}

Status Engine::reap_orphans() {
  std::vector<Ino> orphans;
  Operation operation(*this, {});
  TRY(block_on(operation, [&] {
    orphans.clear();
    return attempt(operation, [&](Attempt& a) -> Status {
      store::Cursor cursor(a.source(), a.view().inode_file);
      TRY(cursor.seek({format::kOrphanIno, format::ItemKind::orphan, 0}));
      for (; cursor.valid() && cursor.key().ino == format::kOrphanIno; TRY(cursor.next()))
        orphans.push_back(Ino{cursor.key().offset});
      return {};
    });
  }));
  for (Ino ino : references_.take_orphans()) orphans.push_back(ino);
  for (Ino ino : orphans) reap(ino);
  return {};
}

}  // namespace varve::fs
