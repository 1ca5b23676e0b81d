// What is told about snapshots (docs/snapshots.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace varve::fs {

struct SnapshotFacts {
  std::string name;
  bool automatic = false;    // made unasked; it goes by itself, too
  std::uint64_t serial = 0;  // of the checkpoint that it keeps
  Timestamp made;
  std::uint64_t inodes = 0;
  std::uint64_t data_blocks = 0;   // of its files, shared or not
  std::uint64_t alone_blocks = 0;  // that would be free without it: so many at least, and no more if it is the oldest
};

struct SnapshotState {
  std::vector<SnapshotFacts> snapshots;  // oldest first
  std::uint64_t held_blocks = 0;         // that live only because of all of them together
  std::uint64_t automatic_blocks = 0;    // of these, what goes when the room is needed; at least
  bool giving_back = false;              // what deleted ones held
  std::uint64_t data_blocks = 0;         // of the files of the newest state
};

}  // namespace varve::fs
