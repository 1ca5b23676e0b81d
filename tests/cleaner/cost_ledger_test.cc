// What cleaning costs by whole rounds: what a kind of it does to others' writes is in its account, and no error lasts.
#include <gtest/gtest.h>

#include "cleaner/cost_ledger.h"

namespace varve::cleaner {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
using Cleaning = CostLedger::Kind;

// A device in use: rounds of one kind, and what users write between them.
class Use {
 public:
  explicit Use(const format::WritingCosts& remembered = {}) : ledger(remembered) {}

  // Moving 1000 blocks takes a second, and the checkpoint a fifth of one.
  void round(Cleaning kind, std::uint64_t moved = 1000, std::uint64_t ms = 1000) {
    ledger.begin(now);
    ledger.ended(kind, moved, ms * kMs);
    ledger.settled(200 * kMs, now);
  }
  // `late`: threads wait for a CPU for that share of the device's time.
  void write(std::uint64_t blocks, double ms_each, double in_holes = 0, double late = 0) {
    now.users += blocks;
    now.waited_ns += static_cast<std::uint64_t>(late * static_cast<double>(blocks) * ms_each * kMs);
    now.in_holes += static_cast<std::uint64_t>(static_cast<double>(blocks) * in_holes);
    now.writing_ns += static_cast<std::uint64_t>(static_cast<double>(blocks) * ms_each * kMs);
  }

  CostLedger ledger;
  CostLedger::Reading now;
};

TEST(CostLedger, knows_nothing_before_there_was_a_round_of_each_kind) {
  Use use;
  EXPECT_EQ(use.ledger.copying(0.5), 0);
  use.write(1000, 0.3);  // before the first round: files are filled, which says nothing about the time after
  use.round(Cleaning::copying);
  EXPECT_EQ(use.ledger.copying(0.5), 0) << "nobody has written since";
  use.write(1000, 0.3);
  use.round(Cleaning::copying);
  EXPECT_NEAR(use.ledger.copying(0.5), 0.3e6 + 1.2e6, 0.01e6);
  EXPECT_NEAR(use.ledger.copying(0.8), 0.3e6 + 4 * 1.2e6, 0.01e6);
  EXPECT_EQ(use.ledger.filling(0.5), 0);
  EXPECT_EQ(use.ledger.text(0.5), "");
}

// A cache that is full of scattered writes carries them out in the first round of copying.
TEST(CostLedger, what_filling_has_left_behind_is_not_in_the_account_of_copying) {
  Use use;
  for (int i = 0; i < 3; ++i) {
    use.round(Cleaning::filling);
    use.write(1000, 1, 1);
  }
  const double plugging = use.ledger.plugging();
  use.round(Cleaning::copying, 100, 4000);
  use.write(1000, 0.3);
  EXPECT_EQ(use.ledger.copying(0.8), 0) << "it is tried once more";
  EXPECT_EQ(use.ledger.plugging(), plugging);
  use.round(Cleaning::copying);
  use.write(1000, 0.3);
  use.round(Cleaning::copying);
  EXPECT_NEAR(use.ledger.copying(0.8), 0.3e6 + 4 * 1.2e6, 0.01e6);
}

TEST(CostLedger, what_a_round_does_to_the_writes_after_it_is_in_its_account) {
  Use use;
  for (int i = 0; i < 3; ++i) {
    use.round(Cleaning::copying);
    use.write(1000, 0.3);
  }
  for (int i = 0; i < 3; ++i) {
    use.round(Cleaning::filling);  // as quick by itself
    use.write(1000, 9);        // but heads have to be opened anew, or a cache is full
  }
  use.round(Cleaning::filling);
  EXPECT_LT(use.ledger.copying(0.8), 6e6);
  EXPECT_GT(use.ledger.filling(0.8), 9e6);
  EXPECT_NE(use.ledger.text(0.8), "");
}

TEST(CostLedger, users_writes_into_holes_belong_to_filling) {
  Use use;
  use.round(Cleaning::copying);
  use.write(1000, 2, 1.0);
  EXPECT_TRUE(use.ledger.look(use.now));
  EXPECT_NEAR(use.ledger.filling(0.8), 2e6, 0.3e6) << "nothing of it has to be moved";
  EXPECT_EQ(use.ledger.copying(0.8), 0);
}

TEST(CostLedger, looks_only_at_enough) {
  Use use;
  use.round(Cleaning::copying);
  use.write(3, 2);
  EXPECT_FALSE(use.ledger.look(use.now));
}

TEST(CostLedger, a_short_round_pays_a_part_of_its_checkpoint) {
  Use use;
  use.round(Cleaning::copying, 10, 6);  // a hundredth of what a whole one would be
  use.write(1000, 0.3);
  use.round(Cleaning::copying, 1000, 600);
  EXPECT_NEAR(use.ledger.copying(0.5), 0.3e6 + 0.8e6, 0.05e6);
}

TEST(CostLedger, what_a_checkpoint_takes_longer_than_after_copying_belongs_to_the_round) {
  Use use;
  use.round(Cleaning::copying);
  use.ledger.begin(use.now);
  use.ledger.ended(Cleaning::filling, 16, 1 * kMs);  // into a cache
  use.ledger.settled(600 * kMs, use.now);
  EXPECT_NEAR(use.ledger.plugging(), 401e6 / 16, 2e6);
}

// Its threads hear late of what the device has done long ago.
TEST(CostLedger, what_was_measured_while_the_host_was_starved_weighs_less) {
  Use use;
  use.round(Cleaning::copying);
  for (int i = 0; i < 8; ++i) {
    use.write(200, 0.3);
    use.ledger.look(use.now);
    use.write(200, 9, 0, 2);
    use.ledger.look(use.now);
    use.ledger.ended(Cleaning::copying, 1000, {10000 * kMs, device::DeviceSpan::kLeastWeight});
    use.ledger.ended(Cleaning::copying, 1000, 1000 * kMs);
  }
  EXPECT_NEAR(use.ledger.copying(0), 0.3e6 + 8.7e6 / 16, 0.1e6);
  EXPECT_NEAR(use.ledger.copying(0.5) - use.ledger.copying(0), 1.53e6, 0.1e6);
}

TEST(CostLedger, what_comes_between_does_not_count) {
  Use use;
  for (int i = 0; i < 2; ++i) {
    use.round(Cleaning::copying);
    use.write(1000, 0.3);
  }
  use.round(Cleaning::copying);
  use.write(10, 5000);
  use.ledger.interrupt();
  EXPECT_FALSE(use.ledger.look(use.now));
  use.round(Cleaning::copying);
  EXPECT_LT(use.ledger.copying(0.5), 2e6);
}

TEST(CostLedger, a_wrong_memory_is_corrected_within_seconds) {
  for (const bool too_cheap : {false, true}) {
    format::WritingCosts remembered;
    remembered.copied = remembered.beside = 1'000'000;
    remembered.plugged = remembered.threaded = too_cheap ? 1'000 : 900'000'000;
    Use use(remembered);
    EXPECT_EQ(use.ledger.filling(0.8) < use.ledger.copying(0.8), too_cheap);
    use.round(Cleaning::filling, 64, 100);
    use.write(512, too_cheap ? 8 : 0.1, 1.0);  // 4 s, 50 ms
    EXPECT_TRUE(use.ledger.look(use.now));
    if (too_cheap) {
      EXPECT_GT(use.ledger.filling(0.8), use.ledger.copying(0.8));
    }
    for (int i = 0; i < 8; ++i) use.write(512, too_cheap ? 8 : 0.1, 1.0);
    EXPECT_TRUE(use.ledger.look(use.now));
    EXPECT_EQ(use.ledger.filling(0.8) < use.ledger.copying(0.8), !too_cheap);
  }
}

TEST(CostLedger, the_other_kind_is_forgotten_in_time_and_so_tried_again) {
  format::WritingCosts remembered;
  remembered.plugged = remembered.threaded = 900'000'000;
  Use use(remembered);
  EXPECT_GT(use.ledger.filling(0.8), 0);
  for (int i = 0; i < 60; ++i) {
    use.round(Cleaning::copying);
    use.write(1000, 0.3);
  }
  EXPECT_EQ(use.ledger.filling(0.8), 0);
  EXPECT_GT(use.ledger.copying(0.8), 0);
  EXPECT_TRUE(use.ledger.take_forgotten());
  EXPECT_FALSE(use.ledger.take_forgotten());
  use.round(Cleaning::filling, 16, 4000);  // a dear trial is not repeated soon
  use.round(Cleaning::copying);
  for (int i = 0; i < 60; ++i) use.round(Cleaning::copying);
  EXPECT_FALSE(use.ledger.take_forgotten());
}

TEST(CostLedger, is_kept_for_the_next_mount) {
  Use use;
  for (const Cleaning kind : {Cleaning::copying, Cleaning::filling}) {
    use.round(kind);
    use.write(1000, 0.3, kind == Cleaning::filling ? 0.8 : 0);
  }
  use.round(Cleaning::copying);
  const CostLedger next(format::as_kept(use.ledger.remembered()));
  EXPECT_NEAR(next.copying(0.8), use.ledger.copying(0.8), 0.06 * use.ledger.copying(0.8));
  EXPECT_NEAR(next.filling(0.8), use.ledger.filling(0.8), 0.3 * use.ledger.filling(0.8));
}

}  // namespace
}  // namespace varve::cleaner
