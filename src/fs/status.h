// What a mounted filesystem knows about itself.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cleaner/history.h"
#include "device/fault_counts.h"
#include "format/superblock.h"
#include "fs/status_fields.h"
#include "operation/wait_times.h"
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

// Numbers that need no more than their line in the table: device_blocks, user_blocks_written…
struct StatusCounters {
#define COUNTER(section, key, ...) std::uint64_t key = 0;
#define OTHER(...)
  VARVE_STATUS_FIELDS(COUNTER, OTHER, OTHER)
#undef COUNTER
#undef OTHER
};

struct FilesystemStatus : StatusCounters {
  std::string device;
  std::string backend;  // "io_uring", "threads", "memory"
  std::string label;
  std::string uuid;
  bool read_only = false;
  std::string read_only_reason;
  std::string snapshot;  // what is shown instead of the newest state; empty: that

  SegmentCounts segments;
  std::vector<GroupCounts> groups;  // those that have segments, by number
  cleaner::Utilisation utilisation{};
  SnapshotCounts snapshots;
  snapshots::ProtectionSettings protection;

  bool checkpoint_running = false;
  double write_cost = 0;  // (user + cleaned + node + chain) / user, this mount
  double lifetime_write_cost = 0;

  bool cleaner_running = false;
  std::string cleaner_state;  // what it does or why it does nothing
  std::string strategy;
  std::string strategy_explanation;  // of its latest decision; empty: it has none to make
  std::string victim_policy;
  std::string placement;

  format::DeviceProfile device_profile;  // what writes cost, as far as it is known by now

  operation::WaitCounts waits{};  // of operations, by what they waited for

  format::LifetimeCounters lifetime;
  format::ErrorEvent first_error, last_error;
  device::FaultCounts faults;
  scrub::State scrub;
};

}  // namespace varve::fs
