#include "check/log_probe.h"

#include "base/buffer.h"
#include "format/chunk.h"
#include "io/patient_read.h"

namespace varve::check {

namespace {

// Whether the chunk that follows the checkpoint stands at `place`.
bool continues_at(Context& context, BlockAddr place) {
  const format::Superblock& super = context.super();
  const std::uint64_t blocks = context.device.geometry().blocks();
  if (!place || place.v >= blocks) return false;
  AlignedBuffer buffer(format::kMaxLongHeaderBlocks * kBlockSize);
  if (!io::read_patiently(context.device, place.v * kBlockSize, buffer.span().first(kBlockSize)).ok()) return false;
  const auto peeked = format::peek_chunk(buffer.span());
  if (!peeked.ok() || peeked->address != place || place.v + peeked->header_blocks > blocks) return false;
  const auto bytes = buffer.span().first(peeked->header_blocks * kBlockSize);
  if (!io::read_patiently(context.device, place.v * kBlockSize, bytes).ok()) return false;
  const auto chunk = format::decode_chunk(bytes);
  return chunk.ok() && chunk->header.identity == super.identity && chunk->header.epoch == super.epoch &&
         chunk->header.lsn == super.lsn + 1 && chunk->header.previous_crc == super.chain_crc;
}

}  // namespace

void probe_log(Context& context) {
  const format::Superblock& super = context.super();
  const bool goes_on = (super.chain.blocks > 0 && continues_at(context, super.chain.start)) ||
                       (super.next_run.blocks > 0 && continues_at(context, super.next_run.start));
  context.report.needs_recovery = goes_on;
  if (goes_on && super.clean) context.add(Code::log_after_clean, {}, fmt::format("chunk {}", super.lsn + 1));
  else if (goes_on) context.add(Code::needs_recovery, {}, fmt::format("from chunk {}", super.lsn + 1));
  else if (!super.clean) context.add(Code::not_unmounted, {});
}

}  // namespace varve::check
