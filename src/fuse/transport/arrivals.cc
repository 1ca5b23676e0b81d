#include "fuse/transport/arrivals.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"

namespace varve::fuse {

namespace {
constexpr std::chrono::microseconds kPause{200};
bool is_odd(std::uint64_t turn) { return turn % 2 != 0; }
}  // namespace

void Arrivals::add(Taking& taking) {
  const Lock lock(mutex_);
  taking_.push_back(&taking);
}

void Arrivals::remove(Taking& taking) {
  const Lock lock(mutex_);
  std::erase(taking_, &taking);
}

Arrivals::Turns Arrivals::turns() {
  const Lock lock(mutex_);
  Turns turns;
  for (const Taking* taking : taking_) turns.push_back(taking->turn());
  return turns;
}

unsigned Arrivals::begin_data() {
  const unsigned side = side_.load();
  under_way_[side].fetch_add(1, std::memory_order_relaxed);
  begun_.fetch_add(1, std::memory_order_relaxed);
  return side;
}

bool Arrivals::wait_for(const std::function<bool()>& holds, std::uint64_t end_ns) {
  while (!holds()) {
    if (Clock::system().monotonic_ns() >= end_ns) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

// The kernel's own queue has something only while as many as may be are on their way: taken and not done, or not taken yet. A quarter of
// that is the bound, as some kinds are not counted, and the kernel may allow fewer than were asked for.
bool Arrivals::nothing_is_hidden(std::size_t most, const std::function<bool()>& waits) {
  const Turns before = turns();
  if (std::ranges::any_of(before, is_odd)) return false;
  const std::uint64_t taken = under_way_[0].load() + under_way_[1].load();
  return taken < (most + 3) / 4 && !waits() && turns() == before;
}

bool Arrivals::settle(std::size_t most, const std::function<bool()>& waits, std::chrono::milliseconds limit) {
  const std::uint64_t end = Clock::system().monotonic_ns() + static_cast<std::uint64_t>(std::chrono::nanoseconds(limit).count());
  if (!wait_for([&] { return nothing_is_hidden(most, waits); }, end)) return false;
  const unsigned side = side_.fetch_xor(1);
  // A thread that takes a message right now may know the old side only.
  const Turns then = turns();
  const auto has_counted = [&] {
    const Turns now = turns();
    for (std::size_t i = 0; i < std::min(now.size(), then.size()); ++i)
      if (is_odd(then[i]) && now[i] == then[i]) return false;
    return true;
  };
  return wait_for(has_counted, end) && wait_for([&] { return under_way_[side].load(std::memory_order_acquire) == 0; }, end);
}

}  // namespace varve::fuse
