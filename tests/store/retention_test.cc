// Rules of retention: how they are written, and which snapshots they keep while time passes, clocks are set and mounts come and go.
#include "snapshots/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/duration.h"
#include "checkpoint/protection.h"
#include "format/snapshot.h"
#include "snapshots/snapshot_ages.h"
#include "snapshots/snapshots.h"
#include "support/manual_clock.h"
#include "support/settings.h"

namespace varve::snapshots {
namespace {

struct Dice : SeededRandom {
  Dice() : SeededRandom(test::first_seed()) {}
  std::uint64_t below(std::uint64_t end) { return next() % end; }
};

constexpr std::int64_t kNsOfASecond = 1'000'000'000, kOneHour = 3600, kOneDay = 24 * kOneHour;

std::string error_of(std::string_view text) {
  const auto rules = parse_retention(text);
  return rules.ok() ? "none" : rules.error().message();
}

TEST(RetentionRules, are_read_as_they_are_written) {
  for (const char* const text :
       {"1h", "1h,24h:1h,30d:1d", "1d:1h", "30s:1s", "1h:1h,2h:2h", "1s,2s:1s", "90m,36h:90m", "100d:2d,36600d:90d"}) {
    const auto rules = parse_retention(text);
    ASSERT_TRUE(rules.ok()) << text << ": " << rules.error().message();
    EXPECT_EQ(*parse_retention(retention_text(*rules)), *rules) << text;
  }
  EXPECT_EQ(retention_text(*parse_retention("60m,24h:60m")), "1h,1d:1h");
  EXPECT_EQ(*parse_retention("60,120:90"), (std::vector<RetentionRule>{{60, 0}, {120, 90}}));
}

TEST(RetentionRules, name_what_is_wrong_in_them) {
  EXPECT_EQ(error_of("1h,soon:1h"), "'soon' is no length of time: write it as 30s, 10m, 1h or 2d");
  EXPECT_EQ(error_of("1h,24h"), "'24h': only the first rule goes without a spacing, as in 1h,24h:1h,30d:1d");
  EXPECT_EQ(error_of("0,24h:1h"), "'0': an age must be a second or more, as in 1h,24h:1h,30d:1d");
  EXPECT_EQ(error_of("1h,24h:0"), "'24h:0': a spacing must be a second or more, as in 1h,24h:1h,30d:1d");
  EXPECT_EQ(error_of("1h,24h:2d"), "'24h:2d': a spacing must be no longer than its age, as in 1h,24h:1h,30d:1d");
  EXPECT_EQ(error_of("24h,1h:1h"), "'1h:1h': each age must be longer than the one before, as in 1h,24h:1h,30d:1d");
  EXPECT_EQ(error_of("1h,1d:2h,30d:2h"), "'30d:2h': each spacing must be longer than the one before, as in 1h,24h:1h,30d:1d");
  EXPECT_EQ(error_of("1h,30d:1s"), "'30d:1s': that makes more than 2500 snapshots: take a longer spacing, as in 1h,24h:1h,30d:1d");
  EXPECT_EQ(error_of("1s:1s,2s:2s,3s:3s,4s:4s,5s:5s,6s:6s,7s:7s,8s:8s,9s:9s"), "'9s:9s': there may be 8 rules, as in 1h,24h:1h,30d:1d");
}

TEST(RetentionRules, stand_any_text) {
  for (const char* const text :
       {"", ",", ":", "1h,", ",1h", "1h,,2h:1h", "1h:", ":1h", "1h::1h", "1h:1m:1s", "-1h", "1h,-24h:1h", "1h, 24h:1h", "1H",
        "18446744073709551616s", "18446744073709551615d", "99999999999999999999:1s", "1h;24h:1h", "\"1h\"", "off,1h", "1h,off", "0:0", "0",
        "1h\n", "٣h"})
    EXPECT_TRUE(parse_retention(text).fails_with(Errc::invalid)) << text;
  EXPECT_TRUE(parse_retention(std::string_view("1h\0,24h:1h", 10)).fails_with(Errc::invalid));
  EXPECT_TRUE(parse_retention(std::string(100'000, ',')).fails_with(Errc::invalid));
  EXPECT_TRUE(parse_retention(std::string(100'000, '1')).fails_with(Errc::invalid));
  Dice random;
  constexpr std::string_view kLetters = "0123456789smhd::,,off- ";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(16); n-- > 0;) text += kLetters[random.below(kLetters.size())];
    const auto rules = parse_retention(text);
    if (!rules.ok()) continue;
    EXPECT_EQ(*parse_retention(retention_text(*rules)), *rules) << text;
    EXPECT_LE(spaced_snapshots(*rules), kMostSpacedSnapshots) << text;
    EXPECT_TRUE(std::ranges::is_sorted(*rules, {}, &RetentionRule::age_s)) << text;
  }
}

TEST(RetentionRules, are_an_option_beside_a_single_length_of_time) {
  const ProtectionSettings settings = *with_window({}, "1h,24h:1h,30d:1d");
  EXPECT_EQ(settings.mode, ProtectionSettings::Mode::on);
  EXPECT_EQ(settings.window_s, 30U * kOneDay);
  EXPECT_EQ(settings.interval_s(), 30U);
  EXPECT_EQ(settings.window_text(), "1h,1d:1h,30d:1d");
  EXPECT_TRUE(with_window(settings, "1h")->rules.empty());
  EXPECT_EQ(with_window(settings, "1h")->window_text(), "1h");
  EXPECT_FALSE(with_window(settings, "off")->is_on());
  EXPECT_FALSE(with_window(settings, "0")->is_on());
  EXPECT_EQ(with_window({}, "24h:1h")->interval_s(), 3600U) << "more would go at once";
  EXPECT_EQ(with_window({}, "10d,20d:12h")->interval_s(), 87U) << "neither of them makes too many";
  EXPECT_TRUE(with_window({}, "1h,24h").fails_with(Errc::invalid));
}

// A snapshot as its true age has it, beside what clocks say.
struct Truth {
  std::int64_t made_s = 0;
  std::uint64_t serial = 0;
};

// Time passes, snapshots come by a rule and go by it; the wall clock is set as it likes, and mounts end.
class Passing {
 public:
  explicit Passing(std::string_view rules) : rules_(*parse_retention(rules)) {}

  test::ManualClock& clock() { return clock_; }
  void pass(std::int64_t seconds) {
    clock_.advance(seconds * kNsOfASecond);
    now_s_ += seconds;
  }
  void set_clock_ahead(std::int64_t seconds) { clock_.set_wall(seconds * kNsOfASecond); }

  // A checkpoint makes one, and gives up what is not needed.
  void make() {
    const std::uint64_t serial = ++serial_;
    thin();
    SnapshotItem item;
    item.serial = Serial{serial};
    item.automatic = true;
    item.made = clock_.now();
    item.name = fmt::format("auto-{}", serial);
    list_.add(item);
    ages_->note_made(Serial{serial});
    made_.push_back({now_s_, serial});
    for (const auto& [corrected, made] : ages_->corrected(list_, false)) list_.find(corrected)->made = made;
  }
  void thin() {
    while (list_.items().size() > 1 && is_old(list_.items()[1])) list_.erase(list_.items().front().serial);
    std::vector<AgedSnapshot> aged;
    for (const SnapshotItem& item : list_.items()) aged.push_back({ages_->seconds(item), false});
    const std::vector<bool> goes = superfluous(aged, rules_);
    std::vector<Serial> leaving;
    for (std::size_t i = 0; i < goes.size(); ++i)
      if (goes[i]) leaving.push_back(list_.items()[i].serial);
    for (const Serial serial : leaving) list_.erase(serial);
  }
  void remount() {
    for (bool more = true; more;) {
      const auto corrected = ages_->corrected(list_, true);
      for (const auto& [serial, made] : corrected) list_.find(serial)->made = made;
      more = !corrected.empty();
    }
    ages_ = std::make_unique<SnapshotAges>(clock_);
  }
  std::vector<std::uint64_t> kept() const {
    std::vector<std::uint64_t> serials;
    for (const SnapshotItem& item : list_.items()) serials.push_back(item.serial.v);
    return serials;
  }

  // Empty: each of those that are kept is needed, and no other one was. `tolerance_s`: what mounts may be wrong about an age.
  std::string what_is_wrong(std::int64_t tolerance_s) const {
    const std::vector<std::uint64_t> serials = kept();
    if (made_.empty()) return "";
    if (serials.empty() || serials.back() != made_.back().serial) return "the newest is not there";
    const auto age = [&](std::uint64_t serial) { return now_s_ - made_[serial - 1].made_s; };
    const auto spacing = [&](std::int64_t age_s) { return static_cast<std::int64_t>(rules_[rule_for(age_s, rules_)].spacing_s); };
    const auto reach = static_cast<std::int64_t>(rules_.back().age_s);
    for (std::size_t i = 0; i + 1 < serials.size(); ++i) {
      const std::uint64_t older = serials[i], newer = serials[i + 1];
      if (newer == older + 1) continue;
      // Others were between them. Each of these was older than what all are kept of, and not farther from both than its rule says.
      const std::int64_t gap = age(older) - age(newer), allowed = spacing(age(older));
      if (allowed == 0) return fmt::format("{} to {}: one has gone that was too young", older, newer);
      if (gap > allowed + tolerance_s) return fmt::format("{} to {}: {} s between them, {} allowed", older, newer, gap, allowed);
    }
    for (std::size_t i = 1; i + 1 < serials.size(); ++i) {
      const std::int64_t allowed = spacing(age(serials[i]) - tolerance_s), gap = age(serials[i - 1]) - age(serials[i + 1]);
      if (gap + tolerance_s < allowed) return fmt::format("{} is needless: {} s without it, {} allowed", serials[i], gap, allowed);
    }
    for (std::size_t i = 1; i < serials.size(); ++i)
      if (age(serials[i]) > reach + tolerance_s)
        return fmt::format("{} is too old, and not the last state before the time asked for", serials[i]);
    for (const Truth& one : made_)
      if (age(one.serial) <= reach && age(serials.front()) + tolerance_s < age(one.serial)) return fmt::format("{} was needed", one.serial);
    return "";
  }

 private:
  bool is_old(const SnapshotItem& item) { return ages_->seconds(item) > static_cast<std::int64_t>(rules_.back().age_s); }

  test::ManualClock clock_;
  std::unique_ptr<SnapshotAges> ages_ = std::make_unique<SnapshotAges>(clock_);
  std::vector<RetentionRule> rules_;
  SnapshotList list_;
  std::vector<Truth> made_;
  std::uint64_t serial_ = 0;
  std::int64_t now_s_ = 0;
};

constexpr const char* kSets[] = {"10m", "1h,24h:1h,30d:1d", "1h:10m", "10m,1h:5m,6h:1h,2d:6h", "1m,10m:2m,3h:9m"};

// How often something is written: steadily, in bursts, and with pauses of any length.
std::int64_t next_step(Dice& random) {
  const std::uint64_t kind = random.below(40);
  if (kind == 0) return static_cast<std::int64_t>(random.below(3 * kOneDay));
  if (kind < 4) return static_cast<std::int64_t>(random.below(2 * kOneHour));
  return static_cast<std::int64_t>(30 + random.below(60));
}

TEST(Retention, keeps_what_its_rules_say_after_any_history) {
  Dice random;
  for (const char* const rules : kSets) {
    Passing passing(rules);
    for (int step = 0; step < 3000; ++step) {
      passing.pass(next_step(random));
      passing.make();
      passing.thin();
      ASSERT_EQ(passing.what_is_wrong(0), "") << rules << ", step " << step << ", VARVE_SEED=" << test::first_seed();
    }
  }
}

TEST(Retention, does_not_thin_for_a_clock_that_is_set) {
  Dice random;
  for (const char* const rules : kSets) {
    Passing passing(rules), beside(rules);
    for (int step = 0; step < 1500; ++step) {
      const std::int64_t seconds = next_step(random);
      for (Passing* const one : {&passing, &beside}) one->pass(seconds);
      if (random.below(20) == 0) passing.set_clock_ahead(static_cast<std::int64_t>(random.below(60 * 366 * kOneDay)) - 30 * 366 * kOneDay);
      for (Passing* const one : {&passing, &beside}) one->make();
      ASSERT_EQ(passing.kept(), beside.kept()) << rules << ", step " << step << ", VARVE_SEED=" << test::first_seed();
    }
  }
}

TEST(Retention, goes_on_from_one_mount_to_the_next) {
  constexpr std::int64_t kToleratedSeconds = 12;  // twice what snapshot_ages.cc leaves, and seconds that were cut
  Dice random;
  for (const char* const rules : kSets) {
    Passing passing(rules);
    for (int step = 0; step < 2000; ++step) {
      passing.pass(next_step(random));
      if (random.below(30) == 0) passing.set_clock_ahead(static_cast<std::int64_t>(random.below(2 * 366 * kOneDay)));
      if (random.below(50) == 0) passing.remount();
      passing.make();
      passing.thin();
      ASSERT_EQ(passing.what_is_wrong(kToleratedSeconds), "") << rules << ", step " << step << ", VARVE_SEED=" << test::first_seed();
    }
  }
}

TEST(Retention, has_one_for_each_hour_and_day) {
  Passing passing("1h,24h:1h,30d:1d");
  for (int minute = 0; minute < 60 * 24 * 60; ++minute) {
    passing.pass(60);
    passing.make();
  }
  EXPECT_GE(passing.kept().size(), 60U + 23 + 29);
  EXPECT_LE(passing.kept().size(), 60U + 25 + 33);
}

TEST(Retention, leaves_those_of_which_it_is_not_known_when_they_were_made) {
  const auto rules = *parse_retention("1h,24h:1h");
  const std::vector<AgedSnapshot> same_age(20, {2 * kOneHour, false});
  EXPECT_EQ(std::ranges::count(superfluous(same_age, rules), true), 0);
  // Snapshots made before a clock was put right are as old as the oldest that was made after it.
  std::vector<AgedSnapshot> mixed(20, {10, false});
  mixed.push_back({5 * kOneHour, false});
  mixed.push_back({0, false});
  const std::vector<bool> goes = superfluous(mixed, rules);
  EXPECT_EQ(std::ranges::count(goes, true), 0);
}

TEST(Retention, leaves_what_is_in_use_and_counts_on_nobody_else) {
  const auto rules = *parse_retention("1m,1d:1h");
  std::vector<AgedSnapshot> aged;
  for (std::int64_t age = 2 * kOneHour; age >= 0; age -= 600) aged.push_back({age, false});
  aged[3].stays = true;
  const std::vector<bool> goes = superfluous(aged, rules);
  EXPECT_FALSE(goes[3]);
  EXPECT_FALSE(goes.front());
  EXPECT_FALSE(goes.back());
  EXPECT_TRUE(goes[1] && goes[2] && goes[4]);
  EXPECT_TRUE(superfluous({}, rules).empty());
}

}  // namespace
}  // namespace varve::snapshots
