// From a damaged filesystem to one that the checker has nothing to say about: rounds of checking, rebuilding the trees and
// replaying the log. Every step is a new checkpoint, so that a crash anywhere leaves something that can be repaired
// again. Works on whatever device it is given: on an overlay it is a dry run.
#pragma once

#include <functional>

#include "check/check.h"
#include "repair/action.h"

namespace varve::repair {

// What a recovery puts up with, each with all before it.
enum class Tolerance : std::uint8_t {
  nothing,      // as a mount
  lost_inodes,  // changes in the log of inodes that the trees do not have: they are dropped
  log_damage,   // the log counts up to the first damaged chunk
};

// What the next mount would do first: replays the log and unmounts. Supplied by a caller that has the engine at hand.
using Recover = std::function<Status(io::BlockDevice&, Tolerance)>;

struct RepairOptions {
  bool search = false;       // look for lost superblocks even where nothing looks like Varve, or something else is
  bool search_if_blank = false;  // only where nothing is known to be, and only for one whose trees are whole
  bool verify_data = false;
  bool skip_when_clean = false;
  std::uint64_t check_memory = 0;  // check::CheckOptions::memory_bytes
  bool cut_unreadable_log = false;  // as where it is damaged; for copies: what cannot be read now may be there another day
  bool only_safe = false;  // an error, and no switch to another checkpoint, as soon as something would be lost, made up or moved
  std::uint64_t map_memory = 64 << 20;  // bytes of `.mfile` that are made at a time; less takes longer
};

struct Outcome {
  check::Report before;    // as the next mount would find it, where it would find anything
  check::Report after;     // equal to `before` when nothing was done
  ActionLog actions;
  Status ended;            // an error: something had been changed already, `after` is from before what failed
  std::uint64_t errors_left() const { return after.errors(); }
};

// Errors only where nothing was done: Errc::not_varve, Errc::unknown_feature, Errc::no_space, errors of the device. One that
// comes later stands in Outcome::ended, beside what had been done.
Result<Outcome> repair(io::BlockDevice& device, const Recover& recover, const RepairOptions& options,
                       check::Progress* progress = nullptr);

// What is done about a problem, for people.
const char* remedy_of(check::Code code);

}  // namespace varve::repair
