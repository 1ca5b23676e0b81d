#include "base/lock_order.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace varve {

namespace {

constexpr std::array kNames = {"checkpoints",     "policies",  "gate",          "rename", "inode",          "unsealed",
                               "lease_claim",     "lease_tell", "lease_tenure",  "nbd_guard", "lease",      "host_listener",
                               "undo",            "snapshot_users", "snapshot_mounts", "snapshot_readers", "job", "settling",
                               "segments",        "io_thread", "reactor",       "node_reads", "log", "strategy", "leaf",       "any",
                               "fault"};
static_assert(kNames.size() == static_cast<std::size_t>(LockRank::fault) + 1);

struct Held {
  LockRank rank{};
  const void* lock = nullptr;
};

constexpr std::size_t kMostLocks = 64;

// No container: it is used while a thread ends, too, and must not take memory.
struct Thread {
  std::array<Held, kMostLocks> held;
  std::size_t count = 0;
};
thread_local Thread self;

const char* name_of(LockRank rank) { return kNames[static_cast<std::size_t>(rank)]; }

[[noreturn]] void end(const char* what, LockRank wanted, LockRank held) {
  fmt::print(stderr, "locks: {}: {} is taken under {} (docs/design.md, \"Locks\")\n", what, name_of(wanted), name_of(held));
  std::fflush(stderr);
  std::abort();
}

bool may_follow(LockRank held, LockRank wanted) {
  if (wanted > held) return true;
  return wanted == held && (wanted == LockRank::gate || wanted == LockRank::inode || wanted == LockRank::any);
}

}  // namespace

void ThreadLocks::check_and_note(LockRank rank, const void* lock) {
  for (std::size_t i = 0; i < self.count; ++i) {
    if (self.held[i].lock == lock) end("a lock that this thread has", rank, self.held[i].rank);
    if (!may_follow(self.held[i].rank, rank)) end("not in the order of ranks", rank, self.held[i].rank);
  }
  note(rank, lock);
}

void ThreadLocks::note(LockRank rank, const void* lock) {
  if (self.count == kMostLocks) end("more locks than a thread should hold", rank, self.held[kMostLocks - 1].rank);
  self.held[self.count++] = {rank, lock};
}

void ThreadLocks::drop(const void* lock) {
  for (std::size_t i = self.count; i-- > 0;) {
    if (self.held[i].lock != lock) continue;
    for (--self.count; i < self.count; ++i) self.held[i] = self.held[i + 1];
    return;
  }
}

}  // namespace varve
