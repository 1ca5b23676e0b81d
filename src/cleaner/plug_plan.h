// Which blocks go into which holes: the plan of hole-plugging (Matthews et al., SOSP 1997; best fit as in ScherlFS). A pure
// function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/chunk.h"

namespace varve::cleaner {

// Live blocks side by side on the device that are side by side in one file, too: parted, they take one more extent.
struct Piece {
  BlockAddr start;
  std::uint32_t blocks = 0;
  std::size_t source = 0;  // number of the segment that it stands in
};

struct PlugMove {
  BlockAddr from, to;
  std::uint32_t blocks = 0;
  bool operator==(const PlugMove&) const = default;
};

struct PlugPlan {
  std::vector<PlugMove> moves;
  std::vector<std::size_t> emptied;  // sources all of whose pieces are moved, in ascending order
  std::size_t perfect = 0;           // pieces that fill a hole alone…
  std::size_t combined = 0;          // …with others…
  std::size_t loose = 0;             // …or leave a part of it free
  std::size_t split = 0;             // pieces that had to be parted
};

// Perfect matches first, from the largest to the smallest. Then combinations of pieces that fill a hole exactly. Then each
// piece into the smallest hole that takes it. What is larger than every hole is split, into parts of `least_part` blocks
// or more. A source is emptied or left alone: sources that are not worth plugging halfway are dropped from the last on (the
// caller puts the best first). Holes must not overlap, nor lie in a source. No hole is used twice.
PlugPlan plan_plugs(std::span<const Piece> pieces, std::size_t sources, std::span<const format::Run> holes,
                    std::uint32_t least_part);

}  // namespace varve::cleaner
