// The time for which a program holds a lease: what it must do at each look, and until when it may write.
//
// A look counts from the moment it began, for as long as the lease promises. One that took longer allows nothing, and the next one may. It
// does not count when it finds a challenge that could only be answered late: the newcomer may have read the answer's block before. Then a
// look that begins a moment after the answer counts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lease/claim.h"

namespace varve::lease {

// Not thread-safe. `now` gives the time in nanoseconds at each call; the machine's sleep must count.
class Tenure {
 public:
  using Now = std::function<std::uint64_t()>;

  // Of a claim that has just succeeded, and was confirmed by a look that began at `looked_ns`.
  Tenure(Area area, const Times& times, const format::Lease& lease, std::uint32_t first_block, std::uint64_t looked_ns, Now now);

  // Answers newcomers, and stops for good where one demands it, or where an answer cannot be written. An error of reading is no loss, and
  // does not count as a look. Returns whether it could be read.
  bool look();
  // The device can no longer be written, for this reason.
  void lose(const std::string& why);
  // Clears the lease, after a look: the next newcomer need not wait. Not after a pause, when it may be another's by now: that one
  // would not know that it has lost it.
  Status give_up();

  bool may_write() const { return now_() < trusted_until_ns(); }
  std::uint64_t trusted_until_ns() const { return why_lost_.empty() ? looked_ns_ + times_.promise_ns : 0; }
  // After a look that does not count: how long to wait for one that does. Else 0.
  std::uint64_t doubt_ns() const;
  // It was lost because the device could not write an answer. That may have been the only word of what was lost of other writes.
  bool has_failed() const { return has_failed_; }
  // Empty while it is held. Final.
  const std::string& why_lost() const { return why_lost_; }
  const format::Lease& lease() const { return lease_; }
  // What is about to be written to block 0: what is found there from now on is this, or what was there before.
  void expect_first_block(std::uint32_t crc);

 private:
  std::string why_not_mine(const Look& found) const;
  void answer(const format::Challenge& challenge);

  Area area_;
  const Times times_;
  const format::Lease lease_;
  const Now now_;
  std::uint32_t first_block_, former_first_block_;
  std::uint64_t looked_ns_;
  std::uint64_t doubtful_until_ns_ = 0;
  std::uint64_t answered_ = 0;
  std::string why_lost_;
  bool has_failed_ = false;
};

}  // namespace varve::lease
