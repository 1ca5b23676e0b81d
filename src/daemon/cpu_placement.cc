#include "daemon/cpu_placement.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/io_priority.h"

namespace varve::daemon {

namespace {

constexpr std::uint64_t kLook = 5'000'000;              // ns between looks at the waiting time
constexpr std::uint64_t kQuiet = 50'000'000;            // ns without a request after which it is a normal thread
constexpr std::uint64_t kNoRoom = 100'000'000;          // ns as a normal thread where other programs leave no time of the CPUs
constexpr std::uint64_t kTolerated = 200'000;           // ns a wait for a CPU may take on average
constexpr std::uint64_t kShortPenalty = 100'000'000;    // ns as a normal thread; four times as long each time up to
constexpr std::uint64_t kLongPenalty = 30'000'000'000;  // as an idle one it may wait for three steps of the idle watch

bool set_policy(int policy) {
  const sched_param none{};
  return ::pthread_setschedparam(::pthread_self(), policy, &none) == 0;
}

// Whether a thread may leave SCHED_IDLE again, tried on one that nobody needs. False, too, if there is none to be had.
bool may_leave_idle() {
  bool may = false;
  try {
    std::thread([&may] { may = set_policy(SCHED_IDLE) && set_policy(SCHED_OTHER); }).join();
  } catch (const std::system_error&) {
    return false;
  }
  return may;
}

}  // namespace

unsigned cpu_count() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return std::max(static_cast<unsigned>(CPU_COUNT(&allowed)), 1U);
}

CpuPlacement::CpuPlacement(IdleThreads wish, unsigned index, IdleWatch* watch) : thread_(std::make_shared<PlacedThread>(index)) {
  if (wish == IdleThreads::off) return;
  if (wish == IdleThreads::on) {
    keep_io_priority();
    thread_->become_idle({});
    return;
  }
  if (!watch || !thread_->has_times() || !may_leave_idle()) return;
  keep_io_priority();
  watch_ = watch;
  watch_->add(thread_);
}

CpuPlacement::~CpuPlacement() {
  if (watch_) watch_->remove(thread_.get());
}

void CpuPlacement::become_idle(std::uint64_t now) {
  thread_->become_idle([this] { watch_->look_after_idle(); });
  should_be_idle_ = thread_->is_idle();
  last_look_ = thread_->times();
  next_look_ns_ = now + kLook;
}

void CpuPlacement::become_normal(std::uint64_t now) {
  thread_->become_normal();
  should_be_idle_ = false;
  penalty_ns_ = std::clamp(4 * penalty_ns_, kShortPenalty, kLongPenalty);
  next_look_ns_ = now + penalty_ns_;
}

std::int64_t CpuPlacement::rest() const { return watch_ && should_be_idle_ ? static_cast<std::int64_t>(kQuiet) : -1; }

void CpuPlacement::woken(bool was_waited_for) {
  if (!watch_) return;
  const std::uint64_t now = Clock::system().monotonic_ns();
  if (was_waited_for) last_busy_ns_ = now;
  if (should_be_idle_ && !thread_->is_idle()) return become_normal(now);  // by the watch
  if (should_be_idle_ && now - last_busy_ns_ >= kQuiet) {
    thread_->become_normal();
    should_be_idle_ = false;
    return;
  }
  if (!was_waited_for || now < next_look_ns_) return;  // another one has taken what came
  if (!should_be_idle_) {
    if (watch_->may_be_idle(now)) become_idle(now);
    else next_look_ns_ = now + kNoRoom;
    return;
  }
  next_look_ns_ = now + kLook;
  const PlacedThread::Times before = std::exchange(last_look_, thread_->times());
  // A short wait is as it should be: the caller goes on for a moment after it has sent its request.
  const std::uint64_t runs = last_look_.runs - before.runs;
  if (last_look_.waited_ns - before.waited_ns > kTolerated * std::max<std::uint64_t>(runs, 1)) become_normal(now);
  else penalty_ns_ -= penalty_ns_ / 64;
}

}  // namespace varve::daemon
