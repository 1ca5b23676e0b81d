// What a scrub is asked to do, and what it tells of itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scrub/finding.h"

namespace varve::scrub {

struct Request {
  static constexpr std::uint64_t kUsualRate = 64u << 20;
  std::uint64_t bytes_per_second = kUsualRate;  // 0: as fast as the device reads
  bool from_the_beginning = false;              // else an unfinished scrub goes on
};

struct State {
  enum class Phase : std::uint8_t { never, running, stopped, finished, failed };
  Phase phase = Phase::never;
  std::string reason;        // failed: why
  std::int64_t started = 0;  // seconds since 1970
  std::int64_t finished = 0;
  std::uint64_t bytes_per_second = 0;
  std::uint64_t blocks = 0;       // verified since `started`, over all mounts
  std::uint64_t blocks_all = 0;   // live in the checkpoint that it reads
  std::uint64_t errors = 0;       // findings since `started`, over all mounts
  std::uint64_t snapshot_errors = 0;  // of this mount, in what only snapshots hold
  std::vector<Finding> findings;  // of this mount, the first kMaxFindings
};
const char* name_of(State::Phase phase);

}  // namespace varve::scrub
