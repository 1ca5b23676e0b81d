#include "snapshots/snapshot_merge.h"

#include <algorithm>

#include "base/invariant.h"

namespace varve::snapshots {

using format::Birth;
using format::DeadRun;
using format::Extent;
using format::Owner;

SnapshotMerge::SnapshotMerge(const Parts& parts, SnapshotList list, std::vector<Serial> renamed, std::vector<HeldMove> moves)
    : parts_(parts),
      list_(std::move(list)),
      holder_(list_.newest()),
      shared_for_good_(parts.old.automatic.shared_for_good),
      tables_(parts.old.snapshot_tree()),
      counts_(parts.old.tables) {
  for (const Serial serial : renamed) changed_[serial] = true;
  for (HeldMove& move : moves) moves_.emplace(move.from, std::move(move));
}

void SnapshotMerge::Sink::release(BlockAddr address, Serial birth) {
  if (!of_tables_) {
    if (merge_.failure_.ok()) merge_.failure_ = merge_.gone(address, birth);
  } else if (birth == merge_.parts_.serial) {  // written for a part of the edits
    merge_.parts_.writer.forget(address);
  } else {
    merge_.parts_.writer.release(address, birth);
  }
}

// --- what the live tree lets go ---------------------------------------------------------------------------------------------------

Status SnapshotMerge::gone(const Extent& extent, BlockAddr moved_to) {
  INVARIANT(!moved_to || extent.length == 1);  // the cleaner moves blocks one by one
  const Birth birth = parts_.snapshots.birth_of(extent.clock);
  if (!holder_ || !holder_->holds(birth)) return parts_.ledger.release(extent);
  if (!moved_to && !moves_.empty()) return gone_with_copies(extent, birth);
  if (moved_to) {
    TRY(rename(extent.address, moved_to, birth));
    return parts_.ledger.release(extent);
  }
  return keep(extent, extent.address, birth);
}

// What one has that was asked for is cold from now on. Its estimate counts no more, and so is not taken off again when it is given back.
Status SnapshotMerge::keep(const Extent& extent, BlockAddr stands, const Birth& birth) {
  counts_.held_blocks += extent.length;
  counts_.held_data += extent.length;
  DeadRun run{stands, extent.length, birth, extent.clock, 0};
  const SnapshotItem* const permanent = list_.newest_permanent();
  const bool is_copied = stands != extent.address;
  if (!is_copied && permanent && permanent->holds(birth)) TRY(parts_.ledger.hold(extent));
  else if (!is_copied) run.estimate = extent.estimate;
  return add_dead(holder_->serial, parts_.serial, run);
}

// The cleaner has copied some of them, which are in no file any more since.
Status SnapshotMerge::gone_with_copies(const Extent& extent, const Birth& birth) {
  Extent part;
  part.clock = extent.clock;
  part.estimate = extent.estimate;
  for (std::uint64_t done = 0; done < extent.length; done += part.length) {
    part.address = extent.address + done;
    const auto next = moves_.lower_bound(part.address);
    const bool is_copied = next != moves_.end() && next->first == part.address && next->second.shared;
    const bool is_far = next == moves_.end() || next->first >= extent.address + extent.length;
    part.length = is_copied ? 1 : is_far ? extent.length - done : std::max<std::uint64_t>(next->first - part.address, 1);
    INVARIANT(part.length > 0 && part.length <= extent.length - done);  // each block is kept once
    if (is_copied) TRY(arrive(next->second));
    TRY(keep(part, is_copied ? next->second.to : part.address, birth));
  }
  return {};
}

Status SnapshotMerge::gone(BlockAddr node, Serial born) {
  const Birth birth{.of_node = true, .when = born.v};
  if (!holder_ || !holder_->holds(birth)) {
    parts_.writer.release(node, born);
    return {};
  }
  counts_.shared_nodes -= std::min<std::uint64_t>(counts_.shared_nodes, 1);
  if (const SnapshotItem* const permanent = list_.newest_permanent(); permanent && permanent->holds(birth))
    shared_for_good_ -= std::min<std::uint64_t>(shared_for_good_, 1);
  ++counts_.held_blocks;
  BlockAddr stands = node;
  if (const auto move = moves_.find(node); move != moves_.end() && move->second.shared) {
    stands = move->second.to;
    TRY(arrive(move->second));
  }
  return add_dead(holder_->serial, parts_.serial, {.address = stands, .birth = birth});
}

// --- what the cleaner has moved -----------------------------------------------------------------------------------------------------

Status SnapshotMerge::arrive(const HeldMove& move) {
  const bool is_node = move.owner.owner == Owner::node;
  const Birth birth = is_node ? Birth{.of_node = true, .when = move.birth.v} : parts_.snapshots.birth_of(move.owner.clock);
  TRY(rename(move.from, move.to, birth));
  arrived_.push_back(move);
  if (is_node) return parts_.ledger.release(move.from);
  Extent extent;
  extent.address = move.from;
  extent.length = 1;
  extent.clock = move.owner.clock;
  extent.estimate = move.owner.estimate;
  return parts_.ledger.release(extent);
}

// All that old trees call it leads to the new place at once: a reader never follows more than one step.
Status SnapshotMerge::rename(BlockAddr from, BlockAddr to, const Birth& birth) {
  INVARIANT(to && to != from);
  format::Bytes place;
  format::encode_place({to, birth}, place);
  auto call = [&](const OldName& name) {
    format::Bytes named;
    format::encode_name(name.named, named);
    edits_.put(format::place_key(name.named, name.left), place);
    edits_.put(format::name_key(to, name.left), std::move(named));
  };
  if (counts_.places)
    for (const OldName& name : TRY(names_of(source_, tables_, from))) {
      edits_.erase(format::name_key(from, name.left));
      call(name);
    }
  call({from, parts_.serial});
  ++counts_.places;
  return edits_.memory() > parts_.memory_bytes ? spill() : Status();
}

// --- lists of dead blocks -----------------------------------------------------------------------------------------------------------

Status SnapshotMerge::add_dead(Serial holder, Serial death, const DeadRun& run) {
  SnapshotItem* const found = list_.find(holder);
  MEMORY_INVARIANT(found && !found->deleting);  // or what is being given back would grow
  SnapshotItem& item = *found;
  item.dead += run.length;
  const SnapshotItem* before = list_.newest(holder);
  if (!before || !before->holds(run.birth)) item.alone += run.length;
  list_.note_listed(item, run.birth, run.length);
  changed_[holder] = true;
  Growing& list = growing_[holder];
  if (list.death != death) close_piece(holder, list);
  list.death = death;
  auto continues = [&] {
    return list.last && !run.birth.of_node && list.last->address + list.last->length == run.address && list.last->birth == run.birth &&
           list.last->clock == run.clock && list.last->estimate == run.estimate;
  };
  if (continues()) {
    list.last->length += run.length;
    return {};
  }
  put_piece(holder, list);
  list.last = run;
  return edits_.memory() > parts_.memory_bytes ? spill() : Status();
}

// The last run, which may not go on any more.
void SnapshotMerge::put_piece(Serial holder, Growing& list) {
  if (!list.last) return;
  const DeadRun run = *std::exchange(list.last, std::nullopt);
  if (list.piece.add(run)) return;
  edits_.put(format::dead_key(holder, list_.find(holder)->next_piece++), list.piece.finish(list.death));
  INVARIANT(list.piece.add(run));
}

void SnapshotMerge::close_piece(Serial holder, Growing& list) {
  MEMORY_INVARIANT(list_.find(holder));  // no list outlives its snapshot
  put_piece(holder, list);
  if (!list.piece.empty()) edits_.put(format::dead_key(holder, list_.find(holder)->next_piece++), list.piece.finish(list.death));
}

Status SnapshotMerge::close_lists() {
  for (auto& [holder, list] : growing_) close_piece(holder, list);
  growing_.clear();
  return {};
}

// --- the tables ---------------------------------------------------------------------------------------------------------------------

Status SnapshotMerge::merge_tables(const tree::MergeOptions& options) {
  edits_.rewind();
  tables_ = TRY(tree::merge_items(source_, tables_, edits_, tables_sink_, options));
  edits_.clear();
  return {};
}

// A removed file may have any number of extents: memory holds only so many edits. What is written for them is read again.
Status SnapshotMerge::spill() {
  TRY(merge_tables({}));
  return parts_.writer.finish();
}

Status SnapshotMerge::finish(const std::optional<Creation>& creation, const DeletionStep& step, const tree::MergeOptions& options,
                             tree::TreeView& next) {
  TRY(Status(failure_));
  for (const auto& [from, move] : moves_)
    if (!move.shared) TRY(arrive(move));
  if (moves_.empty()) TRY(give_back(step));
  TRY(close_lists());
  if (creation) {
    SnapshotItem item;
    item.serial = parts_.serial;
    item.name = creation->name;
    item.automatic = creation->automatic;
    item.made = creation->made;
    item.clock = creation->clock;
    item.inode_file = next.inode_file.ref;
    item.inode_file_level = next.inode_file.level;
    item.data_blocks = next.data_blocks;
    item.reserved_blocks = next.reserved_blocks;
    item.inodes = next.inodes;
    list_.add(std::move(item));
    changed_[parts_.serial] = true;
  }
  for (const auto& [serial, is_changed] : changed_) {
    const SnapshotItem* item = list_.find(serial);
    if (!item) continue;
    format::Bytes value;
    format::encode_snapshot(*item, value);
    edits_.put(format::snapshot_key(serial), std::move(value));
  }
  TRY(merge_tables(options));
  counts_.root = tables_.ref;
  counts_.level = tables_.level;
  counts_.snapshots = list_.items().size();
  if (!tables_.ref) counts_ = {};
  next.tables = counts_;
  const SnapshotList::Loose loose = list_.loose();
  next.automatic = {loose.blocks, loose.standing, loose.most, shared_for_good_, list_.newest_permanent() != nullptr};
  return {};
}

}  // namespace varve::snapshots
