// How a filesystem is mounted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/tunable.h"
#include "snapshots/protection_settings.h"

namespace varve::fs {

enum class Atime : std::uint8_t { relative, never, always };

struct Options {
  bool read_only = false;
  bool no_recovery = false;        // show the last checkpoint, replay nothing; only with read_only
  std::string snapshot;            // show this one instead of the newest state; only with read_only
  bool accept_log_damage = false;  // replay the log up to a damaged chunk: for repairs
  bool must_write = false;         // store/options.h: for repairs
  bool drop_lost_inodes = false;   // forget changes in the log of inodes that the trees do not have: for repairs
  bool background = true;          // false: no threads; timers, cleaning and checkpoints only when called (tests)
  bool count_references = false;   // a kernel keeps inodes: unlinked ones live until forgotten
  bool discard = false;            // discard freed segments after each checkpoint
  bool cleaner = true;
  std::string strategy = "adaptive";   // what it does with live data (cleaner/strategy.h)
  std::string victims = "decline";     // how the cleaner chooses segments (cleaner/victim_rule.h)
  std::string placement = "learned";   // which blocks share segments (cleaner/placement.h)
  std::optional<std::uint32_t> chunk_gap;  // store/options.h
  std::optional<std::uint32_t> tails;      // store/options.h
  unsigned streams = 0;  // that the device keeps cheap at one time: no more places are written in a row; 0: not known
  Atime atime = Atime::relative;
  snapshots::ProtectionSettings protection;  // snapshots that come and go by themselves
  // Both as of now (Filesystem::bound_memory): for caches and changes, which take three quarters of it; and of the whole process
  // (base/heap_trim.h), where 0 means the same, and that nothing is given back.
  Tunable<std::size_t> memory_bytes = 256u << 20, memory_limit_bytes = 0;
  std::uint64_t seal_delay_ms = 30'000;     // an acknowledged operation is on its way to the device after this
  std::uint64_t host_patience_ms = 10'000;  // so long an unmount waits for room on a host that is full
  std::uint64_t checkpoint_records = 1'000'000;
  Clock* clock = &Clock::system();
  Random* random = &Random::system();
};

}  // namespace varve::fs
