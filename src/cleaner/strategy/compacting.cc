// Compacting: everything live in one piece at the start of the device, so that the log's end shrinks (ScherlFS). Nothing is
// overwritten in place here, so it is two kinds of rounds. First what has holes is copied together, as by copying; then
// what stands behind the place where all would fit is moved into clean segments before it, the highest first. Segments
// keep their groups. While this is at work the log takes the lowest clean segments for everything, checkpoints included.
//
// It ends: a round of the first kind leaves less garbage, one of the second moves blocks to lower segments only. What users
// write meanwhile is done in the same way, and what only checkpoints turn over is given up (CleanJob's patience).
#include <fmt/format.h>

#include "base/counted.h"
#include "cleaner/strategy/builtin.h"
#include "cleaner/strategy/slide.h"
#include "cleaner/workbench.h"
#include "store/store.h"

namespace varve::cleaner {
namespace {

class Compacting final : public Strategy {
 public:
  std::string_view name() const override { return "compacting"; }

  void begin(store::Store& store) override { store.segments().prefer_lowest(true); }
  void end(store::Store& store) override { store.segments().prefer_lowest(false); }

  Round run(Workbench& bench) override {
    Round round;
    if (close_holes(bench, round)) return round;
    if (bench.task().for_room) {
      round.finished = true;
      round.why = "no segment is worth cleaning";
      return round;
    }
    slide(bench, round);
    return round;
  }

  Forecast forecast(Workbench& bench) const override {
    const Victims ragged = bench.choose_all();
    const std::uint64_t blocks = bench.store().segments().geometry().blocks;
    Board board = board_of(bench.store().segments());
    board.segments -= std::min(board.segments, ragged.gain / blocks);
    SlideLimits limits;
    limits.segments = board.segments;
    const Victims high = plan_slide(bench.facts(), clean_below(bench.store().segments(), limits.segments), limits);
    Forecast forecast;
    forecast.segments = ragged.ids.size() + high.ids.size();
    forecast.reads = forecast.writes = ragged.data + high.data;
    forecast.frees = ragged.gain;
    forecast.what = fmt::format("copy {} out of {} with holes and move the {} highest segments down; the log then "
                                "ends near segment {} instead of {}",
                                counted(ragged.live(), "live block"), counted(ragged.ids.size(), "segment"),
                                high.ids.size(), board.segments, board.end);
    return forecast;
  }

 private:
  // Garbage first, then distance: what shrinks from round to round.
  static std::uint64_t left(Workbench& bench, const Board& board) {
    const std::uint64_t blocks = bench.store().segments().geometry().blocks;
    std::uint64_t above = 0;
    for (const SegmentFacts& segment : bench.facts()) above += segment.id.v >= board.segments ? segment.live : 0;
    return bench.garbage() + std::min<std::uint64_t>(above, bench.facts().size() * blocks);
  }

  static bool close_holes(Workbench& bench, Round& round) {
    const auto victims = bench.choose_worthwhile();
    round.left = left(bench, board_of(bench.store().segments()));
    if (!victims) return false;
    round.why = fmt::format("compacting: {} out of {} with holes", counted(victims->live(), "live block"),
                            counted(victims->ids.size(), "segment"));
    bench.tell(round.why);
    bench.empty(*victims, round);
    return true;
  }

  static void slide(Workbench& bench, Round& round) {
    bench.give_up_heads();  // they may stand high
    const Board board = board_of(bench.store().segments());
    SlideLimits limits;
    limits.segments = board.segments;
    limits.fits = [&](const Victims& v) { return v.live() <= Workbench::kMaxLivePerRound && bench.may_move(v.data, v.nodes); };
    const Victims victims = plan_slide(bench.facts(), clean_below(bench.store().segments(), limits.segments), limits);
    round.left = left(bench, board);
    if (victims.ids.empty()) {
      round.finished = true;
      round.why = fmt::format("everything stands in the first {} of {} segments, but for what is open", board.segments,
                              bench.store().segments().geometry().count);
      return;
    }
    round.why = fmt::format("compacting: moving {} of the {} down", counted(victims.live(), "block"),
                            counted(victims.ids.size(), "highest segment"));
    bench.tell(round.why);
    bench.empty(victims, round, [&](const LiveBlock& block, const SegmentFacts& from) {
      return from.group < format::kMaxGroups ? from.group : bench.group_of(block, from);
    });
  }
};

}  // namespace

std::unique_ptr<Strategy> make_compacting(const Parameters&) { return std::make_unique<Compacting>(); }

}  // namespace varve::cleaner
