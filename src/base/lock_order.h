// The order in which a thread takes locks, checked in debug builds. Two threads that take two locks in different orders wait for each
// other for ever, and a test sees that only when both come at the same moment. With ranks a run of one thread shows it.
// docs/design.md, "Locks", has the table.
#pragma once

#include <cstdint>

namespace varve {

// A thread takes locks downwards: each has a higher rank than all that the thread holds.
enum class LockRank : std::uint8_t {
  checkpoints,
  policies,
  gate,  // several lanes, in their order
  rename,
  inode,  // several, the lowest number first
  unsealed,
  lease_claim,
  lease_tell,
  lease_tenure,
  nbd_guard,
  lease,
  host_listener,
  snapshot_users,
  snapshot_mounts,
  snapshot_readers,
  job,
  settling,
  segments,
  io_thread,
  reactor,
  node_reads,
  log,
  strategy,
  undo,
  leaf,  // a thread that holds one takes no other but those below
  any,   // taken under any lock, also one of its own rank
  fault,
};

#ifdef VARVE_CHECKS_LOCK_ORDER
inline constexpr bool kChecksLockOrder = true;
#else
inline constexpr bool kChecksLockOrder = false;
#endif

// What this thread holds. A lock that is taken against the order ends the program, with a message that names both ranks.
class ThreadLocks {
 public:
  static void check_and_note(LockRank rank, const void* lock);  // before the thread waits for it
  static void note(LockRank rank, const void* lock);            // it was tried, and nobody had it: that waits for nothing
  static void drop(const void* lock);
};

// Of one lock. Without checks it holds nothing and does nothing.
template <bool checks>
class LockPlace {
 public:
  constexpr explicit LockPlace(LockRank rank) : rank_(rank) {}
  void wanted() const { ThreadLocks::check_and_note(rank_, this); }
  void tried() const { ThreadLocks::note(rank_, this); }
  void released() const { ThreadLocks::drop(this); }

 private:
  LockRank rank_;
};

template <>
class LockPlace<false> {
 public:
  constexpr explicit LockPlace(LockRank) {}
  void wanted() const {}
  void tried() const {}
  void released() const {}
};

}  // namespace varve
