// How operations put their changes into the active delta and on the list for the next chunk.
//
// Used after Space::admit(). What is half staged cannot be taken back: if memory is lacking for it, the daemon ends, and the log has
// what was before.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/gate.h"
#include "changes/delta.h"
#include "changes/inode.h"
#include "changes/layers.h"
#include "changes/tail_rules.h"
#include "changes/unsealed.h"

namespace varve::segments {
class SegmentTable;
}

namespace varve::snapshots {
class Snapshots;
}

namespace varve::tree {
class Trees;
}

namespace varve::changes {

class Changes;

// What one staging step knows of the block it replaces.
struct StageBlock {
  std::uint64_t block = 0;
  PendingPtr data;
  MappedBlock old;
  bool assume_owned = false;  // old is unknown, but the file is dense there
  std::uint8_t estimate = 0;  // of its interval between rewrites (format/estimate.h)
};

// May a snapshot that was asked for keep what stood there? Only then it is charged. `assume_owned`: what is unknown is no hole.
bool may_be_kept_for_good(const snapshots::Snapshots& snapshots, const MappedBlock& old, bool assume_owned);

class Staging {
 public:
  // `most_record_bytes`: in one chunk.
  Staging(Changes& changes, const tree::Trees& trees, const snapshots::Snapshots& snapshots, segments::SegmentTable& segments,
          InodeTable& inodes, Clock& clock, std::size_t most_record_bytes, std::uint64_t next_ino)
      : changes_(changes), trees_(trees), snapshots_(snapshots), segments_(segments), inodes_(inodes), clock_(clock),
        unsealed_(most_record_bytes), next_ino_(next_ino) {}

  Unsealed& unsealed() { return unsealed_; }
  const Unsealed& unsealed() const { return unsealed_; }
  // Of new tails, as soon as a superblock tells that there may be some (TreeView::has_tails). Set before there are other threads.
  const format::TailLimits& tail_limits() const { return tail_limits_; }
  void set_tail_limits(const format::TailLimits& limits) { tail_limits_ = limits; }
  bool dirty() const EXCLUDES(the_gate);  // anything not in the settled trees

  // A new number, a fresh active delta; the attributes are the caller's to fill.
  InodePtr create_inode() noexcept REQUIRES_SHARED(the_gate);
  // After a change of inode.attributes.
  void set_attributes(Inode& inode, Unsealed::Kind kind = Unsealed::Kind::any) noexcept REQUIRES_SHARED(the_gate) REQUIRES(inode.mutex);
  void put_blocks(Inode& inode, std::span<StageBlock> blocks, std::uint32_t clock) noexcept
      REQUIRES_SHARED(the_gate) REQUIRES(inode.mutex);
  // With which bytes this block may be sealed as the tail of its file; 0: as a block. More than tail_limits().kept: for the log alone.
  std::size_t tail_bytes(const PendingBlock& block) const REQUIRES(the_gate);
  // It is in a chunk so: from now on the file owns no block there.
  void keep_tail(const PendingBlock& block, std::size_t bytes) REQUIRES(the_gate);
  // Of a delta that was replayed: this tail becomes payload of the next chunk.
  void give_block(InodeDelta& delta, std::uint64_t block, std::uint32_t clock) REQUIRES(the_gate);
  void clear(Inode& inode, std::uint64_t from, std::uint64_t to, tree::Cleared kind, std::int64_t owned_change) noexcept
      REQUIRES_SHARED(the_gate) REQUIRES(inode.mutex);
  void empty(Inode& inode) noexcept REQUIRES_SHARED(the_gate) REQUIRES(inode.mutex);  // clears all of it
  // Of the cleaner: the block stands at `to` now.
  void move(Inode& inode, std::uint64_t block, BlockAddr from, BlockAddr to, std::uint32_t crc, std::uint32_t clock,
            std::uint8_t estimate) noexcept REQUIRES_SHARED(the_gate) REQUIRES(inode.mutex);
  std::uint64_t add_entry(Inode& directory, std::string_view name, Ino ino, std::uint8_t type) noexcept
      REQUIRES_SHARED(the_gate) REQUIRES(directory.mutex);
  void remove_entry(Inode& directory, std::uint64_t cookie, std::string_view name) noexcept
      REQUIRES_SHARED(the_gate) REQUIRES(directory.mutex);
  // The name leads to `ino` from now on. It keeps its cookie, so that a listing that has not come to it finds it there.
  void replace_entry(Inode& directory, std::uint64_t cookie, std::string_view name, Ino ino, std::uint8_t type) noexcept
      REQUIRES_SHARED(the_gate) REQUIRES(directory.mutex);
  // `set_bytes`: names and values of all its attributes together, after it.
  void set_xattr(Inode& inode, std::string_view name, std::optional<format::Bytes> value, std::uint64_t set_bytes) noexcept
      REQUIRES_SHARED(the_gate) REQUIRES(inode.mutex);
  void set_symlink(Inode& inode, std::string_view target) noexcept REQUIRES_SHARED(the_gate) REQUIRES(inode.mutex);
  void set_orphan(Inode& inode, bool set) noexcept REQUIRES_SHARED(the_gate) REQUIRES(inode.mutex);
  void free_inode(Inode& inode) noexcept REQUIRES_SHARED(the_gate) REQUIRES(inode.mutex);

  // The next inode's number. Any thread.
  std::uint64_t next_ino() const { return next_ino_.load(); }
  void set_next_ino(std::uint64_t next) { next_ino_ = next; }  // before there are other threads

 private:
  InodeDelta& delta_of(Inode& inode, bool created) REQUIRES_SHARED(the_gate) REQUIRES(inode.mutex);
  // Its active delta, marked for the next chunk.
  InodeDelta& stage(Inode& inode, bool created = false, Unsealed::Kind kind = Unsealed::Kind::any) noexcept REQUIRES_SHARED(the_gate)
      REQUIRES(inode.mutex);
  void uncharge(const Inode& inode, std::uint64_t owned) REQUIRES_SHARED(the_gate) REQUIRES_SHARED(inode.mutex);
  void drop_entry(FileDelta& file, const tree::BlockEntry& entry) REQUIRES_SHARED(the_gate);
  void let_go(std::uint64_t blocks) REQUIRES_SHARED(the_gate);

  Changes& changes_;
  const tree::Trees& trees_;
  const snapshots::Snapshots& snapshots_;
  segments::SegmentTable& segments_;
  InodeTable& inodes_;
  Clock& clock_;
  Unsealed unsealed_;
  std::atomic<std::uint64_t> next_ino_;
  format::TailLimits tail_limits_;
};

}  // namespace varve::changes
