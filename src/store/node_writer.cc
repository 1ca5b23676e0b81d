#include "store/node_writer.h"

#include <cstring>

#include <fmt/format.h>

#include "format/map_record.h"

namespace varve::store {

NodeWriter::NodeWriter(io::BlockDevice& device, log::IoCounters& counters, log::SegmentTable& segments,
                       NodeCache& cache, std::uint64_t identity, Serial serial, format::Run head, std::uint64_t clock)
    : device_(device),
      counters_(counters),
      segments_(segments),
      cache_(cache),
      identity_(identity),
      serial_(serial),
      head_(head),
      clock_(clock),
      queue_(device.make_queue()) {}

Result<BlockAddr> NodeWriter::allocate() {
  if (!head_.blocks) {
    auto id = segments_.take_promised(format::kGroupNodes);
    if (!id) return Error(Errc::no_space, "no clean segment left for a checkpoint's nodes");
    head_ = {segments_.geometry().start_of(*id), segments_.geometry().blocks};
  }
  const BlockAddr address = head_.start;
  segments_.touch(address);
  head_.start = head_.start + 1;
  if (--head_.blocks == 0) segments_.close(segments_.geometry().segment_of(address), clock_);
  return address;
}

Status NodeWriter::write(BlockAddr address, std::span<const std::byte> block, std::uint32_t crc, format::TreeId tree,
                         std::uint8_t level) {
  if (piece_ && (piece_->blocks == kPieceBlocks || piece_->start + piece_->blocks != address)) TRY(submit_piece());
  if (!piece_) {
    piece_ = std::make_unique<Piece>();
    piece_->start = address;
  }
  std::memcpy(piece_->memory.data() + piece_->blocks * kBlockSize, block.data(), kBlockSize);
  ++piece_->blocks;
  written_.push_back({address, tree, level});

  if (tree == format::TreeId::super_image) return {};
  AlignedBuffer copy(kBlockSize);
  std::memcpy(copy.data(), block.data(), kBlockSize);
  NodePtr node = TRY(Node::decode(std::move(copy), {identity_, address, crc, tree, level}));
  cache_.insert(std::move(node), crc);
  return {};
}

Status NodeWriter::submit_piece() {
  if (!piece_) return {};
  TRY(wait_below(kPiecesInFlight));
  Piece* piece = piece_.release();
  piece->request.kind = io::IoKind::write;
  piece->request.offset = piece->start.v << kBlockShift;
  piece->request.add(piece->memory.data(), piece->blocks * kBlockSize);
  counters_.writes.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_written.fetch_add(piece->request.length, std::memory_order_relaxed);
  piece->request.done = [this, piece](io::IoRequest& request) {
    if (request.error) error_ = request.error;
    std::unique_ptr<Piece> gone(piece);
    auto keep = std::move(request.done);  // this closure, until it returns
  };
  queue_->submit(piece->request);
  queue_->kick();
  return {};
}

Status NodeWriter::wait_below(std::size_t in_flight) {
  while (queue_->in_flight() >= in_flight && queue_->in_flight() > 0) queue_->wait(-1);
  if (error_)
    return Error(Errc::io, fmt::format("writing metadata to {} failed: {}", device_.name(), std::strerror(error_)));
  return {};
}

Status NodeWriter::finish() {
  Status status = submit_piece();
  Status rest = wait_below(1);
  return status.ok() ? rest : status;
}

}  // namespace varve::store
