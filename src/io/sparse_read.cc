#include "io/sparse_read.h"

#include <algorithm>

namespace varve::io {

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

void SparseRead::add(Batch& batch, BlockAddr from, std::uint64_t count, std::size_t place) {
  batch.add(IoKind::read, from.v << kBlockShift).add(memory_.data() + place * kBlockSize, count * kBlockSize);
  ++requests_;
  bytes_ += count * kBlockSize;
}

void SparseRead::read_one_by_one(Batch& batch, std::span<const std::size_t> blocks) {
  for (std::size_t i : blocks) add(batch, blocks_[i], 1, places_[i]);
  if (!batch.run().ok())
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (Status status = batch.outcome_of(i); !status.ok()) errors_.emplace(blocks[i], status.error());
  batch.clear();
}

Status SparseRead::run(Batch& batch, const std::function<bool()>& stop) {
  for (const Part& part : parts_) add(batch, blocks_[part.begin], length(part), part.place);
  const bool all_came = batch.run(stop).ok();
  stopped_ = batch.stopped();
  if (all_came || stopped_) {
    batch.clear();
    return {};
  }
  std::vector<std::size_t> again;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Status status = batch.outcome_of(i);
    if (status.ok()) continue;
    if (length(parts_[i]) == 1) errors_.emplace(parts_[i].begin, status.error());  // it would only fail again
    else for (std::size_t block = parts_[i].begin; block < parts_[i].end; ++block) again.push_back(block);
  }
  batch.clear();
  read_one_by_one(batch, again);
  if (errors_.empty()) return {};
  return errors_.begin()->second;
}

}  // namespace varve::io
