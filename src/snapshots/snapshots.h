// Which checkpoints are kept, and what is asked to be changed in that. A snapshot comes and goes with a checkpoint, as a whole
// (docs/design.md, "Snapshots"). Any thread, but for what is a checkpoint's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "format/map_record.h"
#include "format/snapshot.h"
#include "snapshots/snapshot_change.h"

namespace varve::segments {
class LogClock;
}

namespace varve::tree {
class NodeSource;
struct TreeRoot;
}  // namespace varve::tree

namespace varve::snapshots {

class SnapshotNames;
using format::SnapshotItem;

// A block that only snapshots need, or a node that they share with the live tree, has been copied by the cleaner. The next checkpoint
// makes the copy count; without one nothing has happened.
struct HeldMove {
  BlockAddr from, to;
  format::ReverseEntry owner;
  Serial birth;         // of a node
  bool shared = false;  // the checkpoint has to take the live tree's node elsewhere, or the copy is in vain
};

// All that are kept, in the order of their serials. For one thread.
//
// What only automatic snapshots hold is called loose: it goes as soon as somebody needs the room. It is counted from below. Of blocks
// that an automatic one lists it is not always known whether one that was asked for has them as well, and then they count as not loose.
class SnapshotList {
 public:
  explicit SnapshotList(std::vector<SnapshotItem> items = {});

  const std::vector<SnapshotItem>& items() const { return items_; }
  SnapshotItem* find(Serial serial);
  const SnapshotItem* find(Serial serial) const { return const_cast<SnapshotList*>(this)->find(serial); }
  SnapshotItem* find(std::string_view name);  // not one that is being deleted
  SnapshotItem* oldest();                     // the same
  // The newest that is not being deleted, of those with a serial below `end`; null: there is none.
  const SnapshotItem* newest(Serial end = Serial{~0ULL}) const;
  // The oldest that is not being deleted and has such a block in its tree; null: none of them that were there before `death`.
  const SnapshotItem* first_holder(const format::Birth& birth, Serial death) const;
  const SnapshotItem* first_deleting() const;
  void add(SnapshotItem item);  // the newest
  void erase(Serial serial);
  void remove(SnapshotItem& item, std::vector<Serial>& changed);  // it is being deleted from now on
  void make_permanent(SnapshotItem& item);                        // an automatic one

  // The newest below `end` that was asked for and is not being deleted; null: there is none.
  const SnapshotItem* newest_permanent(Serial end = Serial{~0ULL}) const;
  // Of the blocks that this one lists.
  std::uint64_t loose_blocks(const SnapshotItem& item) const;
  struct Loose {
    std::uint64_t blocks = 0;    // of all
    std::uint64_t standing = 0;  // of those that are not being deleted
    std::uint64_t most = 0;      // that it may be
  };
  Loose loose() const;
  // `blocks` of this birth have joined the list of `item`, or left it.
  void note_listed(const SnapshotItem& item, const format::Birth& birth, std::uint64_t blocks);
  void note_unlisted(const SnapshotItem& item, const format::Birth& birth, std::uint64_t blocks);

 private:
  bool is_permanent_too(const SnapshotItem& item, const format::Birth& birth) const;
  void count_exactly(SnapshotItem& item, std::vector<Serial>& changed);

  std::vector<SnapshotItem> items_;
  std::vector<Serial> permanent_;                  // those that were asked for and are not being deleted
  std::map<Serial, std::uint64_t> permanent_too_;  // of automatic ones: blocks in the list that one asked for may have, at most
};

class Snapshots {
 public:
  explicit Snapshots(const segments::LogClock& clock);
  ~Snapshots();

  // At mount: what the tables of the newest checkpoint say, as far as they can be read. What cannot is noted as damage.
  Status load(tree::NodeSource& source, const tree::TreeRoot& tables);

  // --- any thread ---
  // Oldest first, without those that are being deleted: of those behind `behind`, so many at most.
  std::vector<SnapshotItem> list(Serial behind = {}, std::size_t most = ~std::size_t{0}) const;
  struct News {
    Serial newest;      // none: there are no snapshots
    Timestamp changed;  // when names came, went or became others
  };
  News news() const;
  std::size_t count() const;  // of those in the list
  std::optional<SnapshotItem> find(std::string_view name) const;
  std::optional<SnapshotItem> find(Serial serial) const;
  // How many items have been copied for callers: what looks at snapshots cost. Tests see to it that none copies all of them.
  std::uint64_t copied() const { return copied_.load(std::memory_order_relaxed); }
  // May a block of a file with this clock be held, should the live tree let it go? Also if it is about to be.
  bool may_hold(std::uint32_t clock) const { return any() && holds_at(newest_clock_, clock); }
  bool any() const { return newest_clock_.load(std::memory_order_relaxed) > 0; }  // that blocks could be held for
  // The same of those that were asked for: what they hold is charged.
  bool may_hold_for_good(std::uint32_t clock) const { return any_permanent() && holds_at(newest_permanent_clock_, clock); }
  bool any_permanent() const { return newest_permanent_clock_.load(std::memory_order_relaxed) > 0; }
  // How many of these are automatic ones, and what they list that none has which was asked for. One that is named twice counts once.
  struct LooseOf {
    std::size_t snapshots = 0;
    std::uint64_t blocks = 0;
  };
  LooseOf loose_of(std::vector<Serial> serials) const;
  std::size_t automatic() const { return automatic_.load(std::memory_order_relaxed); }  // how many, without those being deleted
  // What could not be read of the tables, and what to do. The first damage stays. A checkpoint must not be made on tables that cannot be
  // read: they say which blocks are held.
  Status damage() const;
  Error note_damage(const Error& why);  // returns what users are told
  // Has the newest of them this tree of files? Then it is the state of now, but for what is in no tree yet.
  bool newest_has(const format::NodeRef& inode_file) const;

  // The next checkpoint carries it out; `Errc::exists`, `not_found`, `no_space`. Waiters (store.h) are woken afterwards.
  using Ticket = std::uint64_t;
  Ticket ask(SnapshotChange change);
  void order(SnapshotChange change);  // the same, and nobody waits for an answer
  bool anything_asked() const;
  std::optional<Status> answer(Ticket ticket);  // forgets it; none: it is not there yet
  std::uint64_t moves() const { return move_count_.load(std::memory_order_relaxed); }  // noted for the next checkpoint
  // What was deleted has not been given back yet: checkpoints go on with it.
  bool deletion_is_left() const { return deleting_.load(std::memory_order_relaxed); }

  // --- the thread that makes checkpoints ---
  format::Birth birth_of(std::uint32_t clock) const;  // any thread; of a block of a file, which may be as old as clocks go
  const SnapshotList& current() const NO_THREAD_SAFETY_ANALYSIS { return list_; }  // no other thread replaces it
  struct Asked {
    Ticket ticket = 0;
    SnapshotChange change;
  };
  // All that can be done by one checkpoint: one creation at most.
  std::vector<Asked> take_asked();
  void tell(Ticket ticket, Status status);
  // From here on blocks older than this are taken for held; `for_good`: by one that was asked for.
  void expect_clock(std::uint64_t units, bool for_good);
  // A checkpoint has settled. `changed`: when it was made, if it has changed names.
  void replace(SnapshotList list, bool purging, std::optional<Timestamp> changed = {});
  void note_move(const HeldMove& move);
  std::vector<HeldMove> take_moves();

 private:
  bool holds_at(const std::atomic<std::uint64_t>& newest, std::uint32_t clock) const;
  bool clocks_began_anew() const;
  void note_newest() REQUIRES(mutex_);

  const segments::LogClock& clock_;
  mutable Mutex mutex_;
  SnapshotList list_ GUARDED_BY(mutex_);  // changed by the thread that makes checkpoints only
  const std::unique_ptr<SnapshotNames> names_ PT_GUARDED_BY(mutex_);
  mutable std::atomic<std::uint64_t> copied_{0};
  std::vector<Asked> asked_ GUARDED_BY(mutex_);
  std::map<Ticket, Status> answers_ GUARDED_BY(mutex_);
  Ticket last_ticket_ GUARDED_BY(mutex_) = 0;
  Timestamp changed_ GUARDED_BY(mutex_);
  Status damage_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> newest_clock_{0};            // 0: no snapshot
  std::atomic<std::uint64_t> newest_permanent_clock_{0};  // 0: none that was asked for
  std::atomic<std::size_t> automatic_{0};
  std::atomic<bool> deleting_{false};
  std::vector<HeldMove> moves_;
  std::atomic<std::uint64_t> move_count_{0};
};

}  // namespace varve::snapshots
