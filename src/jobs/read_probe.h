// What reading costs on a device, measured on purpose: blocks here and there against many in a row.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "io/block_device.h"

namespace varve::jobs {

struct ReadCost {
  // A disk: a seek takes as long as the transfer of so many blocks, and at least this long. A disk takes that of a hundred and more,
  // a card of five; SSDs and virtual disks take less time.
  static constexpr std::uint64_t kSeekBlocks = 32, kSeekNs = 300'000;

  std::uint64_t alone_ns = 0;      // a block at a random place: the median
  std::uint64_t in_row_ns = 0;     // each of many in a row: the least
  std::uint64_t seek_blocks() const { return in_row_ns ? alone_ns / in_row_ns : 0; }
  bool seeks() const { return alone_ns >= kSeekNs && seek_blocks() >= kSeekBlocks; }
};

// A third of a second on a slow disk. Reads that fail say nothing, and the cost is that of a device that does not seek. Blocks.
ReadCost probe_reads(io::BlockDevice& device, Clock& clock, Random& random);

}  // namespace varve::jobs
