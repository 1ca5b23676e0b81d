// A mounted image: its parts, and how a change goes through them: staging (operations), sealing (chunks), checkpoints (trees).
//
// Locks, in this order: gate pass → inodes by number → the parts' own. Sealing and freezing close the gate instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/gate.h"
#include "base/result.h"
#include "base/types.h"
#include "store/options.h"

namespace varve {
class WaitList;
}

namespace varve::changes {
class Changes;
class InodeTable;
class Staging;
}  // namespace varve::changes

namespace varve::checkpoint {
class Checkpoints;
class Protection;
class Readers;
class Reshaping;
class Sealer;
class Seals;
class SuperblockKeeper;
}  // namespace varve::checkpoint

namespace varve::device {
class Faults;
class IoContext;
}  // namespace varve::device

namespace varve::format {
struct Superblock;
}

namespace varve::io {
class BlockDevice;
class Reactor;
}  // namespace varve::io

namespace varve::log {
class Log;
}

namespace varve::segments {
class LogClock;
class SegmentTable;
struct Counters;
}  // namespace varve::segments

namespace varve::snapshots {
class Snapshots;
}

namespace varve::space {
class Charge;
class Discards;
class HoleFeeder;
class Space;
}  // namespace varve::space

namespace varve::tree {
class Trees;
}

namespace varve::store {

class Store {
 public:
  // Where the tables of snapshots are damaged so that no checkpoint could be made, it is read-only from the start and says why.
  static Result<std::unique_ptr<Store>> open(io::BlockDevice& device, const StoreOptions& options);
  ~Store();

  const StoreOptions& options() const { return options_; }
  // Another StoreOptions::memory_bytes: caches drop what is too much; once more after a checkpoint, also inodes that had changes before.
  // What is under way to the device, and the records of one chunk, keep the bounds that they were opened with. By one thread at a time.
  void bound_memory(std::size_t bytes);
  const format::Superblock& super() const;  // of what changes ask superblocks().written()

  // Its parts. A source that uses one includes the header of that part.
  io::BlockDevice& device();
  device::IoContext& io() { return *io_; }
  segments::SegmentTable& segments() { return *segments_; }
  log::Log& log() { return *log_; }
  checkpoint::SuperblockKeeper& superblocks() { return *superblocks_; }
  tree::Trees& trees() { return *trees_; }
  changes::InodeTable& inodes() { return *inodes_; }
  Gate& gate() { return gate_; }
  device::Faults& faults() { return *faults_; }
  segments::Counters& counters() { return *counters_; }
  segments::LogClock& log_clock() { return *log_clock_; }
  changes::Changes& changes() { return *changes_; }
  changes::Staging& staging() { return *staging_; }
  snapshots::Snapshots& snapshots() { return *snapshots_; }  // those of former checkpoints that are kept
  space::Charge& charge() { return *charge_; }
  space::Space& space() { return *space_; }
  space::HoleFeeder& hole_feeder() { return *hole_feeder_; }
  checkpoint::Checkpoints& checkpoints() { return *checkpoints_; }
  WaitList& waiters() { return *waiters_; }  // for a checkpoint, or for a search for space to end
  space::Discards& discards() { return *discards_; }
  checkpoint::Seals& seals() { return *seals_; }
  checkpoint::Readers& readers() { return *readers_; }
  checkpoint::Protection& protection() { return *protection_; }  // makes snapshots unasked
  checkpoint::Reshaping& reshaping() { return *reshaping_; }

 private:
  Store(io::BlockDevice& device, const StoreOptions& options, const format::Superblock& super);
  Status load_segments();
  Status load_snapshots();
  Status start(bool copies_equal);
  Status recover(const std::function<Status()>& make_equal);

  StoreOptions options_;
  const std::unique_ptr<device::IoContext> io_;
  const std::unique_ptr<checkpoint::SuperblockKeeper> superblocks_;
  const std::unique_ptr<device::Faults> faults_;
  const std::unique_ptr<segments::Counters> counters_;
  const std::unique_ptr<segments::LogClock> log_clock_;
  const std::unique_ptr<segments::SegmentTable> segments_;
  const std::unique_ptr<log::Log> log_;
  Gate gate_;
  const std::unique_ptr<tree::Trees> trees_;
  const std::unique_ptr<snapshots::Snapshots> snapshots_;
  const std::unique_ptr<changes::InodeTable> inodes_;
  const std::unique_ptr<changes::Changes> changes_;
  const std::unique_ptr<changes::Staging> staging_;
  const std::unique_ptr<space::Charge> charge_;
  const std::unique_ptr<space::Space> space_;
  const std::unique_ptr<WaitList> waiters_;
  const std::unique_ptr<space::Discards> discards_;
  const std::unique_ptr<space::HoleFeeder> hole_feeder_;
  const std::unique_ptr<checkpoint::Sealer> sealer_;
  const std::unique_ptr<checkpoint::Readers> readers_;
  const std::unique_ptr<checkpoint::Protection> protection_;
  const std::unique_ptr<checkpoint::Checkpoints> checkpoints_;
  const std::unique_ptr<checkpoint::Seals> seals_;
  const std::unique_ptr<checkpoint::Reshaping> reshaping_;
};

}  // namespace varve::store
