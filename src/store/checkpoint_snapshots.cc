// What a checkpoint does about snapshots before and after its merge.
#include <fmt/format.h>

#include "base/invariant.h"
#include "store/checkpoint.h"

namespace varve::store {

Status Checkpoint::take_snapshot_change(const SnapshotChange& change) {
  SnapshotItem* const item = plan_->list.find(change.name);
  switch (change.kind) {
    case SnapshotChange::Kind::create:
      TRY(format::check_snapshot_name(change.name));
      if (item) return Error(Errc::exists, fmt::format("there is a snapshot '{}' already", change.name));
      if (!store_.charge().fits_snapshot())
        return Error(Errc::no_space, "no space for the changes that a snapshot would make the filesystem keep");
      plan_->creation = {change.name, store_.log_clock().begin_unit(), store_.options().clock->now()};
      store_.snapshots().expect_clock(plan_->creation->clock);
      return {};
    case SnapshotChange::Kind::rename:
      TRY(format::check_snapshot_name(change.new_name));
      if (!item) return Error(Errc::not_found, fmt::format("there is no snapshot '{}'", change.name));
      if (change.new_name == change.name) return {};
      if (plan_->list.find(change.new_name)) return Error(Errc::exists, fmt::format("there is a snapshot '{}' already", change.new_name));
      item->name = change.new_name;
      plan_->changed.push_back(item->serial);
      return {};
    case SnapshotChange::Kind::remove:
      if (!item) return Error(Errc::not_found, fmt::format("there is no snapshot '{}'", change.name));
      item->deleting = true;
      plan_->changed.push_back(item->serial);
      // All that the next one lists is its own now. (Behind an older one it may be more than is counted.)
      if (SnapshotItem* const oldest = plan_->list.oldest(); oldest && oldest->alone != oldest->dead) {
        oldest->alone = oldest->dead;
        plan_->changed.push_back(oldest->serial);
      }
      return {};
  }
  return Errc::invalid;
}

// All that was acknowledged before somebody asked is sealed by now, and in the trees that this checkpoint makes.
void Checkpoint::take_snapshot_changes() {
  Snapshots& snapshots = store_.snapshots();
  std::vector<Snapshots::Asked> asked = snapshots.take_asked();
  if (asked.empty() && !store_.trees().own_view().tables.root) return;
  plan_ = std::make_unique<SnapshotPlan>();
  plan_->list = snapshots.current();
  plan_->moves = snapshots.take_moves();
  for (const auto& [ticket, change] : asked) plan_->answers.emplace_back(ticket, take_snapshot_change(change));
}

void Checkpoint::begin_snapshots() {
  if (!plan_) return;
  const SnapshotMerge::Parts parts{store_.snapshots(), *source_, *writer_, *ledger_, store_.trees().own_view(), super_.serial,
                                   store_.options().memory_bytes / 32};
  plan_->merge = std::make_unique<SnapshotMerge>(parts, std::move(plan_->list), plan_->changed, std::move(plan_->moves));
}

void Checkpoint::publish_snapshots() {
  if (!plan_) return;
  SnapshotList list = plan_->merge->take_list();
  const bool purging = store_.trees().own_view().tables.root && list.items().empty();
  const auto changed = plan_->answers.empty() ? std::nullopt : std::optional(store_.options().clock->now());
  store_.snapshots().replace(std::move(list), purging, changed);
  for (auto& [ticket, status] : plan_->answers) store_.snapshots().tell(ticket, std::move(status));
}

}  // namespace varve::store
