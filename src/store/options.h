// What a store is opened with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/tunable.h"

namespace varve::store {

struct StoreOptions {
  bool read_only = false;
  bool no_recovery = false;
  bool accept_log_damage = false;  // replay up to the damage: for repairs
  bool must_write = false;         // a log that cannot be merged is an error, instead of a filesystem that is shown read-only: for repairs
  bool drop_lost_inodes = false;   // in the replay, what changes inodes that the trees do not have: for repairs
  std::string snapshot;            // show this one instead of the newest state; only with read_only
  bool background = true;
  bool discard = false;
  Tunable<std::size_t> memory_bytes = 256u << 20;  // as of now: Store::bound_memory()
  std::optional<std::uint32_t> chunk_gap;  // blocks behind each chunk that somebody waits for; none given: as is best for the device
  std::optional<std::uint32_t> tails;  // bytes of a new tail, 0: no new ones; none given: as the superblock says
  unsigned streams = 0;  // places that the device can write in a row at one time, the chain and nodes included; 0: not known
  Clock* clock = &Clock::system();
  Random* random = &Random::system();
};

}  // namespace varve::store
