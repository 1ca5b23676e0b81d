// Reads the chain back after a crash (docs/design.md 6).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "format/superblock.h"
#include "io/block_device.h"
#include "log/log.h"

namespace varve::log {

struct Recovered {
  ChainPosition position;      // after the last chunk that counts
  std::uint64_t clock = 0;
  std::uint64_t next_ino = 0;
  std::uint64_t chunks = 0;
  std::uint64_t blocks = 0;    // of log walked, inline payload included
  Serial settled;              // newest checkpoint that a chunk names as settled
  std::vector<format::Run> behind;  // where chunks of this mount stand behind the end, to which no way leads
  bool cut_short = false;      // a valid header was dropped because its payload is not there
};

// Called for each chunk of the recovered prefix, in order. `payload` = address of its first inline block.
using ChunkVisitor = std::function<Status(const format::Chunk& chunk)>;

struct RecoveryOptions {
  bool accept_damage = false;  // ends the log at the damage instead of failing
  bool looks_behind = true;    // false: of what has a sound end; damage is not looked for there, nor is `behind` told
};

// Where chunks may stand that come after one that stands in `rest` at most: in any gap of its segment, if there may be gaps.
format::Run where_log_may_go_on(const format::Superblock& super, const format::Run& rest);

// Follows the chain from the superblock's place. Payload is verified only above the highest `durable` that a valid header
// names: the first bad one there is the cut; below it a bad payload stays an error of that block alone (H8).
// Errc::needs_fsck when what ends the chain is damage and not a crash (H9, H27); Errc::io when it is a block that cannot be read,
// and later chunks show that it had been durable. Reads only.
Result<Recovered> recover_chain(io::BlockDevice& device, const format::Superblock& super, const ChunkVisitor& visit,
                                const RecoveryOptions& options = {});

}  // namespace varve::log
