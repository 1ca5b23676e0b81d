#include "scrub/kept_blocks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "format/damaged_node.h"
#include "snapshots/places.h"
#include "store/store.h"
#include "tree/map_tree.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::scrub {

using format::DeadRun;
using format::Owner;

namespace {

constexpr std::size_t kCacheBytes = 4 << 20;

Error lost(const char* what) { return Error(Errc::corrupt, what); }

}  // namespace

KeptBlocks::KeptBlocks(store::Store& store)
    : cache_(store.trees().cache().identity(), kCacheBytes), source_(cache_, store.device()) {}

void KeptBlocks::look_at(const tree::TreeView& view, snapshots::SnapshotList list) {
  view_ = &view;
  list_ = std::move(list);
}

Result<std::map<BlockAddr, BlockAddr>> KeptBlocks::moved(BlockAddr first, std::uint64_t length) {
  return snapshots::moved_since(source_, view_->snapshot_tree(), first, length, view_->kept);
}

// --- what is listed -----------------------------------------------------------------------------------------------------------

// What deleted snapshots held is being given back. What a mount shows has been read with its tree.
bool KeptBlocks::is_needed(const DeadRun& run, Serial death) const {
  const format::SnapshotItem* newest = list_.newest(death);
  if (!newest || !newest->holds(run.birth)) return false;
  const format::SnapshotItem* shown = view_->kept ? list_.find(view_->kept) : nullptr;
  return !shown || shown->serial >= death || !shown->holds(run.birth);
}

Status KeptBlocks::add(const format::DeadPiece& piece, std::uint64_t from, std::uint64_t most, std::vector<Block>& out) {
  Status first_failure;
  for (DeadRun run : piece.runs) {
    const std::uint64_t skipped = std::min(from, run.length);
    from -= skipped;
    run.address = run.address + skipped;
    run.length = std::min(run.length - skipped, most);
    most -= run.length;
    if (run.length == 0 || !is_needed(run, piece.death)) continue;
    std::map<BlockAddr, BlockAddr> moved;
    if (view_->tables.places)
      moved = TRY(snapshots::moved_since(source_, view_->snapshot_tree(), run.address, run.length, piece.death));
    for (std::uint64_t done = 0, blocks = 0; done < run.length; done += blocks) {
      const auto next = moved.lower_bound(run.address + done);
      const bool is_moved = next != moved.end() && next->first == run.address + done;
      blocks = is_moved ? 1 : (next == moved.end() ? run.length : next->first - run.address) - done;
      const Status status = add_stretch(run, piece.death, is_moved ? next->second : run.address + done, blocks, out);
      if (first_failure.ok()) first_failure = status;
    }
  }
  return first_failure;
}

Status KeptBlocks::add_stretch(const DeadRun& run, Serial death, BlockAddr place, std::uint64_t blocks, std::vector<Block>& out) {
  Status failure;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    Block block;
    block.address = place + i;
    block.birth = run.birth;
    block.death = death;
    block.is_node = run.birth.of_node;
    const auto owner = owner_of(block.address);
    if (!owner.ok()) {
      failure = owner.error();
      continue;
    }
    if (owner->owner == Owner::none) block.error = "what it must be is lost: its record in .mfile is empty";
    else if ((owner->owner == Owner::node) != block.is_node) block.error = "the list of dead blocks and .mfile say different things of it";
    block.ino = owner->ino;
    block.file_block = owner->block;
    block.crc = owner->crc;
    block.level = owner->level;
    out.push_back(std::move(block));
  }
  return failure;
}

Result<format::ReverseEntry> KeptBlocks::owner_of(BlockAddr place) {
  const tree::MapRoot& map = view_->reverse_map;
  if (place.v >= map.shape.records) return lost("a snapshot's block is behind the end of the filesystem");
  const tree::NodePtr leaf = TRY(tree::find_map_leaf(source_, map, place.v));
  if (!leaf) return format::ReverseEntry{};
  const std::uint64_t at = place.v % map.shape.per_leaf();
  return format::decode_reverse_entry(leaf->records().subspan(at * format::kReverseEntryBytes, format::kReverseEntryBytes));
}

// No tree is asked for it: its own checksum, and where and when it says it was written, leave no doubt.
void KeptBlocks::judge_node(std::span<const std::byte> bytes, Block& node) {
  const auto header = format::decode_node_header(bytes);
  if (!header.ok()) {
    node.error = header.error().message();
    node.first = format::unproven_first_key(bytes);
    return;
  }
  const bool is_expected = header->identity == cache_.identity() && header->tree == format::TreeId::inode_file &&
                           header->level == node.level && header->serial.v == node.birth.when;
  bool is_here = header->address == node.address;
  if (!is_here) {
    const auto names = snapshots::names_of(source_, view_->snapshot_tree(), node.address);
    is_here = names.ok() && std::ranges::any_of(*names, [&](const snapshots::OldName& name) { return name.named == header->address; });
  }
  if (!is_expected || !is_here) node.error = "an intact node, but not the one that must be here";
}

// --- whose it is --------------------------------------------------------------------------------------------------------------

bool KeptBlocks::is_kept(const format::Birth& birth) const {
  const format::SnapshotItem* newest = list_.newest();
  return newest && newest->holds(birth);
}

KeptBlocks::Holders KeptBlocks::holders_of(const Block& block) const {
  Holders holders;
  for (const format::SnapshotItem& item : list_.items()) {
    if (item.serial >= block.death || !item.holds(block.birth)) continue;
    holders.newest = item.serial;
    holders.name = item.name;
    ++holders.count;
  }
  return holders;
}

std::optional<KeptBlocks::Range> KeptBlocks::range_of(const Block& node) {
  const format::SnapshotItem* holder = list_.newest(node.death);
  if (!holder || !node.first) return std::nullopt;
  snapshots::PlaceSource old(source_, cache_, view_->snapshot_tree(), holder->serial);
  format::NodeRef ref = holder->inode_file;
  std::uint8_t level = holder->inode_file_level;
  Range range{format::kMinKey, format::kMaxKey};
  while (level > node.level) {
    const auto parent = old.get({ref, format::TreeId::inode_file, level});
    if (!parent.ok()) return std::nullopt;
    const auto children = (*parent)->children();
    const std::size_t at = tree::child_index(children, *node.first);
    ref = children[at].ref;
    if (at > 0) range.first = children[at].first;
    if (at + 1 < children.size()) range.bound = children[at + 1].first;
    --level;
  }
  const auto moved = snapshots::moved_since(source_, view_->snapshot_tree(), ref.address, 1, holder->serial);
  if (!moved.ok()) return std::nullopt;
  const BlockAddr stands = moved->empty() ? ref.address : moved->begin()->second;
  return level == node.level && stands == node.address ? std::optional(range) : std::nullopt;
}

}  // namespace varve::scrub
