#include "cleaner/history.h"

#include <gtest/gtest.h>

#include "base/types.h"
#include "format/map_record.h"
#include "segments/segment_table.h"

namespace varve::cleaner {
namespace {

PastRound round_at(std::uint64_t clock) {
  PastRound round;
  round.clock = clock;
  return round;
}

TEST(HistoryTest, KeepsTheLatest) {
  History history;
  history.keep(3);
  for (std::uint64_t i = 1; i <= 5; ++i) history.add(round_at(100 * i));
  const auto rounds = history.rounds();
  ASSERT_EQ(rounds.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rounds[i].number, i + 3);
    EXPECT_EQ(rounds[i].clock, 100 * (i + 3));
  }
  history.keep(1);
  ASSERT_EQ(history.rounds().size(), 1U);
  EXPECT_EQ(history.rounds()[0].number, 5U);
}

TEST(HistoryTest, NotesNothingWhenNoneAreKept) {
  History history;
  history.add(round_at(1));
  history.keep(0);
  history.add(round_at(2));
  EXPECT_TRUE(history.rounds().empty());
  history.keep(History::kMost + 1);
  EXPECT_EQ(history.kept(), History::kMost);
  history.add(round_at(3));
  ASSERT_EQ(history.rounds().size(), 1U);
  EXPECT_EQ(history.rounds()[0].clock, 3U);
}

TEST(HistoryTest, CountsSegmentsByLiveShare) {
  segments::SegmentTable segments({BlockAddr{64}, 64, 8});
  const std::uint32_t live[] = {0, 1, 32, 63, 64, 64};  // the other two are clean
  for (std::uint64_t i = 0; i < std::size(live); ++i) {
    format::SegmentRecord record;
    record.live = live[i];
    segments.load(SegmentId{i}, record);
    segments.occupy(SegmentId{i});
  }
  segments.finish_loading();
  Utilisation expected{};
  expected[0] = 2;   // 0 and 1 of 64
  expected[10] = 1;  // half
  expected[19] = 3;
  EXPECT_EQ(utilisation_of(segments), expected);
}

}  // namespace
}  // namespace varve::cleaner
