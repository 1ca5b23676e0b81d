#include "fs/file_content.h"

#include "fs/block_history.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "log/log.h"
#include "segments/log_clock.h"
#include "space/charge.h"

namespace varve::fs {

namespace {
using Kind = changes::MappedBlock::Kind;
alignas(64) constexpr std::array<std::byte, kBlockSize> kZeros{};
}

Status verify_block(Attempt& a, Ino ino, std::uint64_t block, const changes::MappedBlock& mapped, std::span<const std::byte> bytes) {
  if (crc32c(bytes) == mapped.crc) return {};
  const Error error(Errc::corrupt, fmt::format("inode {}: block {} of the file (block {} of {}) is damaged", ino, block, mapped.address,
                                               a.store().device().name()));
  a.store().faults().note_data(Errc::corrupt, mapped.address, ino, error.message());
  return error;
}

namespace {

// Of bytes that may go any moment: a copy stays with the operation.
std::span<const std::byte> keep_copy(Attempt& a, AlignedBuffer bytes) {
  operation::DataRead& read = a.wait().reads.emplace_back();
  read.own = std::move(bytes);
  read.target = read.own.data();
  read.blocks = 1;
  read.started = read.done = true;
  return read.bytes();
}

}  // namespace

Result<std::span<const std::byte>> block_bytes(Attempt& a, const changes::Inode& inode, std::uint64_t block,
                                               const changes::MappedBlock& mapped) {
  if (mapped.kind == Kind::pending) return std::span<const std::byte>(mapped.pending->data, kBlockSize);
  if (mapped.kind == Kind::tail) {
    AlignedBuffer copy(kBlockSize);
    changes::copy_tail(*mapped.tail, 0, copy.span());
    return keep_copy(a, std::move(copy));
  }
  if (mapped.kind != Kind::device) return std::span<const std::byte>(kZeros);
  const log::InFlightTable& in_flight = a.store().log().in_flight();
  if (const auto flying = in_flight.find(mapped.address)) {
    AlignedBuffer copy(kBlockSize);
    std::memcpy(copy.data(), flying->data, kBlockSize);
    return keep_copy(a, std::move(copy));
  }
  AlignedBuffer copy(kBlockSize);
  if (in_flight.find_part(mapped.address, mapped.crc, copy.span())) return keep_copy(a, std::move(copy));
  const auto bytes = TRY(a.fetch({&mapped, 1}, [&](std::size_t) { return FileBlock{inode.ino, block}; }));
  TRY(verify_block(a, inode.ino, block, mapped, bytes));
  return bytes;
}

bool copy_in_flight(Attempt& a, const changes::MappedBlock& mapped, std::span<std::byte> out) {
  const auto flying = a.store().log().in_flight().find(mapped.address);
  if (flying) std::memcpy(out.data(), flying->data, out.size());
  return static_cast<bool>(flying);
}

namespace {

constexpr std::uint64_t kRoomForOthers = 4096;  // blocks that operations beside this one may take meanwhile

// True also where it takes too many steps to tell.
Result<bool> has_blocks_behind(Attempt& a, const changes::Inode& inode, std::uint64_t end_block) REQUIRES_SHARED(inode.mutex) {
  constexpr std::uint64_t kMostSteps = 16;
  if (inode.nothing_behind) return false;
  changes::OwnedSoFar so_far{end_block, 0};
  const Status counted = changes::count_owned_on(inode, a.view(), a.source(), so_far, format::kMaxFileBlocks, kMostSteps);
  if (so_far.owned > 0 || (counted.fails_with(Errc::would_block) && a.wait().nodes.empty())) return true;
  TRY(counted);
  inode.nothing_behind = true;
  return false;
}

bool is_fresh(const changes::MappedBlock& old, bool assume_owned) {
  return old.kind == Kind::hole || old.kind == Kind::tail || (old.kind == Kind::unknown && !assume_owned);
}

}  // namespace

Result<Ownership> ownership(Attempt& a, const changes::Inode& inode, std::uint64_t first, std::size_t count) {
  Ownership result;
  result.old.resize(count);
  const changes::Layers layers = changes::layers_of(inode, a.view());
  changes::resolve_in_deltas(layers, first, result.all_old());
  const std::uint64_t end_block = blocks_for(inode.attributes.size);
  const auto is_unknown = [](const changes::MappedBlock& old) { return old.kind == changes::MappedBlock::Kind::unknown; };
  if (std::ranges::any_of(result.old, is_unknown)) {
    const std::uint64_t owned = changes::block_count(inode, a.view());
    if (!a.store().charge().fits({.new_blocks = count + kRoomForOthers})) {
      // What might be refused for want of room has a right to the truth, and so have operations that were promised some.
      TRY(changes::resolve_blocks(inode, a.view(), a.source(), first, result.all_old()));
    } else if (end_block && owned >= end_block && TRY(has_blocks_behind(a, inode, end_block))) {
      // The blocks that fallocate left behind the end may be as many as those that are missing before it.
      TRY(changes::resolve_blocks(inode, a.view(), a.source(), first, result.all_old()));
    } else {
      for (std::size_t i = 0; i < count; ++i)
        if (is_unknown(result.old[i]) && first + i >= end_block && owned <= end_block)
          result.old[i].kind = changes::MappedBlock::Kind::hole;
      result.assume_owned = end_block && owned >= end_block;
    }
  }
  result.fresh = static_cast<std::uint64_t>(
      std::ranges::count_if(result.old, [&](const auto& old) { return is_fresh(old, result.assume_owned); }));
  return result;
}

changes::PendingPtr make_pending(log::PayloadBufferPtr keeper, std::byte* bytes) {
  changes::PendingPtr block(new changes::PendingBlock(std::move(keeper), bytes));
  block->crc = crc32c({bytes, kBlockSize});
  return block;
}

Result<PartToZero> look_at_part(Attempt& a, const changes::Inode& inode, std::uint64_t from, std::uint64_t to) {
  if (from >= to || from >= inode.attributes.size) return PartToZero{};
  const std::uint64_t block = block_of(from);
  changes::MappedBlock mapped;
  TRY(changes::resolve_blocks(inode, a.view(), a.source(), block, {&mapped, 1}));
  if (!mapped.has_data()) return PartToZero{};
  const auto bytes = TRY(block_bytes(a, inode, block, mapped));
  return PartToZero{from, to, mapped, bytes};
}

void zero(Attempt& a, changes::Inode& inode, const PartToZero& part) {
  if (part.bytes.empty()) return;
  BlockBuilder builder(1);
  std::memcpy(builder.data(0), part.bytes.data(), kBlockSize);
  std::memset(builder.data(0) + part.from % kBlockSize, 0, part.to - part.from);
  changes::StageBlock staged{block_of(part.from), builder.finish(0), part.mapped, true};
  const std::uint64_t clock = a.store().log_clock().advance(1);
  place_blocks(a, inode, {&staged, 1}, clock);
  a.staging().put_blocks(inode, {&staged, 1}, a.store().log_clock().units(clock));
}

Status leave_tail(Attempt& a, changes::Inode& inode) {
  if (!a.view().has_tails || inode.attributes.size == 0) return {};
  const std::uint64_t block = blocks_for(inode.attributes.size) - 1;
  changes::MappedBlock mapped;
  TRY(changes::resolve_blocks(inode, a.view(), a.source(), block, {&mapped, 1}));
  const bool is_logged = mapped.kind == Kind::pending && mapped.pending->is_logged;
  if (mapped.kind == Kind::pending) mapped.pending->needs_block = true;
  if (mapped.kind != Kind::tail && !is_logged) return {};
  TRY(a.admit({.record_bytes = kFewRecordBytes, .new_blocks = 1, .payload = 1, .places = kFewPlaces}));
  BlockBuilder builder(1);
  if (is_logged) std::memcpy(builder.data(0), mapped.pending->data, kBlockSize);
  else changes::copy_tail(*mapped.tail, 0, {builder.data(0), kBlockSize});
  changes::StageBlock staged{block, builder.finish(0), mapped};
  staged.data->needs_block = true;
  const std::uint64_t clock = a.store().log_clock().advance(1);
  place_blocks(a, inode, {&staged, 1}, clock);
  a.staging().put_blocks(inode, {&staged, 1}, a.store().log_clock().units(clock));
  return {};
}

Status zero_part(Attempt& a, changes::Inode& inode, std::uint64_t from, std::uint64_t to) {
  zero(a, inode, TRY(look_at_part(a, inode, from, to)));
  return {};
}

}  // namespace varve::fs
