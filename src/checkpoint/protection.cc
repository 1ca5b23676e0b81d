#include "checkpoint/protection.h"

#include <algorithm>
#include <utility>

#include "base/invariant.h"
#include "base/logging.h"
#include "changes/changes.h"
#include "checkpoint/readers.h"
#include "format/snapshot.h"
#include "snapshots/retention.h"
#include "snapshots/snapshots.h"
#include "space/admission.h"
#include "space/charge.h"
#include "space/space.h"
#include "tree/trees.h"

namespace varve::checkpoint {

namespace {
constexpr std::uint64_t kLeftBehindSeconds = 3600;  // of a mount that does not say how far back they should reach
}

namespace {
std::uint64_t reach_s(const snapshots::ProtectionSettings& settings) {
  return settings.is_on() ? settings.window_s : std::max(settings.window_s, kLeftBehindSeconds);
}
}  // namespace

bool is_outdated(std::int64_t age_seconds, const snapshots::ProtectionSettings& settings) {
  using Mode = snapshots::ProtectionSettings::Mode;
  if (settings.mode == Mode::leave) return false;
  return settings.mode == Mode::off || age_seconds > static_cast<std::int64_t>(reach_s(settings));
}

Protection::Protection(const Parts& parts) : parts_(parts), ages_(parts.clock) {}

// The newest one from before the window has the state that the window begins with: as long as none is behind it, however long ago it was
// made, what is done now can be undone.
bool Protection::is_too_old(std::span<const format::SnapshotItem> from_this_on, const snapshots::ProtectionSettings& settings) {
  if (!is_outdated(ages_.seconds(from_this_on.front()), settings)) return false;
  if (!settings.is_on()) return true;
  const auto later = from_this_on.subspan(1);
  const auto next = std::ranges::find_if(later, [](const format::SnapshotItem& item) { return item.automatic && !item.deleting; });
  return next != later.end() && is_outdated(ages_.seconds(*next), settings);
}

void Protection::set(const snapshots::ProtectionSettings& settings) {
  const Lock lock(mutex_);
  if (settings.is_on() && !settings_.is_on()) last_ns_ = 0;
  settings_ = settings;
  every_ns_ = settings.interval_s() * 1'000'000'000;
  is_on_ = settings.is_on();
  is_off_ = settings.mode == snapshots::ProtectionSettings::Mode::off;
  used_stay_ = 0;
}

void Protection::begin() {
  const Gate::Pass pass(parts_.gate);
  if (!last_ns_ && !anything_new()) last_ns_ = std::max<std::uint64_t>(now_ns(), 1);
}

snapshots::ProtectionSettings Protection::settings() const {
  const Lock lock(mutex_);
  return settings_;
}

bool Protection::ask_for_room(Need need) {
  if (!any_may_make_room()) return false;
  Need asked = need_;
  while (asked < need && !need_.compare_exchange_weak(asked, need)) {
  }
  return true;
}

bool Protection::any_may_make_room() const { return parts_.readers.expendable() > 0; }

std::uint64_t Protection::now_ns() const { return parts_.clock.monotonic_ns(); }

// --- users of snapshots ---------------------------------------------------------------------------------------------------------

void Protection::hold_for(Users users) {
  const Lock lock(users_mutex_);
  users_ = std::move(users);
}

void Protection::look_who_uses_them() {
  used_.clear();
  if (!parts_.snapshots.automatic()) return;
  const Lock lock(users_mutex_);
  if (users_) used_ = users_();
}

// This is not done at the freeze, while everybody waits.
void Protection::tell_who_lost_them() {
  for (const std::string& name : std::exchange(lost_, {}))
    log_warn("the automatic snapshot '{}' was mounted, and is given up: others need its room", name);
}

// --- when ---------------------------------------------------------------------------------------------------------------------------

bool Protection::is_time() const {
  const std::uint64_t last = last_ns_, now = now_ns();
  INVARIANT(last <= now);
  return !last || now - last >= every_ns_;
}

bool Protection::holds_too_much() const { return loose_blocks() > most_loose_blocks(parts_.charge.free_blocks()); }

// Without what is charged because a tool reads it.
std::uint64_t Protection::loose_blocks() const {
  const std::uint64_t loose = parts_.charge.pending_loose_blocks();
  return loose - std::min(loose, parts_.charge.held_blocks());
}

// For what a new one may come to hold soon. Where users are about to wait none is made: it would not last, but ask for room until it goes.
std::uint64_t Protection::room_for_one() const {
  const std::uint64_t needed = parts_.charge.nodes_to_hold() / 4 + parts_.trees.view().segments.blocks;
  const bool fits = most_loose_blocks(parts_.charge.free_blocks()) >= needed && parts_.space.spare_segments() > 0;
  return fits ? needed : 0;
}

bool Protection::anything_new() const {
  return parts_.changes.any() || !parts_.snapshots.newest_has(parts_.trees.view().inode_file.ref);
}

bool Protection::is_due() {
  const bool has_any = parts_.snapshots.automatic() > 0, is_on = is_on_.load(std::memory_order_relaxed);
  if (!has_any && !is_on) return false;
  const bool any_may_go = parts_.snapshots.automatic() > used_stay_.load(std::memory_order_relaxed);
  if (has_any && is_off_.load(std::memory_order_relaxed) && any_may_go) return true;
  const bool may_make_room = has_any && any_may_make_room();
  if (may_make_room && need_ != Need::none) return true;
  const bool may_make_one = is_on && is_time();
  const Gate::Pass pass(parts_.gate);
  return (may_make_room && holds_too_much()) || (may_make_one && anything_new() && room_for_one() > 0);
}

bool Protection::is_pending() {
  if (!is_on_.load(std::memory_order_relaxed)) return false;
  const Gate::Pass pass(parts_.gate);
  return anything_new() && room_for_one() > 0;
}

// --- at the freeze --------------------------------------------------------------------------------------------------------------------

std::uint64_t Protection::to_free(Need need, bool makes_one) const {
  if (need == Need::all) return ~0ULL;
  const std::uint64_t loose = loose_blocks();
  const std::uint64_t bound = most_loose_blocks(parts_.charge.free_blocks()), for_one = makes_one ? room_for_one() : 0;
  INVARIANT(for_one <= bound);  // the gate is closed since that was asked
  const std::uint64_t most = bound - for_one;
  const std::uint64_t beyond = loose - std::min(loose, most);
  return need == Need::half ? std::max(beyond, loose / 2 + 1) : beyond;
}

// The automatic ones, oldest first.
std::vector<const format::SnapshotItem*> Protection::automatic_of(const snapshots::SnapshotList& list) const {
  std::vector<const format::SnapshotItem*> automatic;
  for (const format::SnapshotItem& item : list.items())
    if (item.automatic && !item.deleting) automatic.push_back(&item);
  return automatic;
}

// The same, those in use behind the others.
std::vector<const format::SnapshotItem*> Protection::in_turn(const snapshots::SnapshotList& list) const {
  std::vector<const format::SnapshotItem*> turn = automatic_of(list);
  std::stable_partition(turn.begin(), turn.end(), [this](const format::SnapshotItem* item) { return !is_in_use(item->serial); });
  return turn;
}

// A mount that does not say how far back they should reach leaves them for as long again as they do now.
void Protection::note_reach_found(const snapshots::SnapshotList& list) {
  const Lock lock(mutex_);
  if (is_reach_known_ || settings_.mode != snapshots::ProtectionSettings::Mode::fade) return;
  is_reach_known_ = true;
  const std::vector<const format::SnapshotItem*> found = automatic_of(list);
  if (found.empty()) return;
  const std::int64_t reach = ages_.seconds(*found.front()) - ages_.seconds(*found.back());
  settings_.window_s = static_cast<std::uint64_t>(std::max<std::int64_t>(reach, 0));
}

// Returns those that the rules of retention do not need, in the order of serials. `old` go anyway, and are no neighbours to rely on.
std::vector<Serial> Protection::needless(const snapshots::SnapshotList& list, const snapshots::ProtectionSettings& settings,
                                         const std::vector<Serial>& old) {
  std::vector<Serial> serials, needless;
  std::vector<snapshots::AgedSnapshot> aged;
  if (settings.rules.empty()) return needless;
  for (const format::SnapshotItem* const item : automatic_of(list)) {
    if (std::ranges::binary_search(old, item->serial)) continue;
    serials.push_back(item->serial);
    aged.push_back({ages_.seconds(*item), is_in_use(item->serial)});
  }
  const std::vector<bool> goes = snapshots::superfluous(aged, settings.rules);
  for (std::size_t i = 0; i < goes.size(); ++i)
    if (goes[i]) needless.push_back(serials[i]);
  return needless;
}

std::vector<Serial> Protection::too_old(const snapshots::SnapshotList& list, const snapshots::ProtectionSettings& settings) {
  std::vector<Serial> old;
  const std::span items(list.items());
  for (const format::SnapshotItem* const item : automatic_of(list))
    if (is_too_old(items.subspan(static_cast<std::size_t>(item - items.data())), settings)) old.push_back(item->serial);
  return old;
}

// What the oldest of them lists is held by no other one: each gives back what it lists. One in use may be older, and have that as well:
// then it is asked again, and as long as it takes. Of one that goes from between others only what it has alone is sure.
std::vector<Serial> Protection::leaving(const snapshots::SnapshotList& list, Need need, bool makes_one) {
  std::vector<Serial> gone;
  const snapshots::ProtectionSettings settings = this->settings();
  const std::uint64_t to_free = this->to_free(need, makes_one);
  std::uint64_t freed = 0;
  std::size_t read = 0;
  const std::vector<Serial> held = parts_.readers.held();
  used_stay_ = 0;
  const std::vector<Serial> old = too_old(list, settings), needless = this->needless(list, settings, old);
  bool is_oldest = true;
  for (const format::SnapshotItem* const item : in_turn(list)) {
    const bool is_old = std::ranges::binary_search(old, item->serial);
    const bool is_due = is_old || std::ranges::binary_search(needless, item->serial);
    const bool is_used = is_in_use(item->serial), is_read = std::ranges::find(held, item->serial) != held.end();
    read += is_read;
    if (is_read || ((!is_due || is_used) && freed >= to_free)) {
      used_stay_ += is_old;
      is_oldest = false;
      continue;
    }
    gone.push_back(item->serial);
    freed += is_oldest || !is_due || is_old ? list.loose_blocks(*item) : std::min(list.loose_blocks(*item), item->alone);
    given_up_ += !is_due || is_used;
    if (is_used) lost_.push_back(item->name);
  }
  INVARIANT(gone.size() <= parts_.snapshots.automatic());
  INVARIANT(need != Need::all || gone.size() + read == parts_.snapshots.automatic());
  return gone;
}

Protection::Decision Protection::decide(const snapshots::SnapshotList& list, bool last) {
  Decision decision;
  parts_.readers.count();
  const Need need = need_.exchange(Need::none);
  const bool is_wanted = is_on_.load(std::memory_order_relaxed) && (last || is_time()) && anything_new();
  decision.makes_one = is_wanted && need == Need::none && room_for_one() > 0;
  // Where there is no room, or somebody waits for it, not again at once.
  if (is_wanted || need != Need::none) last_ns_ = std::max<std::uint64_t>(now_ns(), 1);
  INVARIANT(!decision.makes_one || need == Need::none);  // it would ask for the room that others wait for
  if (parts_.snapshots.automatic()) {
    note_reach_found(list);
    decision.leaving = leaving(list, need, decision.makes_one);
    if (settings().mode != snapshots::ProtectionSettings::Mode::leave) decision.corrected = ages_.corrected(list, last);
  }
  parts_.readers.note_leaving(decision.leaving);
  note_kept(list, decision);
  return decision;
}

void Protection::note_kept(const snapshots::SnapshotList& list, const Decision& decision) {
  const snapshots::ProtectionSettings settings = this->settings();
  const std::vector<snapshots::RetentionRule> rules = settings.rules.empty() ? std::vector<snapshots::RetentionRule>(1) : settings.rules;
  Kept kept{std::vector<std::uint64_t>(rules.size()), 0};
  kept.by_rule.front() += decision.makes_one;
  std::vector<Serial> leaving = decision.leaving;
  std::ranges::sort(leaving);
  for (const format::SnapshotItem* const item : automatic_of(list)) {
    if (std::ranges::binary_search(leaving, item->serial)) continue;
    const std::int64_t age = std::max<std::int64_t>(ages_.seconds(*item), 0);
    ++kept.by_rule[snapshots::rule_for(age, rules)];
    kept.oldest_s = std::max(kept.oldest_s, static_cast<std::uint64_t>(age));
  }
  const Lock lock(mutex_);
  kept_ = std::move(kept);
}

Protection::Kept Protection::kept() const {
  const Lock lock(mutex_);
  return kept_;
}

}  // namespace varve::checkpoint
