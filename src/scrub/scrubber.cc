#include "scrub/scrubber.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "base/counted.h"
#include "base/io_priority.h"
#include "base/logging.h"
#include "checkpoint/superblock_keeper.h"
#include "store/store.h"
#include "tree/trees.h"

namespace varve::scrub {

namespace {

constexpr std::uint64_t kSaveNs = 300'000'000'000;

State::Phase phase_of(const format::ScrubMark& mark) {
  if (!mark.started) return State::Phase::never;
  return mark.finished ? State::Phase::finished : State::Phase::stopped;
}

}  // namespace

const char* name_of(State::Phase phase) {
  switch (phase) {
    case State::Phase::never:
      return "never";
    case State::Phase::running:
      return "running";
    case State::Phase::stopped:
      return "stopped";
    case State::Phase::finished:
      return "finished";
    case State::Phase::failed:
      return "failed";
  }
  return "?";
}

Scrubber::Scrubber(store::Store& store, std::function<void()> save)
    : store_(store),
      save_(std::move(save)),
      mark_(store.superblocks().scrub_mark()) {
  state_.phase = phase_of(mark_);
  state_.started = mark_.started;
  state_.finished = mark_.finished;
  state_.blocks = mark_.blocks;
  state_.errors = mark_.errors;
}

Status Scrubber::start(const Request& request) {
  Lock lock(mutex_);
  if (ended_) return Error(Errc::busy, "the filesystem is being unmounted");
  if (active_) {
    if (stop_) return Error(Errc::busy, "the scrub before has not stopped yet");
    if (request.from_the_beginning) return Error(Errc::busy, "a scrub is running: stop it first");
    pace_.set_rate(request.bytes_per_second);
    state_.bytes_per_second = request.bytes_per_second;
    return {};
  }
  if (thread_.joinable()) thread_.join();
  TRY(start_thread());
  if (request.from_the_beginning || !mark_.started || mark_.finished) {
    mark_ = {};
    mark_.started = store_.options().clock->now().seconds;
    mark_.next = format::kMinKey;
    state_ = {};
    state_.started = mark_.started;
  }
  state_.phase = State::Phase::running;
  state_.reason.clear();
  state_.bytes_per_second = request.bytes_per_second;
  pace_ = Pace(request.bytes_per_second);
  stop_ = false;
  active_ = true;
  return {};
}

// The thread waits for the lock that the caller holds until everything is ready.
Status Scrubber::start_thread() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return Error(Errc::no_memory, fmt::format("no thread for the scrub: {}", error.what()));
  }
  return {};
}

void Scrubber::stop() {
  const Lock lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

void Scrubber::end() {
  std::thread thread;
  {
    const Lock lock(mutex_);
    stop_ = ended_ = true;
    changed_.notify_all();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

State Scrubber::state() const {
  State state = [&] {
    const Lock lock(mutex_);
    return state_;
  }();
  const Gate::Pass pass(store_.gate());
  state.blocks_all = store_.trees().view().live_blocks;
  return state;
}

// --- the thread -------------------------------------------------------------------------------------------------------------

Position Scrubber::position() const {
  const Lock lock(mutex_);
  return {mark_.tree, mark_.next};
}

void Scrubber::run() {
  be_idle_for_io();  // but not for the CPU: what passes the gate must not be held up in it
  const auto report = [this](const Finding& finding) { take(finding); };
  Walk walk(store_, position(), report);
  verify_superblocks(store_, report);
  std::uint64_t unreadable = 0;  // in a row
  std::uint64_t saved_ns = store_.options().clock->monotonic_ns();
  for (;;) {
    const Walk::Step step = walk.step();
    note(walk.position(), step);
    if (step.done) return finish(State::Phase::finished, {});
    unreadable = step.unreadable < step.blocks ? step.unreadable : unreadable + step.unreadable;
    if (unreadable >= kMaxUnreadable) return finish(State::Phase::failed, "the device does not answer");
    const std::uint64_t now = store_.options().clock->monotonic_ns();
    if (now - saved_ns > kSaveNs) {
      save_();
      saved_ns = now;
    }
    std::uint64_t pause = 0;
    {
      const Lock lock(mutex_);
      pause = pace_.pause_ns(now, (step.blocks + step.looked_up) << kBlockShift);
    }
    if (!wait(pause)) return finish(State::Phase::stopped, {});
  }
}

bool Scrubber::wait(std::uint64_t ns) {
  Lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(ns), [this]() REQUIRES(mutex_) { return stop_; });
  return !stop_;
}

void Scrubber::take(const Finding& finding) {
  bool is_kept = false;
  {
    const Lock lock(mutex_);
    ++state_.errors;
    if (finding.is_in_snapshot()) ++state_.snapshot_errors;
    ++mark_.errors;
    is_kept = state_.findings.size() < kMaxFindings;
    if (is_kept) state_.findings.push_back(finding);
    else ++unlogged_;
  }
  if (is_kept) log_error("{}: scrub: {}", store_.device().name(), to_text(finding));
}

void Scrubber::note(const Position& position, const Walk::Step& step) {
  const Lock lock(mutex_);
  mark_.tree = position.tree;
  mark_.next = position.next;
  mark_.blocks += step.blocks;
  state_.blocks = mark_.blocks;
  store_.superblocks().set_scrub_mark(mark_);
}

void Scrubber::finish(State::Phase phase, std::string reason) {
  format::ScrubMark mark;
  std::uint64_t unlogged = 0;
  {
    const Lock lock(mutex_);
    unlogged = std::exchange(unlogged_, 0);
    if (phase == State::Phase::finished) {
      mark_.finished = state_.finished = store_.options().clock->now().seconds;
      mark_.tree = format::TreeId::inode_file;
      mark_.next = format::kMinKey;
    }
    store_.superblocks().set_scrub_mark(mark_);
    state_.phase = phase;
    state_.reason = std::move(reason);
    active_ = false;
    mark = mark_;
  }
  if (unlogged > 0)
    log_error("{}: scrub: {} more errors: this log names only the first {}", store_.device().name(), unlogged, kMaxFindings);
  log_info("{}: scrub {} after {}, {}", store_.device().name(), name_of(phase), counted(mark.blocks, "block"),
               counted(mark.errors, "error"));
  save_();
}

}  // namespace varve::scrub
