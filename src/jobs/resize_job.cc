#include "jobs/resize_job.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoint/checkpoints.h"
#include "checkpoint/reshaping.h"
#include "jobs/requests.h"
#include "jobs/sizes.h"
#include "log/log.h"
#include "segments/segment_table.h"

namespace varve::jobs {

namespace {

using segments::SegmentInfo;
using segments::SegmentState;
using segments::SegmentTable;
using space::Space;

constexpr unsigned kMostFruitless = 8;    // rounds in a row
constexpr std::size_t kMostNamed = 32;    // segments

// --- what stands behind a segment -----------------------------------------------------------------------------------------

std::uint64_t live_from(const SegmentTable& segments, std::uint64_t first) {
  std::uint64_t live = 0;
  segments.for_each([&](SegmentId id, const SegmentInfo& s) {
    if (id.v >= first) live += s.live();
  }, SegmentTable::Which::in_use);
  return live;
}

// Nothing is to be moved or settled: what is emptied is being discarded.
bool only_discards_are_left(const SegmentTable& segments, std::uint64_t first) {
  if (segments.end().limit() != first || segments.discarding() == 0) return false;
  bool only = true;
  segments.for_each([&](SegmentId id, const SegmentInfo& s) { only = only && (id.v < first || s.state == SegmentState::discarding); },
                    SegmentTable::Which::in_use);
  return only;
}

std::vector<std::uint64_t> stuck_from(const SegmentTable& segments, std::uint64_t first) {
  std::vector<std::uint64_t> ids;
  segments.for_each([&](SegmentId id, const SegmentInfo& s) {
    if (id.v >= first && s.state == SegmentState::used && ids.size() < kMostNamed) ids.push_back(id.v);
  }, SegmentTable::Which::in_use);
  return ids;
}

}  // namespace

ResizeJob::ResizeJob(const Parts& parts, const AskedParts& asked)
    : AskedJob(Kind::resizing,
               {"its size is being changed already", "its size is being changed: wait for that, or cancel it"}, asked),
      parts_(parts) {}

// --- by any thread --------------------------------------------------------------------------------------------------------

Status ResizeJob::start(const ResizeRequest& request) {
  if (asked_.faults.read_only()) return asked_.faults.refusal();
  TRY(claim());
  ResizeState state;
  state.from = parts_.sizes.present();
  const auto blocks = parts_.sizes.make_room_for(request.bytes);
  if (!blocks.ok()) {
    release();
    return blocks.error();
  }
  state.to = *blocks;
  shrinks_ = state.to < state.from;
  begun_ = false;
  if (state.to == state.from) {
    state.phase = Phase::finished;
    state.reason = "it has this size already";
  }
  return begin(std::move(state));
}

ResizeState ResizeJob::state() const {
  ResizeState state = copied_state();
  state.device_blocks = parts_.sizes.of_device();
  state.blocks = parts_.sizes.present();
  state.least_blocks = parts_.sizes.least();
  state.segment_blocks = parts_.segments.geometry().blocks;
  return state;
}

// --- by the thread that makes checkpoints ---------------------------------------------------------------------------------

Job::Next ResizeJob::step(const Interrupt& interrupt) {
  if (asked_.faults.read_only()) return finish(Phase::failed, asked_.faults.reason());
  if (shrinks_) return begun_ ? shrink_step(interrupt) : begin_shrinking();
  const Status grown = grow();
  return grown.ok() ? finish(Phase::finished, "") : finish(Phase::failed, grown.error().message());
}

// The length of the image is on the medium before anything says that it is so long.
Status ResizeJob::grow() {
  TRY(parts_.log.durability().flush_now());  // which sees to it that a failure is heard by those whose data it lost
  TRY(parts_.checkpoints.make({.evacuate = {}, .device_blocks = copied_state().to}));
  return asked_.cleaner.rescale();
}

// A checkpoint brings what is staged into the maps. From now on users find as much room as there will be.
Job::Next ResizeJob::begin_shrinking() {
  begun_ = true;
  aim_ = parts_.sizes.segments_of(copied_state().to);
  parts_.sizes.aim_at(aim_);
  rules_ = asked_.cleaner.leaving_rules();
  asked_.cleaner.begin(rules_);
  fruitless_ = 0;
  least_left_ = lowest_limit_ = least_in_use_ = ~0ULL;
  most_clean_ = 0;
  if (const Status settled = parts_.checkpoints.make({}); !settled.ok()) return finish(Phase::failed, settled.error().message());
  note([this](ResizeState& state) { state.left = state.left_at_first = live_from(parts_.segments, aim_); });
  return Next::later;
}

Job::Next ResizeJob::shrink_step(const Interrupt& interrupt) {
  if (is_stopped()) return finish(Phase::stopped, "it was stopped");
  const Status fits = parts_.sizes.check(copied_state().to);
  if (!fits.ok()) return finish(Phase::failed, "it has been filled meanwhile: " + fits.error().message());
  retreat();
  if (parts_.segments.end().limit() == aim_ && parts_.segments.end().in_use_from(aim_) == 0) return reach_end();
  if (parts_.background && only_discards_are_left(parts_.segments, aim_)) return Next::waits;
  const cleaner::Round round = move_some(interrupt);
  // No map has what was open at the end before a checkpoint has seen it. Segments that have died there are clean after the next one.
  const Status settled = parts_.checkpoints.make({.evacuate = round.emptied});
  note_round(round);
  if (!settled.ok()) return finish(Phase::failed, settled.error().message());
  if (round.failure) return give_up(round.failure->message());
  if (is_stopped()) return finish(Phase::stopped, "it was stopped");
  return gains() || parts_.requests.is_waited_for() ? Next::later : give_up(round.why);
}

// As far as users do not notice; only if nothing is gained in this way, as far as it goes.
void ResizeJob::retreat() {
  const std::uint64_t limit = parts_.segments.end().limit();
  if (limit == aim_) return;
  for (const Space::Margin margin : {Space::Margin::of_users, Space::Margin::least}) {
    if (margin == Space::Margin::least && fruitless_ < 2) return;
    const std::uint64_t next = parts_.reshaping.next_limit(aim_, margin);
    if (next >= limit) continue;
    (void)parts_.reshaping.retreat(next, margin).ok();  // an error has made it read-only, which the next step finds
    return;
  }
}

cleaner::Round ResizeJob::move_some(const Interrupt& interrupt) {
  cleaner::Task task;
  task.for_room = false;
  task.told = true;
  task.wanted = asked_.cleaner.ahead() * parts_.segments.geometry().blocks;
  task.stop = [this, &interrupt] { return is_stopped() || interrupt(); };
  return asked_.cleaner.run_round(task, rules_);
}

void ResizeJob::note_round(const cleaner::Round& round) {
  const std::uint64_t left = live_from(parts_.segments, aim_);
  note([&](ResizeState& state) {
    ++state.rounds;
    state.moved += round.written;
    state.left = left;
    state.left_at_first = std::max(state.left_at_first, left);
  });
}

// Less than ever lives behind the end, or is in use behind the limit, or more room than ever is below.
bool ResizeJob::gains() {
  const SegmentTable& segments = parts_.segments;
  const std::uint64_t limit = segments.end().limit(), in_use = segments.end().in_use_from(limit);
  const std::uint64_t clean = segments.clean(), left = copied_state().left;
  if (limit < lowest_limit_) least_in_use_ = ~0ULL, most_clean_ = 0;
  const bool any = limit < lowest_limit_ || left < least_left_ || in_use < least_in_use_ || clean > most_clean_;
  lowest_limit_ = std::min(lowest_limit_, limit);
  least_left_ = std::min(least_left_, left);
  least_in_use_ = std::min(least_in_use_, in_use);
  most_clean_ = std::max(most_clean_, clean);
  fruitless_ = any || segments.discarding() > 0 ? 0 : fruitless_ + 1;
  return fruitless_ < kMostFruitless;
}

Job::Next ResizeJob::reach_end() {
  const std::uint64_t to = copied_state().to;
  if (const Status settled = parts_.checkpoints.make({.evacuate = {}, .device_blocks = to}); !settled.ok())
    return finish(Phase::failed, settled.error().message());
  parts_.sizes.aim_at(0);
  std::string reason;
  if (const Status cut = parts_.sizes.cut_device(to); !cut.ok()) reason = "but the image has kept its length: " + cut.error().message();
  if (const Status told = asked_.cleaner.rescale(); !told.ok()) reason = told.error().message();
  return finish(Phase::finished, std::move(reason));
}

Job::Next ResizeJob::give_up(std::string why) {
  const auto stuck = stuck_from(parts_.segments, parts_.segments.end().limit());
  const bool bad = std::ranges::any_of(stuck, [this](std::uint64_t id) { return asked_.cleaner.is_pinned(SegmentId{id}); });
  if (bad)
    why = fmt::format("segments {} hold bad blocks that cannot be moved: varve scrub names the files", fmt::join(stuck, ", "));
  note([&](ResizeState& state) { state.stuck = stuck; });
  return finish(Phase::failed, why.empty() ? "nothing more could be moved" : std::move(why));
}

Job::Next ResizeJob::finish(Phase phase, std::string reason) {
  if (rules_.strategy) asked_.cleaner.end(rules_);
  rules_ = {};
  if (shrinks_ && phase != Phase::finished) {
    parts_.reshaping.stay();
    parts_.sizes.aim_at(0);
  }
  parts_.requests.wake_waiting();
  come_to_end(phase, std::move(reason));
  return Next::later;
}

void ResizeJob::abandon() {
  if (is_active()) finish(Phase::stopped, "it was unmounted");
}

}  // namespace varve::jobs
