// Rounds of hole-plugging, as often and as much as a test wants them.
#pragma once

#include <cstdint>
#include <vector>

#include "cleaner/plugger.h"

namespace varve::store {
class Store;
}

namespace varve::test {

// What may be cleaned now, the emptiest first.
std::vector<cleaner::SegmentFacts> plug_candidates(store::Store& store);

// Empties up to `segments` of the emptiest into holes of the others, then makes the checkpoint that frees them. For a
// filesystem without threads.
Result<cleaner::Plugged> plug_round(store::Store& store, std::size_t segments, const cleaner::PlugRules& rules = {});

}  // namespace varve::test
