// Blocks that cannot be moved, because they cannot be read or are damaged, and the segments that they pin. They are
// remembered for as long as the filesystem is mounted, so that each is reported once and nothing is emptied in vain again
// and again.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>

#include "base/types.h"

namespace varve::segments {
class SegmentTable;
struct SegmentInfo;
}  // namespace varve::segments

namespace varve::cleaner {

struct LiveBlock;

// For the thread that runs checkpoints.
class BadBlocks {
 public:
  static constexpr std::size_t kMost = 1u << 16;  // that are known one by one; there may be more

  // Makes it known. False: it is already, or too many are.
  bool add(SegmentId segment, const LiveBlock& block);
  bool knows(SegmentId segment, const LiveBlock& block) const;
  bool is_full() const { return blocks_ >= kMost; }

  enum class Pin : std::uint8_t {
    none,
    sound_left,  // beside the bad blocks
    bad_only,
    unmapped,  // its part of the maps cannot be read: nothing can be moved away, nor written into its holes
  };
  // What lives in the segment cannot all be moved; so it looked then.
  void pin(SegmentId segment, const segments::SegmentInfo& info, Pin kind);
  Pin pin_of(SegmentId segment) const;
  // Has nothing been written to it since, and has nothing died?
  bool is_unchanged(SegmentId segment, const segments::SegmentInfo& info) const;
  // This lives in it now. False: none of the bad blocks does, so it is a segment like any other again.
  bool still_pins(SegmentId segment, std::span<const LiveBlock> live, const segments::SegmentInfo& info);

  struct Counts {
    std::uint64_t segments = 0;
    std::uint64_t garbage = 0;    // dead blocks in them
    std::uint64_t lost_room = 0;  // of these, what nothing can be written to
  };
  // What is pinned now, as far as it is known. `fills_holes`: users' blocks may go there.
  Counts count(const segments::SegmentTable& segments, bool fills_holes) const;

 private:
  struct Segment {
    std::map<BlockAddr, std::uint32_t> bad;  // with the CRC, which tells it from what comes to the same place later
    Pin pin = Pin::none;
    std::uint32_t live = 0;
    std::uint64_t touched = 0;
  };
  std::unordered_map<SegmentId, Segment> segments_;
  std::size_t blocks_ = 0;
};

}  // namespace varve::cleaner
