#include "cleaner/bad_blocks.h"

#include <algorithm>

#include "cleaner/mover.h"
#include "segments/segment_table.h"

namespace varve::cleaner {

bool BadBlocks::add(SegmentId segment, const LiveBlock& block) {
  if (knows(segment, block) || is_full()) return false;
  blocks_ += segments_[segment].bad.insert_or_assign(block.address, block.crc).second;
  return true;
}

bool BadBlocks::knows(SegmentId segment, const LiveBlock& block) const {
  const auto at = segments_.find(segment);
  if (at == segments_.end()) return false;
  const auto bad = at->second.bad.find(block.address);
  return bad != at->second.bad.end() && bad->second == block.crc;
}

void BadBlocks::pin(SegmentId segment, const segments::SegmentInfo& info, Pin kind) {
  Segment& s = segments_[segment];
  s.pin = kind;
  s.live = info.live();
  s.touched = info.touched;
}

BadBlocks::Pin BadBlocks::pin_of(SegmentId segment) const {
  const auto at = segments_.find(segment);
  return at == segments_.end() ? Pin::none : at->second.pin;
}

bool BadBlocks::is_unchanged(SegmentId segment, const segments::SegmentInfo& info) const {
  const auto at = segments_.find(segment);
  return at != segments_.end() && at->second.live == info.live() && at->second.touched == info.touched;
}

bool BadBlocks::still_pins(SegmentId segment, std::span<const LiveBlock> live, const segments::SegmentInfo& info) {
  const auto at = segments_.find(segment);
  if (at == segments_.end()) return false;
  std::map<BlockAddr, std::uint32_t> bad;
  for (const LiveBlock& block : live)
    if (knows(segment, block)) bad.emplace(block.address, block.crc);
  blocks_ -= at->second.bad.size() - bad.size();
  if (bad.empty()) {
    segments_.erase(at);
    return false;
  }
  at->second.bad = std::move(bad);
  if (at->second.pin == Pin::unmapped) at->second.pin = Pin::bad_only;  // its maps have been read
  at->second.live = info.live();
  at->second.touched = info.touched;
  return true;
}

BadBlocks::Counts BadBlocks::count(const segments::SegmentTable& segments, bool fills_holes) const {
  Counts counts;
  for (const auto& [id, segment] : segments_) {
    const segments::SegmentInfo info = segments.info(id);
    if (segment.pin == Pin::none || info.live() == 0) continue;
    const std::uint64_t dead = segments.geometry().blocks - std::min(segments.geometry().blocks, info.live());
    ++counts.segments;
    counts.garbage += dead;
    if (segment.pin == Pin::unmapped || !fills_holes) counts.lost_room += dead;
  }
  return counts;
}

}  // namespace varve::cleaner
