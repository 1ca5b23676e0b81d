// How old automatic snapshots are, whatever becomes of the wall clock. A board without a battery for its clock starts in the past, and
// jumps to the present when the network answers. A clock that was ahead is put right.
//
// While the filesystem is mounted their age is the time that passes, which no clock can set. Between mounts only the wall clock knows it.
// It is not believed where it says that a snapshot comes from the future, or from before there was a Varve. Such a one counts as made when
// this mount began.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/types.h"

namespace varve::format {
struct SnapshotItem;
}

namespace varve::snapshots {

class SnapshotList;
using format::SnapshotItem;

// One thread at a time, but for shown_made().
class SnapshotAges {
 public:
  // The mount begins now.
  explicit SnapshotAges(Clock& clock);

  void note_made(Serial serial);  // now, in this mount
  std::int64_t seconds(const SnapshotItem& item);
  // When it was made, for lists. Until it is corrected, an automatic one whose time is not believed was made when this mount began.
  // Any thread.
  Timestamp shown_made(const SnapshotItem& item) const;

  struct Made {
    Serial serial;
    Timestamp when;
  };
  // Automatic ones whose time of making does not fit their age, and the time that does, by the clock as it is set now. So the next mount
  // finds their right age. A few at a time, the newest first. Times that were not believed may be right, and the clock may be put right
  // yet: they stay for ten minutes, or until the mount ends (`last`).
  std::vector<Made> corrected(const SnapshotList& list, bool last);

 private:
  struct Age {
    std::int64_t found_seconds = 0;  // how old it was when it was made or found
    std::int64_t at_seconds = 0;     // when that was, by the clock that nobody sets
    bool is_believed = true;
  };
  Age& age_of(const SnapshotItem& item);
  std::int64_t passed_seconds() const;
  void forget_others(const SnapshotList& list);

  Clock& clock_;
  const std::int64_t began_seconds_;
  const Timestamp began_;
  std::unordered_map<std::uint64_t, Age> ages_;  // by serial
};

}  // namespace varve::snapshots
