// Threaded log: what users write goes into holes, in address order round and round, instead of into clean segments
// (space/hole_feeder.h). Clean segments are left to chunks and tree nodes, and are made by another strategy when they run short.
// When holes are small: `skip` them until the next time round, `split` (use them all), or `compact`: move the few blocks
// between neighbouring ones away before the log comes by.
#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "cleaner/strategy/bridges.h"
#include "cleaner/strategy/builtin.h"
#include "cleaner/workbench.h"
#include "space/admission.h"
#include "space/hole_feeder.h"
#include "space/holes.h"
#include "space/space.h"
#include "store/store.h"
#include "tree/trees.h"

namespace varve::cleaner {
namespace {

constexpr std::uint64_t kLookAhead = 64;          // segments
constexpr std::size_t kMostMovedAside = 1024;     // blocks in one round

struct ThreadedRules {
  std::uint32_t least = 4;
  bool compacts = false;
  bool when_short = false;
};

class Threaded final : public Strategy {
 public:
  Threaded(const ThreadedRules& rules, std::unique_ptr<Strategy> cleaning) : rules_(rules), cleaning_(std::move(cleaning)) {}
  std::string_view name() const override { return "threaded"; }
  bool fills_holes() const override { return true; }

  void begin(store::Store& store) override {
    space::HoleFeederRules feeding;
    feeding.least_run = rules_.least;
    if (rules_.when_short) feeding.below = store.space().low_water() + segments_ahead(store);
    store.hole_feeder().begin(this, feeding);
  }
  void end(store::Store& store) override { store.hole_feeder().end(this); }

  Round run(Workbench& bench) override {
    const std::uint64_t aside = rules_.compacts ? move_aside(bench) : 0;
    Round round = cleaning_->run(bench);
    round.moved |= aside > 0;
    round.finished &= aside == 0;
    if (aside) round.why += fmt::format("; {} moved aside to join small holes", counted(aside, "block"));
    return round;
  }
  Forecast forecast(Workbench& bench) const override { return cleaning_->forecast(bench); }

 private:
  // In the segments that the log comes to next.
  std::uint64_t move_aside(Workbench& bench) const {
    store::Store& store = bench.store();
    const std::uint64_t count = store.segments().geometry().count;
    std::uint64_t moved = 0;
    for (std::uint64_t i = 0; i < std::min(count, kLookAhead) && moved < kMostMovedAside && !bench.task().ends(moved > 0); ++i) {
      const SegmentFacts* segment = bench.find(SegmentId{(store.hole_feeder().cursor().v + i) % count});
      if (!segment || segment->holds_nodes) continue;
      const auto here = move_aside(bench, *segment);
      if (here.fails_with(Errc::no_space)) break;
      if (here.ok()) moved += *here;
    }
    return moved;
  }

  Result<std::uint64_t> move_aside(Workbench& bench, const SegmentFacts& segment) const {
    store::Store& store = bench.store();
    const auto& geometry = store.segments().geometry();
    tree::BlockingSource source = store.trees().source();
    const auto bits = TRY(space::live_bits(source, store.trees().own_view(), geometry, segment.id));
    const auto bridges = bridges_between(bits, rules_.least);
    if (bridges.empty()) return std::uint64_t{0};
    auto blocks = TRY(bench.mover().live_blocks(segment.id));
    std::erase_if(blocks, [&](const LiveBlock& block) {
      return !std::ranges::binary_search(bridges, geometry.index_of(block.address)) || bench.is_known_bad(block);
    });
    for (LiveBlock& block : blocks) block.group = bench.group_of(block, segment);
    TRY(bench.mover().move(blocks));
    return blocks.size();
  }

  const ThreadedRules rules_;
  const std::unique_ptr<Strategy> cleaning_;
};

}  // namespace

std::unique_ptr<Strategy> make_threaded(const Parameters& parameters) {
  ThreadedRules rules;
  const std::string_view small = parameters.word("small", {"skip", "split", "compact"});
  rules.least = static_cast<std::uint32_t>(parameters.number("least", rules.least, 1, 256));
  if (small == "split") rules.least = 1;
  rules.compacts = small == "compact";
  rules.when_short = parameters.word("when", {"always", "short"}) == "short";
  // Sprite's threading between segments and copying inside them goes with holes that are taken only when room is short.
  const std::string_view by = rules.when_short ? parameters.word("clean", {"copying", "plugging"})
                                               : parameters.word("clean", {"plugging", "copying"});
  auto cleaning = by == "copying" ? make_copying({}) : make_hole_plugging({});
  return std::make_unique<Threaded>(rules, std::move(cleaning));
}

}  // namespace varve::cleaner
