#include "check/kept_trees.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "base/buffer.h"
#include "base/counted.h"
#include "base/listing.h"

namespace varve::check {

using format::DeadRun;
using format::ItemKind;
using format::SnapshotItem;

namespace {

constexpr std::size_t kMostNames = 20;  // in a message

class TableReader : public ItemVisitor {
 public:
  TableReader(Context& context, SnapshotTables& tables) : context_(context), tables_(tables) {}

  std::uint64_t visit(const format::ItemRef& item, BlockAddr leaf) override {
    if (Status status = tables_.take(item, context_.super()); !status.ok()) {
      context_.add(Code::snapshot_item_damaged, {leaf, {}}, status.error().message());
      tables_.complete = false;
    }
    return 0;
  }
  void gap() override { tables_.complete = false; }

 private:
  Context& context_;
  SnapshotTables& tables_;
};

// Claims what the newest trees do not have, and reads that.
class KeptExtents : public ItemVisitor {
 public:
  KeptExtents(Context& context, Claims& claims, DataVerifier* verifier, const WalkedTree& tree, const ListedClocks& clocks)
      : context_(context), claims_(claims), verifier_(verifier), tree_(tree), clocks_(clocks) {}

  std::uint64_t visit(const format::ItemRef& item, BlockAddr leaf) override {
    if (item.key.kind != ItemKind::extent || item.key.ino == format::kOrphanIno) return 0;
    if (is_told_tail(item.value)) return 0;
    const auto extent = format::decode_extent(item.value);
    if (!extent.ok() || item.key.offset > format::kMaxFileBlocks || extent->length > format::kMaxFileBlocks - item.key.offset) {
      context_.add(Code::value_damaged, {leaf, item.key.ino}, fmt::format("extent at {}", item.key.offset));
      context_.kept_damaged = true;
      return 0;
    }
    if (!extent->unwritten)
      for (std::uint64_t i = 0; i < extent->length; ++i) claim(item.key, *extent, i);
    return extent->length;
  }
  void gap() override {}

 private:
  // It owns no block.
  bool is_told_tail(std::span<const std::byte> value) const {
    return (context_.super().features.incompat & format::kIncompatTails) && format::decode_tail(value).ok();
  }
  void claim(const format::Key& key, const format::Extent& extent, std::uint64_t i) {
    const BlockAddr place = tree_.place_of(extent.address + i);
    const Claim outcome = claims_.claim_shared(place, entry_of(key.ino, key.offset, extent, i));
    const std::uint64_t block = key.offset + i;
    if (outcome == Claim::outside) context_.add(Code::address_outside, {place, key.ino}, fmt::format("file block {}", block));
    if (outcome == Claim::twice) context_.add(Code::claimed_twice, {place, key.ino}, fmt::format("file block {} should be there", block));
    if (outcome == Claim::outside || outcome == Claim::twice) context_.kept_damaged = true;
    if (outcome != Claim::good) return;
    // The segment would go on counting the wrong one when the snapshot has gone.
    if (clocks_.contradict(place, extent.clock))
      context_.problems().add(Code::listed_not_held, {place, key.ino}, "its list says that it was written at another time");
    if (!verifier_) return;
    format::Extent single;
    single.address = place;
    single.length = 1;
    single.clock = extent.clock;
    single.crcs = {extent.crcs[i]};
    verifier_->add({key.ino, key.offset + i, std::move(single)});
  }

  Context& context_;
  Claims& claims_;
  DataVerifier* verifier_;
  const WalkedTree& tree_;
  const ListedClocks& clocks_;
};

}  // namespace

Status SnapshotTables::take(const format::ItemRef& item, const format::Superblock& super) {
  // Snapshots that are made later would have it.
  const auto to_come = [](std::uint64_t serial) { return Error(Errc::corrupt, fmt::format("of checkpoint {}, which is to come", serial)); };
  if (item.key.kind != ItemKind::dead && item.key.offset > super.serial.v) return to_come(item.key.offset);
  switch (item.key.kind) {
    case ItemKind::snapshot:
      if (item.key.ino.v != 0) break;
      items.push_back(TRY(format::decode_snapshot(item.key, item.value)));
      return {};
    case ItemKind::dead: {
      const Serial holder{item.key.ino.v & ~(1ULL << 63)};
      if (!format::is_dead_key_of(item.key, holder)) break;
      Piece piece{holder, TRY(format::decode_dead(item.value)), item.key};
      if (piece.piece.death > super.serial) return to_come(piece.piece.death.v);
      std::uint64_t sum = listed;
      for (const DeadRun& run : piece.piece.runs) {
        if (run.length > super.device_blocks) return Error(Errc::corrupt, fmt::format("list of dead blocks: {} in a row", run.length));
        sum += run.length;
      }
      // Each block is listed once. All are looked at, so that lists without a bound would take years.
      if (sum > super.device_blocks)
        return Error(Errc::corrupt, fmt::format("lists of dead blocks: {} of a device of {}", sum, super.device_blocks));
      listed = sum;
      dead.push_back(std::move(piece));
      return {};
    }
    case ItemKind::place:
      if (item.key.ino.v > format::kMaxAddress) break;
      places.emplace(item.key, TRY(format::decode_place(item.value)).place);
      return {};
    case ItemKind::name:
      if (item.key.ino.v > format::kMaxAddress) break;
      names.emplace(item.key, TRY(format::decode_name(item.value)));
      return {};
    default: break;
  }
  return Error(Errc::corrupt, "an item that has no business here");
}

BlockAddr SnapshotTables::place_of(BlockAddr named, Serial seen) const {
  const auto next = places.lower_bound(format::place_key(named, Serial{seen.v + 1}));
  const bool has_moved = next != places.end() && next->first.ino.v == named.v && next->first.kind == ItemKind::place;
  if (!has_moved) return named;
  if (const auto found = nameless.find(next->first); found != nameless.end()) found->second = true;
  return next->second;
}

void SnapshotTables::watch_nameless() {
  for (const auto& [way, place] : places) {
    const auto name = names.find(format::name_key(place, Serial{way.offset}));
    if (name == names.end() || name->second.v != way.ino.v) nameless.emplace(way, false);
  }
}

const SnapshotItem* KeptTrees::item_of(Serial serial) const {
  const auto at = std::ranges::find(tables_.items, serial, &SnapshotItem::serial);
  return at == tables_.items.end() ? nullptr : &*at;
}

const SnapshotItem* KeptTrees::newest_before(Serial serial) const {
  const SnapshotItem* newest = nullptr;
  for (const SnapshotItem& item : tables_.items)
    if (item.serial < serial && !item.deleting) newest = &item;
  return newest;
}

void KeptTrees::read_tables(Claims& claims) {
  const format::SnapshotTables& super = context_.super().snapshots;
  TableReader reader(context_, tables_);
  context_.part = "tables of snapshots: ";
  TreeWalk(context_, claims, reader, {super.root, super.level, format::TreeId::snapshots}).run();
  context_.part.clear();
  if (tables_.complete) return;
  context_.incomplete = true;
  report_missing();
}

// What of them the damage concerns, as far as the rest tells.
void KeptTrees::report_missing() {
  const format::SnapshotTables& super = context_.super().snapshots;
  std::map<Serial, std::uint64_t> listed;
  for (const SnapshotTables::Piece& piece : tables_.dead)
    for (const DeadRun& run : piece.piece.runs) listed[piece.holder] += run.length;
  std::vector<std::string> names, missing;
  for (const SnapshotItem& item : tables_.items)
    if (listed[item.serial] < item.dead) names.push_back(item.name);
  const std::uint64_t items = super.snapshots - std::min<std::uint64_t>(super.snapshots, tables_.items.size());
  const std::uint64_t places = super.places - std::min<std::uint64_t>(super.places, tables_.places.size());
  if (items) missing.push_back(fmt::format("{} of {}, with their names", items, counted(super.snapshots, "snapshot")));
  if (!names.empty()) missing.push_back(fmt::format("which blocks are held for {}", listing(names, kMostNames)));
  if (places) missing.push_back(fmt::format("where {}", counted(places, "block of snapshots stands", "blocks of snapshots stand")));
  if (missing.empty()) missing.emplace_back("nothing that cannot be told from the rest");
  context_.add(Code::snapshot_tables_torn, {}, fmt::format("missing: {}", fmt::join(missing, "; ")));
}

ListedClocks::ListedClocks(const SnapshotTables& tables) {
  for (const auto& [holder, piece, key] : tables.dead)
    for (const DeadRun& run : piece.runs)
      for (std::uint64_t i = 0; !run.birth.of_node && i < run.length; ++i) {
        const BlockAddr place = tables.place_of(run.address + i, piece.death);
        Stretch* const last = stretches_.empty() ? nullptr : &stretches_.back();
        if (last && last->place + last->length == place && last->clock == run.clock) ++last->length;
        else stretches_.push_back({place, 1, run.clock});
      }
  std::ranges::sort(stretches_, {}, &Stretch::place);
}

bool ListedClocks::contradict(BlockAddr place, std::uint32_t clock) const {
  const auto next = std::ranges::upper_bound(stretches_, place, {}, &Stretch::place);
  if (next == stretches_.begin()) return false;
  const Stretch& stretch = *std::prev(next);
  return place < stretch.place + stretch.length && stretch.clock != clock;
}

void KeptTrees::claim_tree_of(const SnapshotItem& item, Claims& claims, DataVerifier* verifier, const ListedClocks& clocks) {
  const WalkedTree tree{item.inode_file, item.inode_file_level, format::TreeId::inode_file, true,
                        [this, serial = item.serial](BlockAddr named) { return tables_.place_of(named, serial); }};
  KeptExtents extents(context_, claims, verifier, tree, clocks);
  context_.part = fmt::format("snapshot {}: ", item.name);
  context_.in_snapshot = true;
  context_.snapshot = item.name;
  walked_ = &item;
  const bool has_root = TreeWalk(context_, claims, extents, tree).run();
  walked_ = nullptr;
  context_.in_snapshot = false;
  if (!has_root) context_.add(Code::snapshot_lost, {tables_.place_of(item.inode_file.address, item.serial), {}}, "it is lost");
  if (verifier) verifier->finish();
  context_.part.clear();
  context_.snapshot.clear();
}

void KeptTrees::claim(Claims& claims, DataVerifier* verifier) {
  if (!has_tables_ && !context_.super().snapshots.root) return;
  if (!has_tables_) read_tables(claims);
  tables_.watch_nameless();
  const std::uint64_t live_before = claims.live(), data_before = claims.data();
  only_kept_.resize(context_.super().device_blocks);
  for (std::uint64_t i = 0; i < only_kept_.size(); ++i) only_kept_[i] = claims.is_inside(BlockAddr{i}) && !claims.is_claimed(BlockAddr{i});
  // The newest first: most is shared with the live tree, or with the next one.
  const ListedClocks clocks(tables_);
  for (auto item = tables_.items.rbegin(); item != tables_.items.rend(); ++item)
    if (!item->deleting) claim_tree_of(*item, claims, verifier, clocks);
  claim_listed(claims);
  context_.held_blocks = claims.live() - live_before;
  context_.held_data = claims.data() - data_before;
}

// What deleted snapshots held is live until it is given back. Of a tree that cannot be read as a whole only the lists tell what it holds.
// The same goes for what counts as old because clocks have begun anew: it may have come after the snapshot, so that no tree has it.
void KeptTrees::claim_listed(Claims& claims) {
  for (const auto& [holder, piece, key] : tables_.dead) {
    const SnapshotItem* item = item_of(holder);
    if (!item) continue;
    const bool tells_all = item->deleting || context_.kept_damaged;
    for (const DeadRun& run : piece.runs)
      for (std::uint64_t i = 0; (tells_all || run.birth.ancient) && i < run.length; ++i)
        claims.claim_listed(tables_.place_of(run.address + i, piece.death), run.birth.of_node, run.clock, run.estimate);
  }
}

std::optional<Serial> node_birth(io::BlockDevice& device, BlockAddr place) {
  AlignedBuffer block(kBlockSize);
  if (place.v >= device.geometry().blocks() || !device.read(place.v * kBlockSize, block.span()).ok()) return std::nullopt;
  const auto header = format::decode_node_header(block.span());
  return header.ok() ? std::optional(header->serial) : std::nullopt;
}

// --- the tables -----------------------------------------------------------------------------------------------------------------

void KeptTrees::check_run(const SnapshotTables::Piece& listed, const DeadRun& run, const Claims& claims) {
  const SnapshotItem* item = item_of(listed.holder);
  auto complain = [&](BlockAddr place, const char* what) {
    context_.add(Code::listed_not_held, {place, {}}, fmt::format("list of snapshot {}: {}", listed.holder, what));
  };
  if (!item) return complain(run.address, "there is no such snapshot");
  if (!item->holds(run.birth) || listed.piece.death <= item->serial) complain(run.address, "it was not in its tree when it died");
  for (std::uint64_t i = 0; i < run.length; ++i) {
    const BlockAddr place = tables_.place_of(run.address + i, listed.piece.death);
    if (place.v >= only_kept_.size() || !only_kept_[place.v]) complain(place, "it is not dead, or listed twice");
    else if (!claims.is_claimed(place)) complain(place, "no snapshot's tree has it");
    else only_kept_[place.v] = false;
  }
  if (!run.birth.of_node) return;
  // One that says it came later goes with its list, while an older snapshot still has it.
  const BlockAddr place = tables_.place_of(run.address, listed.piece.death);
  const auto birth = node_birth(context_.device, place);
  if (birth && run.birth.when != std::min(*birth, listed.holder).v) complain(place, "the node was not written then");
}

void KeptTrees::check_list_of(const SnapshotItem& item, std::uint64_t dead, std::uint64_t alone) {
  auto compare = [&](const char* what, std::uint64_t is, std::uint64_t should) {
    if (is != should) context_.add(Code::count_wrong, {}, fmt::format("snapshot {}: {} {} instead of {}", item.name, what, is, should));
  };
  compare("dead blocks", item.dead, dead);
  if (!item.deleting && item.alone > alone) compare("blocks of its own", item.alone, alone);  // fewer: not all have been counted yet
}

// The next piece would take the place of one that is there, and what that lists would be lost.
void KeptTrees::check_number(const SnapshotTables::Piece& listed) {
  const SnapshotItem* item = item_of(listed.holder);
  const std::uint64_t number = format::piece_number(listed.key);
  if (item && number >= item->next_piece)
    context_.add(Code::count_wrong, {}, fmt::format("snapshot {}: the next piece of its list is {}, and there is {}", item->name,
                                                    item->next_piece, number));
}

void KeptTrees::check_lists(const Claims& claims) {
  std::map<Serial, std::pair<std::uint64_t, std::uint64_t>> sums;  // dead, alone
  for (const SnapshotTables::Piece& listed : tables_.dead) {
    check_number(listed);
    const SnapshotItem* before = newest_before(listed.holder);
    for (const DeadRun& run : listed.piece.runs) {
      check_run(listed, run, claims);
      auto& [dead, alone] = sums[listed.holder];
      dead += run.length;
      if (!before || !before->holds(run.birth)) alone += run.length;
    }
  }
  for (const SnapshotItem& item : tables_.items) check_list_of(item, sums[item.serial].first, sums[item.serial].second);
}

// A place without the way back would be forgotten when the cleaner moves the block again.
void KeptTrees::check_places() {
  for (const auto& [key, named] : tables_.names) {
    const auto way = tables_.places.find(format::place_key(named, Serial{key.offset}));
    if (way == tables_.places.end() || way->second.v != key.ino.v)
      context_.add(Code::place_wrong, {BlockAddr{key.ino.v}, {}}, fmt::format("called {} before checkpoint {}", named, key.offset));
  }
  // One that no snapshot needs any more may have lost its name to another block, which came to the same place.
  for (const auto& [way, is_needed] : tables_.nameless)
    if (is_needed)
      context_.add(Code::place_wrong, {tables_.places.at(way), {}},
                   fmt::format("no name says that it was {} before checkpoint {}", way.ino, way.offset));
}

void KeptTrees::check_tables(const Claims& claims) {
  const format::SnapshotTables& super = context_.super().snapshots;
  if (!super.root) return;
  check_lists(claims);
  std::uint64_t unlisted = 0;
  BlockAddr first;
  for (std::uint64_t i = 0; i < only_kept_.size(); ++i) {
    if (!only_kept_[i] || !claims.is_claimed(BlockAddr{i})) continue;
    if (unlisted++ == 0) first = BlockAddr{i};
  }
  if (unlisted) context_.add(Code::held_not_listed, {first, {}}, counted(unlisted, "block"));
  check_places();
  if (super.snapshots != tables_.items.size())
    context_.add(Code::count_wrong, {}, fmt::format("snapshots {} instead of {}", super.snapshots, tables_.items.size()));
  if (super.places != tables_.places.size())
    context_.add(Code::count_wrong, {}, fmt::format("moved blocks {} instead of {}", super.places, tables_.places.size()));
}

}  // namespace varve::check
