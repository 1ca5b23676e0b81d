// Blocks that snapshots hold: which of those in a segment are such, and how they are moved. The trees that name them stay as they
// are; the next checkpoint notes where the blocks stand.
#include <algorithm>
#include <tuple>

#include "base/buffer.h"
#include "changes/layers.h"
#include "cleaner/mover.h"
#include "format/map_record.h"
#include "segments/segment_table.h"
#include "snapshots/places.h"
#include "snapshots/snapshots.h"
#include "store/store.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::cleaner {

using format::TreeId;

// The reverse map keeps the owner that a block had while it lived. So the newest tree is asked for each: whatever the map says, a
// block that its file does not have any more must not be put into it again.
Status Mover::sort_out_held(std::vector<LiveBlock>& blocks) {
  const tree::TreeView& view = store_.trees().own_view();
  std::ranges::sort(blocks, {}, [](const LiveBlock& block) { return std::tuple(block.ino, block.block); });
  for (LiveBlock& block : blocks) {
    changes::MappedBlock mapped;
    TRY(changes::resolve_in_tree(block.ino, view, source_, block.block, {&mapped, 1}));
    const bool lives = mapped.kind == changes::MappedBlock::Kind::device && mapped.address == block.address;
    if (!lives) block.held = true;
  }
  std::ranges::sort(blocks, {}, &LiveBlock::address);
  return {};
}

// Would a snapshot have it if its file did not?
bool Mover::is_kept(const LiveBlock& block) const {
  const format::SnapshotItem* const newest = store_.snapshots().current().newest();
  return newest && newest->holds(store_.snapshots().birth_of(block.clock));
}

// A node of the newest tree is evacuated by the checkpoint, and one that a snapshot has is copied as it is; one of both is both. It is
// moved only if a tree says that it is what stands there.
Status Mover::look_at_node(BlockAddr address, std::uint8_t level, std::vector<LiveBlock>& held) {
  const tree::TreeView& view = store_.trees().own_view();
  AlignedBuffer block(kBlockSize);
  const Status read = store_.device().read(address.v << kBlockShift, block.span());
  const auto header = read.ok() ? format::decode_node_header(block.span()) : Result<format::NodeHeader>(read.error());
  if (!header.ok() || header->tree != TreeId::inode_file || header->level != level) {
    ++nodes_beside_;  // the checkpoint says what is wrong with it
    return {};
  }
  const format::NodeRef newest = TRY(tree::find_node(source_, view.inode_file, header->first, header->level));
  const bool lives = newest.address == address && header->address == address;
  if (lives) ++nodes_beside_;
  const format::SnapshotItem* holder =
      store_.snapshots().current().first_holder({.of_node = true, .when = header->serial.v}, Serial{~0ULL});
  if (!holder) {
    if (!lives) ++nodes_beside_;
    return {};
  }
  LiveBlock node;
  node.address = address;
  node.crc = format::block_crc(block.span());
  node.held = node.is_node = true;
  node.shared = lives;
  node.level = header->level;
  node.birth = header->serial;
  if (!lives) {
    snapshots::PlaceSource old(source_, store_.trees().cache(), view.snapshot_tree(), holder->serial);
    const auto ref = TRY(tree::find_node(old, {holder->inode_file, holder->inode_file_level}, header->first, header->level));
    const auto moved = TRY(snapshots::moved_since(source_, view.snapshot_tree(), ref.address, 1, holder->serial));
    const BlockAddr stands = moved.empty() ? ref.address : moved.begin()->second;
    if (!ref || stands != address || ref.crc != node.crc) {
      ++nodes_beside_;
      return {};
    }
  }
  held.push_back(node);
  return {};
}

// Needs no record in the log: until the next checkpoint has settled, what it was copied from stays where it is.
Status Mover::apply_held(const LiveBlock& block, BlockAddr to) {
  snapshots::HeldMove move{.from = block.address, .to = to, .owner = {}, .birth = block.birth, .shared = block.shared};
  if (block.is_node) {
    move.owner.owner = format::Owner::node;
    move.owner.tree = TreeId::inode_file;
    move.owner.level = block.level;
  } else {
    move.owner.owner = format::Owner::file_block;
    move.owner.estimate = block.estimate;
    move.owner.ino = block.ino;
    move.owner.block = block.block;
    move.owner.clock = block.clock;
    move.owner.crc = block.crc;
  }
  store_.segments().add_live(to, 1, block.clock);
  store_.segments().sub_live(block.address, 1);
  store_.snapshots().note_move(move);
  return {};
}

}  // namespace varve::cleaner
