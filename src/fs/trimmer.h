// FITRIM: discards what is free, some neighbouring segments at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "base/types.h"
#include "fs/turn.h"

namespace varve::io {
class Reactor;
}

namespace varve::store {
class Store;
}

namespace varve::fs {

class Operation;
struct Trim;

class Trimmer {
 public:
  explicit Trimmer(store::Store& store) : store_(store) {}

  // Filesystem::trim().
  Result<std::uint64_t> trim(Operation& operation, std::uint64_t start, std::uint64_t length, std::uint64_t minimum);
  void start_discard(Trim& trim, io::Reactor* reactor, std::function<void()> came);  // of what that waits for
  Turn& turn() { return turn_; }

 private:
  bool take_neighbours(Trim& trim, const std::function<bool(SegmentId)>& is_wanted, std::uint64_t segment_bytes);

  store::Store& store_;
  Turn turn_;
};

}  // namespace varve::fs
