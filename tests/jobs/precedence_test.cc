// Tests say which work may begin, and what gives way to what.
#include "jobs/precedence.h"

#include <gtest/gtest.h>

#include <vector>

namespace varve::jobs {
namespace {

constexpr Kind kAll[] = {Kind::cleaning, Kind::resizing, Kind::upkeep, Kind::tidying, Kind::settling, Kind::ordering};
constexpr std::uint64_t kMinute = 60'000'000'000;

std::vector<Kind> that_may_begin(const Situation& situation) {
  std::vector<Kind> kinds;
  for (const Kind kind : kAll)
    if (may_begin(kind, situation)) kinds.push_back(kind);
  return kinds;
}

std::vector<Kind> that_give_way(const Events& events) {
  std::vector<Kind> kinds;
  for (const Kind kind : kAll)
    if (gives_way(kind, events)) kinds.push_back(kind);
  return kinds;
}

using Kinds = std::vector<Kind>;

TEST(Precedence, all_may_begin_on_an_idle_filesystem) {
  EXPECT_EQ(that_may_begin({.idle_ns = kMinute + 1}), Kinds(std::begin(kAll), std::end(kAll)));
}

TEST(Precedence, order_waits_for_a_minute_without_operations) {
  const Kinds busy{Kind::cleaning, Kind::resizing, Kind::upkeep, Kind::tidying};
  EXPECT_EQ(that_may_begin({}), busy);
  EXPECT_EQ(that_may_begin({.idle_ns = kMinute}), busy);
}

TEST(Precedence, nothing_begins_that_would_write_more_to_a_full_host) {
  EXPECT_EQ(that_may_begin({.host_full = true, .idle_ns = kMinute + 1}), Kinds());
  EXPECT_EQ(that_may_begin({.read_only = true, .host_full = true}), Kinds());
}

// They say why they end.
TEST(Precedence, only_what_somebody_has_asked_for_begins_where_nothing_can_be_written) {
  const Kinds asked{Kind::cleaning, Kind::resizing};
  EXPECT_EQ(that_may_begin({.read_only = true, .idle_ns = kMinute + 1}), asked);
  EXPECT_EQ(that_may_begin({.read_only = true, .gives_back = true}), asked) << "and nothing more is given back";
}

TEST(Precedence, what_deleted_snapshots_held_comes_before_what_somebody_has_asked_for) {
  EXPECT_EQ(that_may_begin({.gives_back = true}), (Kinds{Kind::upkeep, Kind::tidying}));
}

TEST(Precedence, files_are_not_tidied_while_somebody_cleans) {
  EXPECT_EQ(that_may_begin({.is_cleaning = true}), (Kinds{Kind::cleaning, Kind::resizing, Kind::upkeep}));
}

TEST(Precedence, jobs_give_way_to_operations_that_wait_for_room) {
  EXPECT_EQ(that_give_way({.room = true}), (Kinds{Kind::cleaning, Kind::resizing}));
  EXPECT_EQ(that_give_way({.room = true, .checkpoint = true}), (Kinds{Kind::cleaning, Kind::resizing})) << "with or without a checkpoint";
}

// If something waits for each checkpoint, a job would never come to anything.
TEST(Precedence, jobs_give_way_to_a_checkpoint_when_they_have_moved_something) {
  EXPECT_EQ(that_give_way({.checkpoint = true}), Kinds());
  EXPECT_EQ(that_give_way({.checkpoint = true, .epoch = true, .snapshot = true}), Kinds());
  EXPECT_EQ(that_give_way({.checkpoint = true, .moved = true}), (Kinds{Kind::cleaning, Kind::resizing}));
}

TEST(Precedence, jobs_give_way_to_the_log_and_to_snapshots_at_once) {
  EXPECT_EQ(that_give_way({.epoch = true}), (Kinds{Kind::cleaning, Kind::resizing}));
  EXPECT_EQ(that_give_way({.snapshot = true}), (Kinds{Kind::cleaning, Kind::resizing}));
}

TEST(Precedence, idle_work_ends_when_the_thread_is_woken) {
  EXPECT_EQ(that_give_way({.woken = true}), (Kinds{Kind::tidying, Kind::ordering}));
  EXPECT_EQ(that_give_way({.written = true}), Kinds{Kind::ordering});
}

TEST(Precedence, nobody_gives_way_to_nothing) {
  EXPECT_EQ(that_give_way({}), Kinds());
  EXPECT_EQ(that_give_way({.moved = true}), Kinds());
}

TEST(Precedence, what_idle_time_brings_about_is_no_use_of_the_filesystem) {
  for (const Kind kind : kAll) EXPECT_EQ(is_unnoticed(kind), kind == Kind::tidying || kind == Kind::ordering);
}

TEST(Precedence, turns_come_in_the_order_of_stages) {
  for (std::size_t i = 1; i < kKinds; ++i) EXPECT_LE(stage_of(kAll[i - 1]), stage_of(kAll[i]));
  EXPECT_EQ(stage_of(Kind::upkeep), Stage::upkeep);
}

}  // namespace
}  // namespace varve::jobs
