// Reads or writes that one thread hands over together and waits for: several at once on their way, but never so much that
// the requests of others would wait long behind them.
#pragma once

#include <deque>
#include <span>

#include "io/block_device.h"

namespace varve::io {

// Used by one thread.
class Batch {
 public:
  static constexpr std::uint64_t kMostBytes = 256 << 10;   // on their way at a time, if more than one request is
  static constexpr std::size_t kMostRequests = 32;         // the same
  static constexpr std::size_t kMostRotational = 4;        // a disk that seeks keeps others waiting for each

  explicit Batch(BlockDevice& device) : device_(device) {}

  // Adds a request and returns it: memory is to be added to it, and stays untouched until run() has returned.
  IoRequest& add(IoKind kind, std::uint64_t offset);
  std::size_t size() const { return requests_.size(); }

  // Carries out all of them, in any order; returns when none is on its way any more. The first error of them, in the order
  // they were added.
  Status run();
  Status outcome_of(std::size_t index) const;  // of the last run
  void clear() { requests_.clear(); }          // for the next

 private:
  bool fits(const IoRequest& request, std::size_t in_flight, std::uint64_t bytes_in_flight) const;

  BlockDevice& device_;
  std::deque<IoRequest> requests_;  // does not move them
};

}  // namespace varve::io
