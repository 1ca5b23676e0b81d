// What the segments in use looked like before each round of cleaning, and what it did: for `varve history`, and for studying
// policies on a filesystem that is at work.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace varve::segments {
class SegmentTable;
}

namespace varve::cleaner {

// Segments in use that are not open, by live share in steps of 5 %; the last counts full ones, too.
using Utilisation = std::array<std::uint64_t, 20>;
Utilisation utilisation_of(const segments::SegmentTable& segments);

struct PastRound {
  std::uint64_t number = 0;  // from 1 on, since the mount
  std::uint64_t clock = 0;   // log clock, blocks
  std::string strategy, victims, placement;
  bool waited_for = false;
  std::uint64_t clean = 0;  // segments
  Utilisation utilisation{};
  // What it did.
  std::uint64_t emptied = 0;            // segments
  std::uint64_t read = 0, written = 0;  // blocks of files
};

// Thread-safe.
class History {
 public:
  static constexpr std::size_t kUsual = 512, kMost = 65536;  // rounds

  // How many rounds are kept, the latest; 0: none are noted.
  void keep(std::size_t most);
  std::size_t kept() const;
  void add(PastRound round);
  std::vector<PastRound> rounds() const;  // in order

 private:
  mutable Mutex mutex_;
  std::size_t most_ GUARDED_BY(mutex_) = kUsual;
  std::uint64_t next_ GUARDED_BY(mutex_) = 1;
  std::deque<PastRound> rounds_ GUARDED_BY(mutex_);
};

}  // namespace varve::cleaner
