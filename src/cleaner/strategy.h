// Strategy plugins: what cleaning does with live data. The folder strategy/ holds those that come with Varve, one a file.
//
// The Cleaner decides when there is a round and after which checkpoint the next one; a strategy runs one round. Strategies
// after Rosenblum and Ousterhout 1992 (copying), Matthews et al. 1997 (hole-plugging), ScherlFS (the rest).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/gate.h"
#include "base/result.h"
#include "base/types.h"
#include "cleaner/parameters.h"

namespace varve::store {
class Store;
}

namespace varve::cleaner {

class CostLedger;
class FileSource;
class Workbench;

// What a round is for.
struct Task {
  std::uint64_t wanted = 0;  // blocks to free beyond what is moved; a round need not get so far
  std::uint64_t most_moved = ~std::uint64_t{0};  // blocks; strategies that go by files stop there
  std::uint64_t buffer = 0;  // blocks in memory at one time; 0: as usual
  bool for_room = true;      // clean segments run short; else there is time and somebody wants order
  bool waited_for = false;   // somebody cannot go on until there is room
  const CostLedger* costs = nullptr;  // what rounds for room have cost so far; null: nobody knows
  std::uint64_t users_meanwhile = 0;  // blocks that users are expected to write until the round is settled
  bool told = false;         // somebody asked for cleaning (`varve clean`): time and power are theirs to judge
  bool files_named = false;  // and said which files
  // Nobody asked for it: of files only what would take twice as long to read as it need is moved, and never so much that cleaning
  // would begin. A seek takes as long as the transfer of `seek_blocks` (0: whatever is in more pieces than it need be is moved).
  bool tidies = false;
  std::uint64_t seek_blocks = 0;
  FileSource* files = nullptr;        // for strategies that go by files; null: none are known
  std::function<bool()> stop;         // asked between segments or files: end the round early; empty: never
  bool stopped() const { return stop && stop(); }
  std::function<bool()> late;         // operations have waited long enough for a part of it; empty: never
  std::uint64_t least_gain = 0;       // blocks: with less than that it is no use to them
  bool ends(bool has_gained) const { return stopped() || (has_gained && late && late()); }
};

// Of strategies that go by files; a fragment is a part of a file that stands on consecutive blocks, in order.
struct FileCounts {
  std::uint64_t seen = 0, moved = 0;
  std::uint64_t unreadable = 0;  // of those seen: where they stand is not known, so they were left alone
  std::uint64_t unreadable_directories = 0;  // what stands in them was not seen, or not all of it
  std::uint64_t fragments_before = 0, fragments_after = 0;  // of those seen
};

// What a round has done.
struct Round {
  // No file block lives in them any more. The next checkpoint takes their tree nodes along (CheckpointRequest::evacuate);
  // when that has settled they are clean.
  std::vector<SegmentId> emptied;
  // There is something for a checkpoint to settle, even if no segment was emptied (moved into holes, or by file).
  bool moved = false;
  // Nothing is left that this strategy would do for the task: ask again when something has been written.
  bool finished = false;
  // What is left to do, in a measure of the strategy's own: must shrink from round to round, else a task is given up.
  std::uint64_t left = 0;
  std::string why;  // what was done, or why not more, or nothing
  std::optional<Error> failure;  // it ended early, and not for want of room; bad blocks are none (Workbench::empty)
  // Blocks of files, filled in by the Cleaner from the Mover's counts.
  std::uint64_t read = 0, written = 0;
};

// What all rounds of a task together would do: for a dry run.
struct Forecast {
  std::uint64_t segments = 0;  // that would be emptied
  std::uint64_t reads = 0;     // blocks of files
  std::uint64_t writes = 0;
  std::uint64_t frees = 0;     // blocks, beyond what is written
  FileCounts files;            // of strategies that go by files; fragments_after: at best
  std::string what;            // in words
};

// Used by one thread at a time, the one that also runs checkpoints, but for begin() and end().
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string_view name() const = 0;

  // One round: moves at most Workbench::kMaxLivePerRound blocks, asks Task::stopped() now and then, and makes progress
  // (the next round has less to do) or says why not. Nothing that it has moved may need to be undone: a crash between
  // any two writes leaves each block either where it was or where it went.
  virtual Round run(Workbench& bench) = 0;
  // Since the object was made; asked after the checkpoint that followed a round.
  virtual FileCounts files(store::Store&) { return {}; }
  // Writes nothing.
  virtual Forecast forecast(Workbench& bench) const = 0;

  // It becomes the strategy of a mount, or of a task, or is not any more; any thread. For strategies that change where
  // the log writes. A task may run a second object of the mount's strategy: what is switched is counted.
  virtual void begin(store::Store&) EXCLUDES(the_gate) {}
  virtual void end(store::Store&) EXCLUDES(the_gate) {}
  // There is news of what cleaning costs, and no round is due: has something been begun that had better end? By the thread that runs
  // checkpoints.
  virtual void reconsider(store::Store&, const CostLedger&) {}
  // Does it use idle time? Then it also gets rounds that are neither for room nor told.
  virtual bool works_when_idle() const { return false; }
  // Do blocks of users go to the holes of used segments, wherever these are, while it is the mount's strategy?
  virtual bool fills_holes() const { return false; }
  virtual bool goes_by_files() const { return false; }  // else naming files is a mistake
  // What it decided lately, and why: for `varve status`. Any thread.
  virtual std::string explanation() const { return {}; }
};

// Errc::invalid: unknown, or its parameters make no sense; the message lists those there are.
Result<std::unique_ptr<Strategy>> make_strategy(std::string_view spelling);

}  // namespace varve::cleaner
