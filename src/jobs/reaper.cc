#include "jobs/reaper.h"

#include "device/faults.h"
#include "jobs/requests.h"
#include "operation/attempt.h"
#include "snapshots/snapshots.h"

namespace varve::jobs {

using operation::Attempt;
using operation::Operation;

Status Reaper::try_once(Operation& operation, Ino ino, Hurry hurry) {
  return parts_.operations.attempt(operation, [&](Attempt& a) -> Status {
    auto inode = a.inode(ino);
    if (!inode.ok()) return inode.error().is(Errc::stale) ? Status{} : Status(inode.error());
    space::Demand demand{.record_bytes = 64, .places = operation::kFewPlaces, .frees = true};
    if (a.store().snapshots().any()) {
      ReadLock lock((*inode)->mutex);
      demand.freed = changes::block_count(**inode, a.view());
    }
    TRY(a.admit(demand, hurry == Hurry::may_wait));
    WriteLock lock((*inode)->mutex);
    if (!(*inode)->gone() && (*inode)->attributes.nlink == 0) a.staging().free_inode(**inode);
    return {};
  });
}

void Reaper::reap(Ino ino) {
  Operation operation(parts_.operations, {});
  (void)block_on(operation, [&] { return try_once(operation, ino, Hurry::may_wait); });
}

void Reaper::soon(Ino ino) {
  Operation operation(parts_.operations, {});
  const Status reaped = try_once(operation, ino, Hurry::hurried);
  if (reaped.fails_with(Errc::would_block) || reaped.fails_with(Errc::host_full)) later(ino);
}

void Reaper::later(Ino ino) {
  {
    const Lock lock(mutex_);
    waiting_.push_back(ino);
  }
  if (parts_.requests.has_threads()) parts_.requests.kick();
  else parts_.operations.background().work(false);
}

// The thread that makes the checkpoints cannot wait for one: what needs that comes again after it.
bool Reaper::reap_waiting() {
  std::vector<Ino> inodes, left;
  {
    const Lock lock(mutex_);
    inodes.swap(waiting_);
  }
  for (Ino ino : inodes) {
    Operation operation(parts_.operations, {});
    Status reaped = try_once(operation, ino, Hurry::hurried);
    while (reaped.fails_with(Errc::would_block) && !operation.wait().for_settled) {
      operation.block();
      reaped = try_once(operation, ino, Hurry::hurried);
    }
    if (reaped.fails_with(Errc::would_block) || reaped.fails_with(Errc::host_full)) left.push_back(ino);
  }
  if (!left.empty()) {
    if (!parts_.faults.host_full()) parts_.requests.note_space_wanted();
    const Lock lock(mutex_);
    waiting_.insert(waiting_.end(), left.begin(), left.end());
  }
  return left.size() < inodes.size();
}

bool Reaper::anything_waits() {
  const Lock lock(mutex_);
  return !waiting_.empty();
}

Status Reaper::reap_orphans() {
  std::vector<Ino> orphans;
  Operation operation(parts_.operations, {});
  TRY(block_on(operation, [&] {
    orphans.clear();
    return parts_.operations.attempt(operation, [&](Attempt& a) -> Status {
      tree::Cursor cursor(a.source(), a.view().inode_file);
      TRY(cursor.seek({format::kOrphanIno, format::ItemKind::orphan, 0}));
      for (; cursor.valid() && cursor.key().ino == format::kOrphanIno; TRY(cursor.next()))
        orphans.push_back(Ino{cursor.key().offset});
      return {};
    });
  }));
  for (Ino ino : parts_.operations.references().take_orphans()) orphans.push_back(ino);
  for (Ino ino : orphans) reap(ino);
  return {};
}

}  // namespace varve::jobs
