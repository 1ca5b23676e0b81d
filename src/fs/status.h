// What a mounted filesystem knows about itself.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cleaner/history.h"
#include "device/fault_counts.h"
#include "format/superblock.h"
#include "fs/wait_times.h"
#include "scrub/state.h"
#include "snapshots/protection_settings.h"

namespace varve::fs {

struct SpaceInfo {  // for statfs; blocks of kBlockSize
  std::uint64_t total = 0;      // what users can fill: capacity without the reserve
  std::uint64_t free = 0;
  std::uint64_t available = 0;  // equal to free: root has no private part
  std::uint64_t inodes = 0;
  std::uint64_t inodes_free = 0;
};

struct SegmentCounts {
  std::uint64_t total = 0;
  std::uint64_t clean = 0;        // allocatable now
  std::uint64_t open = 0;         // heads and chain, and…
  std::uint64_t refilling = 0;    // …those of them whose holes are written
  std::uint64_t empty = 0;        // nothing live, allocatable after the next settled checkpoint
  std::uint64_t used = 0;
};

struct GroupCounts {  // segments that one head fills
  std::uint8_t group = 0;  // 0 … 15; format::kGroupChain, kGroupNodes
  std::uint64_t segments = 0;
  std::uint64_t live_blocks = 0;
  bool open = false;  // one of them is being filled
};

struct SnapshotCounts {
  std::uint64_t count = 0;        // without those that are being deleted
  std::uint64_t held_blocks = 0;  // that live only because of them, or of deleted ones
  bool giving_back = false;       // what deleted ones held
  std::uint64_t automatic = 0;    // of `count`
  std::uint64_t loose_blocks = 0; // of `held_blocks`: that goes when the room is needed; at least
  std::uint64_t given_up = 0;     // automatic ones, for their room, in this mount
  std::vector<std::uint64_t> kept_by_rule;  // automatic ones after the last checkpoint (checkpoint/protection.h)
  std::uint64_t oldest_automatic_s = 0;     // its age
  std::string damage;             // of their tables, and what to do; empty: none was met
};

struct FilesystemStatus {
  std::string device;
  std::string backend;  // "io_uring", "threads", "memory"
  std::string label;
  std::string uuid;
  bool read_only = false;
  std::string read_only_reason;
  std::uint64_t uptime_seconds = 0;
  std::string snapshot;  // what is shown instead of the newest state; empty: that

  // space, in blocks
  std::uint64_t device_blocks = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t garbage_blocks = 0;
  std::uint64_t reserve_blocks = 0;
  std::uint64_t reclaimable_blocks = 0;  // garbage that the next checkpoint frees without cleaning
  std::uint64_t charged_blocks = 0;      // what ENOSPC is decided by
  std::uint64_t available_blocks = 0;    // that users may still write, as df says
  std::uint64_t segment_blocks = 0;
  SegmentCounts segments;
  std::vector<GroupCounts> groups;  // those that have segments, by number
  cleaner::Utilisation utilisation{};
  SnapshotCounts snapshots;
  snapshots::ProtectionSettings protection;

  // log
  std::uint64_t lsn = 0;
  std::uint64_t durable_lsn = 0;
  std::uint64_t chunks = 0;
  std::uint64_t flushes = 0;
  std::uint64_t pending_bytes = 0;
  std::uint64_t log_bytes_since_checkpoint = 0;
  std::uint64_t delta_records = 0;
  std::uint64_t delta_bytes = 0;  // of all changes in memory, those of a running checkpoint included
  std::uint64_t serial = 0;  // settled checkpoint
  std::uint64_t checkpoints = 0;
  bool checkpoint_running = false;
  std::uint64_t replayed_chunks = 0;

  // traffic of this mount, in blocks unless named bytes
  std::uint64_t user_blocks_written = 0;   // by users, as they asked
  std::uint64_t data_blocks_written = 0;   // to the device, for users
  std::uint64_t chain_blocks_written = 0;  // chunk headers
  std::uint64_t node_blocks_written = 0;
  std::uint64_t cleaned_blocks_written = 0;
  std::uint64_t refilled_blocks_written = 0;  // of what users and cleaning wrote: into holes of used segments
  std::uint64_t cleaned_blocks_read = 0;
  std::uint64_t device_bytes_written = 0;
  std::uint64_t device_bytes_read = 0;
  std::uint64_t device_writes = 0;
  std::uint64_t device_reads = 0;
  std::uint64_t device_read_errors = 0;   // requests that failed, those of trials and second tries included
  std::uint64_t device_write_errors = 0;  // and flushes
  double write_cost = 0;           // (user + cleaned + node + chain) / user, this mount
  double lifetime_write_cost = 0;

  // cleaner
  bool cleaner_running = false;
  std::string cleaner_state;       // what it does or why it does nothing
  std::string strategy;
  std::string strategy_explanation;  // of its latest decision; empty: it has none to make
  std::string victim_policy;
  std::string placement;
  std::uint64_t segments_cleaned = 0;
  std::uint64_t pinned_segments = 0;        // by bad blocks, when it last looked: they cannot be emptied
  std::uint64_t pinned_garbage_blocks = 0;  // in these

  // memory
  std::uint64_t node_cache_bytes = 0;
  std::uint64_t node_cache_hits = 0;
  std::uint64_t node_cache_misses = 0;
  std::uint64_t inodes_cached = 0;
  std::uint64_t references = 0;
  std::uint64_t memory_limit_bytes = 0;

  format::DeviceProfile device_profile;  // what writes cost, as far as it is known by now

  WaitCounts waits{};  // of operations, by what they waited for

  format::LifetimeCounters lifetime;
  format::ErrorEvent first_error, last_error;
  device::FaultCounts faults;
  scrub::State scrub;
};

}  // namespace varve::fs
