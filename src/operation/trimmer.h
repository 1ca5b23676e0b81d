// FITRIM: discards what is free, some neighbouring segments at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/gate.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wait_list.h"

namespace varve::io {
class Reactor;
}

namespace varve::device {
class IoContext;
}

namespace varve::segments {
class SegmentTable;
}

namespace varve::space {
class Discards;
class Space;
}  // namespace varve::space

namespace varve::operation {

class Operation;
struct Trim;

class Trimmer {
 public:
  struct Parts {
    Gate& gate;
    device::IoContext& io;
    segments::SegmentTable& segments;
    const space::Space& space;
    space::Discards& discards;
  };
  explicit Trimmer(const Parts& parts) : parts_(parts) {}

  // Filesystem::trim().
  Result<std::uint64_t> trim(Operation& operation, std::uint64_t start, std::uint64_t length, std::uint64_t minimum);
  void start_discard(Trim& trim, io::Reactor* reactor, std::function<void()> came);  // of what that waits for
  // One operation at a time trims. Calls `ready` when another one may; maybe at once.
  void when_free(std::function<void()> ready) {
    waiting_.add_while([this] { return is_taken_.load(); }, std::move(ready));
  }

 private:
  bool take_neighbours(Trim& trim, const std::function<bool(SegmentId)>& is_wanted, std::uint64_t segment_bytes);

  void give_back();

  const Parts parts_;
  std::atomic<bool> is_taken_{false};
  WaitList waiting_;
};

}  // namespace varve::operation
