// Which segments compacting moves down, and where the log will end: pure, for tests and forecasts.
#pragma once

#include <span>
#include <vector>

#include "cleaner/segment_facts.h"
#include "cleaner/selection.h"
#include "segments/segment_table.h"

namespace varve::cleaner {

// Which segments are in use. Quick, where most of many have never been.
struct Board {
  std::uint64_t segments = 0;  // that are not clean
  std::uint64_t end = 0;       // one past the highest of them
  // Share of what stands before the end that is clean: what compacting would close.
  double spread() const { return end ? static_cast<double>(end - segments) / static_cast<double>(end) : 0; }
};
Board board_of(const segments::SegmentTable& segments);
std::vector<SegmentId> clean_below(const segments::SegmentTable& segments, std::uint64_t limit);  // ascending

struct SlideLimits {
  std::uint64_t segments = 0;  // that are not clean, open ones included: they fit in as many at the start of the device
  // May as much as this be moved at once? As SelectionLimits::fits.
  std::function<bool(const Victims&)> fits = [](const Victims&) { return true; };
};

// The highest of `used` that stand behind where everything would fit, highest first, as long as a clean segment before
// that place is left for each; both in ascending order.
Victims plan_slide(std::span<const SegmentFacts> used, std::span<const SegmentId> clean, const SlideLimits& limits);

}  // namespace varve::cleaner
