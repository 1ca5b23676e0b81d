// What a checkpoint writes of the maps of owners and of free blocks.
#include <algorithm>
#include <span>

#include <spdlog/spdlog.h>

#include "base/invariant.h"
#include "store/changes.h"
#include "store/checkpoint.h"
#include "store/faults.h"
#include "store/superblocks.h"

namespace varve::store {

using format::Owner;
using format::TreeId;

Status Checkpoint::for_each_new_block(const std::function<Status(Ino, const BlockEntry&)>& visit) const {
  for (const auto& inode : store_.changes().merging().inodes()) {
    if (inode->freed || !inode->file) continue;
    for (auto at = inode->file->blocks.lower_bound(0); at.valid(); at.next()) {
      INVARIANT(!at->place.is_pending());  // all payload was sealed before the freeze
      TRY(visit(inode->ino, *at));
    }
  }
  return {};
}

// The owners of the blocks that live there matter only to a cleaner that wants to move them: they stay where they are, until a repair.
Status Checkpoint::lose_owners(BlockAddr address, const Error& why) {
  if (!device_answers(store_.device(), before_.device_blocks)) return why;
  if (lost_nodes_++ == 0)
    spdlog::error("{}: a part of the reverse map is lost ({}); what lives there cannot be moved until fsck.varve has been run",
                  store_.device().name(), why.message());
  store_.faults().note(why.code(), address, {});
  return {};
}

// Giving addresses to map nodes dirties more of the maps, until the set is closed (H20). It only grows, and consecutive
// addresses share leaves, so a few rounds are enough.
Status Checkpoint::close_maps() {
  auto touch = [&](BlockAddr a) -> Status {
    TRY(reverse_->touch(a.v));
    return ledger_->touch(a);
  };
  TRY(for_each_new_block([&](Ino, const BlockEntry& block) { return touch(block.place.address()); }));
  for (const NodeWriter::Written& node : writer_->written()) TRY(touch(node.address));
  if (plan_)
    for (const HeldMove& move : plan_->merge->arrived()) TRY(touch(move.to));
  for (const Evacuees::MapNode& node : evacuees_->of_maps()) {
    const std::uint64_t record[] = {node.record};
    if (node.tree == TreeId::reverse_map && before_.cleared_from && node.record >= before_.cleared_from.v) continue;
    TRY((node.tree == TreeId::free_map ? free_ : reverse_)->touch(record, node.level));
  }
  if (super_.image.address) TRY(ledger_->touch(super_.image.address));

  std::size_t released_seen = 0;
  for (bool grew = true; grew;) {
    grew = false;
    std::vector<BlockAddr> given;
    auto note = [&](BlockAddr address, std::uint8_t) { given.push_back(address); };
    TRY(reverse_->assign(*writer_, note));
    TRY(free_->assign(*writer_, note));
    for (BlockAddr address : given) TRY(touch(address));
    for (; released_seen < writer_->released().size(); ++released_seen) TRY(ledger_->touch(writer_->released()[released_seen]));
    grew = !given.empty();
    if (grew || image_address_) continue;
    image_address_ = TRY(writer_->allocate());  // last, as it is written last
    TRY(touch(image_address_));
    grew = true;
  }
  return {};
}

// New blocks are known by file, not by address: each lot of leaves looks through all of them. Usually it is the only one.
Status Checkpoint::write_reverse_leaves() {
  const std::uint64_t at_once = std::max<std::uint64_t>(store_.options().memory_bytes / 16 / kBlockSize, 64);
  const std::size_t nodes = writer_->written().size();  // of the inode file
  for (std::uint64_t first = 0, end = 0; (end = reverse_->end_of_leaves(first, at_once)) != first; first = end) {
    TRY(reverse_->load_leaves(first, end));
    TRY(fill_reverse_map({BlockAddr{first}, BlockAddr{end}}, nodes));
    TRY(reverse_->write_leaves(*writer_));
  }
  return {};
}

Status Checkpoint::fill_reverse_map(const Lot& lot, std::size_t nodes) {
  auto put = [&](BlockAddr address, const format::ReverseEntry& entry) {
    if (!lot.contains(address)) return;
    const auto record = reverse_->record(address.v);
    MEMORY_INVARIANT(record.size() == format::kReverseEntryBytes);
    format::encode_reverse_entry(entry, record);
  };
  TRY(for_each_new_block([&](Ino ino, const BlockEntry& block) {
    if (!lot.contains(block.place.address())) return Status();
    format::ReverseEntry entry;
    entry.owner = Owner::file_block;
    entry.ino = ino;
    entry.block = block.block;
    entry.clock = block.clock;
    entry.estimate = block.place.estimate();
    entry.crc = block.crc;
    put(block.place.address(), entry);
    return Status();
  }));
  auto node_entry = [](TreeId tree, std::uint8_t level) {
    format::ReverseEntry entry;
    entry.owner = Owner::node;
    entry.tree = tree;
    entry.level = level;
    return entry;
  };
  for (const NodeWriter::Written& node : std::span(writer_->written()).first(nodes))
    put(node.address, node_entry(node.tree, node.level));
  if (plan_)
    for (const HeldMove& move : plan_->merge->arrived()) put(move.to, move.owner);
  auto put_map = [&](TreeId tree) {
    return [&, tree](BlockAddr address, std::uint8_t level) { put(address, node_entry(tree, level)); };
  };
  reverse_->for_each_address(put_map(TreeId::reverse_map));
  free_->for_each_address(put_map(TreeId::free_map));
  format::ReverseEntry image;
  image.owner = Owner::super_image;
  put(image_address_, image);
  return {};
}

Status Checkpoint::fill_free_map() {
  for (BlockAddr address : writer_->released()) TRY(ledger_->release(address));
  if (super_.image.address) TRY(ledger_->release(super_.image.address));
  TRY(for_each_new_block([&](Ino, const BlockEntry& block) { return ledger_->claim(block); }));
  for (const NodeWriter::Written& node : writer_->written()) TRY(ledger_->claim(node.address));
  if (plan_)
    for (const HeldMove& move : plan_->merge->arrived()) TRY(ledger_->claim_held(move.to, move.owner));
  Status status;
  auto claim = [&](BlockAddr address, std::uint8_t) {
    if (status.ok()) status = ledger_->claim(address);
  };
  reverse_->for_each_address(claim);
  free_->for_each_address(claim);
  TRY(std::move(status));
  TRY(ledger_->claim(image_address_));
  changed_segments_ = ledger_->finish(frozen_generation_);
  INVARIANT(ledger_->live_change() >= 0 || next_->live_blocks >= static_cast<std::uint64_t>(-ledger_->live_change()));
  next_->live_blocks += static_cast<std::uint64_t>(ledger_->live_change());
  return {};
}

}  // namespace varve::store
