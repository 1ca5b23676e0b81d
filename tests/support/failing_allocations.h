// Allocations that fail. Whoever uses this has failing_allocations.cc among its sources: it replaces operator new.
#pragma once

#include <cstddef>
#include <functional>

#include "io/reactor.h"

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

// Looks at the queue as a serving thread does, which goes on where memory is lacking; an end to it, too.
void look_until(io::Reactor& reactor, const std::function<bool()>& condition);

}  // namespace varve::test
