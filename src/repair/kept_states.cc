#include "repair/kept_states.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/counted.h"
#include "base/listing.h"
#include "check/inode_pass.h"
#include "io/patient_read.h"
#include "repair/map_builder.h"
#include "repair/silence.h"

namespace varve::repair {

using format::Birth;
using format::Bytes;
using format::DeadRun;
using format::ItemKind;
using format::Key;
using format::SnapshotItem;

namespace {

constexpr std::size_t kTableCacheBytes = 8 << 20;

Result<AlignedBuffer> read_block(io::BlockDevice& device, BlockAddr address) {
  AlignedBuffer block(kBlockSize);
  if (address.v >= device.geometry().blocks()) return Error(Errc::corrupt, "behind the end of the device");
  TRY(io::read_patiently(device, address.v * kBlockSize, block.span()));
  return block;
}

}  // namespace

KeptStates::KeptStates(io::BlockDevice& device, const format::Superblock& old, ActionLog& actions, check::Progress* progress)
    : device_(device), old_(old), actions_(actions), progress_(progress), listed_(old.device_blocks) {}

// --- what there is ------------------------------------------------------------------------------------------------------------

Status KeptStates::read() {
  plan_ = make_tables_plan(device_, old_, actions_, progress_);
  TRY(for_each_item(device_, plan_, [this](const format::ItemRef& item, Trust) {
    if (const Status taken = take(item); !taken.ok()) {
      edits_[item.key] = std::nullopt;
      actions_.add(ActionCode::item_removed, {}, fmt::format("of the tables of snapshots: {}", taken.error().message()));
    }
    return Status();
  }));
  complete_places();
  if (!plan_.lost.empty()) find_lost();
  for (const auto& [holder, piece, key] : tables_.dead)
    if (SnapshotItem* item = item_of(holder)) item->next_piece = std::max(item->next_piece, format::piece_number(key) + 1);
  give_up_lost_ones();
  for (const auto& [holder, piece, key] : tables_.dead)
    for (const DeadRun& run : piece.runs)
      for (std::uint64_t i = 0; i < run.length; ++i)
        if (const BlockAddr place = tables_.place_of(run.address + i, piece.death); place.v < listed_.size()) listed_[place.v] = true;
  return {};
}

Status KeptStates::take(const format::ItemRef& item) {
  TRY(tables_.take(item, old_));
  found_.emplace(item.key, Bytes(item.value.begin(), item.value.end()));
  return {};
}

// Lists of dead blocks are told from the trees, but not which snapshots there are.
void KeptStates::find_lost() {
  const auto left = [](std::uint64_t whole, std::size_t part) { return whole - std::min<std::uint64_t>(whole, part); };
  const std::uint64_t missing = left(old_.snapshots.snapshots, tables_.items.size());
  places_lost_ = tables_.places.size() < old_.snapshots.places;
  if (!missing && !places_lost_) return;
  LostTables lost(device_, old_, tables_, progress_);
  lost.find(plan_.lost, missing);
  for (const auto& [way, place] : lost.places()) {
    Bytes value;
    format::encode_place({place, {.ancient = true}}, value);
    put(way, std::move(value));
  }
  complete_places();
  for (const std::string& name : lost.found()) actions_.add(ActionCode::snapshot_found, {}, name);
  report_lost(lost, left(missing, lost.found().size() + lost.deleted()));
}

void KeptStates::report_lost(const LostTables& found, std::uint64_t missing) {
  if (missing) {
    constexpr std::size_t kMostNames = 20;
    const auto& names = found.not_found();
    const std::string told = names.empty() ? "not even the names are left" : "older copies name " + listing(names, kMostNames);
    actions_.add(ActionCode::snapshot_items_lost, {},
                 fmt::format("{} of {} given up; {}", missing, counted(old_.snapshots.snapshots, "snapshot is", "snapshots are"), told));
  }
  if (const std::uint64_t blocks = found.blocks_not_found())
    actions_.add(ActionCode::snapshot_items_lost, {},
                 fmt::format("{} not found", counted(blocks, "block of snapshots is", "blocks of snapshots are")));
}

SnapshotItem* KeptStates::item_of(Serial serial) {
  const auto at = std::ranges::lower_bound(tables_.items, serial, {}, &SnapshotItem::serial);
  return at == tables_.items.end() || at->serial != serial ? nullptr : &*at;
}

void KeptStates::put(const Key& key, Bytes value) {
  const auto found = found_.find(key);
  if (found != found_.end() && found->second == value) edits_.erase(key);
  else edits_[key] = std::move(value);
}

// A place and its name say the same, so each can be told from the other.
void KeptStates::complete_places() {
  for (auto name = tables_.names.begin(); name != tables_.names.end();) {
    const Key way = format::place_key(name->second, Serial{name->first.offset});
    const BlockAddr place{name->first.ino.v};
    const auto found = tables_.places.find(way);
    if (found != tables_.places.end() && found->second != place) {
      edits_[name->first] = std::nullopt;
      name = tables_.names.erase(name);
      continue;
    }
    if (found == tables_.places.end()) {
      Bytes value;
      format::encode_place({place, {.ancient = true}}, value);
      put(way, std::move(value));
      tables_.places.emplace(way, place);
    }
    ++name;
  }
  for (auto at = tables_.places.begin(); at != tables_.places.end();) {
    const auto& [way, place] = *at;
    const Key key = format::name_key(place, Serial{way.offset});
    const BlockAddr named{way.ino.v};
    const auto [name, is_new] = tables_.names.emplace(key, named);
    if (name->second != named) {  // two places lead to one block: its name says which of them is right
      edits_[way] = std::nullopt;
      at = tables_.places.erase(at);
      continue;
    }
    ++at;
    if (!is_new) continue;
    Bytes value;
    format::encode_name(named, value);
    put(key, std::move(value));
  }
}

void KeptStates::give_up_lost_ones() {
  for (SnapshotItem& item : tables_.items) {
    if (item.deleting) continue;
    const auto block = read_block(device_, tables_.place_of(item.inode_file.address, item.serial));
    const format::NodeExpectation expected{old_.identity, item.inode_file.address, item.inode_file.crc, format::TreeId::inode_file,
                                           item.inode_file_level};
    const auto root = block.ok() ? format::check_node(block->span(), expected) : Result<format::NodeHeader>(block.error());
    if (!root.ok()) give_up(item, root.error().message());
  }
}

// Their roots are whole, but stand where something else has a right to be. False: there are none.
bool KeptStates::give_up_unclaimed(const check::Report& report) {
  bool any = false;
  for (const check::Problem& problem : report.problems.kept()) {
    if (problem.code != check::Code::snapshot_lost) continue;
    for (SnapshotItem& item : tables_.items) {
      if (item.deleting || item.name != problem.snapshot) continue;
      give_up(item, "its root is another's block");
      any = true;
    }
  }
  return any;
}

void KeptStates::give_up(SnapshotItem& item, const std::string& why) {
  if (item.deleting) return;
  item.deleting = true;
  actions_.add(ActionCode::snapshot_given_up, {}, fmt::format("{}: {}", item.name, why));
}

void KeptStates::protect(NodeSpace& space) const {
  Silence silence(device_, old_);
  check::Claims claims(old_);
  claims.keep_tags();
  check::KeptTrees(silence.context, tables_).claim(claims, nullptr);
  for (std::uint64_t block = 0; block < listed_.size(); ++block)
    if (const BlockAddr address{block}; listed_[block] || (claims.is_inside(address) && claims.is_claimed(address))) space.protect(address);
  for (const BlockAddr node : plan_.nodes) space.protect(node);
  for (const LeafPiece& leaf : plan_.leaves) space.protect(leaf.address);
}

// --- lists of dead blocks -----------------------------------------------------------------------------------------------------

// Keeps the blocks that keep(holder, death, run, place) wants.
template <class Keep>
void KeptStates::filter_lists(Keep keep) {
  for (auto& [holder, piece, key] : tables_.dead) {
    std::vector<DeadRun> kept;
    for (const DeadRun& run : piece.runs) {
      bool goes_on = false;
      for (std::uint64_t i = 0; i < run.length; ++i) {
        const bool is_kept = keep(holder, piece.death, run, tables_.place_of(run.address + i, piece.death));
        if (is_kept && goes_on) ++kept.back().length;
        else if (is_kept) kept.push_back({run.address + i, 1, run.birth, run.clock, 0});
        goes_on = is_kept;
      }
    }
    piece.runs = std::move(kept);
  }
}

// The block under its name of then: that is what the tables lead on from.
BlockAddr KeptStates::named_at(BlockAddr place, Serial death) const {
  const auto next = tables_.names.lower_bound(format::name_key(place, Serial{death.v + 1}));
  const bool is_name = next != tables_.names.end() && next->first.ino.v == place.v && next->first.kind == ItemKind::name;
  return is_name ? next->second : place;
}

// What cannot be read nobody knows better.
bool KeptStates::has_birth_of(Serial holder, const DeadRun& run, BlockAddr place) const {
  if (!run.birth.of_node) return true;
  const auto birth = check::node_birth(device_, place);
  return !birth || run.birth.when == std::min(*birth, holder).v;
}

// After the snapshot that still has it, and not after the next one.
Serial KeptStates::death_of(const Held& held, Serial newest) const {
  const auto next = std::ranges::upper_bound(tables_.items, held.holder, {}, &SnapshotItem::serial);
  return next == tables_.items.end() ? newest : next->serial;
}

DeadRun KeptStates::run_of(const Held& held, Serial death, const format::Superblock& super) {
  DeadRun run;
  run.address = named_at(held.place, death);
  if (held.owner.owner == format::Owner::node) {
    run.birth.of_node = true;
    const auto block = read_block(device_, held.place);
    const auto header = block.ok() ? format::decode_node_header(block->span()) : Result<format::NodeHeader>(block.error());
    if (header.ok()) run.birth.when = std::min(header->serial, held.holder).v;  // else nobody knows: it is kept as long as any
  } else {
    run.clock = held.owner.clock;
    run.birth.when = held.owner.clock;
    run.birth.ancient = super.clock / super.clock_unit > ~0U;
    if (!item_of(held.holder)->holds(run.birth)) run.birth.ancient = true;
  }
  return run;
}

void KeptStates::add_to_lists(std::vector<Held> held, const format::Superblock& super) {
  std::ranges::sort(held, {}, [](const Held& block) { return std::pair(block.holder, block.place); });
  check::SnapshotTables::Piece piece;
  auto close = [&] {
    if (piece.piece.runs.empty()) return;
    piece.key = format::dead_key(piece.holder, item_of(piece.holder)->next_piece++);
    tables_.dead.push_back(std::exchange(piece, {}));
  };
  for (const Held& block : held) {
    const Serial death = death_of(block, super.serial);
    const DeadRun run = run_of(block, death, super);
    if (tables_.place_of(run.address, death) != block.place) {  // places that contradict each other: malice, or a fault of the program
      give_up(*item_of(block.holder), "there is no name for what it holds");
      continue;
    }
    if (piece.holder != block.holder || piece.piece.runs.size() >= kRunsOfPiece) close();
    piece.holder = block.holder;
    piece.piece.death = death;
    DeadRun* last = piece.piece.runs.empty() ? nullptr : &piece.piece.runs.back();
    const bool goes_on = last && !run.birth.of_node && last->address + last->length == run.address && last->birth == run.birth &&
                         last->clock == run.clock;
    if (goes_on) ++last->length;
    else piece.piece.runs.push_back(run);
  }
  close();
}

// As the engine counts (format/snapshot.h).
void KeptStates::count() {
  for (SnapshotItem& item : tables_.items) item.dead = item.alone = 0;
  for (const auto& [holder, piece, key] : tables_.dead) {
    SnapshotItem& item = *item_of(holder);
    const SnapshotItem* before = nullptr;
    for (const SnapshotItem& other : tables_.items)
      if (other.serial < holder && !other.deleting) before = &other;
    for (const DeadRun& run : piece.runs) {
      item.dead += run.length;
      if (!before || !before->holds(run.birth)) item.alone += run.length;
    }
  }
}

// --- what is to be ------------------------------------------------------------------------------------------------------------

void KeptStates::encode() {
  for (auto& [holder, piece, key] : tables_.dead) {
    if (piece.runs.empty()) {
      edits_[key] = std::nullopt;
      continue;
    }
    format::DeadPieceBuilder builder(format::kMostDeadPieceBytes);
    Key at = key;
    for (const DeadRun& run : piece.runs) {
      if (builder.add(run)) continue;
      put(at, builder.finish(piece.death));
      at = format::dead_key(holder, item_of(holder)->next_piece++);
      (void)builder.add(run);
    }
    put(at, builder.finish(piece.death));
  }
  for (const SnapshotItem& item : tables_.items) {
    Bytes value;
    format::encode_snapshot(item, value);
    put(format::snapshot_key(item.serial), std::move(value));
  }
}

// Everything but what snapshots hold. Of maps and tables the former nodes count: new ones stand where nothing else is named.
void KeptStates::claim_others(check::Context& context, check::Claims& claims) const {
  check::ExtentClaimer claimer(claims);
  check::TreeWalk(context, claims, claimer, check::newest_inode_file(context.super())).run();
  for (const format::TreeId tree : {format::TreeId::reverse_map, format::TreeId::free_map})
    for (const auto& [address, level] : read_old_map(device_, old_, tree).nodes) claims.claim_node(address, tree, level);
  for (const BlockAddr node : plan_.nodes) claims.claim_node(node, format::TreeId::snapshots, 0);
  for (const LeafPiece& leaf : plan_.leaves) claims.claim_node(leaf.address, format::TreeId::snapshots, 0);
  claims.claim_node(old_.image.address, format::TreeId::super_image, 0);
}

void KeptStates::bring_in_line(const format::Superblock& super) {
  Silence silence(device_, super);
  check::Claims claims(super);
  claims.keep_tags();
  claim_others(silence.context, claims);
  // What lives is not dead, and what is listed once need not be listed again. Lists that may lead elsewhere are made anew.
  std::vector<bool> listed(super.device_blocks);
  filter_lists([&](Serial holder, Serial death, const DeadRun& run, BlockAddr place) {
    const SnapshotItem* item = item_of(holder);
    if (places_lost_ || !item || death <= item->serial || !item->holds(run.birth)) return false;
    if (!claims.is_inside(place) || claims.is_claimed(place)) return false;
    if (listed[place.v] || !has_birth_of(holder, run, place)) return false;
    listed[place.v] = true;
    return true;
  });
  std::vector<Held> held;
  std::set<BlockAddr> untimely;  // what is listed with another clock than its tree has
  const check::ListedClocks clocks(tables_);
  check::KeptTrees kept(silence.context, tables_);
  claims.set_recorder([&](BlockAddr place, const format::ReverseEntry& owner) {
    if (!kept.walked()) return;
    const bool is_file = owner.owner == format::Owner::file_block;
    if (listed[place.v] && is_file && clocks.contradict(place, owner.clock)) untimely.insert(place);
    if (!listed[place.v] || untimely.contains(place)) held.push_back({place, owner, kept.walked()->serial});
  });
  kept.claim(claims, nullptr);
  claims.set_recorder({});
  if (give_up_unclaimed(silence.report)) return bring_in_line(super);
  // What is below a damaged node of a snapshot has been claimed by the lists themselves.
  filter_lists([&](Serial, Serial, const DeadRun&, BlockAddr place) { return claims.is_claimed(place) && !untimely.contains(place); });
  std::erase_if(tables_.dead, [this](const auto& listed_piece) {
    if (!listed_piece.piece.runs.empty()) return false;
    edits_[listed_piece.key] = std::nullopt;
    return true;
  });
  add_to_lists(std::move(held), super);
  count();
}

Status KeptStates::write(NodeSpace& space, format::Superblock& super) {
  bring_in_line(super);
  if (tables_.items.empty()) {
    super.snapshots = {};
    super.features.ro_compat &= ~format::kRoCompatSnapshots;
    return {};
  }
  encode();
  tree::TreeRoot root{super.snapshots.root, super.snapshots.level, format::TreeId::snapshots};
  tree::NodeCache cache(super.identity, kTableCacheBytes);
  tree::BlockingSource source(cache, device_);
  if (!plan_.sound) {
    PlanEditor editor(device_, plan_, edits_);
    root = TRY(tree::merge_items(source, {{}, 0, format::TreeId::snapshots}, editor, space, {}));
    actions_.add(ActionCode::snapshot_tables_rebuilt);
  } else if (!edits_.empty()) {
    EditList list(edits_);
    root = TRY(tree::merge_items(source, root, list, space, {}));
    actions_.add(ActionCode::snapshot_tables_corrected, {}, fmt::format("{} items", edits_.size()));
  }
  TRY(space.finish());
  super.snapshots.root = root.ref;
  super.snapshots.level = root.level;
  super.snapshots.snapshots = tables_.items.size();
  super.snapshots.places = tables_.places.size();
  return {};
}

}  // namespace varve::repair
