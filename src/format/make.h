// What an empty filesystem consists of: pure, so that mkfs, tests and the document's example make the same bytes.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "format/map_writer.h"
#include "format/superblock.h"

namespace varve::format {

// What the device erases, or rewrites, as a whole: a part of it that is written costs about as much as all of it.
struct EraseUnit {
  std::uint64_t blocks = 0;  // 0: not known; the usual one of cards is assumed where the device has room for enough of them
  std::uint64_t before = 0;  // blocks of the disk in front of this device: a partition's beginning
};

struct MakeParameters {
  std::uint64_t device_blocks = 0;
  std::uint32_t segment_blocks = 0;  // 0: auto_segment_blocks()
  EraseUnit erase_unit{};
  Source erase_source = Source::unknown;  // of erase_unit
  std::uint16_t streams = 0;              // DeviceProfile
  Source streams_source = Source::unknown;
  WritingCosts costs{};                   // in_row and scattered may have been measured before
  TailLimits tails{};                     // of mounts that do not say otherwise
  bool superblocks_in_place = false;  // in block 0 and the last block, as versions without areas know it
  std::string label;                 // at most 63 bytes
  Uuid uuid{};                       // all zero: random, version 4
  Timestamp now;
  std::uint32_t uid = 0;  // of the root directory
  std::uint32_t gid = 0;
  std::uint32_t mode = 0755;
};

// Checkpoint 1, clean, with an empty root directory. To be written in this order: nodes, flush, superblocks_of(), flush.
struct EmptyFilesystem {
  Superblock super;
  std::vector<MadeNode> nodes;  // ascending addresses, consecutive from the start of segment 0; the image is the last
};

// Where its superblocks go: both copies; or the anchors, and then all slots of the area. In the order in which they are to be written.
std::vector<MadeNode> superblocks_of(const EmptyFilesystem& made);

// A power of two with at least 1024 segments, from 256 KiB to 8 MiB, and an erase unit or more where that leaves at least 192; on tiny
// devices 256 KiB with fewer segments.
std::uint32_t auto_segment_blocks(std::uint64_t device_blocks, const EraseUnit& unit = {});
// The first place behind the superblock where an erase unit begins and a segment of that size could. So every segment begins on one,
// unless the unit is no power of two. On devices without room for enough of them 1 MiB into the device, on tiny
// ones 32 KiB.
BlockAddr first_segment_of(std::uint64_t device_blocks, std::uint32_t segment_blocks, const EraseUnit& unit = {}, bool area = true);
// In front of the first segment, from the beginning of an erase unit to its end, or of several, if it can be; at least four blocks.
SuperblockArea area_of(std::uint64_t device_blocks, const EraseUnit& unit = {});

// Blocks per unit of stored clocks: 2^18 units for the whole device.
std::uint64_t clock_unit_of(std::uint64_t device_blocks);

// Errc::invalid with the reason: device too small or too big, unusable segment size, label too long.
Result<EmptyFilesystem> make_filesystem(const MakeParameters& parameters, Random& random);

}  // namespace varve::format
