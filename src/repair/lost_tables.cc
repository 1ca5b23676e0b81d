#include "repair/lost_tables.h"

#include <algorithm>
#include <functional>

#include "format/item.h"
#include "io/patient_read.h"
#include "repair/device_scan.h"
#include "repair/live_owners.h"

namespace varve::repair {

using format::ItemKind;
using format::ReverseEntry;
using format::SnapshotItem;

namespace {

std::uint64_t hash_of(const ReverseEntry& owner) { return check::entry_hash({}, owner); }
std::uint32_t tag_of(const ReverseEntry& owner) { return static_cast<std::uint32_t>(hash_of(owner)) | 1; }

ReverseEntry node_owner(unsigned level) {
  ReverseEntry owner;
  owner.owner = format::Owner::node;
  owner.tree = format::TreeId::inode_file;
  owner.level = static_cast<std::uint8_t>(level);
  return owner;
}

}  // namespace

void LostTables::find(std::span<const KeyRange> lost, std::uint64_t most) {
  if (!read_owners()) {  // what is live nobody knows
    blocks_not_found_ = super_.snapshots.places - std::min<std::uint64_t>(super_.snapshots.places, tables_.places.size());
    return;
  }
  scan(lost);
  locate();
  confirm(most);
}

bool LostTables::read_owners() {
  owners_.resize(super_.device_blocks);
  return for_each_owner(device_, super_, [this](BlockAddr address, const ReverseEntry& owner) {
    if (address.v < owners_.size()) owners_[address.v] = tag_of(owner);
  });
}

bool LostTables::has_owner(BlockAddr place, const ReverseEntry& owner) const {
  return place.v < owners_.size() && owners_[place.v] == tag_of(owner);
}

// --- what is found ----------------------------------------------------------------------------------------------------------------

void LostTables::scan(std::span<const KeyRange> lost) {
  scan_device(device_, progress_, [&](BlockAddr address, std::span<const std::byte> block) { look_at(address, block, lost); });
}

void LostTables::look_at(BlockAddr address, std::span<const std::byte> block, std::span<const KeyRange> lost) {
  const auto header = format::decode_node_header(block);
  if (!header.ok() || header->identity != super_.identity || header->serial > super_.serial) return;
  if (header->tree == format::TreeId::inode_file) {
    const bool is_moved = header->address != address && has_owner(address, node_owner(header->level));
    if (is_moved) moved_nodes_[{header->address, format::block_crc(block)}] = address;
  } else if (header->tree == format::TreeId::snapshots && header->level == 0 && header->address == address) {
    take_items(block, *header, lost);
  }
}

// The newest copy of each: what is said later is right.
void LostTables::take_items(std::span<const std::byte> block, const format::NodeHeader& header, std::span<const KeyRange> lost) {
  const auto items = format::decode_items(block, header);
  if (!items.ok()) return;
  for (const format::ItemRef& item : *items) {
    if (item.key.kind != ItemKind::snapshot || item.key.ino.v != 0) continue;
    if (std::ranges::none_of(lost, [&](const KeyRange& range) { return range.contains(item.key); })) continue;
    auto decoded = format::decode_snapshot(item.key, item.value);
    if (!decoded.ok() || std::ranges::find(tables_.items, decoded->serial, &SnapshotItem::serial) != tables_.items.end()) continue;
    Candidate& candidate = candidates_[decoded->serial];
    if (header.serial >= candidate.copied) candidate = {header.serial, *std::move(decoded)};
  }
}

// --- where it stands --------------------------------------------------------------------------------------------------------------

// The newest first: what an older tree shares with it has the same place.
void LostTables::locate() {
  std::map<Serial, SnapshotItem> all;
  for (const auto& [serial, candidate] : candidates_) all.emplace(serial, candidate.item);
  for (const SnapshotItem& item : tables_.items) all.emplace(item.serial, item);
  collects_ = true;
  for (auto item = all.rbegin(); item != all.rend(); ++item)
    if (!item->second.deleting) (void)walk(item->second);
  collects_ = false;
  walked_.clear();
  if (wanted_.empty()) return;
  (void)for_each_owner(device_, super_, [this](BlockAddr address, const ReverseEntry& owner) {
    const auto [first, last] = wanted_.equal_range(hash_of(owner));
    for (auto at = first; at != last; ++at) note_place(at->second.named, at->second.seen, address);
  });
  wanted_.clear();
}

// From the next checkpoint on it has been elsewhere, as far as this tree knows.
void LostTables::note_place(BlockAddr named, Serial seen, BlockAddr place) {
  const format::Key way = format::place_key(named, Serial{seen.v + 1});
  tables_.places[way] = places_[way] = place;
}

// --- whether all of it is there -----------------------------------------------------------------------------------------------------

void LostTables::confirm(std::uint64_t most) {
  std::vector<Candidate> candidates;
  for (auto& [serial, candidate] : candidates_) candidates.push_back(std::move(candidate));
  std::ranges::stable_sort(candidates, std::ranges::greater{}, &Candidate::copied);
  blocks_not_found_ = 0;
  for (const SnapshotItem& item : tables_.items)
    if (!item.deleting) (void)walk(item);
  for (Candidate& candidate : candidates) {
    const std::uint64_t counted = blocks_not_found_;
    if (candidate.item.deleting) ++deleted_;
    else if (found_.size() < most && walk(candidate.item)) accept(std::move(candidate.item));
    else not_found_.push_back(candidate.item.name);
    blocks_not_found_ = counted;
  }
}

void LostTables::accept(SnapshotItem item) {
  const bool is_taken = std::ranges::any_of(tables_.items, [&](const SnapshotItem& other) { return other.name == item.name; });
  if (is_taken) item.name = fmt::format("found-{}", item.serial);  // it had got another one since
  found_.push_back(item.name);
  const auto behind = std::ranges::upper_bound(tables_.items, item.serial, {}, &SnapshotItem::serial);
  tables_.items.insert(behind, std::move(item));
}

bool LostTables::walk(const format::NodeRef& ref, unsigned level, Serial seen) {
  const auto [known, is_new] = walked_.try_emplace({ref.address, ref.crc}, false);
  if (!is_new) return known->second;
  const auto block = read_node(ref, level, seen);
  if (!block) return false;
  const auto header = format::decode_node_header(block->span());
  if (!header.ok()) return false;
  const bool is_whole = level > 0 ? walk_children(*block, *header, seen) : walk_leaf(*block, *header, seen);
  known->second = is_whole;
  return is_whole;
}

bool LostTables::walk_children(const AlignedBuffer& block, const format::NodeHeader& header, Serial seen) {
  const auto children = format::decode_children(block.span(), header);
  if (!children.ok()) return false;
  bool is_whole = true;
  for (const format::ChildRef& child : *children) is_whole &= walk(child.ref, header.level - 1U, seen);
  return is_whole;
}

bool LostTables::walk_leaf(const AlignedBuffer& block, const format::NodeHeader& header, Serial seen) {
  const auto items = format::decode_items(block.span(), header);
  if (!items.ok()) return false;
  bool is_whole = true;
  for (const format::ItemRef& item : *items) {
    if (item.key.kind != ItemKind::extent || item.key.ino == format::kOrphanIno) continue;
    if (format::decode_tail(item.value).ok()) continue;
    const auto extent = format::decode_extent(item.value);
    if (!extent.ok()) return false;
    for (std::uint64_t i = 0; !extent->unwritten && i < extent->length; ++i) {
      const ReverseEntry owner = check::entry_of(item.key.ino, item.key.offset, *extent, i);
      const BlockAddr named = extent->address + i;
      if (has_owner(tables_.place_of(named, seen), owner)) continue;
      is_whole = false;
      ++blocks_not_found_;
      if (collects_) wanted_.emplace(hash_of(owner), Want{named, seen});
    }
  }
  return is_whole;
}

std::optional<AlignedBuffer> LostTables::read_at(BlockAddr place, const format::NodeRef& ref, unsigned level) {
  if (!has_owner(place, node_owner(level))) return std::nullopt;
  AlignedBuffer block(kBlockSize);
  if (!io::read_patiently(device_, place.v * kBlockSize, block.span()).ok()) return std::nullopt;
  const format::NodeExpectation expected{super_.identity, ref.address, ref.crc, format::TreeId::inode_file, static_cast<int>(level)};
  if (!format::check_node(block.span(), expected).ok()) return std::nullopt;
  return block;
}

std::optional<AlignedBuffer> LostTables::read_node(const format::NodeRef& ref, unsigned level, Serial seen) {
  if (auto block = read_at(tables_.place_of(ref.address, seen), ref, level)) return block;
  const auto moved = moved_nodes_.find({ref.address, ref.crc});
  if (moved == moved_nodes_.end()) return std::nullopt;
  auto block = read_at(moved->second, ref, level);
  if (block) note_place(ref.address, seen, moved->second);
  return block;
}

}  // namespace varve::repair
