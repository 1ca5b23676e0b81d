// Reading, writing, and the shape of files.
#include <algorithm>
#include <cstring>

#include "base/invariant.h"
#include "fs/block_history.h"
#include "fs/file_content.h"
#include "fs/file_space.h"
#include "store/seek.h"

namespace varve::fs {

namespace {

using Kind = store::MappedBlock::Kind;

constexpr std::uint64_t kMaxWriteBytes = 1u << 20;

Status must_be_file(const store::Inode& inode) REQUIRES_SHARED(inode.mutex) {
  if (inode.gone()) return Errc::stale;
  if (!is_regular(inode)) return is_directory(inode) ? Errc::is_directory : Errc::invalid;
  return {};
}

// --- read -----------------------------------------------------------------------------------------------------------------

// One run of blocks, consecutive on the device, of the part of a file that is read.
class ReadRange {
 public:
  ReadRange(Attempt& attempt, Ino ino, std::uint64_t offset, std::span<std::byte> out)
      : a_(attempt), ino_(ino), offset_(offset), out_(out), first_(block_of(offset)) {}

  Status run(const store::Inode& inode) REQUIRES_SHARED(inode.mutex) {
    mapped_.resize(block_of(offset_ + out_.size() - 1) - first_ + 1);
    TRY(store::resolve_blocks(inode, a_.view(), a_.source(), first_, mapped_));
    bool blocked = false;
    for (std::size_t i = 0; i < mapped_.size();) {
      const std::size_t end = end_of_run(i);
      if (Status status = take(i, end); status.fails_with(Errc::would_block)) blocked = true;  // fetch all together
      else TRY(status);
      i = end;
    }
    if (blocked) return Errc::would_block;
    note_pieces();
    return {};
  }

 private:
  // Of what is read in a row: on average shorter than a quarter of a MiB.
  void note_pieces() {
    constexpr std::size_t kLeast = 64;
    Tidier& tidier = a_.engine().tidier();
    if (!tidier.is_on() || mapped_.size() < kLeast || a_.shows_snapshot()) return;
    std::size_t pieces = 0;
    for (std::size_t i = 0; i < mapped_.size(); i = end_of_run(i)) ++pieces;
    if (pieces * kLeast > mapped_.size() + kLeast) tidier.note_pieces(ino_, pieces);
  }

  std::size_t end_of_run(std::size_t begin) const {
    std::size_t end = begin + 1;
    if (mapped_[begin].kind != Kind::device) return end;
    while (end < mapped_.size() && mapped_[end].kind == Kind::device &&
           mapped_[end].address == mapped_[begin].address + (end - begin))
      ++end;
    return end;
  }

  // The part of block i that is wanted: where it goes in out_, and which bytes of the block.
  struct Part {
    std::byte* to;
    std::size_t from, size;
  };
  Part part_of(std::size_t i) const {
    const std::uint64_t start = (first_ + i) << kBlockShift;
    const std::uint64_t begin = std::max(start, offset_);
    const std::uint64_t end = std::min(start + kBlockSize, offset_ + out_.size());
    return {out_.data() + (begin - offset_), static_cast<std::size_t>(begin - start), static_cast<std::size_t>(end - begin)};
  }

  bool direct(std::size_t begin, std::size_t end) const {
    return part_of(begin).size == kBlockSize && part_of(end - 1).size == kBlockSize &&
           reinterpret_cast<std::uintptr_t>(part_of(begin).to) % kBlockSize == 0;
  }

  Status take(std::size_t begin, std::size_t end) {
    if (mapped_[begin].kind == Kind::device) return take_from_device(begin, end);
    const Part part = part_of(begin);
    MEMORY_INVARIANT(part.from + part.size <= kBlockSize);
    if (mapped_[begin].kind == Kind::pending)
      std::memcpy(part.to, mapped_[begin].pending->data + part.from, part.size);
    else
      std::memset(part.to, 0, part.size);
    return {};
  }

  Status take_from_device(std::size_t begin, std::size_t end) {
    // Blocks whose write is in flight come from memory; they split the run.
    for (std::size_t i = begin; i < end; ++i) {
      const auto flying = a_.store().log().in_flight().find(mapped_[i].address);
      if (!flying) continue;
      if (i > begin) TRY(take_from_device(begin, i));
      const Part part = part_of(i);
      std::memcpy(part.to, flying->data + part.from, part.size);
      return i + 1 < end ? take_from_device(i + 1, end) : Status{};
    }
    INVARIANT(begin < end && end <= mapped_.size());
    const bool straight = direct(begin, end);
    const auto bytes = TRY(a_.fetch(mapped_[begin].address, static_cast<std::uint32_t>(end - begin),
                                    straight ? part_of(begin).to : nullptr));
    for (std::size_t i = begin; i < end; ++i) {
      const auto block = bytes.subspan((i - begin) * kBlockSize, kBlockSize);
      TRY(verify_block(a_, ino_, first_ + i, mapped_[i], block));
      const Part part = part_of(i);
      if (!straight) std::memcpy(part.to, block.data() + part.from, part.size);
    }
    return {};
  }

  Attempt& a_;
  const Ino ino_;
  const std::uint64_t offset_;
  const std::span<std::byte> out_;
  const std::uint64_t first_;
  std::vector<store::MappedBlock> mapped_;
};

// --- write ---------------------------------------------------------------------------------------------------------------

class WriteRange {
 public:
  // Prepares whole blocks, while the inode is not locked: copies and checksums take time that others would wait.
  WriteRange(Attempt& attempt, std::uint64_t offset, std::span<const std::byte> data, const log::PayloadBufferPtr& keeper)
      : a_(attempt), offset_(offset), data_(data), first_(block_of(offset)), count_(blocks_for(offset + data.size()) - first_),
        ready_(offset % kBlockSize ? 0 : data.size() >> kBlockShift), staged_(count_) {
    // What may be kept for a while (Unsealed) lets go of its message, which others wait for.
    const bool stays = first_ >= store::Unsealed::kYoungBlocks;
    if (keeper && stays && reinterpret_cast<std::uintptr_t>(data.data()) % kBlockSize == 0) {
      for (std::size_t i = 0; i < ready_; ++i)
        staged_[i].data = make_pending(keeper, const_cast<std::byte*>(data.data()) + (i << kBlockShift));
    } else if (ready_) {
      BlockBuilder builder(ready_);
      std::memcpy(builder.data(0), data.data(), ready_ << kBlockShift);
      for (std::size_t i = 0; i < ready_; ++i) staged_[i].data = builder.finish(i);
    }
  }

  Status run(store::Inode& inode) REQUIRES(inode.mutex) {
    Ownership owned = TRY(ownership(a_, inode, first_, count_));
    look_up_cached(a_, inode, first_, owned);
    // Partial blocks at the ends need what is there already; behind the end of the file there are zeros.
    const std::uint64_t end = offset_ + data_.size();
    std::span<const std::byte> head, tail;
    if (offset_ % kBlockSize) head = TRY(old_bytes(inode, 0, owned));
    if (end % kBlockSize && end < inode.attributes.size && (count_ > 1 || !(offset_ % kBlockSize)))
      tail = TRY(old_bytes(inode, count_ - 1, owned));
    TRY(a_.admit({.record_bytes = 400 + 40 * count_, .new_blocks = owned.fresh + kept(owned), .payload = count_, .places = kFewPlaces}));
    stage(inode, owned, head, tail);
    return {};
  }

 private:
  // With what stays for a snapshot although it is written over. What stays for automatic ones alone goes before room is short.
  std::uint64_t kept(const Ownership& owned) const {
    const store::Snapshots& snapshots = a_.store().snapshots();
    if (!snapshots.any_permanent()) return 0;
    return static_cast<std::uint64_t>(std::ranges::count_if(
        owned.old, [&](const store::MappedBlock& old) { return store::may_be_kept_for_good(snapshots, old, owned.assume_owned); }));
  }

  Result<std::span<const std::byte>> old_bytes(const store::Inode& inode, std::size_t i, Ownership& owned)
      REQUIRES_SHARED(inode.mutex) {
    const std::uint64_t start = (first_ + i) << kBlockShift;
    store::MappedBlock& mapped = owned.old[i];
    if (start >= inode.attributes.size) return std::span<const std::byte>();  // nothing before the end: zeros
    if (mapped.kind == Kind::unknown) {
      TRY(store::resolve_blocks(inode, a_.view(), a_.source(), first_ + i, {&mapped, 1}));
    }
    return block_bytes(a_, inode, first_ + i, mapped);
  }

  void stage(store::Inode& inode, Ownership& owned, std::span<const std::byte> head, std::span<const std::byte> tail)
      REQUIRES(inode.mutex) {
    INVARIANT(owned.fresh <= count_);
    MEMORY_INVARIANT(ready_ <= count_ && staged_.size() == count_);
    const std::size_t skipped = ready_ << kBlockShift;
    const std::uint64_t clock = a_.store().log_clock().advance(count_);
    if (ready_ < count_) {
      BlockBuilder builder(count_ - ready_);
      if (offset_ % kBlockSize) start_block(builder.data(0), head);
      if ((offset_ + data_.size()) % kBlockSize && (count_ > 1 || !(offset_ % kBlockSize)))
        start_block(builder.data(count_ - ready_ - 1), tail);
      std::memcpy(builder.data(0) + offset_ % kBlockSize, data_.data() + skipped, data_.size() - skipped);
      for (std::size_t i = ready_; i < count_; ++i) staged_[i].data = builder.finish(i - ready_);
    }
    for (std::size_t i = 0; i < count_; ++i) {
      INVARIANT(staged_[i].data != nullptr);
      staged_[i].block = first_ + i;
      staged_[i].old = owned.old[i];
      staged_[i].assume_owned = owned.assume_owned;
    }
    const std::span<store::StageBlock> staged(staged_.data(), staged_.size());
    place_blocks(a_, inode, staged, clock);
    a_.store().counters().user_blocks += count_;
    if (offset_ < inode.attributes.size && a_.engine().tidier().is_on()) a_.engine().tidier().note_overwrite(inode.ino, count_);
    a_.staging().put_blocks(inode, staged, a_.store().log_clock().units(clock));
  }

  static void start_block(std::byte* block, std::span<const std::byte> old) {
    if (old.empty()) std::memset(block, 0, kBlockSize);
    else std::memcpy(block, old.data(), kBlockSize);
  }

  Attempt& a_;
  const std::uint64_t offset_;
  const std::span<const std::byte> data_;
  const std::uint64_t first_;
  const std::size_t count_, ready_;
  boost::container::small_vector<store::StageBlock, 4> staged_;
};

// --- fallocate -------------------------------------------------------------------------------------------------------------

Status finish_fallocate(Attempt& a, store::Inode& inode, FallocateMode mode, std::uint64_t end, const Privileges& privileges)
    REQUIRES(inode.mutex) {
  privileges.drop(a, inode);
  if (mode == FallocateMode::allocate || mode == FallocateMode::zero_range)
    inode.attributes.size = std::max(inode.attributes.size, end);
  inode.change_content();
  touch_mtime(inode, a.now());
  a.staging().set_attributes(inode);
  return {};
}

// Whole blocks inside become holes (or unwritten); the bytes at the ends are zeroed.
Status clear_range(Attempt& a, store::Inode& inode, std::uint64_t offset, std::uint64_t length, store::Cleared kind)
    REQUIRES(inode.mutex) {
  const std::uint64_t end = offset + length;
  const std::uint64_t from = blocks_for(offset), to = block_of(end);
  std::uint64_t owned = 0;
  if (from < to) owned = TRY(count_in_steps(a, inode, from, to));
  const std::uint64_t wanted = kind == store::Cleared::unwritten && from < to ? to - from - owned : 0;
  TRY(a.admit({.record_bytes = 2048, .new_blocks = wanted, .places = kFewPlaces, .freed = owned, .frees = kind == store::Cleared::hole}));
  const std::uint64_t head_end = std::min(end, from << kBlockShift);
  const PartToZero head = TRY(look_at_part(a, inode, offset, head_end));
  const PartToZero tail = TRY(look_at_part(a, inode, std::max(to << kBlockShift, head_end), end));
  zero(a, inode, head);
  zero(a, inode, tail);
  if (from >= to) return {};
  const auto change = kind == store::Cleared::unwritten ? static_cast<std::int64_t>(to - from - owned)
                                                       : -static_cast<std::int64_t>(owned);
  a.staging().clear(inode, from, to, kind, change);
  return {};
}

Status allocate(Engine& engine, Operation& operation, Ino ino, FallocateMode mode, std::uint64_t offset, std::uint64_t length,
                WriteFlags flags) {
  constexpr int kWindowsPerTurn = 4;
  bool done = false;
  for (int i = 0; i < kWindowsPerTurn && !done; ++i) {
    TRY(engine.attempt(operation, [&](Attempt& a) -> Status {
      store::InodePtr inode = TRY(a.inode(ino));
      WriteLock lock(inode->mutex);
      TRY(must_be_file(*inode));
      TRY(may_extend(*inode));
      const Privileges privileges = TRY(Privileges::look(a, *inode, flags));
      done = TRY(allocate_some(a, *inode, block_of(offset), blocks_for(offset + length)));
      return done ? finish_fallocate(a, *inode, mode, offset + length, privileges) : Status();
    }));
  }
  if (!done) return Errc::would_block;  // with nothing wanted: others have their turn
  return {};
}

}  // namespace

std::uint64_t Filesystem::content_version(Ino ino) const {
  const store::InodePtr inode = engine_->store().inodes().find(ino);
  return inode ? inode->content_version() : 0;
}

Result<std::size_t> Filesystem::read(Operation& operation, Ino ino, std::uint64_t offset, std::span<std::byte> out,
                                     const ReadOptions& options) {
  bool touch = false;
  auto result = engine_->attempt(operation, [&](Attempt& a) -> Result<std::size_t> {
    store::InodePtr inode = TRY(a.inode(ino));
    ReadLock lock(inode->mutex);
    TRY(must_be_file(*inode));
    if (offset >= inode->attributes.size || out.empty()) return std::size_t{0};
    const auto wanted = out.first(std::min<std::uint64_t>(out.size(), inode->attributes.size - offset));
    TRY(ReadRange(a, ino, offset, wanted).run(*inode));
    touch = !options.keep_atime && atime_is_due(a.engine().options(), *inode, a.now());
    if (options.version) *options.version = inode->content_version();
    return wanted.size();
  });
  if (touch) touch_atime(*engine_, operation, ino);
  return result;
}

Result<std::size_t> Filesystem::write(Operation& operation, Ino ino, std::uint64_t offset, std::span<const std::byte> data,
                                      WriteFlags flags, const log::PayloadBufferPtr& keeper) {
  if (data.size() > kMaxWriteBytes) return Errc::invalid;
  if (offset > format::kMaxFileBytes || data.size() > format::kMaxFileBytes - offset) return Errc::file_too_big;
  return engine_->attempt(operation, [&](Attempt& a) -> Result<std::size_t> {
    store::InodePtr inode = TRY(a.inode(ino));
    WriteRange range(a, offset, data, keeper);
    WriteLock lock(inode->mutex);
    TRY(must_be_file(*inode));
    if (data.empty()) return std::size_t{0};
    // Cached writes need not come in order, so only direct ones can be told from appending.
    const bool extends = flags.from_cache || offset >= inode->attributes.size;
    TRY(extends ? may_extend(*inode) : may_alter(*inode));
    const Privileges privileges = TRY(Privileges::look(a, *inode, flags));
    TRY(range.run(*inode));
    inode->attributes.size = std::max(inode->attributes.size, offset + data.size());
    privileges.drop(a, *inode);
    if (!flags.from_cache) touch_mtime(*inode, a.now());
    a.staging().set_attributes(*inode);
    return data.size();
  });
}

Status resize(Attempt& a, store::Inode& inode, std::uint64_t size, store::Demand demand) {
  if (size > inode.attributes.size) {
    TRY(a.admit(demand));
    inode.attributes.size = size;
    inode.change_content();
    return {};
  }
  const std::uint64_t first = blocks_for(size);
  const std::uint64_t owned = first == 0 ? store::block_count(inode, a.view())
                                         : TRY(count_in_steps(a, inode, first, format::kMaxFileBlocks));
  if (size == inode.attributes.size && !owned && !(a.wait().steps && a.wait().steps->count.given_up())) return a.admit(demand);
  demand.record_bytes += 256;
  demand.freed += owned;
  TRY(a.admit(demand));
  if (size % kBlockSize) TRY(zero_part(a, inode, size, round_up(size, kBlockSize)));
  if (first == 0) a.staging().empty(inode);
  else a.staging().clear(inode, first, format::kMaxFileBlocks, store::Cleared::hole, -static_cast<std::int64_t>(owned));
  inode.attributes.size = size;
  return {};
}

Status Filesystem::fallocate(Operation& operation, Ino ino, FallocateMode mode, std::uint64_t offset, std::uint64_t length,
                             WriteFlags flags) {
  if (length == 0) return Errc::invalid;
  if (offset > format::kMaxFileBytes || length > format::kMaxFileBytes - offset) return Errc::file_too_big;
  if (mode == FallocateMode::allocate || mode == FallocateMode::allocate_keep_size)
    return allocate(*engine_, operation, ino, mode, offset, length, flags);
  return engine_->attempt(operation, [&](Attempt& a) -> Status {
    store::InodePtr inode = TRY(a.inode(ino));
    WriteLock lock(inode->mutex);
    TRY(must_be_file(*inode));
    TRY(may_alter(*inode));
    const Privileges privileges = TRY(Privileges::look(a, *inode, flags));
    switch (mode) {
      case FallocateMode::allocate:
      case FallocateMode::allocate_keep_size: break;
      case FallocateMode::punch_hole: TRY(clear_range(a, *inode, offset, length, store::Cleared::hole)); break;
      case FallocateMode::zero_range:
      case FallocateMode::zero_range_keep_size: TRY(clear_range(a, *inode, offset, length, store::Cleared::unwritten)); break;
    }
    return finish_fallocate(a, *inode, mode, offset + length, privileges);
  });
}

Result<std::uint64_t> Filesystem::seek(Operation& operation, Ino ino, std::uint64_t offset, SeekKind kind) {
  return engine_->attempt(operation, [&](Attempt& a) -> Result<std::uint64_t> {
    store::InodePtr inode = TRY(a.inode(ino));
    ReadLock lock(inode->mutex);
    if (inode->gone()) return Errc::stale;
    const std::uint64_t size = inode->attributes.size;
    if (offset >= size) return Errc::no_such_offset;
    const std::uint64_t end = blocks_for(size), from = std::max(block_of(offset), a.wait().sought);
    std::uint64_t at = from;
    store::BlockSeek seek(*inode, a.view(), a.source());
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
