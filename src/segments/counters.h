// What a mount has done so far. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace varve::segments {

struct Counters {
  std::atomic<std::uint64_t> user_blocks{0}, cleaned_blocks{0}, cleaned_blocks_read{0}, node_blocks{0},
      segments_cleaned{0}, checkpoints{0},
      replayed_chunks{0},   // by the recovery
      refilled_blocks{0},   // handed out in holes, to users and to the cleaner
      unforeseen_nodes{0};  // written by checkpoints beyond what was reckoned with: none, if headroom.cc is right
};

}  // namespace varve::segments
