#include "daemon/cpu_placement.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/io_priority.h"
#include "base/leading_numbers.h"

namespace varve::fuse {

namespace {

constexpr std::uint64_t kLook = 5'000'000;              // ns between looks at the waiting time
constexpr std::uint64_t kTolerated = 200'000;           // ns a wait for a CPU may take on average
constexpr std::uint64_t kShortPenalty = 100'000'000;    // ns as a normal thread; four times as long each time up to
constexpr std::uint64_t kLongPenalty = 30'000'000'000;  // as an idle one it may wait for half a second before it looks

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

void pin(const cpu_set_t& allowed, unsigned index) {
  const auto count = static_cast<unsigned>(CPU_COUNT(&allowed));
  index %= std::max(count, 1U);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
    return;
  }
}

}  // namespace

unsigned cpu_count() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return std::max(static_cast<unsigned>(CPU_COUNT(&allowed)), 1U);
}

CpuPlacement::CpuPlacement(IdleThreads wish, unsigned index) : index_(index) {
  if (wish == IdleThreads::off) return;
  if (wish == IdleThreads::automatic) {
    schedstat_ = Descriptor(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
    if (!schedstat_ || !may_leave_idle()) return;
  }
  keep_io_priority();
  enabled_ = wish == IdleThreads::automatic;
  if (::sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) enabled_ = false;
  change(true);
  last_look_ = waiting();
}

// An idle thread serves the callers of its own CPU; a normal one goes where there is room.
void CpuPlacement::change(bool idle) {
  if (!set_policy(idle ? SCHED_IDLE : SCHED_OTHER)) return;
  idle_ = idle;
  if (idle)
    pin(allowed_, index_);
  else
    ::pthread_setaffinity_np(::pthread_self(), sizeof allowed_, &allowed_);
}

void CpuPlacement::woken(bool was_waited_for) {
  if (!enabled_) return;
  const std::uint64_t now = Clock::system().monotonic_ns();
  if (now < next_look_ns_) return;
  next_look_ns_ = now + kLook;
  const Waiting before = std::exchange(last_look_, waiting());
  if (!idle_) return change(true);
  if (!was_waited_for) return;  // another one has taken what came
  // A short wait is as it should be: the caller goes on for a moment after it has sent its request.
  const std::uint64_t times = last_look_.times - before.times;
  if (last_look_.ns - before.ns <= kTolerated * std::max<std::uint64_t>(times, 1)) {
    penalty_ns_ -= penalty_ns_ / 64;
    return;
  }
  change(false);
  penalty_ns_ = std::clamp(4 * penalty_ns_, kShortPenalty, kLongPenalty);
  next_look_ns_ = now + penalty_ns_;
}

CpuPlacement::Waiting CpuPlacement::waiting() const {
  std::uint64_t numbers[3];  // ns run, ns waited, times
  read_leading_numbers(schedstat_.get(), numbers);
  return {numbers[1], numbers[2]};
}

}  // namespace varve::fuse
