// How the kernel sees what snapshots keep: numbers of inodes that no live one has, and that say which snapshot and which inode is meant.
// So nothing has to be remembered for them, and they stay the same for as long as the snapshot is there.
#pragma once

#include <cstdint>
#include <optional>

#include "base/types.h"

namespace varve::fuse {

struct KeptNode {
  Serial snapshot;  // none: the folder of all snapshots
  Ino ino;

  // A bit that says so, 28 of the checkpoint's number, 35 of the inode's. Without: one of both is larger.
  static constexpr unsigned kSerialBits = 28, kInoBits = 35;
  static constexpr std::uint64_t kMark = kInSnapshots;

  std::optional<Ino> encode() const {
    if (snapshot.v >> kSerialBits || ino.v >> kInoBits) return std::nullopt;
    return Ino{kMark | snapshot.v << kInoBits | ino.v};
  }
  static KeptNode decode(Ino node) {
    const std::uint64_t rest = node.v & ~kMark;
    return {Serial{rest >> kInoBits}, Ino{rest & ((1ULL << kInoBits) - 1)}};
  }
  bool is_folder() const { return !snapshot; }
};

inline constexpr Ino kSnapshotsFolder{KeptNode::kMark};

inline bool is_kept(Ino node) { return is_in_snapshots(node.v); }

}  // namespace varve::fuse
