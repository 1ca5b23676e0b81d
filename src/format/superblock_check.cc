#include "format/superblock_check.h"

#include <bit>

#include "format/fields.h"
#include "format/lease.h"

namespace varve::format {

namespace {

Status check_area(const Superblock& s) {
  const SuperblockArea& area = s.area;
  if (area.slots < kMinSlots || area.slots > kMaxSlots || area.slot_blocks < 1 || area.slot_blocks > kMaxSlotBlocks ||
      area.start.v <= kAnswerBlock || area.start >= s.first_segment || area.blocks() > s.first_segment.v - area.start.v)
    return corrupt("superblock: impossible area of {} slots of {} blocks from block {}", area.slots, area.slot_blocks, area.start);
  return {};
}

// A run of blocks inside one segment, or a used-up one, which may point just behind it.
Status check_run(const Superblock& s, const Run& run, const char* what) {
  if (run.blocks == 0) return {};
  const std::uint64_t first = s.first_segment.v;
  const std::uint64_t blocks = s.segments * s.segment_blocks;
  const std::uint64_t at = run.start.v - first;
  if (run.start.v < first || at >= blocks || run.blocks > s.segment_blocks - at % s.segment_blocks)
    return corrupt("superblock: the {} at {}+{} is not inside a segment", what, run.start, run.blocks);
  return {};
}

Status check_ref(const Superblock& s, const NodeRef& ref, const char* what) {
  if (!ref || ref.address < s.first_segment || ref.address >= s.first_segment + s.segments * s.segment_blocks)
    return corrupt("superblock: the {} at block {} is outside the segments", what, ref.address);
  return {};
}

}  // namespace

Status check_geometry(const Superblock& s) {
  if (s.device_blocks < kMinDeviceBlocks || s.device_blocks > kMaxAddress)
    return corrupt("superblock: impossible device size of {} blocks", s.device_blocks);
  if (s.segment_blocks < kMinSegmentBlocks || s.segment_blocks > kMaxSegmentBlocks ||
      !std::has_single_bit(s.segment_blocks))
    return corrupt("superblock: impossible segment size of {} blocks", s.segment_blocks);
  const std::uint64_t last = s.device_blocks - 1;  // the second copy
  if (!s.first_segment || s.first_segment.v >= last || s.segments < 4 ||
      s.segments > (last - s.first_segment.v) / s.segment_blocks)
    return corrupt("superblock: {} segments from block {} do not fit the device", s.segments, s.first_segment);
  if (s.identity == 0) return corrupt("superblock: no identity");
  if (s.features.incompat & kIncompatSuperblockArea) TRY(check_area(s));
  if (s.tails.kept > kMaxTail || s.tails.logged > kMaxLoggedTail)
    return corrupt("superblock: impossible tails of {} bytes, {} in the log", s.tails.kept, s.tails.logged);
  if (s.made.nanoseconds >= 1'000'000'000) return corrupt("superblock: impossible time of making");
  return {};
}

Status check_checkpoint(const Superblock& s, bool is_image) {
  if (!s.serial) return corrupt("superblock: no checkpoint");
  if (s.inode_file_level > kMaxTreeLevel) return corrupt("superblock: .ifile of level {}", s.inode_file_level);
  if (s.clock_unit == 0) return corrupt("superblock: no clock unit");
  if (s.next_ino <= kRootIno.v || s.next_ino > kMostNextIno)
    return corrupt("superblock: impossible next inode number {}", s.next_ino);
  if (s.serial.v > 2 * kMostCount) return corrupt("superblock: impossible number {} of a checkpoint", s.serial);
  if (s.lsn.v > 2 * kMostCount) return corrupt("superblock: impossible number {} of a chunk", s.lsn);
  if (s.clock > 2 * kMostCount) return corrupt("superblock: impossible log clock {}", s.clock);
  TRY(check_ref(s, s.inode_file, "root of .ifile"));
  TRY(check_ref(s, s.reverse_map, "root of .mfile"));
  TRY(check_ref(s, s.free_map, "root of .ffile"));
  if (s.snapshots.root) TRY(check_ref(s, s.snapshots.root, "root of .sfile"));
  if (s.snapshots.level > kMaxTreeLevel) return corrupt("superblock: .sfile of level {}", s.snapshots.level);
  if (!is_image) TRY(check_ref(s, s.image, "superblock image"));
  TRY(check_run(s, s.chain, "chain"));
  TRY(check_run(s, s.next_run, "chain's next run"));
  for (const HeadPlace& head : s.heads) TRY(check_run(s, head.rest, "head of a group"));
  return check_run(s, s.node_head.rest, "head of the nodes");
}

}  // namespace varve::format
