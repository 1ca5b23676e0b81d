#include "snapshots/snapshots.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/invariant.h"
#include "segments/log_clock.h"
#include "snapshots/snapshot_names.h"

namespace varve::snapshots {

// --- the list -------------------------------------------------------------------------------------------------------------------

SnapshotList::SnapshotList(std::vector<SnapshotItem> items) : items_(std::move(items)) {
  bool is_first = true;  // of those that are not being deleted
  for (const SnapshotItem& item : items_) {
    if (item.automatic && !is_first) permanent_too_[item.serial] = item.dead - item.alone;
    if (!item.automatic && !item.deleting) permanent_.push_back(item.serial);
    is_first = is_first && item.deleting;
  }
}

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
  if (!item.automatic) permanent_.push_back(item.serial);
  items_.push_back(std::move(item));
}

void SnapshotList::erase(Serial serial) {
  std::erase_if(items_, [&](const SnapshotItem& item) { return item.serial == serial; });
  std::erase(permanent_, serial);
  permanent_too_.erase(serial);
}

// --- those that come and go by themselves -----------------------------------------------------------------------------------------

const SnapshotItem* SnapshotList::newest_permanent(Serial end) const {
  const auto behind = std::ranges::lower_bound(permanent_, end);
  return behind == permanent_.begin() ? nullptr : find(*std::prev(behind));
}

std::uint64_t SnapshotList::loose_blocks(const SnapshotItem& item) const {
  if (!item.automatic) return 0;
  const auto too = newest_permanent(item.serial) ? permanent_too_.find(item.serial) : permanent_too_.end();
  return item.dead - (too == permanent_too_.end() ? 0 : std::min(too->second, item.dead));
}

SnapshotList::Loose SnapshotList::loose() const {
  Loose sum;
  bool is_behind_permanent = false;
  for (const SnapshotItem& item : items_) {
    is_behind_permanent |= !item.automatic && !item.deleting;
    if (!item.automatic) continue;
    sum.most += item.dead;
    const std::uint64_t blocks = is_behind_permanent ? loose_blocks(item) : item.dead;
    sum.blocks += blocks;
    if (!item.deleting) sum.standing += blocks;
  }
  return sum;
}

bool SnapshotList::is_permanent_too(const SnapshotItem& item, const format::Birth& birth) const {
  const SnapshotItem* const permanent = item.automatic ? newest_permanent(item.serial) : nullptr;
  return permanent && permanent->holds(birth);
}

void SnapshotList::note_listed(const SnapshotItem& item, const format::Birth& birth, std::uint64_t blocks) {
  if (is_permanent_too(item, birth)) permanent_too_[item.serial] += blocks;
}

void SnapshotList::note_unlisted(const SnapshotItem& item, const format::Birth& birth, std::uint64_t blocks) {
  if (!is_permanent_too(item, birth)) return;
  std::uint64_t& count = permanent_too_[item.serial];
  count -= std::min(count, blocks);
}

// What the oldest lists is its own, and what the oldest automatic one lists and none that was asked for has.
void SnapshotList::count_exactly(SnapshotItem& item, std::vector<Serial>& changed) {
  const SnapshotItem* const before = newest(item.serial);
  std::uint64_t alone = item.alone;
  if (!before) alone = item.dead;
  else if (item.automatic && !before->automatic) alone = std::max(alone, loose_blocks(item));
  if (alone == item.alone) return;
  item.alone = alone;
  changed.push_back(item.serial);
}

void SnapshotList::remove(SnapshotItem& item, std::vector<Serial>& changed) {
  item.deleting = true;
  std::erase(permanent_, item.serial);
  changed.push_back(item.serial);
  if (SnapshotItem* const first = oldest()) count_exactly(*first, changed);
  const auto next = std::ranges::find_if(items_, [&](const SnapshotItem& other) { return other.serial > item.serial && !other.deleting; });
  if (next != items_.end()) count_exactly(*next, changed);
}

void SnapshotList::make_permanent(SnapshotItem& item) {
  item.automatic = false;
  permanent_.insert(std::ranges::upper_bound(permanent_, item.serial), item.serial);
  permanent_too_.erase(item.serial);
  for (const SnapshotItem& other : items_)  // which of their blocks it has nobody has counted
    if (other.automatic && other.serial > item.serial) permanent_too_[other.serial] = other.dead - other.alone;
}

// --- what is known ----------------------------------------------------------------------------------------------------------------

Snapshots::Snapshots(const segments::LogClock& clock) : clock_(clock), names_(std::make_unique<SnapshotNames>()) {}
Snapshots::~Snapshots() = default;

std::vector<SnapshotItem> Snapshots::list(Serial behind, std::size_t most) const {
  const Lock lock(mutex_);
  std::vector<SnapshotItem> kept;
  const auto& items = list_.items();
  for (auto at = std::ranges::upper_bound(items, behind, {}, &SnapshotItem::serial); at != items.end() && kept.size() < most; ++at)
    if (!at->deleting) kept.push_back(*at);
  copied_ += kept.size();
  return kept;
}

Snapshots::News Snapshots::news() const {
  const Lock lock(mutex_);
  const SnapshotItem* const newest = list_.newest();
  return {newest ? newest->serial : Serial{}, changed_};
}

std::size_t Snapshots::count() const {
  const Lock lock(mutex_);
  return names_->count();
}

std::optional<SnapshotItem> Snapshots::find(std::string_view name) const {
  const Lock lock(mutex_);
  const SnapshotItem* const item = std::as_const(list_).find(names_->find(name));
  if (!item) return std::nullopt;
  ++copied_;
  return *item;
}

std::optional<SnapshotItem> Snapshots::find(Serial serial) const {
  const Lock lock(mutex_);
  const SnapshotItem* const item = std::as_const(list_).find(serial);
  if (!item || item->deleting) return std::nullopt;
  ++copied_;
  return *item;
}

Snapshots::LooseOf Snapshots::loose_of(std::vector<Serial> serials) const {
  LooseOf sum;
  if (serials.empty()) return sum;
  std::ranges::sort(serials);
  const Lock lock(mutex_);
  for (auto at = serials.begin(); at != serials.end(); at = std::upper_bound(at, serials.end(), *at)) {
    const SnapshotItem* const item = list_.find(*at);
    if (!item || !item->automatic || item->deleting) continue;
    ++sum.snapshots;
    sum.blocks += list_.loose_blocks(*item);
  }
  return sum;
}

// A block from before clocks began anew cannot be told from a younger one any more: it counts as old, which keeps it too long, never
// too short. Its file was left alone while the device was written 16384 times.
bool Snapshots::clocks_began_anew() const { return clock_.wide_units(clock_.now()) > ~0U; }

format::Birth Snapshots::birth_of(std::uint32_t clock) const { return {.ancient = clocks_began_anew(), .when = clock}; }

bool Snapshots::holds_at(const std::atomic<std::uint64_t>& newest, std::uint32_t clock) const {
  return clock < newest.load(std::memory_order_relaxed) || clocks_began_anew();
}

bool Snapshots::newest_has(const format::NodeRef& inode_file) const {
  const Lock lock(mutex_);
  const SnapshotItem* const newest = list_.newest();
  return newest && newest->inode_file.address == inode_file.address && newest->inode_file.crc == inode_file.crc;
}

void Snapshots::note_newest() {
  const SnapshotItem* newest = list_.newest();
  newest_clock_ = newest ? std::max<std::uint64_t>(newest->clock, 1) : 0;
  const SnapshotItem* permanent = list_.newest_permanent();
  newest_permanent_clock_ = permanent ? std::max<std::uint64_t>(permanent->clock, 1) : 0;
  automatic_ = static_cast<std::size_t>(
      std::ranges::count_if(list_.items(), [](const SnapshotItem& item) { return item.automatic && !item.deleting; }));
}

// --- changes --------------------------------------------------------------------------------------------------------------------

Snapshots::Ticket Snapshots::ask(SnapshotChange change) {
  const Lock lock(mutex_);
  asked_.push_back({++last_ticket_, std::move(change)});
  return last_ticket_;
}

void Snapshots::order(SnapshotChange change) {
  const Lock lock(mutex_);
  asked_.push_back({0, std::move(change)});
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
  if (ticket) answers_.emplace(ticket, std::move(status));
}

void Snapshots::note_move(const HeldMove& move) {
  moves_.push_back(move);
  ++move_count_;
}

// They count until they are in the trees.
std::vector<HeldMove> Snapshots::take_moves() {
  return std::exchange(moves_, {});
}

void Snapshots::expect_clock(std::uint64_t units, bool for_good) {
  newest_clock_ = std::max({units, newest_clock_.load(), std::uint64_t{1}});
  if (for_good) newest_permanent_clock_ = std::max({units, newest_permanent_clock_.load(), std::uint64_t{1}});
}

void Snapshots::replace(SnapshotList list, bool purging, std::optional<Timestamp> changed) {
  const Lock lock(mutex_);
  if (changed) changed_ = *changed;
  names_->update(list_.items(), list.items());
  list_ = std::move(list);
  move_count_ = 0;
  deleting_ = purging || list_.first_deleting();
  note_newest();
}

}  // namespace varve::snapshots
