#include "checkpoint/snapshot_plan.h"

#include <fmt/format.h>

#include "base/invariant.h"
#include "changes/changes.h"
#include "checkpoint/protection.h"
#include "segments/log_clock.h"
#include "space/charge.h"

namespace varve::checkpoint {

Status SnapshotPlan::create(const std::string& name) {
  if (!format::is_passing_name(name)) TRY(format::check_snapshot_name(name));  // tools make such ones in this way
  if (list_.find(name)) return Error(Errc::exists, fmt::format("there is a snapshot '{}' already", name));
  if (!parts_.charge.fits_snapshot())
    return Error(Errc::no_space, "no space for the changes that a snapshot would make the filesystem keep");
  begin(name, false);
  return {};
}

Status SnapshotPlan::rename(format::SnapshotItem* item, const snapshots::SnapshotChange& change) {
  if (change.new_name != change.name) TRY(format::check_snapshot_name(change.new_name));  // an automatic one may stay under its own
  if (!item) return Error(Errc::not_found, fmt::format("there is no snapshot '{}'", change.name));
  if (change.new_name == change.name && !item->automatic) return {};
  if (const format::SnapshotItem* other = list_.find(change.new_name);
      (other && other != item) || (creation_ && creation_->name == change.new_name))
    return Error(Errc::exists, fmt::format("there is a snapshot '{}' already", change.new_name));
  if (item->automatic) TRY(keep(*item));
  item->name = change.new_name;
  changed_.push_back(item->serial);
  return {};
}

Status SnapshotPlan::carry_out(const snapshots::SnapshotChange& change) {
  format::SnapshotItem* const item = list_.find(change.name);
  switch (change.kind) {
    case snapshots::SnapshotChange::Kind::create: return create(change.name);
    case snapshots::SnapshotChange::Kind::rename: return rename(item, change);
    case snapshots::SnapshotChange::Kind::remove:
      if (!item) return Error(Errc::not_found, fmt::format("there is no snapshot '{}'", change.name));
      list_.remove(*item, changed_);
      return {};
  }
  return Errc::invalid;
}

void SnapshotPlan::begin(std::string name, bool automatic) {
  creation_ = {std::move(name), parts_.log_clock.begin_unit(), parts_.clock.now(), automatic};
  parts_.snapshots.expect_clock(creation_->clock, !automatic);
}

// An automatic one becomes one that was asked for. From now on its room is charged, and what is being written over counts as its own.
Status SnapshotPlan::keep(format::SnapshotItem& item) {
  snapshots::SnapshotList kept = list_;
  kept.make_permanent(*kept.find(item.serial));
  changes::Delta& active = parts_.changes.active();
  const std::uint64_t listed = list_.loose().blocks - kept.loose().blocks, loose = active.loose;
  if (!parts_.charge.fits_kept(listed + loose))
    return Error(Errc::no_space, fmt::format("no space to keep '{}' for good: remove something first, or another snapshot", item.name));
  list_.make_permanent(item);
  keeps_ = true;
  changed_.push_back(item.serial);
  active.kept += active.loose.exchange(0);
  parts_.snapshots.expect_clock(item.clock, true);
  return {};
}

std::string SnapshotPlan::unused_name(const Timestamp& made) {
  const std::string name = format::automatic_name(made);
  if (!list_.find(name)) return name;
  for (int i = 2;; ++i)  // the clock was set back
    if (std::string other = fmt::format("{}.{}", name, i); !list_.find(other)) return other;
}

void SnapshotPlan::take(bool last) {
  snapshots::Snapshots& snapshots = parts_.snapshots;
  std::vector<snapshots::Snapshots::Asked> asked = snapshots.take_asked();
  const Protection::Decision protection = parts_.protection.decide(snapshots.current(), last);
  any_ = !asked.empty() || protection.makes_one || parts_.trees.own_view().tables.root;
  if (!any_) return;
  list_ = snapshots.current();
  moves_ = snapshots.take_moves();
  for (const auto& [ticket, change] : asked) answers_.emplace_back(ticket, carry_out(change));
  for (const Serial serial : protection.leaving) {
    format::SnapshotItem* const item = list_.find(serial);
    if (item->automatic && !item->deleting) list_.remove(*item, changed_);  // nobody has kept it just now
  }
  for (const auto& [serial, made] : protection.corrected) {
    list_.find(serial)->made = made;
    changed_.push_back(serial);
  }
  if (protection.makes_one && !creation_) begin(unused_name(parts_.clock.now()), true);
  changes_names_ = !asked.empty() || !protection.leaving.empty() || creation_;
}

snapshots::SnapshotMerge& SnapshotPlan::begin_merge(const Merging& merging) {
  INVARIANT(any_ && !merge_);
  if (creation_ && creation_->automatic) parts_.protection.note_made(merging.serial);
  const snapshots::SnapshotMerge::Parts parts{parts_.snapshots, merging.source, merging.writer, merging.ledger, parts_.trees.own_view(),
                                   merging.serial,   merging.memory_bytes / 32};
  merge_ = std::make_unique<snapshots::SnapshotMerge>(parts, std::move(list_), changed_, std::move(moves_));
  return *merge_;
}

void SnapshotPlan::count_shared_nodes(tree::TreeView& next) const {
  if (creation_) {  // those of the maps with them
    next.tables.shared_nodes = next.node_blocks();
    if (!creation_->automatic) next.automatic.shared_for_good = next.tables.shared_nodes;
  }
  if (keeps_) next.automatic.shared_for_good = next.tables.shared_nodes;  // which of them it has is not known
}

void SnapshotPlan::publish() {
  snapshots::SnapshotList list = merge_->take_list();
  const bool purging = parts_.trees.own_view().tables.root && list.items().empty();
  const auto changed = changes_names_ ? std::optional(parts_.clock.now()) : std::nullopt;
  parts_.snapshots.replace(std::move(list), purging, changed);
  for (auto& [ticket, status] : answers_) parts_.snapshots.tell(ticket, std::move(status));
}

}  // namespace varve::checkpoint
