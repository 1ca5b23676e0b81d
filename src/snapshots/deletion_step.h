// How much of deleted snapshots one checkpoint gives back, at most.
#pragma once

#include <cstdint>

namespace varve::snapshots {

struct DeletionStep {
  std::uint64_t pieces = 0;  // of lists of dead blocks
  std::uint64_t names = 0;   // of moved blocks, about
};

}  // namespace varve::snapshots
