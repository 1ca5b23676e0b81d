#include "cleaner/sparse_read.h"

#include <algorithm>

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

void SparseRead::add(io::Batch& batch, BlockAddr from, std::uint64_t count, std::size_t place) {
  batch.add(io::IoKind::read, from.v << kBlockShift).add(memory_.data() + place * kBlockSize, count * kBlockSize);
  ++requests_;
  bytes_ += count * kBlockSize;
}

Status SparseRead::read_one_by_one(io::Batch& batch, std::span<const Part* const> parts) {
  for (const Part* part : parts)
    for (std::size_t i = part->begin; i < part->end; ++i) add(batch, blocks_[i], 1, places_[i]);
  const Status status = batch.run();
  batch.clear();
  return status;
}

Status SparseRead::run(io::Batch& batch) {
  for (const Part& part : parts_) add(batch, blocks_[part.begin], length(part), part.place);
  Status status = batch.run();
  std::vector<const Part*> again;
  for (std::size_t i = 0; i < parts_.size() && !status.ok(); ++i)
    if (!batch.outcome_of(i).ok()) again.push_back(&parts_[i]);
  batch.clear();
  // Where nothing dead was read, the same blocks would only fail again.
  if (again.empty() || std::ranges::any_of(again, [this](const Part* part) { return !has_gaps(*part); })) return status;
  return read_one_by_one(batch, again);
}

}  // namespace varve::cleaner
