#include "repair/map_builder.h"

#include <algorithm>
#include <vector>

#include "base/invariant.h"
#include "check/inode_pass.h"
#include "check/kept_trees.h"
#include "repair/silence.h"

namespace varve::repair {

using format::Owner;
using format::TreeId;

namespace {

constexpr std::size_t kCacheBytes = 32 << 20;

// Claims extents and counts what the superblock wants to know.
class CountingClaimer : public check::ItemVisitor {
 public:
  CountingClaimer(check::Claims& claims, TreeCounts* counts) : claimer_(claims), counts_(counts) {}

  std::uint64_t visit(const format::ItemRef& item, BlockAddr leaf) override {
    if (counts_ && item.key.ino != format::kOrphanIno) {
      if (item.key.kind == format::ItemKind::attributes) ++counts_->inodes;
      if (item.key.kind == format::ItemKind::extent)
        if (const auto extent = format::decode_extent(item.value); extent.ok() && extent->unwritten)
          counts_->unwritten += extent->length;
    }
    return claimer_.visit(item, leaf);
  }

 private:
  check::ExtentClaimer claimer_;
  TreeCounts* counts_;
};

format::MapShape shape_of(const format::Superblock& super, TreeId tree) {
  return tree == TreeId::reverse_map ? format::reverse_map_shape(super.device_blocks)
                                     : format::free_map_shape(super.segments, super.segment_blocks);
}

const format::NodeRef& root_of(const format::Superblock& super, TreeId tree) {
  return tree == TreeId::reverse_map ? super.reverse_map : super.free_map;
}

void claim_image(check::Claims& claims, BlockAddr address) {
  format::ReverseEntry owner;
  owner.owner = Owner::super_image;
  claims.claim(address, owner);
}

}  // namespace

OldMap read_old_map(io::BlockDevice& device, const format::Superblock& super, TreeId tree) {
  Silence silence(device, super);
  check::MapWalk walk(silence.context, tree, root_of(super, tree), shape_of(super, tree));
  check::Claims claims(super);
  OldMap map;
  claims.set_recorder([&](BlockAddr address, const format::ReverseEntry& entry) { map.nodes[address] = entry.level; });
  walk.claim_nodes(claims);
  walk.visit_leaves([](std::uint64_t, std::span<const std::byte>) {});
  map.sound = silence.report.errors() == 0 && !silence.context.incomplete && claims.conflicts().empty();
  return map;
}

MapBuilder::MapBuilder(io::BlockDevice& device, format::Superblock& super, NodeSpace& space, ActionLog& actions,
                       std::uint64_t memory)
    : device_(device), super_(super), space_(space), actions_(actions),
      leaves_at_once_(std::max<std::uint64_t>(memory / kBlockSize, 1)), cache_(super.identity, kCacheBytes),
      source_(cache_, device, false) {
  for (Map* map : {&reverse_, &free_}) {
    const TreeId tree = map == &reverse_ ? TreeId::reverse_map : TreeId::free_map;
    map->old = read_old_map(device, super, tree);
    map->root = {root_of(super, tree), tree, shape_of(super, tree)};
  }
}

void MapBuilder::claim_tree(check::Claims& claims, TreeCounts* counts) {
  Silence silence(device_, super_);
  CountingClaimer claimer(claims, counts);
  check::TreeWalk(silence.context, claims, claimer, check::newest_inode_file(super_)).run();
}

// What only snapshots have, and the tables that say so.
void MapBuilder::claim_kept(check::Claims& claims, TreeCounts* counts) {
  Silence silence(device_, super_);
  check::KeptTrees(silence.context).claim(claims, nullptr);
  if (!counts) return;
  counts->held = silence.context.held_blocks;
  counts->held_data = silence.context.held_data;
}

void MapBuilder::claim_maps(check::Claims& claims) const {
  for (const Map* map : {&reverse_, &free_})
    for (const auto& [address, level] : map->old.nodes)
      if (map->old.sound && !released_.contains(address)) claims.claim_node(address, map->root.tree, level);
  for (const auto& [address, node] : given_) claims.claim_node(address, node.first, node.second);
}

check::MapWalk MapBuilder::walk_of(check::Context& context, TreeId tree) const {
  return {context, tree, root_of(super_, tree), shape_of(super_, tree)};
}

Status MapBuilder::touch(Map& map, std::uint64_t record) {
  if (!map.leaves.insert(record / map.root.shape.per_leaf()).second) return {};
  return map.editor->touch(record);
}

Status MapBuilder::touch_block(BlockAddr address) {
  TRY(touch(reverse_, address.v));
  return touch(free_, segment_of(address));
}

Status MapBuilder::touch_wrong_owners(const check::Claims& claims) {
  std::vector<std::uint64_t> sums = claims.hash_sums();
  const std::uint64_t per_leaf = reverse_.root.shape.per_leaf();
  if (reverse_.old.sound) {
    Silence silence(device_, super_);
    walk_of(silence.context, TreeId::reverse_map).visit_leaves([&](std::uint64_t first, std::span<const std::byte> records) {
      if (records.empty()) return;  // it cannot be read any more: that is met again, and told, where it is loaded
      for (std::uint64_t i = 0; i < per_leaf; ++i) {
        const BlockAddr address{first + i};
        if (!claims.is_inside(address) || !claims.is_claimed(address) || claims.is_nameless(address)) continue;
        const auto entry = format::decode_reverse_entry(records.subspan(i * format::kReverseEntryBytes, format::kReverseEntryBytes));
        sums[first / per_leaf] -= entry.ok() ? check::entry_hash(address, *entry) : 1;
      }
    });
  }
  for (std::uint64_t leaf = 0; leaf < sums.size(); ++leaf)
    if (sums[leaf] != 0) TRY(touch(reverse_, leaf * per_leaf));
  return {};
}

bool MapBuilder::is_right(std::uint64_t segment, std::span<const std::byte> bytes, const check::Claims& claims) const {
  const auto record = format::decode_segment_record(bytes);
  const auto& claimed = claims.segment(segment);
  if (!record.ok() || record->live != claimed.live || record->clock_sum != claimed.clock_sum ||
      record->youngest < claimed.youngest || record->youngest > super_.clock / super_.clock_unit)
    return false;
  if (record->rate_sum > claimed.rate_sum - claimed.held_rate) return false;  // lists that are made anew have no rate to take off
  const BlockAddr start = super_.first_segment + segment * super_.segment_blocks;
  const auto bits = bytes.subspan(format::kSegmentRecordHeaderBytes);
  for (std::uint32_t i = 0; i < super_.segment_blocks; ++i)
    if ((std::to_integer<unsigned>(bits[i / 8]) >> (i % 8) & 1) != claims.is_claimed(start + i)) return false;
  return true;
}

Status MapBuilder::touch_wrong_segments(const check::Claims& claims) {
  std::vector<bool> right(super_.segments);
  for (std::uint64_t s = 0; s < super_.segments; ++s) right[s] = claims.segment(s).live == 0;
  const format::MapShape& shape = free_.root.shape;
  if (free_.old.sound) {
    Silence silence(device_, super_);
    walk_of(silence.context, TreeId::free_map).visit_leaves([&](std::uint64_t first, std::span<const std::byte> records) {
      if (records.empty()) return;
      for (std::uint64_t i = 0; i < shape.per_leaf() && first + i < super_.segments; ++i)
        right[first + i] = is_right(first + i, records.subspan(i * shape.record_bytes, shape.record_bytes), claims);
    });
  }
  for (std::uint64_t s = 0; s < super_.segments; ++s)
    if (!right[s]) TRY(touch(free_, s));
  return {};
}

// New addresses of map nodes make more of the maps wrong, until the set is closed.
Status MapBuilder::close() {
  class Listener : public tree::NodeSink {
   public:
    Listener(NodeSpace& space, std::vector<BlockAddr>& gone) : space_(space), gone_(gone) {}
    std::uint64_t identity() const override { return space_.identity(); }
    Serial serial() const override { return space_.serial(); }
    Result<BlockAddr> allocate() override { return space_.allocate(); }
    Status write(BlockAddr, std::span<const std::byte>, std::uint32_t, TreeId, std::uint8_t) override { return Errc::invalid; }
    void release(BlockAddr address, Serial) override { gone_.push_back(address); }

   private:
    NodeSpace& space_;
    std::vector<BlockAddr>& gone_;
  };
  for (bool grew = true; grew;) {
    std::vector<BlockAddr> changed;
    Listener sink(space_, changed);
    for (Map* map : {&reverse_, &free_})
      TRY(map->editor->assign(sink, [&](BlockAddr address, std::uint8_t level) { given_[address] = {map->root.tree, level}; }));
    released_.insert(changed.begin(), changed.end());
    for (const auto& [address, node] : given_) changed.push_back(address);
    const std::size_t before = reverse_.leaves.size() + free_.leaves.size();
    for (const BlockAddr address : changed) {
      if (given_.contains(address)) TRY(touch_block(address));
      else TRY(touch(free_, segment_of(address)));
    }
    grew = reverse_.leaves.size() + free_.leaves.size() > before;
  }
  return {};
}

// The owners are not kept: each lot of leaves hears of them in a walk of its own.
Status MapBuilder::write_owners(check::Claims& claims, TreeCounts& counts, BlockAddr image) {
  const std::uint64_t per_leaf = reverse_.root.shape.per_leaf();
  for (auto leaf = reverse_.leaves.begin(); leaf != reverse_.leaves.end();) {
    const auto first = leaf;
    for (std::uint64_t n = 0; n < leaves_at_once_ && leaf != reverse_.leaves.end(); ++n) ++leaf;
    TRY(reverse_.editor->load_leaves(*first * per_leaf, (*std::prev(leaf) + 1) * per_leaf));
    for (auto at = first; at != leaf; ++at)
      for (std::uint64_t i = 0; i < per_leaf && *at * per_leaf + i < reverse_.root.shape.records; ++i)
        if (!nameless_[*at * per_leaf + i]) std::ranges::fill(reverse_.editor->record(*at * per_leaf + i), std::byte{0});
    claims = fresh_claims();
    counts = {};
    fill_owners(claims, counts, image);
    TRY(reverse_.editor->write_leaves(space_));
  }
  return {};
}

void MapBuilder::fill_owners(check::Claims& claims, TreeCounts& counts, BlockAddr image) {
  claims.set_recorder([&](BlockAddr address, const format::ReverseEntry& entry) {
    if (const auto record = reverse_.editor->record(address.v); !record.empty()) format::encode_reverse_entry(entry, record);
  });
  claim_tree(claims, &counts);
  claim_maps(claims);
  claim_image(claims, image);
  claim_kept(claims, &counts);
  claims.set_recorder({});
  counts.live = claims.live();
  counts.data = claims.data();
}

void MapBuilder::fill_segment(std::uint64_t segment, const check::Claims& claims) {
  const auto bytes = free_.editor->record(segment);
  MEMORY_INVARIANT(bytes.size() == free_.root.shape.record_bytes);  // its leaf was touched, so it is in memory
  const auto old = format::decode_segment_record(bytes);
  const auto& claimed = claims.segment(segment);
  format::SegmentRecord record = old.ok() ? *old : format::SegmentRecord{};
  if (!old.ok() || (record.live == 0 && record.group == 0)) record.group = claimed.clock_sum == 0 ? format::kGroupNodes : 0;
  if (space_.has_filled(segment)) record.group = format::kGroupNodes;
  if (record.youngest < claimed.youngest || record.youngest > super_.clock / super_.clock_unit) record.youngest = claimed.youngest;
  record.rate_sum = claimed.rate_sum - claimed.held_rate;
  record.live = claimed.live;
  record.clock_sum = claimed.clock_sum;
  if (claimed.live == 0) record = {.flags = record.flags};
  // What a snapshot keeps stays as it is: then it is the clock that is behind.
  super_.clock = std::max(super_.clock, record.youngest * super_.clock_unit);
  format::encode_segment_record(record, bytes);
  const auto bits = bytes.subspan(format::kSegmentRecordHeaderBytes);
  std::ranges::fill(bits, std::byte{0});
  const BlockAddr start = super_.first_segment + segment * super_.segment_blocks;
  for (std::uint32_t i = 0; i < super_.segment_blocks; ++i)
    if (claims.is_claimed(start + i)) bits[i / 8] |= std::byte{static_cast<std::uint8_t>(1U << (i % 8))};
}

void MapBuilder::fill_segments(const check::Claims& claims) {
  const std::uint64_t per_leaf = free_.root.shape.per_leaf();
  for (const std::uint64_t leaf : free_.leaves)
    for (std::uint64_t s = leaf * per_leaf; s < (leaf + 1) * per_leaf && s < super_.segments; ++s) fill_segment(s, claims);
}

check::Claims MapBuilder::fresh_claims() const {
  check::Claims claims(super_);
  if (super_.snapshots.root) claims.keep_tags();
  return claims;
}

Status MapBuilder::run(BlockAddr image) {
  check::Claims before = fresh_claims();
  claim_tree(before, nullptr);
  claim_kept(before, nullptr);
  nameless_.resize(super_.device_blocks);
  for (std::uint64_t i = 0; i < nameless_.size(); ++i) nameless_[i] = before.is_nameless(BlockAddr{i});
  for (Map* map : {&reverse_, &free_}) {
    const auto is_taken = [&](const auto& node) { return before.is_claimed(node.first); };
    if (std::ranges::any_of(map->old.nodes, is_taken)) map->old.sound = false;
    if (!map->old.sound) map->root.ref = {};
    map->editor = std::make_unique<tree::MapEditor>(source_, map->root);
  }
  reverse_.editor->defer_leaves();
  claim_maps(before);
  if (before.is_inside(super_.image.address) && !before.is_claimed(super_.image.address))
    claim_image(before, super_.image.address);
  TRY(touch_wrong_owners(before));
  TRY(touch_wrong_segments(before));
  const std::size_t wrong_leaves = reverse_.leaves.size(), wrong_segments = free_.leaves.size();
  TRY(touch_block(image));
  if (before.is_inside(super_.image.address)) TRY(touch(free_, segment_of(super_.image.address)));
  TRY(close());
  check::Claims claims = fresh_claims();
  TreeCounts counts;
  TRY(write_owners(claims, counts, image));
  fill_segments(claims);
  if (wrong_leaves > 0) actions_.add(ActionCode::reverse_map_corrected, {}, fmt::format("{} leaves", wrong_leaves));
  if (wrong_segments > 0) actions_.add(ActionCode::free_map_corrected, {}, fmt::format("{} leaves", wrong_segments));
  super_.reverse_map = TRY(reverse_.editor->write(space_)).ref;
  super_.free_map = TRY(free_.editor->write(space_)).ref;
  super_.live_blocks = counts.live;
  super_.data_blocks = counts.data - counts.held_data;
  if (super_.snapshots.root) {
    super_.snapshots.held_blocks = counts.held;
    super_.snapshots.held_data = counts.held_data;
  }
  super_.reserved_blocks = counts.unwritten;
  super_.inodes = counts.inodes;
  return {};
}

}  // namespace varve::repair
