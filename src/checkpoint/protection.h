// Snapshots that come and go by themselves (docs/design.md, "Snapshots that come and go"). A checkpoint makes one at most so often while
// something is written, and gives up those that are too old, or that hold room which users are about to miss.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/gate.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "snapshots/protection_settings.h"
#include "snapshots/snapshot_ages.h"

namespace varve::changes {
class Changes;
}

namespace varve::snapshots {
class Snapshots;
}

namespace varve::space {
class Charge;
class Space;
}  // namespace varve::space

namespace varve::tree {
class Trees;
}

namespace varve::checkpoint {

class Readers;

// How much automatic snapshots may hold where users have so much to fill: half of it. So the cleaner finds at least half as much room as
// without them, and none is left when users have filled it all.
constexpr std::uint64_t most_loose_blocks(std::uint64_t free_blocks) { return free_blocks / 2; }
// Is one of this age too old?
bool is_outdated(std::int64_t age_seconds, const snapshots::ProtectionSettings& settings);

class Protection {
 public:
  struct Parts {
    Gate& gate;
    Clock& clock;
    const changes::Changes& changes;
    const tree::Trees& trees;
    const snapshots::Snapshots& snapshots;
    const space::Charge& charge;
    const space::Space& space;
    Readers& readers;
  };
  explicit Protection(const Parts& parts);

  // --- any thread ---
  void set(const snapshots::ProtectionSettings& settings);
  // The state of now is in the newest snapshot, or is_due().
  void begin() EXCLUDES(the_gate);
  snapshots::ProtectionSettings settings() const;
  // Which there were after the last checkpoint.
  struct Kept {
    std::vector<std::uint64_t> by_rule;  // how many for each rule, as `settings().rules` has them; without rules: one number
    std::uint64_t oldest_s = 0;
  };
  Kept kept() const;
  Timestamp shown_made(const format::SnapshotItem& item) const { return ages_.shown_made(item); }
  // An operation waits for room, or would be refused: the next checkpoint gives up half of what they hold, or all.
  enum class Need : std::uint8_t { none, half, all };
  // False: there are none, or a tool reads all of them (readers.h), and these do not go for anybody.
  bool ask_for_room(Need need);
  // Should a checkpoint be made now for their sake?
  bool is_due() EXCLUDES(the_gate);
  // Will one be made, although nothing more is written?
  bool is_pending() EXCLUDES(the_gate);
  // How many went because of the room that they held, in this mount.
  std::uint64_t given_up() const { return given_up_.load(std::memory_order_relaxed); }
  // `users` says which snapshots are in use: those do not go for their age, and for their room as the last. It is called by the thread that
  // makes a checkpoint, and no more when this has returned.
  using Users = std::function<std::vector<Serial>()>;
  void hold_for(Users users);

  // --- the thread that makes a checkpoint, before its freeze and after it ---
  void look_who_uses_them();
  void tell_who_lost_them();

  // --- a checkpoint, at its freeze ---
  struct Decision {
    std::vector<Serial> leaving;                // those of the list that go now
    std::vector<snapshots::SnapshotAges::Made> corrected;  // when others were made, by the clock as it is set now
    bool makes_one = false;
  };
  // `last`: no other checkpoint follows in this mount.
  Decision decide(const snapshots::SnapshotList& list, bool last) REQUIRES(the_gate);
  // The checkpoint makes this one, now.
  void note_made(Serial serial) { ages_.note_made(serial); }

 private:
  bool any_may_make_room() const;
  bool holds_too_much() const REQUIRES_SHARED(the_gate);
  std::uint64_t loose_blocks() const REQUIRES_SHARED(the_gate);
  std::uint64_t room_for_one() const REQUIRES_SHARED(the_gate);  // blocks; 0: there is none
  std::uint64_t to_free(Need need, bool makes_one) const REQUIRES_SHARED(the_gate);
  std::vector<Serial> leaving(const snapshots::SnapshotList& list, Need need, bool makes_one) REQUIRES(the_gate);
  std::vector<const format::SnapshotItem*> automatic_of(const snapshots::SnapshotList& list) const;
  std::vector<const format::SnapshotItem*> in_turn(const snapshots::SnapshotList& list) const;
  std::vector<Serial> too_old(const snapshots::SnapshotList& list, const snapshots::ProtectionSettings& settings);
  std::vector<Serial> needless(const snapshots::SnapshotList& list, const snapshots::ProtectionSettings& settings,
                               const std::vector<Serial>& old);
  void note_reach_found(const snapshots::SnapshotList& list);
  void note_kept(const snapshots::SnapshotList& list, const Decision& decision);
  bool is_in_use(Serial serial) const { return std::ranges::find(used_, serial) != used_.end(); }
  bool anything_new() const REQUIRES_SHARED(the_gate);
  bool is_time() const;
  std::uint64_t now_ns() const;
  bool is_too_old(std::span<const format::SnapshotItem> from_this_on, const snapshots::ProtectionSettings& settings);

  const Parts parts_;
  snapshots::SnapshotAges ages_;  // the thread that makes a checkpoint
  mutable Mutex mutex_;
  snapshots::ProtectionSettings settings_ GUARDED_BY(mutex_);
  bool is_reach_known_ GUARDED_BY(mutex_) = false;
  Kept kept_ GUARDED_BY(mutex_);
  std::atomic<bool> is_on_{false}, is_off_{false};
  std::atomic<Need> need_{Need::none};
  std::atomic<std::uint64_t> every_ns_{0}, last_ns_{0};  // 0: none yet
  std::atomic<std::uint64_t> given_up_{0};
  Mutex users_mutex_{LockRank::snapshot_users};
  Users users_ GUARDED_BY(users_mutex_);
  std::vector<Serial> used_;               // the thread that makes a checkpoint
  std::vector<std::string> lost_;          // the same: names of those that were in use
  std::atomic<std::size_t> used_stay_{0};  // automatic ones that were to go, and are in use or read
};

}  // namespace varve::checkpoint
