#include "support/plugging.h"

#include <algorithm>

#include "checkpoint/checkpoints.h"
#include "format/map_record.h"
#include "segments/segment_table.h"
#include "store/store.h"
#include "tree/trees.h"

namespace varve::test {

std::vector<cleaner::SegmentFacts> plug_candidates(store::Store& store) {
  std::vector<cleaner::SegmentFacts> found;
  const std::uint64_t settled = store.trees().own_view().generation;
  store.segments().for_each([&](SegmentId id, const segments::SegmentInfo& s) {
    if (s.state != segments::SegmentState::used || s.touched > settled || s.in_flight || s.live() == 0 ||
        s.group == format::kGroupNodes)
      return;
    cleaner::SegmentFacts facts;
    facts.id = id;
    facts.live = s.live();
    facts.blocks = store.segments().geometry().blocks;
    facts.group = s.group;
    found.push_back(facts);
  });
  std::ranges::stable_sort(found, {}, &cleaner::SegmentFacts::live);
  return found;
}

Result<cleaner::Plugged> plug_round(store::Store& store, std::size_t segments, const cleaner::PlugRules& rules) {
  const auto candidates = plug_candidates(store);
  const std::size_t sources = std::min(segments, candidates.size() / 2);
  cleaner::Mover mover(store);
  auto done = TRY(cleaner::Plugger(store, mover, rules)
                      .run(std::span(candidates).first(sources), std::span(candidates).subspan(sources)));
  TRY(store.checkpoints().make({.clean = false, .evacuate = done.emptied}));
  return done;
}

}  // namespace varve::test
