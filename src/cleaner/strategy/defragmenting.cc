// Defragmenting: files made contiguous, one after the other in directory order, all of them or those that were named
// (ScherlFS). What stands in one piece already stays; large files are done in parts, which follow one another. It frees
// only what its moves happen to empty, so when room runs short it copies like copying before it goes on.
#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/logging.h"
#include "cleaner/file_layout.h"
#include "cleaner/file_source.h"
#include "cleaner/strategy/builtin.h"
#include "cleaner/workbench.h"
#include "device/faults.h"
#include "format/estimate.h"
#include "format/superblock.h"
#include "segments/log_clock.h"
#include "segments/segment_table.h"
#include "store/store.h"

namespace varve::cleaner {
namespace {

class Defragmenting final : public Strategy {
 public:
  std::string_view name() const override { return "defragmenting"; }

  bool goes_by_files() const override { return true; }

  Round run(Workbench& bench) override {
    Round round;
    if (bench.task().for_room || !bench.task().files) {
      if (!make_room(bench, round)) round.why = "no segment is worth cleaning";
      round.finished = round.emptied.empty();
      return round;
    }
    if (Status status = move_files(bench, round); !status.ok()) {
      round.finished = true;
      round.why = status.error().message();
      round.failure = status.error();
    }
    round.left = ~std::uint64_t{0} - steps_;
    return round;
  }

  // What the last round has moved is in the trees now.
  FileCounts files(store::Store& store) override {
    for (const Place& place : moved_) {
      auto part = read_layout(store, place.file, place.from, place.blocks);
      if (part.ok()) counts_.fragments_after += count_fragments(part->blocks);
    }
    moved_.clear();
    return counts_;
  }

  Forecast forecast(Workbench& bench) const override {
    Forecast forecast;
    FileCounts counts;
    std::uint64_t pieces_left = 0;
    const std::uint64_t segment = bench.store().segments().geometry().blocks;
    while (bench.task().files && !bench.task().stopped()) {
      auto file = bench.task().files->next();
      counts.unreadable_directories = bench.task().files->unreadable_directories();
      if (!file.ok() || !*file) break;
      ++counts.seen;
      bool moves = false;
      for (std::uint64_t from = 0;;) {
        auto part = read_layout(bench.store(), **file, from, kMostBlocks);
        if (!part.ok()) {
          ++counts.unreadable;
          break;
        }
        const std::uint64_t fragments = count_fragments(part->blocks), fewest = fewest_fragments(part->blocks.size(), segment);
        counts.fragments_before += fragments;
        pieces_left += std::min(fragments, fewest);
        if (fragments > fewest && forecast.writes < bench.task().most_moved) {
          moves = true;
          forecast.writes += part->blocks.size();
        }
        if (part->last) break;
        from = part->next;
      }
      counts.moved += moves;
    }
    forecast.reads = forecast.writes;
    forecast.files = counts;
    forecast.files.fragments_after = pieces_left;
    forecast.what = fmt::format("move {} of {}, in {} now, into at best {}", counts.moved, counted(counts.seen, "file"),
                                counted(counts.fragments_before, "piece"), pieces_left);
    return forecast;
  }

 private:
  static constexpr unsigned kMostForRoom = 8, kMostAttempts = 4;
  static constexpr std::size_t kMostBlocks = Workbench::kMaxLivePerRound / 2;  // of a file at one time

  // The end of a segment may come anywhere in it.
  static std::uint64_t fewest_fragments(std::uint64_t blocks, std::uint64_t segment) {
    return blocks ? 1 + (blocks + segment - 1) / segment : 0;
  }

  // False: nothing is to be gained.
  static bool make_room(Workbench& bench, Round& round) {
    const auto victims = bench.choose_worthwhile();
    if (!victims) return false;
    round.why = fmt::format("room for defragmenting: {} out of {}", counted(victims->live(), "live block"),
                            counted(victims->ids.size(), "segment"));
    bench.tell(round.why);
    bench.empty(*victims, round);
    return true;
  }

  Status move_files(Workbench& bench, Round& round) {
    std::uint64_t moved = 0;
    while (moved < Workbench::kMaxLivePerRound && !bench.task().stopped()) {
      if (total_ >= bench.task().most_moved) break;
      if (!file_) {
        auto next = TRY(bench.task().files->next());
        TRY(count_directories(bench));
        if (!next) {
          round.finished = true;
          round.why = "all files have been seen";
          if (counts_.unreadable_directories)
            round.why += fmt::format("; directories that cannot be read: {}", counts_.unreadable_directories);
          if (counts_.unreadable) round.why += fmt::format("; left alone because they cannot be read: {}", counts_.unreadable);
          return {};
        }
        file_ = next;
        from_ = 0;
        ++counts_.seen;
        moved_this_ = false;
      }
      auto part = read_layout(bench.store(), *file_, from_, most_at_once(bench));
      if (!part.ok()) {
        TRY(skip_file(bench, part.error()));
        continue;
      }
      const Moved outcome = TRY(move_part(bench, *part, round));
      if (outcome != Moved::no) moved += part->blocks.size();
      if (outcome == Moved::not_all && ++attempts_ < kMostAttempts) return starved(bench, round);
      if (outcome != Moved::no) moved_.push_back({*file_, from_, part->blocks.size()});
      attempts_ = 0;
      ++steps_;
      from_ = part->next;
      if (part->last) file_.reset();
    }
    round.why = fmt::format("defragmenting: {} seen, {} moved", counted(counts_.seen, "file"), counts_.moved);
    return {};
  }

  // Those that cannot be read are left out, unless it is the device that does not answer.
  Status count_directories(Workbench& bench) {
    const std::uint64_t unreadable = bench.task().files->unreadable_directories();
    if (unreadable == counts_.unreadable_directories) return {};
    counts_.unreadable_directories = unreadable;
    return bench.mover().device_answers() ? Status() : Status(Error(Errc::io, "directories cannot be read"));
  }

  // Its extents cannot be read: the others are none the worse for it, unless it is the device that does not answer.
  Status skip_file(Workbench& bench, const Error& why) {
    const bool of_this_file = why.is(Errc::io) || why.is(Errc::corrupt);
    if (!of_this_file || !bench.mover().device_answers()) return why;
    if (counts_.unreadable++ == 0) {  // a leaf can hold the extents of many
      log_error("{}: inode {} cannot be defragmented: {}", bench.store().device().name(), *file_, why.message());
      bench.store().faults().note(why.code(), {}, *file_);
    }
    file_.reset();
    attempts_ = 0;
    ++steps_;
    return {};
  }

  // As much of a file as can be moved now: halves until it fits.
  std::size_t most_at_once(Workbench& bench) const {
    std::size_t most = kMostBlocks;
    const std::size_t least = bench.store().segments().geometry().blocks / 2;
    while (most > least && !may_take(bench, 2 * most)) most /= 2;
    return most;
  }

  static bool may_take(Workbench& bench, std::uint64_t blocks) {
    return bench.task().tidies ? bench.may_tidy(blocks) : bench.may_spend(blocks);
  }

  // In so many pieces it takes twice as long to read as in one.
  static bool is_worth_it(const Task& task, std::uint64_t fragments, std::uint64_t blocks) {
    return task.seek_blocks == 0 || fragments * task.seek_blocks >= blocks;
  }

  enum class Moved : std::uint8_t { no, all, not_all };  // not_all: there was no room for it, or for all of it

  // Groups: one for the whole part, that of its youngest block, so that it stays together.
  Result<Moved> move_part(Workbench& bench, FilePart& part, Round& round) {
    const std::uint64_t fragments = count_fragments(part.blocks);
    if (attempts_ == 0) counts_.fragments_before += fragments;
    const bool is_whole = fragments <= fewest_fragments(part.blocks.size(), bench.store().segments().geometry().blocks);
    if (is_whole || !is_worth_it(bench.task(), fragments, part.blocks.size())) {
      counts_.fragments_after += fragments;
      return Moved::no;
    }
    if (!may_take(bench, part.blocks.size())) return Moved::not_all;
    if (bench.task().tidies && total_ + part.blocks.size() > bench.task().most_moved) return Moved::not_all;
    const std::uint64_t now = bench.store().log_clock().now() / bench.store().super().clock_unit;
    const auto youngest = std::max_element(part.blocks.begin(), part.blocks.end(),
                                           [now](const LiveBlock& a, const LiveBlock& b) {
                                             return format::age_of(now, a.clock) > format::age_of(now, b.clock);
                                           });
    const std::uint8_t group = bench.group_of(*youngest, {});
    for (LiveBlock& block : part.blocks) block.group = group;
    bench.tell(fmt::format("defragmenting inode {}: {} in {}", *file_, counted(part.blocks.size(), "block"), counted(fragments, "piece")));
    if (!moved_this_) ++counts_.moved;
    moved_this_ = true;
    round.moved = true;
    total_ += part.blocks.size();
    rounds_for_room_ = 0;
    const Status status = move_in_order(bench, part.blocks);
    if (status.fails_with(Errc::no_space)) return Moved::not_all;
    TRY(status);
    return Moved::all;
  }

  // Piece by piece in the order of the file, each read in the order in which it stands on the device, as the mover wants it. A piece is
  // what the mover has in memory at a time: more of it would be written as it was read.
  // One that tidies up stops at once when somebody comes.
  static Status move_in_order(Workbench& bench, std::span<LiveBlock> blocks) {
    const std::size_t most = bench.mover().buffer();
    for (std::size_t at = 0; at < blocks.size() && !(at && bench.task().tidies && bench.task().stopped()); at += most) {
      const auto piece = blocks.subspan(at, std::min(most, blocks.size() - at));
      std::sort(piece.begin(), piece.end(), [](const LiveBlock& a, const LiveBlock& b) { return a.address < b.address; });
      TRY(bench.mover().move(piece, Sound::moved, bench.task().tidies ? bench.task().stop : nullptr));
    }
    return {};
  }

  // There is no room for the next part, or no more may be written: what this round has moved is settled first, else something is copied
  // together.
  Status starved(Workbench& bench, Round& round) {
    if (round.moved) {
      round.why = "waiting for the room that a checkpoint frees";
      return {};
    }
    if (!bench.task().tidies && rounds_for_room_ < kMostForRoom && make_room(bench, round)) {
      ++rounds_for_room_;
      ++steps_;
      return {};
    }
    round.finished = true;
    round.why = "there is not enough free space to move files in";
    return {};
  }

  struct Place {
    Ino file;
    std::uint64_t from = 0;
    std::size_t blocks = 0;
  };
  std::vector<Place> moved_;  // since the last round
  std::optional<Ino> file_;
  std::uint64_t from_ = 0;
  bool moved_this_ = false;
  unsigned attempts_ = 0;  // to move this part
  std::uint64_t total_ = 0, steps_ = 0;
  unsigned rounds_for_room_ = 0;  // in a row
  FileCounts counts_;
};

}  // namespace

std::unique_ptr<Strategy> make_defragmenting(const Parameters&) { return std::make_unique<Defragmenting>(); }

}  // namespace varve::cleaner
