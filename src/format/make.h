// What an empty filesystem consists of: pure, so that mkfs, tests and the document's example make the same bytes.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "format/map_writer.h"
#include "format/superblock.h"

namespace varve::format {

struct MakeParameters {
  std::uint64_t device_blocks = 0;
  std::uint32_t segment_blocks = 0;  // 0: auto_segment_blocks()
  std::string label;                 // at most 63 bytes
  Uuid uuid{};                       // all zero: random, version 4
  Timestamp now;
  std::uint32_t uid = 0;  // of the root directory
  std::uint32_t gid = 0;
  std::uint32_t mode = 0755;
};

// Checkpoint 1, clean, with an empty root directory. To be written in this order: nodes, flush, both superblocks, flush.
struct EmptyFilesystem {
  Superblock super;
  std::vector<MadeNode> nodes;  // ascending addresses, consecutive from the start of segment 0; the image is the last
};

// A power of two with at least 1024 segments, from 256 KiB to 8 MiB; on tiny devices 256 KiB with fewer segments.
std::uint32_t auto_segment_blocks(std::uint64_t device_blocks);
// 1 MiB into the device, which keeps partition-sized alignment; 32 KiB where space is dear.
BlockAddr first_segment_of(std::uint64_t device_blocks);

// Blocks per unit of stored clocks: 2^18 units for the whole device.
std::uint64_t clock_unit_of(std::uint64_t device_blocks);

// Errc::invalid with the reason: device too small or too big, unusable segment size, label too long.
Result<EmptyFilesystem> make_filesystem(const MakeParameters& parameters, Random& random);

}  // namespace varve::format
