#include "daemon/placed_thread.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "base/leading_numbers.h"

namespace varve::daemon {

namespace {

cpu_set_t only(const cpu_set_t& allowed, unsigned index) {
  cpu_set_t one;
  CPU_ZERO(&one);
  index %= std::max(static_cast<unsigned>(CPU_COUNT(&allowed)), 1U);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
    CPU_SET(cpu, &one);
    break;
  }
  return one;
}

Descriptor open_own(const char* path) { return Descriptor(::open(path, O_RDONLY | O_CLOEXEC)); }

}  // namespace

PlacedThread::PlacedThread(unsigned index)
    : id_(::gettid()), index_(index), schedstat_(open_own("/proc/thread-self/schedstat")), stat_(open_own("/proc/thread-self/stat")) {
  if (::sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) CPU_ZERO(&allowed_);
}

void PlacedThread::use_cpus(const cpu_set_t& cpus) {
  if (CPU_COUNT(&allowed_) != 0) ::sched_setaffinity(id_, sizeof cpus, &cpus);
}

void PlacedThread::become_idle(const std::function<void()>& announce) {
  use_cpus(only(allowed_, index_));
  idle_.store(true, std::memory_order_relaxed);
  if (announce) announce();
  const sched_param none{};
  if (::sched_setscheduler(id_, SCHED_IDLE, &none) != 0) become_normal();
}

void PlacedThread::become_normal() {
  const sched_param none{};
  ::sched_setscheduler(id_, SCHED_OTHER, &none);
  idle_.store(false, std::memory_order_relaxed);
  use_cpus(allowed_);
}

PlacedThread::Times PlacedThread::times() const {
  std::array<std::uint64_t, 3> numbers;
  read_leading_numbers(schedstat_.get(), numbers);
  return {numbers[0], numbers[1], numbers[2]};
}

bool PlacedThread::starves() {
  const Times before = std::exchange(last_, times());
  const bool has_run = last_.run_ns != before.run_ns || last_.runs != before.runs;
  const bool waits = !has_run && is_runnable();
  return std::exchange(waited_before_, waits) && waits;
}

bool PlacedThread::is_runnable() const {
  std::array<char, 128> text;  // number, (name), state, ...
  const ssize_t bytes = ::pread(stat_.get(), text.data(), text.size(), 0);
  const std::string_view line(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  const std::size_t name_end = line.rfind(')');
  return name_end != line.npos && line.substr(name_end).starts_with(") R");
}

}  // namespace varve::daemon
