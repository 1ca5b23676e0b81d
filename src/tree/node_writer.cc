#include "tree/node_writer.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/invariant.h"
#include "format/map_record.h"
#include "io/transfer.h"

namespace varve::tree {

NodeWriter::NodeWriter(io::BlockDevice& device, segments::SegmentTable& segments, NodeCache& cache, std::uint64_t identity,
                       Serial serial, format::Run head, std::uint64_t clock)
    : device_(device),
      segments_(segments),
      cache_(cache),
      identity_(identity),
      serial_(serial),
      head_(head),
      clock_(clock) {}

Result<BlockAddr> NodeWriter::allocate() {
  if (!head_.blocks) {
    auto id = segments_.take(format::kGroupNodes, 0, segments::SegmentTable::From::promised);
    if (!id) return Error(Errc::no_space, "no clean segment left for a checkpoint's nodes");
    head_ = {segments_.geometry().start_of(*id), segments_.geometry().blocks};
  }
  INVARIANT(segments_.geometry().contains(head_.start, head_.blocks));
  const BlockAddr address = head_.start;
  segments_.touch(address);
  allocated_.push_back(address);
  head_.start = head_.start + 1;
  if (--head_.blocks == 0) segments_.close(segments_.geometry().segment_of(address), clock_);
  return address;
}

Status NodeWriter::write(BlockAddr address, std::span<const std::byte> block, std::uint32_t crc, format::TreeId tree,
                         std::uint8_t level) {
  INVARIANT(block.size() == kBlockSize);
  written_.push_back({address, tree, level});
  if (!allocated_.empty() && allocated_.front() == address) {
    allocated_.pop_front();
    TRY(put(address, block));
    TRY(put_those_whose_turn_it_is());
  } else {
    AlignedBuffer kept(kBlockSize);
    std::memcpy(kept.data(), block.data(), kBlockSize);
    INVARIANT(out_of_turn_.emplace(address, std::move(kept)).second);
  }

  if (tree == format::TreeId::super_image) return {};
  AlignedBuffer copy(kBlockSize);
  std::memcpy(copy.data(), block.data(), kBlockSize);
  NodePtr node = TRY(Node::decode(std::move(copy), {identity_, address, crc, tree, level}));
  cache_.insert(std::move(node), crc);
  return {};
}

Status NodeWriter::put(BlockAddr address, std::span<const std::byte> block) {
  if (piece_ && (piece_->blocks == kPieceBlocks || piece_->start + piece_->blocks != address)) TRY(submit_piece());
  if (!piece_) {
    piece_ = std::make_unique<Piece>();
    piece_->start = address;
  }
  MEMORY_INVARIANT(piece_->blocks < kPieceBlocks);
  std::memcpy(piece_->memory.data() + piece_->blocks * kBlockSize, block.data(), kBlockSize);
  ++piece_->blocks;
  return {};
}

Status NodeWriter::put_those_whose_turn_it_is() {
  while (!allocated_.empty()) {
    const auto next = out_of_turn_.find(allocated_.front());
    if (next == out_of_turn_.end()) return {};
    allocated_.pop_front();
    TRY(put(next->first, next->second.span()));
    out_of_turn_.erase(next);
  }
  return {};
}

Status NodeWriter::submit_piece() {
  if (!piece_) return {};
  TRY(wait_below(kPiecesInFlight));
  Piece& piece = *piece_;
  INVARIANT(piece.blocks > 0);
  piece.kind = io::IoKind::write;
  piece.offset = piece.start.v << kBlockShift;
  piece.add(piece.memory.data(), piece.blocks * kBlockSize);
  piece.done = [this](io::IoRequest& request) {
    const std::unique_ptr<Piece> written(static_cast<Piece*>(&request));
    if (written->error) error_ = written->error;
  };
  piece.abandoned = [](io::IoRequest& request) { delete static_cast<Piece*>(&request); };
  device_.submit(*reactor_, piece);
  (void)piece_.release();
  reactor_->kick();
  return {};
}

Status NodeWriter::wait_below(std::size_t in_flight) {
  while (reactor_->in_flight() >= in_flight && reactor_->in_flight() > 0) reactor_->wait(-1);
  if (error_) return io::failure(device_, error_, fmt::format("writing metadata to {}", device_.name()));
  return {};
}

void NodeWriter::forget(BlockAddr address) {
  const auto at = std::ranges::find(written_, address, &Written::address);
  if (INVARIANT(at != written_.end())) written_.erase(at);
}

Status NodeWriter::finish() {
  INVARIANT(allocated_.empty() && out_of_turn_.empty());  // each address has got its node
  Status status = submit_piece();
  Status rest = wait_below(1);
  return status.ok() ? rest : status;
}

}  // namespace varve::tree
