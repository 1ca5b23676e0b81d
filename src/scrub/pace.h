// How fast a scrub may read: arithmetic only, the caller sleeps.
#pragma once

#include <cstdint>

namespace varve::scrub {

// Reading `bytes` earns a pause, so that no more than the rate is read over any time longer than kCreditNs. Time in
// which the device was slower than the rate is made up for within kCreditNs, and forgotten beyond: a scrub that stood
// still does not come back with a burst. Belongs to one thread; all times are monotonic, in ns.
class Pace {
 public:
  static constexpr std::uint64_t kCreditNs = 100'000'000;

  explicit Pace(std::uint64_t bytes_per_second) : rate_(bytes_per_second) {}  // 0: no limit

  void set_rate(std::uint64_t bytes_per_second) { rate_ = bytes_per_second; }
  std::uint64_t rate() const { return rate_; }
  // `bytes` have been read up to `now_ns`: how long to pause before the next read, in ns.
  std::uint64_t pause_ns(std::uint64_t now_ns, std::uint64_t bytes);

 private:
  std::uint64_t rate_;
  std::uint64_t due_ns_ = 0;  // what has been read so far would at the rate have lasted until then
};

}  // namespace varve::scrub
