#include "fuse/transport/arrivals.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"

namespace varve::fuse {

namespace {

constexpr std::chrono::microseconds kPause{200};

bool is_odd(std::uint64_t turn) { return turn % 2 != 0; }

std::uint64_t end_of(std::chrono::nanoseconds limit) {
  return Clock::system().monotonic_ns() + static_cast<std::uint64_t>(limit.count());
}

bool wait_for(const std::function<bool()>& holds, std::uint64_t end_ns) {
  while (!holds()) {
    if (Clock::system().monotonic_ns() >= end_ns) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

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

unsigned Arrivals::begin_read() {
  under_way_[kReads].fetch_add(1, std::memory_order_relaxed);
  return kReads;
}

unsigned Arrivals::begin_write(std::uint64_t bytes) {
  const unsigned side = side_.load();
  under_way_[side].fetch_add(1, std::memory_order_relaxed);
  writes_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return side;
}

// The kernel's own queue has something only while as many as may be are on their way: taken and not done, or not taken yet. A quarter of
// that is the bound, as some kinds are not counted, and the kernel may allow fewer than were asked for.
bool Arrivals::nothing_is_hidden(std::size_t most, const std::function<bool()>& waits) {
  const Turns before = turns();
  if (std::ranges::any_of(before, is_odd)) return false;
  const std::uint64_t taken = under_way_[0].load() + under_way_[1].load() + under_way_[kReads].load();
  return taken < (most + 3) / 4 && !waits() && turns() == before;
}

// Where nothing can be told of hidden ones, those that have come are waited for all the same.
bool Arrivals::settle(std::size_t most, const std::function<bool()>& waits, const Limits& limits) {
  const bool none_hidden = wait_for([&] { return nothing_is_hidden(most, waits); }, end_of(limits.hidden));
  const std::uint64_t end = end_of(limits.done);
  const unsigned side = side_.load();
  const bool no_older = wait_for([&] { return is_done(1 - side); }, end);  // that a former call has given up
  side_.store(1 - side);
  // A thread that takes a message right now may know the old side only.
  const Turns then = turns();
  const auto has_counted = [&] {
    const Turns now = turns();
    for (std::size_t i = 0; i < std::min(now.size(), then.size()); ++i)
      if (is_odd(then[i]) && now[i] == then[i]) return false;
    return true;
  };
  return wait_for(has_counted, end) && wait_for([&] { return is_done(side); }, end) && no_older && none_hidden;
}

}  // namespace varve::fuse
