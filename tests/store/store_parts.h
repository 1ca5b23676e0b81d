// The parts of a store on an empty filesystem, without a Store, an engine or a filesystem above them: what one class does is tested with
// those that it is given. Nothing has a thread; the test moves the clock.
#pragma once

#include "base/gate.h"
#include "changes/changes.h"
#include "changes/inode.h"
#include "changes/staging.h"
#include "device/faults.h"
#include "device/io_context.h"
#include "format/make.h"
#include "log/log.h"
#include "segments/counters.h"
#include "segments/log_clock.h"
#include "segments/segment_table.h"
#include "snapshots/snapshots.h"
#include "space/charge.h"
#include "space/space.h"
#include "support/manual_clock.h"
#include "tree/trees.h"

namespace varve::test {

inline constexpr std::uint32_t kPartSegmentBlocks = 64;
inline constexpr std::uint64_t kPartDeviceBytes = 64u << 20;  // 250 segments or so

// An empty filesystem of that size, which is not written anywhere yet.
format::EmptyFilesystem made_filesystem(std::uint64_t device_bytes = kPartDeviceBytes);
// Writes its nodes and superblocks. They are durable then.
void write_filesystem(io::BlockDevice& device, const format::EmptyFilesystem& made);

// What is given to the classes under test. `device` outlives it.
struct StoreParts {
  static constexpr std::uint64_t kEpoch = 77;
  static constexpr std::size_t kMemoryBytes = 64u << 20;

  StoreParts(io::BlockDevice& device, const format::Superblock& super);

  // As a clean mount does: segments as the free map says, and the chain where the superblock says. Chunks go to the device at once if the
  // superblocks are to name this epoch already.
  void start(bool epoch_on_disk = true);
  // What the log has been given is durable then, or why it cannot be.
  Status make_log_durable();

  const format::Superblock super;
  ManualClock clock;
  Gate gate;
  device::IoContext io;
  device::Faults faults;
  segments::Counters counters;
  segments::LogClock log_clock;
  segments::SegmentTable segments;
  log::Log log;
  tree::Trees trees;
  snapshots::Snapshots snapshots;
  changes::InodeTable inodes;
  changes::Changes changes;
  changes::Staging staging;
  space::Charge charge;
  Tunable<std::size_t> memory_bytes{kMemoryBytes};
  space::Space space;
};

}  // namespace varve::test
