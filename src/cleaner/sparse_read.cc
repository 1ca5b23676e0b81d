#include "cleaner/sparse_read.h"

namespace varve::cleaner {

SparseRead::SparseRead(std::vector<BlockAddr> blocks) : blocks_(std::move(blocks)), places_(blocks_.size()) {
  std::size_t place = 0, dead = 0;
  for (std::size_t begin = 0; begin < blocks_.size();) {
    Part part{begin, begin + 1, place};
    for (; part.end < blocks_.size(); ++part.end) {
      const std::uint64_t gap = blocks_[part.end] - blocks_[part.end - 1] - 1;
      // At most as many dead blocks as others, so that memory stays bounded.
      if (gap > kMostGap || dead + gap > part.end || blocks_[part.end] - blocks_[begin] >= kMostBlocks) break;
      dead += gap;
    }
    for (std::size_t i = begin; i < part.end; ++i) places_[i] = place + (blocks_[i] - blocks_[begin]);
    place += length(part);
    parts_.push_back(part);
    begin = part.end;
  }
  memory_ = AlignedBuffer(place * kBlockSize);
}

Status SparseRead::read(io::BlockDevice& device, BlockAddr from, std::uint64_t count, std::size_t place) {
  const auto to = memory_.span().subspan(place * kBlockSize, count * kBlockSize);
  TRY(device.read(from.v << kBlockShift, to));
  ++requests_;
  bytes_ += to.size();
  return {};
}

Status SparseRead::read_one_by_one(io::BlockDevice& device, const Part& part) {
  for (std::size_t i = part.begin; i < part.end; ++i) TRY(read(device, blocks_[i], 1, places_[i]));
  return {};
}

Status SparseRead::run(io::BlockDevice& device) {
  for (const Part& part : parts_) {
    const std::uint64_t count = length(part);
    const Status status = read(device, blocks_[part.begin], count, part.place);
    if (status.ok()) continue;
    if (count == part.end - part.begin) return status;
    TRY(read_one_by_one(device, part));
  }
  return {};
}

}  // namespace varve::cleaner
