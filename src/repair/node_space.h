// Where a repair writes its nodes: into blocks that neither the old trees nor the log need, so that the superblocks alone
// decide which state is there.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "base/invariant.h"
#include "format/chunk.h"
#include "format/superblock.h"
#include "io/block_device.h"
#include "tree/item_merge.h"

namespace varve::repair {

class NodeSpace : public tree::NodeSink {
 public:
  // `super`: with the serial of the checkpoint that is being made.
  NodeSpace(io::BlockDevice& device, const format::Superblock& super);

  // Before the first allocate(): what was handed out by then may be what is needed.
  void protect(BlockAddr address) {
    INVARIANT(!counted_);
    if (address.v < taken_.size()) taken_[address.v] = true;
  }
  void protect(const format::Run& run) {
    for (std::uint32_t i = 0; i < run.blocks; ++i) protect(run.start + i);
  }

  std::uint64_t identity() const override { return super_.identity; }
  Serial serial() const override { return super_.serial; }
  // Segments with nothing in them first, but leaves some to the engine; then any free block. Errc::no_space.
  Result<BlockAddr> allocate() override;
  Status write(BlockAddr address, std::span<const std::byte> block, std::uint32_t crc, format::TreeId tree,
               std::uint8_t level) override;
  void release(BlockAddr, Serial) override {}  // what stays live is found by walking the new trees
  Status finish();                     // everything written (not flushed)

  // Whether this repair was the first to write into the segment.
  bool has_filled(std::uint64_t segment) const { return filled_[segment]; }

 private:
  BlockAddr start_of(std::uint64_t segment) const { return super_.first_segment + segment * super_.segment_blocks; }
  bool is_clean(std::uint64_t segment) const;
  void count_clean();
  bool left_clean(std::uint64_t segment) const { return clean_set_[segment]; }
  Status write_piece();

  io::BlockDevice& device_;
  const format::Superblock& super_;
  std::vector<bool> taken_;
  std::vector<bool> filled_;  // by segment
  std::vector<std::uint64_t> clean_;  // segments, the next one last
  bool counted_ = false;
  BlockAddr next_, end_;       // of the clean segment that is being filled
  std::vector<bool> clean_set_;  // the same, by segment
  std::uint64_t hole_ = 0;     // where the search for single blocks goes on
  unsigned holes_in_clean_ = 0;  // 1: in its second lap
  AlignedBuffer piece_;
  BlockAddr piece_start_;
  std::size_t piece_blocks_ = 0;
};

}  // namespace varve::repair
