// A mounted image: its parts, and how a change goes through them: staging (operations), sealing (chunks), checkpoints (trees).
//
// Locks, in this order: gate pass → inodes by number → the parts' own. Sealing and freezing close the gate instead.
#pragma once

#include <memory>

#include "log/log.h"
#include "log/recovery.h"
#include "store/charge.h"
#include "store/checkpoints.h"
#include "store/counters.h"
#include "store/discards.h"
#include "store/faults.h"
#include "store/inode.h"
#include "store/log_clock.h"
#include "store/options.h"
#include "store/space.h"
#include "store/staging.h"
#include "store/superblock_keeper.h"
#include "store/trees.h"
#include "store/waiters.h"

namespace varve::store {

class HoleFeeder;
class Sealer;

class Store {
 public:
  // Where the tables of snapshots are damaged so that no checkpoint could be made, it is read-only from the start and says why.
  static Result<std::unique_ptr<Store>> open(io::BlockDevice& device, const StoreOptions& options);
  ~Store();

  const StoreOptions& options() const { return options_; }
  const format::Superblock& super() const { return superblocks_.found(); }  // of what changes ask superblocks().written()

  io::BlockDevice& device() { return io_.device(); }
  log::IoContext& io() { return io_; }
  log::SegmentTable& segments() { return segments_; }
  log::Log& log() { return log_; }
  SuperblockKeeper& superblocks() { return superblocks_; }
  Trees& trees() { return trees_; }
  InodeTable& inodes() { return inodes_; }
  Gate& gate() { return gate_; }
  Faults& faults() { return faults_; }
  Counters& counters() { return counters_; }
  LogClock& log_clock() { return log_clock_; }
  Changes& changes() { return changes_; }
  Staging& staging() { return staging_; }
  Snapshots& snapshots() { return trees_.snapshots(); }
  Charge& charge() { return charge_; }
  Space& space() { return space_; }
  HoleFeeder& hole_feeder() { return *hole_feeder_; }
  Checkpoints& checkpoints() { return checkpoints_; }
  Waiters& waiters() { return waiters_; }  // for a checkpoint, or for a search for space to end
  Discards& discards() { return discards_; }
  Sealer& sealer() { return *sealer_; }

  // Everything acknowledged so far is in chunk <result> or earlier. Does not wait for I/O.
  // commit: the caller is about to wait until it is durable. `reactor`: of the calling thread, or null.
  enum class Seal : std::uint8_t { append, commit };
  Result<Lsn> seal(Seal purpose = Seal::append, io::Reactor* reactor = nullptr) EXCLUDES(the_gate);
  // After Space::Room::chunk_full: makes room for records in this chunk, if it has much to gain by that and `seal` does not ask for
  // the next one.
  Status make_room_for_records(bool seal, io::Reactor* reactor = nullptr) EXCLUDES(the_gate);
  // When the oldest operation was acknowledged that no flush will come for by itself: it is in no chunk, or in one that nobody
  // waits for. 0: there is none.
  std::uint64_t unawaited_since_ns();
  bool dirty() EXCLUDES(the_gate);  // anything not in the settled trees

  // Both copies. By one thread at a time.
  Status write_superblocks(const format::Superblock& super);
  // Of all mounts together.
  format::LifetimeCounters lifetime();

 private:
  Store(io::BlockDevice& device, const StoreOptions& options, const format::Superblock& super);
  Status load_segments();
  Status load_snapshots();
  Status start(bool copies_equal);
  Status recover(const std::function<Status()>& make_equal);

  const StoreOptions options_;
  log::IoContext io_;
  SuperblockKeeper superblocks_;
  Faults faults_;
  Counters counters_;
  LogClock log_clock_;
  log::SegmentTable segments_;
  log::Log log_;
  Gate gate_;
  Trees trees_;
  InodeTable inodes_;
  Changes changes_;
  Staging staging_;
  Charge charge_;
  Space space_;
  Waiters waiters_;
  Discards discards_;
  std::unique_ptr<HoleFeeder> hole_feeder_;
  std::unique_ptr<Sealer> sealer_;
  Checkpoints checkpoints_;
};

}  // namespace varve::store
