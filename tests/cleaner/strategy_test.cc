// The plans that strategies make, apart from the moving.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cleaner/file_layout.h"
#include "cleaner/strategy/decision.h"
#include "cleaner/strategy/slide.h"
#include "device/write_cost.h"
#include "facts.h"

namespace varve::cleaner {
namespace {

using Kind = Decision::Kind;

// --- slide ----------------------------------------------------------------------------------------------------------------

std::vector<std::uint64_t> ids_of(const Victims& victims) {
  std::vector<std::uint64_t> ids;
  for (SegmentId id : victims.ids) ids.push_back(id.v);
  return ids;
}

TEST(Slide, moves_the_highest_into_what_is_clean_before_the_end) {
  const std::vector<SegmentFacts> used{segment(0, 90, 1), segment(2, 90, 1), segment(7, 90, 1), segment(9, 80, 1)};
  const std::vector<SegmentId> clean{SegmentId{1}, SegmentId{3}, SegmentId{4}, SegmentId{5}, SegmentId{6}, SegmentId{8}};
  SlideLimits limits;
  limits.segments = 4;
  const Victims victims = plan_slide(used, clean, limits);
  EXPECT_EQ(ids_of(victims), (std::vector<std::uint64_t>{9, 7}));
  EXPECT_EQ(victims.data, 170U);
}

TEST(Slide, takes_no_more_than_there_is_room_below) {
  const std::vector<SegmentFacts> used{segment(5, 90, 1), segment(7, 90, 1), segment(9, 90, 1)};
  const std::vector<SegmentId> clean{SegmentId{1}, SegmentId{8}};
  SlideLimits limits;
  limits.segments = 3;
  EXPECT_EQ(ids_of(plan_slide(used, clean, limits)), (std::vector<std::uint64_t>{9}));
}

TEST(Slide, leaves_what_stands_in_one_piece_already) {
  const std::vector<SegmentFacts> used{segment(0, 90, 1), segment(1, 90, 1), segment(2, 90, 1)};
  const std::vector<SegmentId> clean{SegmentId{3}, SegmentId{4}};
  SlideLimits limits;
  limits.segments = 3;
  EXPECT_TRUE(plan_slide(used, clean, limits).ids.empty());
}

TEST(Slide, keeps_to_what_may_be_moved) {
  const std::vector<SegmentFacts> used{segment(5, 90, 1), segment(7, 90, 1)};
  const std::vector<SegmentId> clean{SegmentId{0}, SegmentId{1}};
  SlideLimits limits;
  limits.segments = 2;
  limits.fits = [](const Victims& v) { return v.live() <= 100; };
  EXPECT_EQ(ids_of(plan_slide(used, clean, limits)), (std::vector<std::uint64_t>{7}));
}

// --- fragments ------------------------------------------------------------------------------------------------------------

TEST(Fragments, are_runs_of_blocks_on_the_device) {
  auto at = [](std::uint64_t address, std::uint64_t block) { return LiveBlock{BlockAddr{address}, Ino{5}, block, 0, 0, 0, 0}; };
  EXPECT_EQ(count_fragments({}), 0U);
  const std::vector<LiveBlock> blocks{at(10, 0), at(11, 1), at(13, 2), at(14, 9), at(2, 10)};
  EXPECT_EQ(count_fragments(blocks), 3U);
}

// --- decision -------------------------------------------------------------------------------------------------------------

Situation needs_room(double victims_live, double factor) {
  Situation s;
  s.victims_live = victims_live;
  s.write_factor = factor;
  s.has_plugging = true;
  return s;
}

TEST(Decision, plugging_pays_above_the_bound_only) {
  EXPECT_DOUBLE_EQ(plugging_pays_from(4, 0, 1), 0.6);
  EXPECT_DOUBLE_EQ(plugging_pays_from(9, 0, 1), 0.8);
  EXPECT_DOUBLE_EQ(plugging_pays_from(0.5, 0, 0), 0);  // no device writes here and there faster than in a row
  EXPECT_EQ(decide(needs_room(0.79, 9)).kind, Kind::copy);
  EXPECT_EQ(decide(needs_room(0.81, 9)).kind, Kind::plug);
  EXPECT_EQ(decide(needs_room(0.97, 100)).kind, Kind::copy);
}

TEST(Decision, what_whole_rounds_cost_counts_more_than_what_requests_do) {
  Situation s = needs_room(0.9, 1.1);  // to the cleaner a write here and there seems to cost nothing
  EXPECT_EQ(decide(s).kind, Kind::plug);
  s.copying = 1e6;
  s.filling = 8e6;
  s.costs = "it is so";
  EXPECT_EQ(decide(s).kind, Kind::copy);
  EXPECT_TRUE(decide(s).why.ends_with("it is so"));
  s.filling = 0.5e6;
  EXPECT_EQ(decide(s).kind, Kind::plug);
  EXPECT_TRUE(decide(s).threads);
  s.filling = 1.2e6;  // much the same: the formula decides
  EXPECT_EQ(decide(s).kind, Kind::plug);
  s.write_factor = 100;
  EXPECT_EQ(decide(s).kind, Kind::copy);
  s.has_plugging = false;
  s.filling = 0.5e6;
  EXPECT_EQ(decide(s).kind, Kind::copy);
}

TEST(Decision, what_moving_was_found_to_cost_counts_before_users_follow) {
  Situation s = needs_room(0.9, 1.1);
  s.copying = 1e6;
  s.plugging = 2e6;  // with all the rest it may pay all the same
  EXPECT_EQ(decide(s).kind, Kind::plug);
  s.plugging = 20e6;
  EXPECT_EQ(decide(s).kind, Kind::copy);
}

TEST(Decision, copies_where_there_is_no_plugging) {
  Situation s = needs_room(0.9, 4);
  s.has_plugging = false;
  EXPECT_EQ(decide(s).kind, Kind::copy);
}

TEST(Decision, for_room_power_and_time_do_not_matter) {
  Situation s = needs_room(0.4, 4);
  s.power = Power::battery;
  EXPECT_EQ(decide(s).kind, Kind::copy);
  s.victims_live = 1;
  EXPECT_EQ(decide(s).kind, Kind::rest);
}

Situation idle(double victims_live) {
  Situation s = needs_room(victims_live, 4);
  s.for_room = false;
  s.clean = 0.2;
  return s;
}

TEST(Decision, metadata_makes_copying_dearer) {
  Situation s = needs_room(0.78, 10);
  EXPECT_EQ(decide(s).kind, Kind::copy);
  s.metadata = 1;  // a leaf for each block
  EXPECT_EQ(decide(s).kind, Kind::plug);
}

TEST(Decision, handling_makes_copying_dearer) {
  Situation s = needs_room(0.6, 10);
  EXPECT_EQ(decide(s).kind, Kind::copy);
  s.handling = 6;  // to read a block and look it up takes so many times as long as to write it
  EXPECT_EQ(decide(s).kind, Kind::plug);
}

TEST(Decision, idle_time_is_for_what_is_cheap) {
  EXPECT_EQ(decide(idle(0.3)).kind, Kind::copy);
  EXPECT_DOUBLE_EQ(decide(idle(0.3)).max_utilisation, 0.5);
  EXPECT_EQ(decide(idle(0.8)).kind, Kind::rest);
  Situation s = idle(0.3);
  s.clean = 0.9;
  EXPECT_EQ(decide(s).kind, Kind::rest) << "it is clean enough";
}

TEST(Decision, on_battery_idle_time_is_for_resting) {
  Situation s = idle(0.1);
  s.power = Power::battery;
  EXPECT_EQ(decide(s).kind, Kind::rest);
  EXPECT_NE(decide(s).why.find("battery"), std::string::npos);
}

TEST(Decision, closes_up_in_idle_time_where_seeks_are_dear) {
  Situation s = idle(0.9);
  s.spread = 0.4;
  EXPECT_EQ(decide(s).kind, Kind::rest);
  s.write_factor = 100;
  EXPECT_EQ(decide(s).kind, Kind::rest) << "that is assumed; it may be a virtual disk";
  s.seeks = true;
  EXPECT_EQ(decide(s).kind, Kind::compact);
  s.spread = 0.1;
  EXPECT_EQ(decide(s).kind, Kind::rest);
}

TEST(Decision, does_what_it_is_told) {
  Situation s = idle(0.9);
  s.told = true;
  s.power = Power::battery;
  EXPECT_EQ(decide(s).kind, Kind::plug) << "on battery or not";
  s.by_files = true;
  EXPECT_EQ(decide(s).kind, Kind::defragment);
  s.by_files = false;
  s.victims_live = 1;
  EXPECT_EQ(decide(s).kind, Kind::rest);
  s.write_factor = 100;
  s.spread = 0.1;
  EXPECT_EQ(decide(s).kind, Kind::compact);
}

TEST(Decision, always_says_why) {
  for (double live : {0.0, 0.4, 0.6, 0.95, 1.0})
    for (double factor : {1.0, 4.0, 100.0})
      for (int flags = 0; flags < 16; ++flags) {
        Situation s = needs_room(live, factor);
        s.for_room = flags & 1;
        s.told = flags & 2;
        s.power = flags & 4 ? Power::battery : Power::mains;
        s.spread = flags & 8 ? 0.5 : 0;
        EXPECT_GT(decide(s).why.size(), 10U);
      }
}

TEST(Trial, is_made_only_where_it_can_change_the_decision) {
  Situation s;
  s.has_plugging = true;
  s.victims_live = 0.8;
  s.write_factor = 100;
  s.knows_in_row = s.knows_scattered = false;
  EXPECT_EQ(trial_before(s), Trial::copy);
  s.knows_in_row = true;
  EXPECT_EQ(trial_before(s), Trial::plug);
  s.victims_live = 0.1;
  EXPECT_EQ(trial_before(s), Trial::none) << "copying is cheaper on any device";
  s.victims_live = 0.8;
  s.for_room = false;
  EXPECT_EQ(trial_before(s), Trial::none) << "there is time, and it may be somebody's battery";
  s.for_room = true;
  s.has_plugging = false;
  EXPECT_EQ(trial_before(s), Trial::none);
}

// --- power ----------------------------------------------------------------------------------------------------------------

class PowerSource : public ::testing::Test {
 protected:
  PowerSource() : folder_(std::filesystem::path(::testing::TempDir()) / "power_supply") { std::filesystem::remove_all(folder_); }
  ~PowerSource() override { std::filesystem::remove_all(folder_); }
  void supply(const std::string& name, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(folder_ / name);
    std::ofstream(folder_ / name / file) << text << "\n";
  }
  Power power() { return read_power(folder_.string()); }

 private:
  const std::filesystem::path folder_;
};

TEST_F(PowerSource, nothing_known_is_mains) { EXPECT_EQ(power(), Power::mains); }

TEST_F(PowerSource, a_discharging_battery_counts_unless_something_else_supplies) {
  supply("BAT0", "type", "Battery");
  supply("BAT0", "status", "Discharging");
  EXPECT_EQ(power(), Power::battery);
  supply("AC", "type", "Mains");
  supply("AC", "online", "0");
  EXPECT_EQ(power(), Power::battery);
  supply("AC", "online", "1");
  EXPECT_EQ(power(), Power::mains);
}

TEST_F(PowerSource, a_full_battery_and_that_of_a_mouse_do_not_count) {
  supply("BAT0", "type", "Battery");
  supply("BAT0", "status", "Full");
  supply("mouse", "type", "Battery");
  supply("mouse", "status", "Discharging");
  supply("mouse", "scope", "Device");
  EXPECT_EQ(power(), Power::mains);
}

// --- cost of writes -------------------------------------------------------------------------------------------------------

TEST(WriteCost, is_assumed_until_it_is_measured) {
  EXPECT_DOUBLE_EQ(device::WriteCost(true).factor(), device::WriteCost::kRotationalFactor);
  EXPECT_DOUBLE_EQ(device::WriteCost(false).factor(), device::WriteCost::kUsualFactor);
}

TEST(WriteCost, what_reads_without_seeks_does_not_rotate) {
  device::WriteCost fast(true), slow(true);
  for (int i = 0; i < 10; ++i) {
    fast.observe_read(300'000);
    slow.observe_read(9'000'000);
  }
  EXPECT_DOUBLE_EQ(fast.factor(), device::WriteCost::kUsualFactor);
  EXPECT_DOUBLE_EQ(slow.factor(), device::WriteCost::kRotationalFactor);
  EXPECT_FALSE(fast.seeks());
  EXPECT_TRUE(slow.seeks());
}

TEST(WriteCost, compares_many_requests_here_and_there_with_blocks_in_a_row) {
  device::WriteCost cost(false);
  for (int i = 0; i < 20; ++i) {
    cost.observe(100, 120, 120 * 50'000);
    cost.observe(1, 64, 640'000);
  }
  EXPECT_TRUE(cost.knows_scattered() && cost.knows_in_row());
  EXPECT_NEAR(cost.factor(), 5.0, 0.01);
}

TEST(WriteCost, what_was_measured_while_the_host_was_starved_weighs_less) {
  device::WriteCost cost(false);
  for (int i = 0; i < 20; ++i) {
    cost.observe(100, 100, device::DeviceSpan::on_host(100 * 50'000, 0));
    cost.observe(1, 64, device::DeviceSpan::on_host(640'000, 0));
    cost.observe(1, 64, device::DeviceSpan::on_host(64'000'000, 70'000'000));
  }
  EXPECT_NEAR(cost.in_row(), (10'000.0 + 1'000'000.0 / 16) / (1 + 1.0 / 16), 10'000);
}

TEST(WriteCost, compares_handling_with_writes_in_a_row) {
  device::WriteCost cost(false);
  EXPECT_DOUBLE_EQ(cost.handling(), device::WriteCost::kUsualHandling);
  for (int i = 0; i < 20; ++i) {
    cost.observe_handling(1000, 30'000'000);
    cost.observe(1, 64, 640'000);
  }
  EXPECT_NEAR(cost.handling(), 3.0, 0.01);
}

TEST(WriteCost, learns_nothing_from_requests_of_middle_size_or_few_of_them) {
  device::WriteCost cost(false);
  for (int i = 0; i < 20; ++i) {
    cost.observe(7, 7, 350'000);
    cost.observe(100, 1000, 900'000);
    cost.observe(1, 64, 640'000);
  }
  EXPECT_FALSE(cost.knows_scattered());
}

TEST(WriteCost, is_known_soon_where_writes_are_dear) {
  device::WriteCost cost(false);
  cost.observe(16, 16, 16 * 280'000'000ULL);
  EXPECT_TRUE(cost.knows_scattered());
  EXPECT_FALSE(cost.knows_in_row());
  EXPECT_EQ(cost.scattered_within(2'800'000'000), 10U);
  cost.observe(1, 64, 64 * 2'000'000ULL);
  EXPECT_TRUE(cost.knows_scattered() && cost.knows_in_row());
  EXPECT_NEAR(cost.factor(), 140, 1);
}

TEST(WriteCost, is_kept_for_the_next_mount) {
  device::WriteCost cost(false), next(false), nothing(false);
  for (int i = 0; i < 20; ++i) {
    cost.observe(100, 100, 100 * 900'000);
    cost.observe(1, 64, 64 * 10'000);
  }
  next.restore(cost.in_row(), cost.scattered());
  EXPECT_TRUE(next.knows_scattered() && next.knows_in_row());
  EXPECT_NEAR(next.factor(), 90, 1);
  for (int i = 0; i < 40; ++i) next.observe(100, 100, 100 * 20'000);
  EXPECT_LT(next.factor(), 20) << "what is measured counts more";
  nothing.restore(0, 0);
  EXPECT_FALSE(nothing.knows_scattered() || nothing.knows_in_row());
}

TEST(WriteCost, forgets_what_scattered_writes_cost_when_there_are_none_for_long) {
  device::WriteCost cost(false);
  for (int i = 0; i < 20; ++i) cost.observe(100, 100, 100 * 900'000);
  for (int i = 0; i < 100; ++i) cost.observe(1, 64, 640'000);
  EXPECT_GT(cost.factor(), 80);
  for (int i = 0; i < 5000; ++i) cost.observe(1, 64, 640'000);
  EXPECT_DOUBLE_EQ(cost.factor(), device::WriteCost::kUsualFactor);
}

// --- names ----------------------------------------------------------------------------------------------------------------

TEST(Strategies, are_found_by_name_and_say_what_there_is) {
  for (const auto& [name, help] : registry().strategies.names()) {
    auto made = make_strategy(name);
    ASSERT_TRUE(made.ok()) << name;
    EXPECT_EQ((*made)->name(), name);
    EXPECT_FALSE(help.empty());
  }
  const auto unknown = make_strategy("magic");
  ASSERT_TRUE(unknown.fails_with(Errc::invalid));
  EXPECT_NE(unknown.error().message().find("copying"), std::string::npos);
  EXPECT_TRUE(make_strategy("adaptive:power=sun").fails_with(Errc::invalid));
  EXPECT_TRUE(make_strategy("copying:fast=1").fails_with(Errc::invalid));
}

}  // namespace
}  // namespace varve::cleaner
