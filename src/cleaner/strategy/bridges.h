// Local compaction: live blocks that part small holes are moved away, so that a threaded log finds one that is worth
// writing to (ScherlFS). A pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace varve::cleaner {

// Which blocks of a segment (by their index, ascending) to move away, given which are live. They stand between
// neighbouring holes of less than `least` blocks, and together with these make one of `least` or more. They are fewer than
// the free blocks gained by it.
std::vector<std::uint32_t> bridges_between(const std::vector<bool>& live, std::uint32_t least);

}  // namespace varve::cleaner
