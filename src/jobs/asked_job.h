// A job that somebody has asked for: begun, asked how far it is, and stopped by any thread. There is one of these at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cleaner/cleaner.h"
#include "device/faults.h"
#include "jobs/job.h"

namespace varve::jobs {

enum class Phase : std::uint8_t { never, running, stopped, finished, failed };
const char* name_of(Phase phase);

struct JobState {
  using Phase = jobs::Phase;
  Phase phase = Phase::never;
  std::string reason;  // why it ended
  std::string doing;
  std::uint64_t rounds = 0;
  std::uint64_t left_at_first = 0, left = 0;  // blocks
  double seconds = 0;
};

// Callers that ask for a job while one is running hear these words.
struct BusyWords {
  const char *again, *another;  // for the same; for another one
};

struct AskedParts {
  device::Faults& faults;
  Clock& clock;
  cleaner::Cleaner& cleaner;
  std::atomic<const BusyWords*>& running;  // the one that is; shared by all
};

// Thread-safe but for what jobs do themselves. State: a JobState, with more.
template <class State>
class AskedJob : public Job {
 public:
  void stop() { stop_ = true; }  // soon: after a round, and the checkpoint that settles it
  void end() {  // stops and starts none any more
    const Lock lock(mutex_);
    ended_ = stop_ = true;
  }
  bool is_active() const { return active_.load(std::memory_order_acquire); }
  bool is_due(std::uint64_t) override { return is_active(); }
  bool is_pending() override { return is_active(); }

 protected:
  AskedJob(Kind kind, const BusyWords& words, const AskedParts& asked) : Job(kind), asked_(asked), words_(words) {}

  // Errc::busy: another one is running, or this one. Else nobody begins one before begin() or release().
  Status claim() {
    const BusyWords* other = nullptr;
    if (asked_.running.compare_exchange_strong(other, &words_)) return {};
    return Error(Errc::busy, other == &words_ ? words_.again : other->another);
  }
  void release() { asked_.running = nullptr; }
  // With a phase of its own it is over already.
  Status begin(State state) {
    const Lock lock(mutex_);
    if (ended_) {
      release();
      return Error(Errc::busy, "the filesystem is being unmounted");
    }
    state_ = std::move(state);
    if (state_.phase != Phase::never) {
      release();
      return {};
    }
    state_.phase = Phase::running;
    started_ns_ = asked_.clock.monotonic_ns();
    stop_ = false;
    active_ = true;
    return {};
  }
  bool is_stopped() const { return stop_; }
  State copied_state() const {
    const Lock lock(mutex_);
    State state = state_;
    if (state.phase == Phase::running) state.doing = asked_.cleaner.state();
    return state;
  }
  template <class Change>
  void note(Change change) {
    const Lock lock(mutex_);
    change(state_);
    state_.seconds = static_cast<double>(asked_.clock.monotonic_ns() - started_ns_) / 1e9;
  }
  void come_to_end(Phase phase, std::string reason) {
    asked_.cleaner.set_state(cleaner::Cleaner::kResting);
    note([&](State& state) {
      state.phase = phase;
      state.reason = std::move(reason);
      active_ = false;
    });
    release();
  }

  const AskedParts asked_;

 private:
  const BusyWords words_;
  mutable Mutex mutex_{LockRank::job};
  State state_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> started_ns_{0};
  std::atomic<bool> active_{false}, stop_{false};
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace varve::jobs
