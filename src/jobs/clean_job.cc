#include "jobs/clean_job.h"

#include <algorithm>

#include <fmt/format.h>

#include "checkpoint/checkpoints.h"
#include "jobs/file_walk.h"
#include "jobs/requests.h"
#include "segments/counters.h"
#include "segments/segment_table.h"

namespace varve::jobs {

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::never: return "never";
    case Phase::running: return "running";
    case Phase::stopped: return "stopped";
    case Phase::finished: return "finished";
    case Phase::failed: return "failed";
  }
  return "?";
}

CleanJob::CleanJob(const Parts& parts, const AskedParts& asked)
    : AskedJob(Kind::cleaning, {"it is being cleaned already", "it is being cleaned: wait for that, or stop it"}, asked), parts_(parts) {}
CleanJob::~CleanJob() = default;

// --- by any thread --------------------------------------------------------------------------------------------------------

Status CleanJob::start(const CleanRequest& request) {
  const cleaner::Cleaner& cleaner = asked_.cleaner;
  if (asked_.faults.read_only() && !request.dry_run) return asked_.faults.refusal();
  auto rules = TRY(cleaner.rules({request.strategy, request.policy, request.placement}));
  if (!request.roots.empty() && !rules.strategy->goes_by_files())
    return Error(Errc::invalid, fmt::format("{} does not go by files: name none, or another strategy", rules.strategy->name()));
  TRY(claim());
  rules_ = std::move(rules);
  begun_ = false;
  CleanState state;
  state.request = request;
  const cleaner::Cleaner::Spellings mount = cleaner.spellings();
  if (request.strategy.empty()) state.request.strategy = mount.strategy;
  if (request.policy.empty()) state.request.policy = mount.victims;
  if (request.placement.empty()) state.request.placement = mount.placement;
  return begin(std::move(state));
}

// --- by the thread that makes checkpoints ---------------------------------------------------------------------------------

CleanState::Layout CleanJob::layout() const {
  CleanState::Layout layout;
  const auto& segments = parts_.segments;
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

void CleanJob::begin_files(const CleanRequest& request) {
  begun_ = true;
  patience_ = {};
  nodes_at_first_ = parts_.counters.node_blocks;
  note([this](CleanState& state) {
    state.before = state.now = layout();
    state.segments = parts_.segments.geometry().count;
    state.segment_blocks = parts_.segments.geometry().blocks;
  });
  files_ = std::make_unique<FileWalk>(parts_.operations, request.roots.empty() ? std::vector{kRootIno} : request.roots);
}

// The maps know only what a checkpoint has merged.
Status CleanJob::begin_moving() {
  asked_.cleaner.begin(rules_);
  return parts_.checkpoints.make({});
}

cleaner::Task CleanJob::task(const CleanState& so_far) const {
  cleaner::Task task;
  task.for_room = false;
  task.told = true;
  task.files = files_.get();
  task.files_named = !so_far.request.roots.empty();
  task.buffer = so_far.request.buffer_blocks;
  task.wanted = so_far.request.free_blocks - std::min(so_far.request.free_blocks, so_far.freed_blocks());
  task.most_moved = so_far.request.move_blocks - std::min(so_far.request.move_blocks, so_far.written);
  return task;
}

Job::Next CleanJob::make_forecast() {
  cleaner::Task whole = task(state());
  whole.stop = [this] { return is_stopped(); };  // it is made at once, or never
  cleaner::Forecast forecast = asked_.cleaner.forecast(whole, rules_);
  note([&](CleanState& state) { state.forecast = std::move(forecast); });
  return finish(Phase::finished, "nothing was written");
}

void CleanJob::note_round(const cleaner::Round& round) {
  const cleaner::FileCounts files = asked_.cleaner.files(rules_);
  note([&](CleanState& state) {
    if (state.rounds++ == 0) state.left_at_first = round.left;
    state.left = round.left;
    state.read += round.read;
    state.written += round.written;
    state.emptied += round.emptied.size();
    state.files = files;
    state.nodes = parts_.counters.node_blocks - nodes_at_first_;
    state.now = layout();
  });
}

Job::Next CleanJob::step(const Interrupt& interrupt) {
  const bool begins = !begun_, is_dry = state().request.dry_run;
  if (begins) begin_files(state().request);
  if (is_dry) return make_forecast();
  if (begins)
    if (const Status begun = begin_moving(); !begun.ok()) return finish(Phase::failed, begun.error().message());
  const CleanState so_far = state();
  if (is_stopped()) return finish(Phase::stopped, "it was stopped");
  if (so_far.freed_blocks() >= so_far.request.free_blocks || so_far.written >= so_far.request.move_blocks)
    return finish(Phase::finished, "all that was asked for is done");
  cleaner::Task now = task(so_far);
  now.stop = [this, &interrupt] { return is_stopped() || interrupt(); };
  const cleaner::Round round = asked_.cleaner.run_round(now, rules_);
  Status settled;
  if (round.moved || !round.emptied.empty()) settled = parts_.checkpoints.make({.evacuate = round.emptied});
  note_round(round);
  if (!settled.ok()) return finish(Phase::failed, settled.error().message());
  if (round.failure) return finish(Phase::failed, round.failure->message());
  if (round.finished) return finish(Phase::finished, round.why);
  if (is_stopped()) return finish(Phase::stopped, "it was stopped");
  if (!parts_.requests.is_waited_for() && !patience_.lasts(round.left))
    return finish(Phase::finished, "the last rounds gained nothing: " + round.why);
  return Next::later;
}

Job::Next CleanJob::finish(Phase phase, std::string reason) {
  if (rules_.strategy && !state().request.dry_run) asked_.cleaner.end(rules_);
  files_.reset();
  rules_ = {};
  come_to_end(phase, std::move(reason));
  return Next::later;
}

}  // namespace varve::jobs
