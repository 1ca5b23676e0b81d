// Reads or writes that one thread hands over together and waits for: several at once on their way, but never so much that
// the requests of others would wait long behind them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "io/block_device.h"

namespace varve::io {

struct BatchLimits {  // of what is on its way at a time, if more than one request is
  std::uint64_t bytes = 256 << 10;
  std::size_t requests = 32;
  std::size_t rotational = 4;  // requests, to a disk that seeks: it keeps others waiting for each
};
// Where little else waits for the device: as many as it answers in little more time than one.
inline constexpr BatchLimits kManyAtOnce{~0ULL, 128, 128};

// Used by one thread.
class Batch {
 public:
  explicit Batch(BlockDevice& device, const BatchLimits& limits = {}) : device_(device), limits_(limits) {}

  // Adds a request and returns it: memory is to be added to it, and stays untouched until run() has returned. `came` is called
  // when it has completed, while others are still on their way; what it throws comes out of run() at the end.
  using Came = std::function<void(const IoRequest&)>;
  IoRequest& add(IoKind kind, std::uint64_t offset, Came came = nullptr);
  std::size_t size() const { return requests_.size(); }

  // Carries out all of them, in any order; returns when none is on its way any more. The first error of them, in the order
  // they were added. `stop`, if there is one, is asked before each: from when it says so, none begins any more (ECANCELED).
  Status run(const std::function<bool()>& stop = {});
  bool stopped() const { return stopped_; }  // the last run, before its end
  Status outcome_of(std::size_t index) const;  // of the last run
  int error_of(std::size_t index) const { return requests_[index].request.error; }  // 0 or an errno
  void clear() { requests_.clear(); }  // for the next

 private:
  bool fits(const IoRequest& request, std::size_t in_flight, std::uint64_t bytes_in_flight) const;

  BlockDevice& device_;
  const BatchLimits limits_;
  struct Entry {
    IoRequest request;
    Came came;
  };
  std::deque<Entry> requests_;  // does not move them
  bool stopped_ = false;
};

}  // namespace varve::io
