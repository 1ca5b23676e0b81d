// How long the thread of background work sleeps, over a clock that the test moves.
#include "jobs/pauses.h"

#include <gtest/gtest.h>

namespace varve::jobs {
namespace {

using Time = Pauses::Time;
using std::chrono::milliseconds;

constexpr std::uint64_t kStart = 5'000'000'000, kTick = 1'000'000'000;

TEST(Pauses, it_sleeps_until_it_is_woken_when_there_is_nothing) { EXPECT_EQ(Pauses(kStart).next(false, false, false), std::nullopt); }

TEST(Pauses, looks_get_rarer_while_nothing_happens) {
  Pauses pauses(kStart);
  for (const int longer : {20, 40, 80, 160, 320, 320}) {
    EXPECT_EQ(pauses.next(false, true, false), Time(milliseconds(longer)));
    pauses.look(0, kStart);
  }
}

TEST(Pauses, an_operation_makes_them_frequent_again) {
  Pauses pauses(kStart);
  for (int i = 0; i < 4; ++i) pauses.look(0, kStart);
  pauses.look(1, kStart + kTick);
  EXPECT_EQ(pauses.next(false, true, false), Pauses::kShortest);
  EXPECT_EQ(pauses.idle_ns(kStart + 3 * kTick), 2 * kTick);
  pauses.look(1, kStart + 4 * kTick);
  EXPECT_EQ(pauses.idle_ns(kStart + 4 * kTick), 3 * kTick);
}

TEST(Pauses, what_the_thread_itself_has_changed_is_no_operation) {
  Pauses pauses(kStart);
  pauses.forget(7);
  pauses.look(7, kStart + kTick);
  EXPECT_EQ(pauses.idle_ns(kStart + kTick), kTick);
}

TEST(Pauses, a_job_goes_on_at_once_or_after_a_rest) {
  Pauses pauses(kStart);
  EXPECT_EQ(pauses.next(true, true, false), Time());
  pauses.rest(milliseconds(150));
  EXPECT_EQ(pauses.next(true, false, false), Time(milliseconds(150)));
  pauses.rest(std::chrono::seconds(5));
  EXPECT_EQ(pauses.next(true, false, false), Pauses::kLongest);
}

TEST(Pauses, a_job_on_a_full_host_is_looked_at_now_and_then) {
  Pauses pauses(kStart);
  pauses.lengthen();
  EXPECT_EQ(pauses.next(true, false, true), Time(milliseconds(40)));
}

// Another thread may have asked the clock before.
TEST(Pauses, time_does_not_run_backwards) { EXPECT_EQ(Pauses(kStart).idle_ns(kStart - kTick), 0U); }

}  // namespace
}  // namespace varve::jobs
