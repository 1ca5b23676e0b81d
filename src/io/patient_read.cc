#include "io/patient_read.h"

#include <cstring>

#include "io/batch.h"

namespace varve::io {

Status read_patiently(BlockDevice& device, std::uint64_t offset, std::span<std::byte> out) {
  Status status = device.read(offset, out);
  // One that has failed as a whole has had its patience.
  for (unsigned attempt = 1; !status.ok() && attempt < kPatientAttempts && device.refusal().empty(); ++attempt)
    status = device.read(offset, out);
  return status;
}

std::vector<bool> read_what_is_there(BlockDevice& device, std::uint64_t offset, std::span<std::byte> out) {
  std::vector<bool> is_there(block_of(out.size()), true);
  if (device.read(offset, out).ok()) return is_there;
  for (std::size_t at = 0; at < out.size(); at += kBlockSize) {
    const auto block = out.subspan(at, kBlockSize);
    if (read_patiently(device, offset + at, block).ok()) continue;
    std::memset(block.data(), 0, block.size());
    is_there[block_of(at)] = false;
  }
  return is_there;
}

void read_pieces(BlockDevice& device, std::span<ReadPiece> pieces) {
  Batch batch(device, kManyAtOnce);
  for (const ReadPiece& piece : pieces) batch.add(IoKind::read, piece.address.v << kBlockShift).add(piece.out.data(), piece.out.size());
  (void)batch.run();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    ReadPiece& piece = pieces[i];
    piece.error = batch.error_of(i);
    const bool again = piece.error && piece.out.size() <= kBlockSize;
    if (again && read_patiently(device, piece.address.v << kBlockShift, piece.out).ok()) piece.error = 0;
  }
}

}  // namespace varve::io
