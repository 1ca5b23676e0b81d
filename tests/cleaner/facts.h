// Segments for tests of policies, of 100 blocks each so that shares are easy to work out.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "base/clock.h"
#include "cleaner/registry.h"
#include "cleaner/victim_rule.h"

namespace varve::cleaner {

inline SegmentFacts segment(std::uint64_t id, std::uint32_t live, std::uint64_t age) {
  SegmentFacts facts;
  facts.id = SegmentId{id};
  facts.live = live;
  facts.blocks = 100;
  facts.age = facts.sealed = facts.opened = age;
  facts.mean_age = static_cast<double>(age);
  return facts;
}

inline std::unique_ptr<Evaluation> evaluation(std::string_view spelling) {
  auto made = make_evaluation(spelling);
  EXPECT_TRUE(made.ok()) << made.error().message();
  return std::move(*made);
}

inline std::unique_ptr<Placement> placement(std::string_view spelling, const PlacementScale& scale) {
  auto made = make_placement(spelling, scale);
  EXPECT_TRUE(made.ok()) << made.error().message();
  return std::move(*made);
}

inline double score(std::string_view spelling, const SegmentFacts& facts) {
  double result = 0;
  evaluation(spelling)->evaluate({&facts, 1}, {&result, 1});
  return result;
}

inline std::vector<std::uint64_t> choose(std::string_view rule, const std::vector<SegmentFacts>& segments,
                                         const SelectionLimits& limits, std::uint64_t seed = 1) {
  auto made = VictimRule::make(rule);
  EXPECT_TRUE(made.ok()) << made.error().message();
  SeededRandom random(seed);
  std::vector<std::uint64_t> ids;
  for (SegmentId id : (*made)->choose(segments, limits, random).ids) ids.push_back(id.v);
  return ids;
}

}  // namespace varve::cleaner
