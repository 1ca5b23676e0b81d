#include "check/data_verifier.h"

#include <algorithm>
#include <cstring>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "io/patient_read.h"

namespace varve::check {

namespace {

constexpr std::uint64_t kBatchBlocks = 4096;  // 16 MiB: enough for a deep queue, and for sorting to pay

}  // namespace

void DataVerifier::add(PlacedExtent extent) {
  waiting_blocks_ += extent.extent.length;
  waiting_.push_back(std::move(extent));
  if (waiting_blocks_ >= kBatchBlocks) verify_batch();
}

void DataVerifier::finish() { verify_batch(); }

void DataVerifier::verify_batch() {
  if (waiting_.empty()) return;
  std::ranges::sort(waiting_, {}, [](const PlacedExtent& placed) { return placed.extent.address; });
  AlignedBuffer buffer(waiting_blocks_ * kBlockSize);
  std::vector<io::ReadPiece> pieces;
  std::size_t at = 0;
  for (const PlacedExtent& placed : waiting_) {
    const std::size_t bytes = placed.extent.length * kBlockSize;
    pieces.push_back({placed.extent.address, buffer.span().subspan(at, bytes)});
    at += bytes;
  }
  io::read_pieces(context_.device, pieces);
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (pieces[i].error) verify_singly(waiting_[i], pieces[i].out);
    else verify(waiting_[i], pieces[i].out);
  }
  context_.update("data", context_.report.statistics.verified_blocks, context_.super().data_blocks);
  waiting_.clear();
  waiting_blocks_ = 0;
}

void DataVerifier::verify(const PlacedExtent& placed, std::span<const std::byte> data) {
  for (std::uint64_t i = 0; i < placed.extent.length; ++i) compare(placed, i, data.subspan(i * kBlockSize, kBlockSize));
}

// A read of the whole extent failed: find out which of its blocks are bad.
void DataVerifier::verify_singly(const PlacedExtent& placed, std::span<std::byte> buffer) {
  std::vector<io::ReadPiece> pieces;
  for (std::uint64_t i = 0; i < placed.extent.length; ++i)
    pieces.push_back({placed.extent.address + i, buffer.subspan(i * kBlockSize, kBlockSize)});
  io::read_pieces(context_.device, pieces);
  for (std::uint64_t i = 0; i < placed.extent.length; ++i) {
    if (pieces[i].error)
      context_.add_block(Code::data_unreadable, {pieces[i].address, placed.ino}, placed.first + i, std::strerror(pieces[i].error));
    else
      compare(placed, i, pieces[i].out);
  }
}

void DataVerifier::compare(const PlacedExtent& placed, std::uint64_t index, std::span<const std::byte> block) {
  ++context_.report.statistics.verified_blocks;
  if (crc32c(block) != placed.extent.crcs[index])
    context_.add_block(Code::data_damaged, {placed.extent.address + index, placed.ino}, placed.first + index);
}

}  // namespace varve::check
