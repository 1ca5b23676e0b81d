// Allocations that fail. Whoever uses this has failing_allocations.cc among its sources: it replaces operator new.
#pragma once

#include <cstddef>

namespace varve::test {

// As long as it lives and until end(), of operator new in the calling thread; one at a time.
class FailingAllocations {
 public:
  enum class Which { one, all_from_it };
  FailingAllocations(std::size_t nth, Which which);  // nth: counted from 0
  ~FailingAllocations() { end(); }
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  void end();
  bool any_failed() const;
};

}  // namespace varve::test
