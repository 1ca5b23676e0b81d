// One table says which background work may begin, and what it gives way to. Pure.
#pragma once

#include <cstdint>

namespace varve::jobs {

// In the order of their turns.
enum class Kind : std::uint8_t {
  cleaning,  // that somebody has asked for
  resizing,
  upkeep,    // what the filesystem itself needs: checkpoints, room, inodes without names
  tidying,   // of files, in idle time
  settling,  // the last changes, on an idle filesystem
  ordering   // of segments, by strategies that use idle time
};
inline constexpr unsigned kKinds = 6;

// In one turn all that is due of a stage is done. Between two the scheduler looks anew how things stand.
enum class Stage : std::uint8_t { asked, upkeep, idle };
Stage stage_of(Kind kind);

struct Situation {
  bool read_only = false, host_full = false;
  bool gives_back = false;     // what deleted snapshots held
  bool is_cleaning = false;    // somebody has asked for that
  std::uint64_t idle_ns = 0;   // since the last operation that has changed something
};
bool may_begin(Kind kind, const Situation& situation);

// These have come since a step began.
struct Events {
  bool room = false;        // an operation waits for clean segments
  bool checkpoint = false;  // is asked for
  bool epoch = false;       // is due, for the log
  bool snapshot = false;    // is to be made, named or deleted
  bool woken = false;       // the thread, for whatever reason
  bool written = false;     // users have
  bool moved = false;       // the step itself has come to something
  bool operator==(const Events&) const = default;
};
// To a checkpoint only when the step has moved something: the next one may be asked for while one is made, and it would never come to
// anything.
bool gives_way(Kind kind, const Events& events);

// Says whether its changes are nobody's: they do not count as use of the filesystem.
bool is_unnoticed(Kind kind);

}  // namespace varve::jobs
