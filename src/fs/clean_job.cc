#include "fs/clean_job.h"

#include <algorithm>

#include <fmt/format.h>

#include "checkpoint/checkpoints.h"
#include "device/faults.h"
#include "fs/engine.h"
#include "fs/file_walk.h"
#include "fs/maintenance.h"
#include "fs/resize_job.h"
#include "fs/wait_times.h"
#include "segments/counters.h"
#include "segments/segment_table.h"
#include "store/store.h"

namespace varve::fs {

const char* name_of(CleanState::Phase phase) {
  switch (phase) {
    case CleanState::Phase::never: return "never";
    case CleanState::Phase::running: return "running";
    case CleanState::Phase::stopped: return "stopped";
    case CleanState::Phase::finished: return "finished";
    case CleanState::Phase::failed: return "failed";
  }
  return "?";
}

CleanJob::CleanJob(Engine& engine) : engine_(engine) {}
CleanJob::~CleanJob() = default;

// --- by any thread --------------------------------------------------------------------------------------------------------

Status CleanJob::start(const CleanRequest& request) {
  if (engine_.store().faults().read_only() && !request.dry_run) return engine_.store().faults().refusal();
  auto rules = TRY(engine_.cleaner().rules({request.strategy, request.policy, request.placement}));
  if (!request.roots.empty() && !rules.strategy->goes_by_files())
    return Error(Errc::invalid, fmt::format("{} does not go by files: name none, or another strategy", rules.strategy->name()));
  const Lock lock(mutex_);
  if (ended_) return Error(Errc::busy, "the filesystem is being unmounted");
  if (active_) return Error(Errc::busy, "it is being cleaned already");
  if (engine_.resize_job().is_active()) return Error(Errc::busy, "its size is being changed: wait for that, or cancel it");
  rules_ = std::move(rules);
  state_ = {};
  state_.phase = CleanState::Phase::running;
  state_.request = request;
  if (state_.request.strategy.empty()) state_.request.strategy = engine_.cleaner().strategy();
  if (state_.request.policy.empty()) state_.request.policy = engine_.cleaner().victims();
  if (state_.request.placement.empty()) state_.request.placement = engine_.cleaner().placement_name();
  begun_ = stop_ = false;
  active_ = true;
  return {};
}

void CleanJob::stop() { stop_ = true; }

void CleanJob::end() {
  const Lock lock(mutex_);
  ended_ = stop_ = true;
}

CleanState CleanJob::state() const {
  const Lock lock(mutex_);
  CleanState state = state_;
  if (state.phase == CleanState::Phase::running) state.doing = engine_.cleaner().state();
  return state;
}

// --- by the thread that makes checkpoints ---------------------------------------------------------------------------------

CleanState::Layout CleanJob::layout() const {
  CleanState::Layout layout;
  const auto& segments = engine_.store().segments();
  const auto count = [&](SegmentId id, const segments::SegmentInfo& s) {
    if (s.state == segments::SegmentState::clean || s.state == segments::SegmentState::discarding) return;
    if (s.state == segments::SegmentState::open) {
      ++layout.open;
      return;
    }
    ++layout.used;
    if (s.live()) layout.end = id.v + 1;
    layout.garbage += segments.geometry().blocks - std::min(segments.geometry().blocks, s.live());
  };
  segments.for_each(count, segments::SegmentTable::Which::in_use);
  const std::uint64_t all = segments.geometry().count;
  layout.clean = all - std::min(all, layout.open + layout.used);
  return layout;
}

void CleanJob::begin() {
  store::Store& store = engine_.store();
  begun_ = true;
  patience_ = {};
  started_ns_ = store.options().clock->monotonic_ns();
  nodes_at_first_ = store.counters().node_blocks;
  std::vector<Ino> roots;
  {
    const Lock lock(mutex_);
    roots = state_.request.roots;
    state_.before = state_.now = layout();
    state_.segments = store.segments().geometry().count;
    state_.segment_blocks = store.segments().geometry().blocks;
  }
  if (roots.empty()) roots.push_back(kRootIno);
  files_ = std::make_unique<FileWalk>(engine_, roots);
}

cleaner::Task CleanJob::task() {
  cleaner::Task task;
  task.for_room = false;
  task.told = true;
  task.files = files_.get();
  task.stop = [this, gives_way = engine_.maintenance().giving_way()] { return stop_ || gives_way(); };
  const Lock lock(mutex_);
  task.files_named = !state_.request.roots.empty();
  task.buffer = state_.request.buffer_blocks;
  const std::uint64_t asked = state_.request.free_blocks, freed = state_.freed_blocks();
  task.wanted = asked - std::min(asked, freed);
  task.most_moved = state_.request.move_blocks - std::min(state_.request.move_blocks, state_.written);
  return task;
}

void CleanJob::step() {
  if (!begun_) {
    begin();
    // The maps know only what a checkpoint has merged.
    if (!state().request.dry_run) {
      rules_.strategy->begin(engine_.store());
      if (Status status = engine_.store().checkpoints().make({}); !status.ok())
        return finish(CleanState::Phase::failed, status.error().message());
    }
  }
  const CleanState so_far = state();
  if (so_far.request.dry_run) {
    cleaner::Task whole = task();
    whole.stop = [this] { return stop_.load(); };  // it is made at once, or never
    cleaner::Forecast forecast = engine_.cleaner().forecast(whole, rules_);
    {
      const Lock lock(mutex_);
      state_.forecast = std::move(forecast);
    }
    return finish(CleanState::Phase::finished, "nothing was written");
  }
  if (stop_) return finish(CleanState::Phase::stopped, "it was stopped");
  if (is_enough(so_far)) return finish(CleanState::Phase::finished, "all that was asked for is done");
  const cleaner::Round round = engine_.cleaner().run_round(task(), rules_);
  Status settled;
  if (round.moved || !round.emptied.empty()) settled = engine_.store().checkpoints().make({.evacuate = round.emptied});
  const cleaner::FileCounts files = rules_.strategy->files(engine_.store());
  {
    const Lock lock(mutex_);
    if (state_.rounds++ == 0) state_.left_at_first = round.left;
    state_.left = round.left;
    state_.read += round.read;
    state_.written += round.written;
    state_.emptied += round.emptied.size();
    state_.files = files;
    state_.nodes = engine_.store().counters().node_blocks - nodes_at_first_;
    state_.now = layout();
    state_.seconds = static_cast<double>(engine_.store().options().clock->monotonic_ns() - started_ns_) / 1e9;
  }
  if (!settled.ok()) return finish(CleanState::Phase::failed, settled.error().message());
  if (round.failure) return finish(CleanState::Phase::failed, round.failure->message());
  if (round.finished) return finish(CleanState::Phase::finished, round.why);
  if (stop_) return finish(CleanState::Phase::stopped, "it was stopped");
  if (!engine_.maintenance().is_waited_for() && !patience_.lasts(round.left))
    finish(CleanState::Phase::finished, "the last rounds gained nothing: " + round.why);
}

bool CleanJob::is_enough(const CleanState& state) const {
  return state.freed_blocks() >= state.request.free_blocks || state.written >= state.request.move_blocks;
}

void CleanJob::finish(CleanState::Phase phase, std::string reason) {
  if (rules_.strategy && !state().request.dry_run) rules_.strategy->end(engine_.store());
  files_.reset();
  engine_.cleaner().set_state("idle: enough clean segments");
  const Lock lock(mutex_);
  rules_ = {};
  state_.phase = phase;
  state_.reason = std::move(reason);
  state_.seconds = static_cast<double>(engine_.store().options().clock->monotonic_ns() - started_ns_) / 1e9;
  active_ = false;
}

}  // namespace varve::fs
