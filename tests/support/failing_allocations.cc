#include "support/failing_allocations.h"

#include <cstdlib>
#include <new>

namespace varve::test {

namespace {

struct Plan {
  bool armed = false;
  bool all = false;
  bool failed = false;
  std::size_t left = 0;

  bool strikes() {
    if (!armed || left-- > 0) return false;
    left = 0;
    armed = all;
    failed = true;
    return true;
  }
};
thread_local Plan plan;

}  // namespace

FailingAllocations::FailingAllocations(std::size_t nth, Which which) { plan = {true, which == Which::all_from_it, false, nth}; }

void FailingAllocations::end() { plan.armed = false; }

bool FailingAllocations::any_failed() const { return plan.failed; }

void look_until(io::Reactor& reactor, const std::function<bool()>& condition) {
  for (int looks = 0; looks < 100 && !condition(); ++looks) {
    try {
      reactor.wait(1'000'000);
    } catch (const std::bad_alloc&) {
    }
  }
}

}  // namespace varve::test

void* operator new(std::size_t bytes) {
  void* const memory = varve::test::plan.strikes() ? nullptr : std::malloc(bytes ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
