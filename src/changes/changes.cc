#include "changes/changes.h"

#include "base/invariant.h"

namespace varve::changes {

void Changes::for_each_above(std::uint64_t merged, const std::function<void(const Delta&)>& visit) const {
  for (const Delta* delta : {active_.get(), frozen_.get()})
    if (delta && delta->generation() > merged) visit(*delta);
}

std::uint64_t Changes::count_records() const {
  const Gate::Pass pass(gate_);
  return active_->records();
}

std::uint64_t Changes::count_bytes() const {
  const Gate::Pass pass(gate_);
  return active_->bytes();
}

void Changes::freeze(std::uint64_t next_generation) {
  INVARIANT(!frozen_);
  INVARIANT(active_->generation() < next_generation);
  frozen_ = std::move(active_);
  active_ = std::make_unique<Delta>(next_generation);
}

}  // namespace varve::changes
