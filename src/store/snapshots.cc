#include "store/snapshots.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/invariant.h"

namespace varve::store {

// --- the list -------------------------------------------------------------------------------------------------------------------

SnapshotItem* SnapshotList::find(Serial serial) {
  const auto at = std::ranges::lower_bound(items_, serial, {}, &SnapshotItem::serial);
  return at != items_.end() && at->serial == serial ? &*at : nullptr;
}

SnapshotItem* SnapshotList::find(std::string_view name) {
  const auto at = std::ranges::find_if(items_, [&](const SnapshotItem& item) { return !item.deleting && item.name == name; });
  return at == items_.end() ? nullptr : &*at;
}

SnapshotItem* SnapshotList::oldest() {
  const auto at = std::ranges::find(items_, false, &SnapshotItem::deleting);
  return at == items_.end() ? nullptr : &*at;
}

const SnapshotItem* SnapshotList::newest(Serial end) const {
  auto at = std::ranges::lower_bound(items_, end, {}, &SnapshotItem::serial);
  while (at != items_.begin())
    if (!(--at)->deleting) return &*at;
  return nullptr;
}

const SnapshotItem* SnapshotList::first_holder(const format::Birth& birth, Serial death) const {
  const auto first = std::ranges::partition_point(items_, [&](const SnapshotItem& item) { return !item.holds(birth); });
  for (auto at = first; at != items_.end() && at->serial < death; ++at)
    if (!at->deleting) return &*at;
  return nullptr;
}

const SnapshotItem* SnapshotList::first_deleting() const {
  const auto at = std::ranges::find_if(items_, &SnapshotItem::deleting);
  return at == items_.end() ? nullptr : &*at;
}

void SnapshotList::add(SnapshotItem item) {
  INVARIANT(items_.empty() || items_.back().serial < item.serial);
  items_.push_back(std::move(item));
}

void SnapshotList::erase(Serial serial) {
  std::erase_if(items_, [&](const SnapshotItem& item) { return item.serial == serial; });
}

// --- what is known ----------------------------------------------------------------------------------------------------------------

Status Snapshots::load(NodeSource& source, const TreeRoot& tables) {
  std::vector<SnapshotItem> items;
  if (tables.ref) {
    Cursor cursor(source, tables);
    for (TRY(cursor.seek(format::snapshot_key({}))); cursor.valid(); TRY(cursor.next())) {
      if (cursor.key().ino.v != 0 || cursor.key().kind != format::ItemKind::snapshot) break;
      items.push_back(TRY(format::decode_snapshot(cursor.key(), cursor.value())));
    }
  }
  const bool purging = tables.ref && items.empty();
  const std::optional<Timestamp> newest = items.empty() ? std::nullopt : std::optional(items.back().made);
  replace(SnapshotList(std::move(items)), purging, newest);
  return {};
}

std::vector<SnapshotItem> Snapshots::list() const {
  const Lock lock(mutex_);
  std::vector<SnapshotItem> kept;
  std::ranges::copy_if(list_.items(), std::back_inserter(kept), [](const SnapshotItem& item) { return !item.deleting; });
  return kept;
}

Timestamp Snapshots::changed() const {
  const Lock lock(mutex_);
  return changed_;
}

std::size_t Snapshots::count() const {
  const Lock lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count(list_.items(), false, &SnapshotItem::deleting));
}

std::optional<SnapshotItem> Snapshots::find(std::string_view name) const {
  const Lock lock(mutex_);
  for (const SnapshotItem& item : list_.items())
    if (!item.deleting && item.name == name) return item;
  return std::nullopt;
}

std::optional<SnapshotItem> Snapshots::find(Serial serial) const {
  const Lock lock(mutex_);
  const SnapshotItem* const item = std::as_const(list_).find(serial);
  return item && !item->deleting ? std::optional(*item) : std::nullopt;
}

// A block from before clocks began anew cannot be told from a younger one any more: it counts as old, which keeps it too long, never
// too short. Its file was left alone while the device was written 16384 times.
bool Snapshots::clocks_began_anew() const { return clock_.wide_units(clock_.now()) > ~0U; }

format::Birth Snapshots::birth_of(std::uint32_t clock) const { return {.ancient = clocks_began_anew(), .when = clock}; }

bool Snapshots::holds_at_newest(std::uint32_t clock) const {
  return clock < newest_clock_.load(std::memory_order_relaxed) || clocks_began_anew();
}

void Snapshots::note_newest() {
  const SnapshotItem* newest = list_.newest();
  newest_clock_ = newest ? std::max<std::uint64_t>(newest->clock, 1) : 0;
}

// --- changes --------------------------------------------------------------------------------------------------------------------

Snapshots::Ticket Snapshots::ask(SnapshotChange change) {
  const Lock lock(mutex_);
  asked_.push_back({++last_ticket_, std::move(change)});
  return last_ticket_;
}

bool Snapshots::anything_asked() const {
  const Lock lock(mutex_);
  return !asked_.empty();
}

std::optional<Status> Snapshots::answer(Ticket ticket) {
  const Lock lock(mutex_);
  const auto found = answers_.extract(ticket);
  if (found.empty()) return std::nullopt;
  return std::optional<Status>(std::in_place, found.mapped());
}

std::vector<Snapshots::Asked> Snapshots::take_asked() {
  const Lock lock(mutex_);
  unsigned created = 0;
  const auto end = std::ranges::find_if(asked_, [&](const Asked& asked) {
    return asked.change.kind == SnapshotChange::Kind::create && created++ > 0;
  });
  std::vector<Asked> taken(std::make_move_iterator(asked_.begin()), std::make_move_iterator(end));
  asked_.erase(asked_.begin(), end);
  return taken;
}

void Snapshots::tell(Ticket ticket, Status status) {
  const Lock lock(mutex_);
  answers_.emplace(ticket, std::move(status));
}

void Snapshots::note_move(const HeldMove& move) {
  moves_.push_back(move);
  ++move_count_;
}

// They count until they are in the trees.
std::vector<HeldMove> Snapshots::take_moves() {
  return std::exchange(moves_, {});
}

void Snapshots::expect_clock(std::uint64_t units) { newest_clock_ = std::max<std::uint64_t>(units, 1); }

void Snapshots::replace(SnapshotList list, bool purging, std::optional<Timestamp> changed) {
  const Lock lock(mutex_);
  if (changed) changed_ = *changed;
  list_ = std::move(list);
  move_count_ = 0;
  deleting_ = purging || list_.first_deleting();
  note_newest();
}

}  // namespace varve::store
