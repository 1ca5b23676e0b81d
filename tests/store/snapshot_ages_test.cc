// A clock by hand: it is set forward and back while time passes, between mounts and in one.
#include "snapshots/snapshot_ages.h"

#include <gtest/gtest.h>

#include <limits>

#include "format/snapshot.h"
#include "snapshots/snapshots.h"
#include "support/manual_clock.h"

namespace varve::snapshots {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000, kDaySeconds = 86'400, kYearSeconds = 366 * kDaySeconds;

SnapshotItem item(std::uint64_t serial, const Timestamp& made) {
  SnapshotItem item;
  item.serial = Serial{serial};
  item.automatic = true;
  item.made = made;
  item.name = format::automatic_name(made);
  return item;
}

struct Mounted {
  test::ManualClock& clock;
  SnapshotAges ages{clock};
  SnapshotItem make(std::uint64_t serial) {
    ages.note_made(Serial{serial});
    return item(serial, clock.now());
  }
};

void pass(test::ManualClock& clock, std::int64_t seconds) { clock.advance(seconds * kSecond); }
void set_ahead(test::ManualClock& clock, std::int64_t seconds) { clock.set_wall(seconds * kSecond); }

// A checkpoint does this.
void correct(SnapshotAges& ages, SnapshotList& list, bool last) {
  for (const auto& [serial, made] : ages.corrected(list, last)) list.find(serial)->made = made;
}

TEST(SnapshotAges, in_a_mount_are_the_time_that_passes) {
  test::ManualClock clock;
  Mounted mount{clock};
  const SnapshotItem one = mount.make(1);
  pass(clock, 100);
  for (const std::int64_t ahead : {10 * kDaySeconds, 30 * kYearSeconds, -10 * kDaySeconds, -50 * kYearSeconds, std::int64_t{0}}) {
    set_ahead(clock, ahead);
    EXPECT_EQ(mount.ages.seconds(one), 100) << ahead;
  }
}

TEST(SnapshotAges, between_mounts_are_what_the_clock_says) {
  test::ManualClock clock;
  const SnapshotItem one = Mounted{clock}.make(1);
  pass(clock, 1000);
  Mounted later{clock};
  pass(clock, 10);
  set_ahead(clock, kYearSeconds);
  EXPECT_EQ(later.ages.seconds(one), 1010) << "also where the clock jumps before anybody has asked";
}

TEST(SnapshotAges, of_the_future_begin_when_they_are_first_seen) {
  test::ManualClock clock;
  set_ahead(clock, 30 * kDaySeconds);
  SnapshotList list({Mounted{clock}.make(1)});
  set_ahead(clock, 0);
  pass(clock, 60);
  Mounted second{clock};
  pass(clock, 40);
  EXPECT_EQ(second.ages.seconds(list.items()[0]), 40);
  correct(second.ages, list, false);
  EXPECT_GT(list.items()[0].made, clock.now()) << "its time may be right, and the clock be behind";
  correct(second.ages, list, true);
  pass(clock, 100);
  Mounted third{clock};
  pass(clock, 5);
  EXPECT_EQ(third.ages.seconds(list.items()[0]), 145) << "many short mounts do not keep it for ever";
}

TEST(SnapshotAges, of_the_future_are_corrected_in_a_long_mount) {
  test::ManualClock clock;
  set_ahead(clock, 30 * kDaySeconds);
  SnapshotList list({Mounted{clock}.make(1)});
  set_ahead(clock, 0);
  Mounted second{clock};
  const Timestamp found = clock.now();
  pass(clock, 600);
  correct(second.ages, list, false);
  EXPECT_EQ(list.items()[0].made.seconds, found.seconds);
}

// A board without a clock: it starts where it was switched off, and the network answers ten days later. Then its power is cut.
TEST(SnapshotAges, outlive_a_jump_and_a_crash) {
  test::ManualClock clock;
  set_ahead(clock, -10 * kDaySeconds);
  Mounted mount{clock};
  SnapshotList list({mount.make(1)});
  pass(clock, 20);
  list.add(mount.make(2));
  correct(mount.ages, list, false);
  EXPECT_EQ(list.items()[1].made, clock.now());
  set_ahead(clock, 0);
  pass(clock, 10);
  correct(mount.ages, list, false);
  pass(clock, 100);
  Mounted next{clock};
  EXPECT_EQ(next.ages.seconds(list.items()[0]), 130);
  EXPECT_EQ(next.ages.seconds(list.items()[1]), 110);
}

TEST(SnapshotAges, from_before_varve_begin_when_they_are_first_seen) {
  test::ManualClock clock;
  set_ahead(clock, -50 * kYearSeconds);
  Mounted mount{clock};
  SnapshotList list({mount.make(1)});
  pass(clock, 50);
  correct(mount.ages, list, true);
  set_ahead(clock, 0);
  Mounted next{clock};
  pass(clock, 7);
  EXPECT_EQ(next.ages.seconds(list.items()[0]), 7);
}

TEST(SnapshotAges, with_no_clock_yet_change_no_times) {
  test::ManualClock clock;
  SnapshotList list({Mounted{clock}.make(1)});
  set_ahead(clock, -50 * kYearSeconds);
  Mounted mount{clock};
  pass(clock, 1000);
  EXPECT_TRUE(mount.ages.corrected(list, true).empty());
}

TEST(SnapshotAges, of_impossible_times_overflow_nothing) {
  test::ManualClock clock;
  Mounted mount{clock};
  EXPECT_EQ(mount.ages.seconds(item(1, {std::numeric_limits<std::int64_t>::min(), 0})), 0);
  EXPECT_EQ(mount.ages.seconds(item(2, {std::numeric_limits<std::int64_t>::max(), 0})), 0);
  SnapshotItem future = item(3, {2'000'000'000, 0});
  set_ahead(clock, 250'000'000'000'000'000 / kSecond);
  EXPECT_EQ(mount.ages.seconds(future), 0);
}

TEST(SnapshotAges, are_corrected_a_few_at_a_time_the_newest_first) {
  test::ManualClock clock;
  Mounted mount{clock};
  SnapshotList list;
  for (std::uint64_t serial = 1; serial <= 100; ++serial) list.add(mount.make(serial));
  set_ahead(clock, kDaySeconds);
  auto corrected = mount.ages.corrected(list, true);
  ASSERT_FALSE(corrected.empty());
  ASSERT_LT(corrected.size(), 100U);
  EXPECT_EQ(corrected.front().serial, Serial{100});
  for (int round = 0; round < 10; ++round) correct(mount.ages, list, false);
  EXPECT_TRUE(mount.ages.corrected(list, true).empty());
  EXPECT_EQ(list.items().front().made, clock.now());
}

TEST(SnapshotAges, are_those_of_automatic_ones_only) {
  test::ManualClock clock;
  Mounted mount{clock};
  SnapshotList list({mount.make(1)});
  list.find(Serial{1})->automatic = false;
  set_ahead(clock, kDaySeconds);
  EXPECT_TRUE(mount.ages.corrected(list, true).empty());
}

}  // namespace
}  // namespace varve::snapshots
