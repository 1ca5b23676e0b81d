// How many blocks to leave free behind a chunk that somebody waits for, on a disk that turns.
//
// When the chunk is on the platter, the answer goes to the program, which writes again, and the next chunk is sent. Meanwhile the place
// right behind the first one has gone by under the head, and a whole turn passes until it comes again. A chunk that stands further on,
// by as much as passes in that time, is written at once. Eager writing does the same (R. Wang, T. Anderson and D. Patterson, "Virtual log
// based file systems for a programmable disk", 1999), but in any order.
//
// One block too few costs a turn, one too many costs one block's time. What passes depends on the disk, the bus and the program. So where a
// write in a row takes as long as a turn, some gaps are tried, and the one with the shortest mean time is used if that saves much. It is
// compared with its neighbours and with none now and then, and with all others more rarely. What the kernel calls a disk may be a stick: a
// device on which a gap costs more than none does not turn.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/mutex.h"
#include "base/types.h"

namespace varve::device {

// Thread-safe. Times are monotonic ns.
class TurnGap {
 public:
  struct Choice {
    std::uint32_t blocks = 0;
    bool fills = false;  // gaps are known to gain something: those of the segment are worth going back for
  };

  // `fixed`: that many, whatever the device. Else none, unless it `turns`.
  TurnGap(bool turns, std::optional<std::uint32_t> fixed) : learns_(turns && !fixed), fixed_(fixed.value_or(0)) {}

  bool leaves_any() const { return learns_ || fixed_; }
  // For the chunk that is being placed now. `commit`: somebody waits for it.
  Choice choose(bool commit);

  struct Write {  // of a chunk that somebody waited for, durable when it ended, with nothing else on its way
    Lsn lsn;
    std::optional<std::uint32_t> before;  // blocks left in front of it, as far as that is known
    std::uint64_t began_ns = 0, ended_ns = 0;
  };
  void observe(const Write& write);

  std::uint32_t best() const;  // as far as it is known to gain something

 private:
  static constexpr std::array<std::uint32_t, 12> kBlocks = {0, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128};
  enum class Phase : std::uint8_t { without, trying, gaining };
  struct Mean {
    double ns = std::numeric_limits<double>::infinity();
    std::uint32_t samples = 0;
    std::uint32_t tries = 0;  // not each one tells something
  };

  std::size_t chosen() REQUIRES(mutex_);
  std::size_t probed() REQUIRES(mutex_);
  std::size_t best_index() const REQUIRES(mutex_);
  void try_all() REQUIRES(mutex_);
  void give_up() REQUIRES(mutex_);
  void note(std::uint32_t blocks, double ns) REQUIRES(mutex_);

  const bool learns_;
  const std::uint32_t fixed_;
  mutable Mutex mutex_;
  Phase phase_ GUARDED_BY(mutex_) = Phase::without;
  std::array<Mean, kBlocks.size()> means_ GUARDED_BY(mutex_);
  std::uint64_t choices_ GUARDED_BY(mutex_) = 0, next_trial_ GUARDED_BY(mutex_) = 0, pause_ GUARDED_BY(mutex_) = 0;
  Lsn last_ GUARDED_BY(mutex_);  // that was observed, and when it ended
  std::uint64_t last_ns_ GUARDED_BY(mutex_) = 0;
};

}  // namespace varve::device
