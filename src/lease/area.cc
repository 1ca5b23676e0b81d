#include "lease/area.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "format/superblock.h"
#include "io/patient_read.h"

namespace varve::lease {

Result<Look> Area::read() {
  AlignedBuffer blocks((format::kAnswerBlock + 1) << kBlockShift);
  TRY(read_blocks(blocks.span()));
  const auto block = [&](std::uint64_t number) { return std::as_const(blocks).span().subspan(number << kBlockShift, kBlockSize); };
  Look look;
  look.first_block = crc32c(block(0));
  look.has_superblock = format::decode_superblock(block(0)).ok();
  look.is_blank = std::ranges::all_of(block(format::kLeaseBlock), [](std::byte byte) { return byte == std::byte{0}; });
  look.lease = format::decode_lease(block(format::kLeaseBlock));
  look.challenge = format::decode_challenge(block(format::kChallengeBlock));
  look.answer = format::decode_answer(block(format::kAnswerBlock));
  return look;
}

// As io::read_patiently(), but past what waits until the lease has been looked at.
Status Area::read_blocks(std::span<std::byte> out) {
  int error = 0;
  for (unsigned attempt = 0; attempt < io::kPatientAttempts; ++attempt) {
    io::IoRequest request;
    request.by_guard = true;
    request.add(out.data(), out.size());
    error = device_.execute(request);
    if (error == 0) return {};
    if (const std::string refusal = device_.refusal(); !refusal.empty()) return Error(Errc::io, refusal);
  }
  return Error(errc_from_errno(error), fmt::format("{}: cannot read the lease: {}", device_.name(), std::strerror(error)));
}

Status Area::write(const format::Lease& lease) {
  AlignedBuffer block(kBlockSize);
  format::encode_lease(lease, block.span());
  return write_block(format::kLeaseBlock, block.span());
}

Status Area::write(const format::Challenge& challenge) {
  AlignedBuffer block(kBlockSize);
  format::encode_challenge(challenge, block.span());
  return write_block(format::kChallengeBlock, block.span());
}

Status Area::write(const format::Answer& answer) {
  AlignedBuffer block(kBlockSize);
  format::encode_answer(answer, block.span());
  return write_block(format::kAnswerBlock, block.span());
}

Status Area::clear_lease() {
  auto block = AlignedBuffer::zeroed(kBlockSize);
  return write_block(format::kLeaseBlock, block.span());
}

Status Area::clear_challenge() {
  auto block = AlignedBuffer::zeroed(kBlockSize);
  return write_block(format::kChallengeBlock, block.span());
}

Status Area::write_block(std::uint64_t block, std::span<std::byte> bytes) {
  io::IoRequest request;
  request.kind = io::IoKind::write;
  request.offset = block << kBlockShift;
  request.durable = true;
  request.by_guard = true;
  request.add(bytes.data(), bytes.size());
  const int error = device_.execute(request);
  if (error == 0) return {};
  const Errc code = error == ENOTCONN ? Errc::interrupted : errc_from_errno(error);
  return Error(code, fmt::format("{}: cannot write the lease (block {}): {}", device_.name(), block, std::strerror(error)));
}

}  // namespace varve::lease
