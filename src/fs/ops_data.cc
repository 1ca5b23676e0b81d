// Reading and writing.
#include <algorithm>
#include <cstring>

#include "base/invariant.h"
#include "fs/block_history.h"
#include "fs/engine.h"
#include "fs/file_content.h"
#include "fs/file_space.h"
#include "log/log.h"
#include "segments/counters.h"
#include "segments/log_clock.h"
#include "snapshots/snapshots.h"

namespace varve::fs {

namespace {

using Kind = changes::MappedBlock::Kind;

constexpr std::uint64_t kMaxWriteBytes = 1u << 20;

// --- read -----------------------------------------------------------------------------------------------------------------

// One run of blocks, consecutive on the device, of the part of a file that is read.
class ReadRange {
 public:
  ReadRange(Attempt& attempt, Ino ino, std::uint64_t offset, std::span<std::byte> out)
      : a_(attempt), ino_(ino), offset_(offset), out_(out), first_(block_of(offset)) {}

  Status run(const changes::Inode& inode) REQUIRES_SHARED(inode.mutex) {
    mapped_.resize(block_of(offset_ + out_.size() - 1) - first_ + 1);
    TRY(changes::resolve_blocks(inode, a_.view(), a_.source(), first_, mapped_));
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
    operation::FileNotes& notes = a_.operations().file_notes();
    if (!notes.is_on() || mapped_.size() < kLeast || a_.shows_snapshot()) return;
    std::size_t pieces = 0;
    for (std::size_t i = 0; i < mapped_.size(); i = end_of_run(i)) ++pieces;
    if (pieces * kLeast > mapped_.size() + kLeast) notes.note_pieces(ino_, pieces);
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
    else if (mapped_[begin].kind == Kind::tail)
      changes::copy_tail(*mapped_[begin].tail, part.from, {part.to, part.size});
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
    const auto whose = [this, begin](std::size_t i) { return FileBlock{ino_, first_ + begin + i}; };
    const auto bytes = TRY(a_.fetch(std::span(mapped_).subspan(begin, end - begin), whose, straight ? part_of(begin).to : nullptr));
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
  std::vector<changes::MappedBlock> mapped_;
};

// --- write ---------------------------------------------------------------------------------------------------------------

class WriteRange {
 public:
  // Prepares whole blocks, while the inode is not locked: copies and checksums take time that others would wait.
  WriteRange(Attempt& attempt, std::uint64_t offset, std::span<const std::byte> data, const log::PayloadBufferPtr& keeper)
      : a_(attempt), offset_(offset), data_(data), first_(block_of(offset)), count_(blocks_for(offset + data.size()) - first_),
        ready_(offset % kBlockSize ? 0 : data.size() >> kBlockShift), staged_(count_) {
    // What may be kept for a while (Unsealed) lets go of its message, which others wait for.
    const bool stays = first_ >= changes::Unsealed::kYoungBlocks;
    if (keeper && stays && reinterpret_cast<std::uintptr_t>(data.data()) % kBlockSize == 0) {
      for (std::size_t i = 0; i < ready_; ++i)
        staged_[i].data = make_pending(keeper, const_cast<std::byte*>(data.data()) + (i << kBlockShift));
    } else if (ready_) {
      BlockBuilder builder(ready_);
      std::memcpy(builder.data(0), data.data(), ready_ << kBlockShift);
      for (std::size_t i = 0; i < ready_; ++i) staged_[i].data = builder.finish(i);
    }
  }

  Status run(changes::Inode& inode) REQUIRES(inode.mutex) {
    Ownership owned = TRY(ownership(a_, inode, first_, count_));
    look_up_cached(a_, inode, first_, owned);
    // Partial blocks at the ends need what is there already; behind the end of the file there are zeros.
    const std::uint64_t end = offset_ + data_.size();
    std::span<const std::byte> head, tail;
    if (offset_ % kBlockSize) head = TRY(old_bytes(inode, 0, owned));
    if (end % kBlockSize && end < inode.attributes.size && (count_ > 1 || !(offset_ % kBlockSize)))
      tail = TRY(old_bytes(inode, count_ - 1, owned));
    const std::size_t of_tail = changes::tail_record_bytes(std::max(end, inode.attributes.size), a_.staging().tail_limits());
    TRY(a_.admit({.record_bytes = 400 + 40 * count_ + of_tail, .new_blocks = owned.fresh + kept(owned), .payload = count_,
                  .places = kFewPlaces}));
    stage(inode, owned, head, tail);
    return {};
  }

 private:
  // With what stays for a snapshot although it is written over. What stays for automatic ones alone goes before room is short.
  std::uint64_t kept(const Ownership& owned) const {
    const snapshots::Snapshots& snapshots = a_.store().snapshots();
    if (!snapshots.any_permanent()) return 0;
    return static_cast<std::uint64_t>(std::ranges::count_if(
        owned.old, [&](const changes::MappedBlock& old) { return changes::may_be_kept_for_good(snapshots, old, owned.assume_owned); }));
  }

  Result<std::span<const std::byte>> old_bytes(const changes::Inode& inode, std::size_t i, Ownership& owned)
      REQUIRES_SHARED(inode.mutex) {
    const std::uint64_t start = (first_ + i) << kBlockShift;
    changes::MappedBlock& mapped = owned.old[i];
    if (start >= inode.attributes.size) return std::span<const std::byte>();  // nothing before the end: zeros
    if (mapped.kind == Kind::unknown) {
      TRY(changes::resolve_blocks(inode, a_.view(), a_.source(), first_ + i, {&mapped, 1}));
    }
    return block_bytes(a_, inode, first_ + i, mapped);
  }

  void stage(changes::Inode& inode, Ownership& owned, std::span<const std::byte> head, std::span<const std::byte> tail)
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
      if (offset_ % kBlockSize) staged_.front().data->is_part = true;
      if ((offset_ + data_.size()) % kBlockSize) staged_.back().data->is_part = true;
    }
    for (std::size_t i = 0; i < count_; ++i) {
      INVARIANT(staged_[i].data != nullptr);
      staged_[i].block = first_ + i;
      staged_[i].old = owned.old[i];
      staged_[i].assume_owned = owned.assume_owned;
    }
    const std::span<changes::StageBlock> staged(staged_.data(), staged_.size());
    place_blocks(a_, inode, staged, clock);
    a_.store().counters().user_blocks += count_;
    operation::FileNotes& notes = a_.operations().file_notes();
    if (offset_ < inode.attributes.size && notes.is_on()) notes.note_overwrite(inode.ino, count_);
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
  boost::container::small_vector<changes::StageBlock, 4> staged_;
};

}  // namespace

std::uint64_t Filesystem::content_version(Ino ino) const {
  const changes::InodePtr inode = engine_->store().inodes().find(ino);
  return inode ? inode->content_version() : 0;
}

Result<std::size_t> Filesystem::read(Operation& operation, Ino ino, std::uint64_t offset, std::span<std::byte> out,
                                     const ReadOptions& options) {
  bool touch = false;
  auto result = engine_->attempt(operation, [&](Attempt& a) -> Result<std::size_t> {
    changes::InodePtr inode = TRY(a.inode(ino));
    ReadLock lock(inode->mutex);
    TRY(must_be_file(*inode));
    if (offset >= inode->attributes.size || out.empty()) return std::size_t{0};
    const auto wanted = out.first(std::min<std::uint64_t>(out.size(), inode->attributes.size - offset));
    TRY(ReadRange(a, ino, offset, wanted).run(*inode));
    touch = !options.keep_atime && atime_is_due(engine_->options(), *inode, a.now());
    if (options.version) *options.version = inode->content_version();
    return wanted.size();
  });
  if (touch) touch_atime(engine_->operations(), operation, ino);
  return result;
}

Result<std::size_t> Filesystem::write(Operation& operation, Ino ino, std::uint64_t offset, std::span<const std::byte> data,
                                      WriteFlags flags, const log::PayloadBufferPtr& keeper) {
  if (data.size() > kMaxWriteBytes) return Errc::invalid;
  if (offset > format::kMaxFileBytes || data.size() > format::kMaxFileBytes - offset) return Errc::file_too_big;
  return engine_->attempt(operation, [&](Attempt& a) -> Result<std::size_t> {
    changes::InodePtr inode = TRY(a.inode(ino));
    WriteRange range(a, offset, data, keeper);
    WriteLock lock(inode->mutex);
    TRY(must_be_file(*inode));
    if (data.empty()) return std::size_t{0};
    // Cached writes need not come in order, so only direct ones can be told from appending.
    const bool extends = flags.from_cache || flags.append || offset >= inode->attributes.size;
    TRY(extends ? may_extend(*inode) : may_alter(*inode));
    const Privileges privileges = TRY(Privileges::look(a, *inode, flags));
    if (block_of(offset) >= blocks_for(inode->attributes.size)) TRY(leave_tail(a, *inode));
    TRY(range.run(*inode));
    inode->attributes.size = std::max(inode->attributes.size, offset + data.size());
    privileges.drop(a, *inode);
    inode->dated_by_write = !flags.from_cache && !flags.kernel_dates;
    if (!flags.from_cache && !flags.kernel_dates) touch_mtime(*inode, a.now());
    a.staging().set_attributes(*inode);
    return data.size();
  });
}

}  // namespace varve::fs
