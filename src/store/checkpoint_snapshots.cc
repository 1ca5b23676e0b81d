// What a checkpoint does about snapshots before and after its merge.
#include <fmt/format.h>

#include "base/invariant.h"
#include "store/changes.h"
#include "store/charge.h"
#include "store/checkpoint.h"
#include "store/log_clock.h"
#include "store/protection.h"

namespace varve::store {

Status Checkpoint::take_snapshot_change(const SnapshotChange& change) {
  SnapshotItem* const item = plan_->list.find(change.name);
  switch (change.kind) {
    case SnapshotChange::Kind::create:
      if (!format::is_passing_name(change.name)) TRY(format::check_snapshot_name(change.name));  // tools make such ones in this way
      if (item) return Error(Errc::exists, fmt::format("there is a snapshot '{}' already", change.name));
      if (!store_.charge().fits_snapshot())
        return Error(Errc::no_space, "no space for the changes that a snapshot would make the filesystem keep");
      begin_snapshot(change.name, false);
      return {};
    case SnapshotChange::Kind::rename:
      if (change.new_name != change.name) TRY(format::check_snapshot_name(change.new_name));  // an automatic one may stay under its own
      if (!item) return Error(Errc::not_found, fmt::format("there is no snapshot '{}'", change.name));
      if (change.new_name == change.name && !item->automatic) return {};
      if (const SnapshotItem* other = plan_->list.find(change.new_name);
          (other && other != item) || (plan_->creation && plan_->creation->name == change.new_name))
        return Error(Errc::exists, fmt::format("there is a snapshot '{}' already", change.new_name));
      if (item->automatic) TRY(keep(*item));
      item->name = change.new_name;
      plan_->changed.push_back(item->serial);
      return {};
    case SnapshotChange::Kind::remove:
      if (!item) return Error(Errc::not_found, fmt::format("there is no snapshot '{}'", change.name));
      plan_->list.remove(*item, plan_->changed);
      return {};
  }
  return Errc::invalid;
}

void Checkpoint::begin_snapshot(std::string name, bool automatic) {
  plan_->creation = {std::move(name), store_.log_clock().begin_unit(), store_.options().clock->now(), automatic};
  store_.snapshots().expect_clock(plan_->creation->clock, !automatic);
}

// An automatic one becomes one that was asked for. From now on its room is charged, and what is being written over counts as its own.
Status Checkpoint::keep(SnapshotItem& item) {
  SnapshotList kept = plan_->list;
  kept.make_permanent(*kept.find(item.serial));
  Delta& active = store_.changes().active();
  const std::uint64_t listed = plan_->list.loose().blocks - kept.loose().blocks, loose = active.loose;
  if (!store_.charge().fits_kept(listed + loose))
    return Error(Errc::no_space, fmt::format("no space to keep '{}' for good: remove something first, or another snapshot", item.name));
  plan_->list.make_permanent(item);
  plan_->keeps = true;
  plan_->changed.push_back(item.serial);
  active.kept += active.loose.exchange(0);
  store_.snapshots().expect_clock(item.clock, true);
  return {};
}

std::string Checkpoint::unused_name(const Timestamp& made) {
  const std::string name = format::automatic_name(made);
  if (!plan_->list.find(name)) return name;
  for (int i = 2;; ++i)  // the clock was set back
    if (std::string other = fmt::format("{}.{}", name, i); !plan_->list.find(other)) return other;
}

// All that was acknowledged before somebody asked is sealed by now, and in the trees that this checkpoint makes.
void Checkpoint::take_snapshot_changes() {
  Snapshots& snapshots = store_.snapshots();
  std::vector<Snapshots::Asked> asked = snapshots.take_asked();
  const Protection::Decision protection = store_.checkpoints().protection().decide(snapshots.current(), request_.clean);
  if (asked.empty() && !protection.makes_one && !store_.trees().own_view().tables.root) return;
  plan_ = std::make_unique<SnapshotPlan>();
  plan_->list = snapshots.current();
  plan_->moves = snapshots.take_moves();
  for (const auto& [ticket, change] : asked) plan_->answers.emplace_back(ticket, take_snapshot_change(change));
  for (const Serial serial : protection.leaving) {
    SnapshotItem* const item = plan_->list.find(serial);
    if (item->automatic && !item->deleting) plan_->list.remove(*item, plan_->changed);  // nobody has kept it just now
  }
  for (const auto& [serial, made] : protection.corrected) {
    plan_->list.find(serial)->made = made;
    plan_->changed.push_back(serial);
  }
  if (protection.makes_one && !plan_->creation) begin_snapshot(unused_name(store_.options().clock->now()), true);
  plan_->changes_names = !asked.empty() || !protection.leaving.empty() || plan_->creation;
}

void Checkpoint::begin_snapshots() {
  if (!plan_) return;
  if (plan_->creation && plan_->creation->automatic) store_.checkpoints().protection().note_made(super_.serial);
  const SnapshotMerge::Parts parts{store_.snapshots(), *source_, *writer_, *ledger_, store_.trees().own_view(), super_.serial,
                                   store_.options().memory_bytes / 32};
  plan_->merge = std::make_unique<SnapshotMerge>(parts, std::move(plan_->list), plan_->changed, std::move(plan_->moves));
}

void Checkpoint::publish_snapshots() {
  if (!plan_) return;
  SnapshotList list = plan_->merge->take_list();
  const bool purging = store_.trees().own_view().tables.root && list.items().empty();
  const auto changed = plan_->changes_names ? std::optional(store_.options().clock->now()) : std::nullopt;
  store_.snapshots().replace(std::move(list), purging, changed);
  for (auto& [ticket, status] : plan_->answers) store_.snapshots().tell(ticket, std::move(status));
}

}  // namespace varve::store
