// The shape of files: their size, what is allocated, and where data and holes are.
#include <algorithm>

#include "changes/seek.h"
#include "fs/engine.h"
#include "fs/file_content.h"
#include "fs/file_space.h"
#include "snapshots/snapshots.h"

namespace varve::fs {

namespace {

Status finish_fallocate(Attempt& a, changes::Inode& inode, FallocateMode mode, std::uint64_t end, const Privileges& privileges,
                        WriteFlags flags) REQUIRES(inode.mutex) {
  privileges.drop(a, inode);
  if (mode == FallocateMode::allocate || mode == FallocateMode::zero_range)
    inode.attributes.size = std::max(inode.attributes.size, end);
  inode.change_content();
  if (!flags.kernel_dates) touch_mtime(inode, a.now());
  a.staging().set_attributes(inode);
  return {};
}

// Does what ends there touch the last block of the file, or go beyond it?
bool reaches_tail(const changes::Inode& inode, std::uint64_t end) REQUIRES_SHARED(inode.mutex) {
  return blocks_for(end) >= blocks_for(inode.attributes.size);
}

// Whole blocks inside become holes (or unwritten); the bytes at the ends are zeroed.
Status clear_range(Attempt& a, changes::Inode& inode, std::uint64_t offset, std::uint64_t length, tree::Cleared kind)
    REQUIRES(inode.mutex) {
  const std::uint64_t end = offset + length;
  const std::uint64_t from = blocks_for(offset), to = block_of(end);
  std::uint64_t owned = 0;
  if (from < to) owned = TRY(count_in_steps(a, inode, from, to));
  const std::uint64_t wanted = kind == tree::Cleared::unwritten && from < to ? to - from - owned : 0;
  // What becomes unwritten keeps its room, and a snapshot that was asked for keeps the blocks.
  const std::uint64_t kept = kind == tree::Cleared::unwritten && a.store().snapshots().any_permanent() ? owned : 0;
  if (kind == tree::Cleared::unwritten) inode.nothing_behind = false;
  const std::size_t of_tail = changes::tail_record_bytes(std::max(end, inode.attributes.size), a.staging().tail_limits()) +
                              changes::tail_record_bytes(inode.attributes.size, a.staging().tail_limits());
  TRY(a.admit({.record_bytes = 2048 + of_tail, .new_blocks = wanted + kept, .places = kFewPlaces, .freed = owned,
               .frees = kind == tree::Cleared::hole}));
  const std::uint64_t head_end = std::min(end, from << kBlockShift);
  const PartToZero head = TRY(look_at_part(a, inode, offset, head_end));
  const PartToZero tail = TRY(look_at_part(a, inode, std::max(to << kBlockShift, head_end), end));
  zero(a, inode, head);
  zero(a, inode, tail);
  if (from >= to) return {};
  const auto change = kind == tree::Cleared::unwritten ? static_cast<std::int64_t>(to - from - owned)
                                                       : -static_cast<std::int64_t>(owned);
  a.staging().clear(inode, from, to, kind, change);
  return {};
}

Status allocate(operation::Operations& operations, Operation& operation, Ino ino, FallocateMode mode, std::uint64_t offset,
                std::uint64_t length, WriteFlags flags) {
  constexpr int kWindowsPerTurn = 4;
  bool done = false;
  for (int i = 0; i < kWindowsPerTurn && !done; ++i) {
    TRY(operations.attempt(operation, [&](Attempt& a) -> Status {
      changes::InodePtr inode = TRY(a.inode(ino));
      WriteLock lock(inode->mutex);
      TRY(must_be_file(*inode));
      TRY(may_extend(*inode));
      const Privileges privileges = TRY(Privileges::look(a, *inode, flags));
      inode->nothing_behind = false;
      if (reaches_tail(*inode, offset + length)) TRY(leave_tail(a, *inode));
      done = TRY(allocate_some(a, *inode, block_of(offset), blocks_for(offset + length)));
      return done ? finish_fallocate(a, *inode, mode, offset + length, privileges, flags) : Status();
    }));
  }
  if (!done) return Errc::would_block;  // with nothing wanted: others have their turn
  return {};
}

}  // namespace

Status resize(Attempt& a, changes::Inode& inode, std::uint64_t size, bool is_cut, space::Demand demand) {
  if (blocks_for(size) > blocks_for(inode.attributes.size)) TRY(leave_tail(a, inode));
  demand.record_bytes += changes::tail_record_bytes(size, a.staging().tail_limits());
  if (size > inode.attributes.size && !is_cut) {
    TRY(a.admit(demand));
    inode.attributes.size = size;
    inode.change_content();
    return {};
  }
  const std::uint64_t first = blocks_for(size);
  const std::uint64_t owned = first == 0 ? changes::block_count(inode, a.view())
                                         : TRY(count_in_steps(a, inode, first, format::kMaxFileBlocks));
  if (size == inode.attributes.size && !owned && !(a.wait().steps && a.wait().steps->count.given_up())) return a.admit(demand);
  demand.record_bytes += 256;
  demand.freed += owned;
  TRY(a.admit(demand));
  if (size % kBlockSize) TRY(zero_part(a, inode, size, round_up(size, kBlockSize)));
  if (first == 0) a.staging().empty(inode);
  else a.staging().clear(inode, first, format::kMaxFileBlocks, tree::Cleared::hole, -static_cast<std::int64_t>(owned));
  inode.attributes.size = size;
  return {};
}

Result<bool> Filesystem::has_room_behind(Operation& operation, Ino ino, std::uint64_t size) {
  if (size > format::kMaxFileBytes) return Errc::file_too_big;
  return engine_->attempt(operation, [&](Attempt& a) -> Result<bool> {
    changes::InodePtr inode = TRY(a.inode(ino));
    ReadLock lock(inode->mutex);
    if (inode->gone()) return Errc::stale;
    if (!is_regular(*inode) || size <= inode->attributes.size || changes::block_count(*inode, a.view()) == 0) return false;
    return TRY(count_in_steps(a, *inode, blocks_for(size), format::kMaxFileBlocks)) > 0;
  });
}

Status Filesystem::fallocate(Operation& operation, Ino ino, FallocateMode mode, std::uint64_t offset, std::uint64_t length,
                             WriteFlags flags) {
  if (length == 0) return Errc::invalid;
  if (offset > format::kMaxFileBytes || length > format::kMaxFileBytes - offset) return Errc::file_too_big;
  if (mode == FallocateMode::allocate || mode == FallocateMode::allocate_keep_size)
    return allocate(engine_->operations(), operation, ino, mode, offset, length, flags);
  return engine_->attempt(operation, [&](Attempt& a) -> Status {
    changes::InodePtr inode = TRY(a.inode(ino));
    WriteLock lock(inode->mutex);
    TRY(must_be_file(*inode));
    TRY(may_alter(*inode));
    const Privileges privileges = TRY(Privileges::look(a, *inode, flags));
    const bool sets_aside = mode != FallocateMode::punch_hole;
    if (sets_aside && reaches_tail(*inode, offset + length)) TRY(leave_tail(a, *inode));
    switch (mode) {
      case FallocateMode::allocate:
      case FallocateMode::allocate_keep_size: break;
      case FallocateMode::punch_hole: TRY(clear_range(a, *inode, offset, length, tree::Cleared::hole)); break;
      case FallocateMode::zero_range:
      case FallocateMode::zero_range_keep_size: TRY(clear_range(a, *inode, offset, length, tree::Cleared::unwritten)); break;
    }
    return finish_fallocate(a, *inode, mode, offset + length, privileges, flags);
  });
}

Result<std::uint64_t> Filesystem::seek(Operation& operation, Ino ino, std::uint64_t offset, SeekKind kind) {
  return engine_->attempt(operation, [&](Attempt& a) -> Result<std::uint64_t> {
    changes::InodePtr inode = TRY(a.inode(ino));
    ReadLock lock(inode->mutex);
    if (inode->gone()) return Errc::stale;
    const std::uint64_t size = inode->attributes.size;
    if (offset >= size) return Errc::no_such_offset;
    const std::uint64_t end = blocks_for(size), from = std::max(block_of(offset), a.wait().sought);
    std::uint64_t at = from;
    changes::BlockSeek seek(*inode, a.view(), a.source());
    const Status found = kind == SeekKind::data ? seek.data(at, end) : seek.hole(at, end);
    if (!found.ok()) {
      if (at > from) a.wait().pins.clear();  // of what is behind: a file can have more nodes than there is memory for
      a.wait().sought = at;
      return found.error();
    }
    if (at < end) return std::max(offset, at << kBlockShift);
    if (kind == SeekKind::data) return Errc::no_such_offset;
    return size;
  });
}

}  // namespace varve::fs
