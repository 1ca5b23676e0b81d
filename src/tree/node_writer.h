// Takes a checkpoint's nodes to the metadata head: consecutive blocks, written in large pieces, a few in flight, in the order of their
// addresses. A device that seeks, or that erases large units, pays for every step back.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "format/chunk.h"
#include "io/lent_reactor.h"
#include "segments/segment_table.h"
#include "tree/item_merge.h"
#include "tree/node_cache.h"

namespace varve::tree {

class NodeWriter : public NodeSink {
 public:
  NodeWriter(io::BlockDevice& device, segments::SegmentTable& segments, NodeCache& cache,
             std::uint64_t identity, Serial serial, format::Run head, std::uint64_t clock);

  std::uint64_t identity() const override { return identity_; }
  Serial serial() const override { return serial_; }
  Result<BlockAddr> allocate() override;
  Status write(BlockAddr address, std::span<const std::byte> block, std::uint32_t crc, format::TreeId tree,
               std::uint8_t level) override;
  void release(BlockAddr address, Serial) override { released_.push_back(address); }

  // Of a node that it has written: it is of no use after all.
  void forget(BlockAddr address);
  Status finish();  // everything written (not flushed)

  const format::Run& head() const { return head_; }
  const std::vector<BlockAddr>& released() const { return released_; }
  struct Written {
    BlockAddr address;
    format::TreeId tree;
    std::uint8_t level;
  };
  const std::vector<Written>& written() const { return written_; }

 private:
  static constexpr std::size_t kPieceBlocks = 64;
  static constexpr std::size_t kPiecesInFlight = 4;
  struct Piece : io::IoRequest {
    AlignedBuffer memory{kPieceBlocks * kBlockSize};
    BlockAddr start;
    std::size_t blocks = 0;
  };
  Status put(BlockAddr address, std::span<const std::byte> block);
  Status put_those_whose_turn_it_is();
  Status submit_piece();
  Status wait_below(std::size_t in_flight);

  io::BlockDevice& device_;
  segments::SegmentTable& segments_;
  NodeCache& cache_;
  const std::uint64_t identity_;
  const Serial serial_;
  format::Run head_;
  const std::uint64_t clock_;
  const io::LentReactor reactor_;
  std::unique_ptr<Piece> piece_;
  std::deque<BlockAddr> allocated_;                // and not put yet, ascending but where a segment ended
  std::map<BlockAddr, AlignedBuffer> out_of_turn_;  // written before what was allocated before it: a few map nodes
  int error_ = 0;
  std::vector<BlockAddr> released_;
  std::vector<Written> written_;
};

}  // namespace varve::tree
