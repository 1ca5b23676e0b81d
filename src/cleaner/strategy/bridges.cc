#include "cleaner/strategy/bridges.h"

#include <cstddef>

#include "space/holes.h"

namespace varve::cleaner {

std::vector<std::uint32_t> bridges_between(const std::vector<bool>& live, std::uint32_t least) {
  std::vector<std::uint32_t> moved;
  std::vector<space::FreeRun> holes = space::free_runs(live);
  std::erase_if(holes, [least](const space::FreeRun& run) { return run.blocks >= least; });
  for (std::size_t first = 0; first < holes.size();) {
    // As many neighbours as it takes, and no more: what is large enough may grow again from its own end.
    std::uint32_t free = holes[first].blocks;
    std::size_t last = first;
    bool joined = false;
    while (!joined && last + 1 < holes.size() && holes[last + 1].start - holes[last].end() < least) {
      bool whole = true;  // a larger hole may stand in between
      for (std::uint32_t i = holes[last].end(); i < holes[last + 1].start; ++i) whole &= live[i];
      if (!whole) break;
      free += holes[++last].blocks;
      joined = holes[last].end() - holes[first].start >= least;
    }
    const std::uint32_t between = holes[last].end() - holes[first].start - free;
    if (joined && between < free)
      for (std::uint32_t i = holes[first].start; i < holes[last].end(); ++i)
        if (live[i]) moved.push_back(i);
    first = joined ? last + 1 : first + 1;
  }
  return moved;
}

}  // namespace varve::cleaner
