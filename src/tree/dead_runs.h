// What a checkpoint leaves dead in segments that stay in use, as runs that a device may forget (docs/design.md 8).
//
// A device forgets whole units only. So a unit is named when all of it is free and some of it has just become so. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "format/chunk.h"

namespace varve::tree {

class DeadRuns {
 public:
  // More of them are not kept: a discard is a hint.
  static constexpr std::size_t kMost = 64u << 10;

  // unit: blocks, at least 1. before: blocks of the disk in front of the device; units are counted from there.
  explicit DeadRuns(std::uint32_t unit, std::uint64_t before = 0) : unit_(unit), before_(before) {}

  enum class Which : std::uint8_t {
    new_ones,  // those that were live in the checkpoint before
    all,       // for a segment that was written since then: what died before any checkpoint counts, and chunk headers
  };
  // Of one segment, by its bits in the free-region map, before and now. A set bit is a live block.
  void add(BlockAddr start, std::uint32_t blocks, std::span<const std::byte> before, std::span<const std::byte> now, Which which);

  // In the order in which they were added; neighbours of one segment are one run.
  std::vector<format::Run> take() { return std::exchange(runs_, {}); }

 private:
  void put(BlockAddr start, std::uint32_t blocks, bool goes_on);

  const std::uint32_t unit_;
  const std::uint64_t before_;
  std::vector<format::Run> runs_;
};

}  // namespace varve::tree
