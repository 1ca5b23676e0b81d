#include "repair/leaf_plan.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/buffer.h"
#include "io/patient_read.h"
#include "repair/device_scan.h"
#include "repair/live_owners.h"
#include "repair/tree_reader.h"

namespace varve::repair {

using format::Key;

namespace {

struct FoundLeaf {
  BlockAddr address;
  std::uint32_t crc = 0;
  Serial serial;
  KeyRange keys;  // from its first item to its last
};

// What `.mfile` and `.ffile` say about leaves of a tree, as far as they can be read.
struct LiveLeaves {
  std::unordered_set<BlockAddr> leaves;
  bool complete = true;
};

LiveLeaves read_live_leaves(io::BlockDevice& device, const format::Superblock& super, format::TreeId tree) {
  LiveLeaves live;
  live.complete = for_each_owner(device, super, [&](BlockAddr address, const format::ReverseEntry& entry) {
    if (entry.owner == format::Owner::node && entry.tree == tree && entry.level == 0) live.leaves.insert(address);
  });
  return live;
}

std::vector<FoundLeaf> find_leaves(io::BlockDevice& device, const format::Superblock& super, format::TreeId tree,
                                   check::Progress* progress) {
  std::vector<FoundLeaf> found;
  scan_device(device, progress, [&](BlockAddr address, std::span<const std::byte> block) {
    const auto header = format::decode_node_header(block);
    if (!header.ok() || header->identity != super.identity || header->address != address ||
        header->tree != tree || header->level != 0 || header->serial > super.serial)
      return;
    const auto items = format::decode_items(block, *header);
    if (items.ok())
      found.push_back({address, format::block_crc(block), header->serial, {items->front().key, after(items->back().key)}});
  });
  return found;
}

// A node of a snapshot is live like one of the newest tree, and says the same of itself.
void leave_out_held(LiveLeaves& live, const MayBeHeld& may_be_held) {
  if (!may_be_held) return;
  if (may_be_held({})) live.complete = false;  // nobody knows which ones they are
  std::erase_if(live.leaves, may_be_held);
}

class GapFiller {
 public:
  GapFiller(LeafPlan& plan, std::vector<FoundLeaf> found, LiveLeaves live);

  void fill(const TreeGap& gap);

 private:
  void take_all(const std::vector<FoundLeaf>& leaves, OpenRanges& open, Trust trust);

  LeafPlan& plan_;
  std::vector<FoundLeaf> live_;  // ascending by key
  std::vector<FoundLeaf> old_;   // newest first
  bool leaves_missing_ = false;  // a live leaf was not found, or there may be such
};

GapFiller::GapFiller(LeafPlan& plan, std::vector<FoundLeaf> found, LiveLeaves live)
    : plan_(plan), leaves_missing_(!live.complete) {
  std::unordered_set<BlockAddr> known(plan.nodes.begin(), plan.nodes.end());
  std::size_t live_found = 0;
  for (FoundLeaf& leaf : found) {
    const bool is_live = live.leaves.contains(leaf.address);
    live_found += is_live;
    if (!known.contains(leaf.address)) (is_live ? live_ : old_).push_back(leaf);
  }
  if (live_found < live.leaves.size()) leaves_missing_ = true;
  std::ranges::sort(live_, {}, [](const FoundLeaf& leaf) { return leaf.keys.lower; });
  std::ranges::stable_sort(old_, std::ranges::greater{}, [](const FoundLeaf& leaf) { return leaf.serial; });
}

void GapFiller::take_all(const std::vector<FoundLeaf>& leaves, OpenRanges& open, Trust trust) {
  for (const FoundLeaf& leaf : leaves)
    for (const KeyRange& range : open.take(leaf.keys)) {
      const bool whole = range.lower == leaf.keys.lower && range.upper == leaf.keys.upper;
      plan_.leaves.push_back({leaf.address, leaf.crc, range, trust, leaf.serial, whole});
    }
}

void GapFiller::fill(const TreeGap& gap) {
  OpenRanges open;
  open.add(gap.range);
  if (gap.level > 0) take_all(live_, open, Trust::found);
  // Between the leaves that are there, nothing needs to be missing.
  if (gap.level > 0 && !leaves_missing_) return;
  if (gap.level == 0) plan_.leaf_lost = true;
  take_all(old_, open, Trust::old_copy);
  for (const KeyRange& range : open.left()) plan_.lost.push_back(range);
}

}  // namespace

LeafPlan make_leaf_plan(io::BlockDevice& device, const format::Superblock& super, const MayBeHeld& may_be_held, ActionLog& actions,
                        check::Progress* progress) {
  LeafPlan plan;
  const std::vector<TreeGap> gaps =
      TreeReader(device, super, {super.inode_file, super.inode_file_level, format::TreeId::inode_file}, plan).run();
  if (plan.misplaced_items > 0)
    actions.add(ActionCode::item_removed, {}, fmt::format("{} items in leaves where nobody looks for them", plan.misplaced_items));
  if (gaps.empty()) return plan;
  constexpr format::TreeId kTree = format::TreeId::inode_file;
  LiveLeaves live = read_live_leaves(device, super, kTree);
  leave_out_held(live, may_be_held);
  GapFiller filler(plan, find_leaves(device, super, kTree, progress), std::move(live));
  for (const TreeGap& gap : gaps) filler.fill(gap);
  std::ranges::sort(plan.leaves, {}, [](const LeafPiece& piece) { return piece.range.lower; });
  return plan;
}

LeafPlan make_tables_plan(io::BlockDevice& device, const format::Superblock& super, ActionLog& actions, check::Progress* progress) {
  constexpr format::TreeId kTree = format::TreeId::snapshots;
  LeafPlan plan;
  const std::vector<TreeGap> gaps = TreeReader(device, super, {super.snapshots.root, super.snapshots.level, kTree}, plan).run();
  if (gaps.empty()) return plan;
  const LiveLeaves live = read_live_leaves(device, super, kTree);
  std::vector<FoundLeaf> found = find_leaves(device, super, kTree, progress);
  std::erase_if(found, [&](const FoundLeaf& leaf) { return !live.leaves.contains(leaf.address); });
  OpenRanges open;
  for (const TreeGap& gap : gaps) open.add(gap.range);
  for (const FoundLeaf& leaf : found)
    for (const KeyRange& range : open.take(leaf.keys)) {
      plan.leaves.push_back({leaf.address, leaf.crc, range, Trust::found, leaf.serial, true});
      actions.add(ActionCode::leaves_found, {}, fmt::format("block {}, of the tables of snapshots", leaf.address));
    }
  const bool all_found = live.complete && found.size() == live.leaves.size();
  const bool leaf_is_lost = std::ranges::any_of(gaps, [](const TreeGap& gap) { return gap.level == 0; });
  if (!all_found || leaf_is_lost) plan.lost = open.left();
  std::ranges::sort(plan.leaves, {}, [](const LeafPiece& piece) { return piece.range.lower; });
  return plan;
}

namespace {

// The first block before `end` of which a leaf behind this older copy tells that knows more.
std::uint64_t told_from(const LeafPlan& plan, std::size_t copy, const Key& extent, std::uint64_t end) {
  for (std::size_t at = copy + 1; at < plan.leaves.size(); ++at) {
    const LeafPiece& behind = plan.leaves[at];
    const Key& from = behind.range.lower;
    if (from.ino != extent.ino || from.kind != format::ItemKind::extent || from.offset >= end) break;
    if (behind.trust != Trust::old_copy || behind.serial > plan.leaves[copy].serial) return from.offset;
  }
  return end;
}

// Of an older copy only up to where another leaf knows more. It may have reached far, as what was set aside at once and has been written
// since.
Result<format::ItemRef> within(const format::ItemRef& item, const LeafPlan& plan, std::size_t leaf, format::Bytes& cut) {
  if (plan.leaves[leaf].trust != Trust::old_copy || item.key.kind != format::ItemKind::extent) return item;
  auto extent = format::decode_extent(item.value);
  if (!extent.ok() || extent->length > format::kMaxFileBlocks) return item;  // what cannot be right is for the visitor to judge
  const std::uint64_t room = told_from(plan, leaf, item.key, item.key.offset + extent->length) - item.key.offset;
  if (extent->length <= room || room == 0) return item;
  extent->length = room;
  if (!extent->unwritten) extent->crcs.resize(room);
  cut.clear();
  format::encode_extent(*extent, cut);
  return format::ItemRef{item.key, cut};
}

}  // namespace

Status for_each_item(io::BlockDevice& device, const LeafPlan& plan, const ItemVisit& visit) {
  constexpr std::size_t kBatch = 64;
  AlignedBuffer buffer(kBatch * kBlockSize);
  std::optional<format::Key> last;
  format::Bytes cut;
  for (std::size_t at = 0; at < plan.leaves.size(); at += kBatch) {
    const std::size_t count = std::min(kBatch, plan.leaves.size() - at);
    std::vector<io::ReadPiece> pieces;
    for (std::size_t i = 0; i < count; ++i)
      pieces.push_back({plan.leaves[at + i].address, buffer.span().subspan(i * kBlockSize, kBlockSize)});
    io::read_pieces(device, pieces);
    for (std::size_t i = 0; i < count; ++i) {
      const LeafPiece& leaf = plan.leaves[at + i];
      if (pieces[i].error || format::block_crc(pieces[i].out) != leaf.crc)
        return Error(Errc::io, fmt::format("{}: block {} cannot be read any more", device.name(), leaf.address));
      const auto header = TRY(format::decode_node_header(pieces[i].out));
      for (const format::ItemRef& item : TRY(format::decode_items(pieces[i].out, header))) {
        if (!leaf.range.contains(item.key) || (last && item.key <= *last)) continue;
        last = item.key;
        TRY(visit(TRY(within(item, plan, at + i, cut)), leaf.trust));
      }
    }
  }
  return {};
}

}  // namespace varve::repair
