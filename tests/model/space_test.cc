// A device that is nearly or quite full: what the model says still holds, and ENOSPC tells the truth.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/types.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"

namespace varve::test {
namespace {

WorldParameters device_of(std::uint64_t bytes, std::uint32_t segment_blocks = 0) {
  WorldParameters parameters;
  parameters.bytes = bytes;
  parameters.image.segment_blocks = segment_blocks;
  return parameters;
}

// Fills the device with files until it refuses; returns how many bytes went in.
std::uint64_t fill(World& world, int round, std::string& failure) {
  std::uint64_t bytes = 0;
  for (int i = 0;; ++i) {
    const std::uint64_t before = world.steps.refused_for_space();
    failure = world.steps.run(step(fmt::format("create /f{} 0644", i)));
    if (failure.empty() && world.steps.refused_for_space() == before) {
      failure = world.steps.run(step(fmt::format("write /f{} 0 524288 {}", i, round * 1000 + i)));
    }
    if (!failure.empty() || world.steps.refused_for_space() != before) return bytes;
    bytes += 524288;
  }
}

std::string empty(World& world) {
  std::vector<std::string> names;
  for (const auto& [name, id] : world.steps.model.inode(kModelRoot).entries) names.push_back(name);
  for (const std::string& name : names) {
    std::string text = world.steps.run(step("unlink /" + name));
    if (!text.empty()) return text;
  }
  return "";
}

TEST(Hazards, H22_H39_fills_and_empties_twenty_times_to_the_same_level) {
  World world(device_of(24 * kMiB));
  ASSERT_TRUE(good(world.start()));
  std::uint64_t first = 0;
  for (int round = 0; round < 20; ++round) {
    std::string failure;
    const std::uint64_t bytes = fill(world, round, failure);
    ASSERT_TRUE(good(failure)) << "round " << round;
    if (round == 0) first = bytes;
    EXPECT_GT(bytes, 24 * kMiB / 2) << "round " << round;
    EXPECT_GE(bytes + kMiB, first) << "round " << round << ": space got lost";
    if (round % 5 == 0) {
      ASSERT_TRUE(good(world.compare_now()));
    }
    ASSERT_TRUE(good(empty(world))) << "round " << round;
  }
  EXPECT_TRUE(good(world.finish()));
}

// Overwriting what is there, punching and deleting need no space that a full disk would not give.
TEST(Hazards, H38_overwrites_never_run_out_of_space) {
  World world(device_of(24 * kMiB));
  ASSERT_TRUE(good(world.start()));
  std::string failure;
  const std::uint64_t bytes = fill(world, 0, failure);
  ASSERT_TRUE(good(failure));
  const std::uint64_t refused = world.steps.refused_for_space();
  Dice dice(first_seed());
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t file = dice.below(bytes / 524288);
    const std::uint64_t offset = dice.below(127) * 4096 + dice.below(2) * dice.below(4096);
    const std::uint64_t length = dice.between(1, dice.percent(80) ? 4096 : 65536);
    if (offset + length > 524288) continue;
    ASSERT_TRUE(good(world.steps.run(step(fmt::format("write /f{} {} {} {}", file, offset, length, 10000 + i)))));
    ASSERT_EQ(world.steps.refused_for_space(), refused) << "an overwrite was refused";
    if (i % 500 == 0) {
      ASSERT_TRUE(good(world.steps.run(step("sync"))));
    }
  }
  EXPECT_TRUE(good(world.compare_now()));
  EXPECT_TRUE(good(world.finish()));
}

// The 420 MiB file on a 512 MiB image, to scale: most of the device is one file that is overwritten at random.
TEST(Hazards, H40_a_file_of_most_of_the_device_is_overwritten_many_times) {
  const std::uint64_t bytes = number_setting("VARVE_AGING_BYTES", 32 * kMiB);
  World world(device_of(bytes));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(world.steps.run(step("create /big 0644"))));
  const std::uint64_t size = bytes / 100 * 82 / 4096 * 4096;
  for (std::uint64_t at = 0; at < size; at += 256 * 1024) {
    const std::uint64_t length = std::min<std::uint64_t>(256 * 1024, size - at);
    ASSERT_TRUE(good(world.steps.run(step(fmt::format("write /big {} {} {}", at, length, 1 + at / 4096)))));
  }
  ASSERT_EQ(world.steps.refused_for_space(), 0U) << "82 % of the device must fit";
  Dice dice(first_seed());
  const std::uint64_t writes = size / 4096 * number_setting("VARVE_AGING_ROUNDS", 3);
  for (std::uint64_t i = 0; i < writes; ++i) {
    const std::uint64_t offset = dice.below(size / 4096) * 4096;
    ASSERT_TRUE(good(world.steps.run(step(fmt::format("write /big {} 4096 {}", offset, 100000 + i))))) << "write " << i;
    ASSERT_EQ(world.steps.refused_for_space(), 0U) << "write " << i;
    if (i % 64 == 63) {
      ASSERT_TRUE(good(world.steps.run(step("fsync /big"))));
    }
  }
  EXPECT_TRUE(good(world.compare_now()));
  EXPECT_TRUE(good(world.finish()));
}

// What has been allocated, 4 MiB from there on, can be written when everything else is full.
void expect_promise_kept(const std::string& allocation, std::uint64_t from) {
  World world(device_of(24 * kMiB));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script(allocation))));
  std::string failure;
  fill(world, 0, failure);
  ASSERT_TRUE(good(failure));
  const std::uint64_t refused = world.steps.refused_for_space();
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(good(world.steps.run(step(fmt::format("write /kept {} 524288 {}", from + i * 524288, 500 + i)))));
  EXPECT_EQ(world.steps.refused_for_space(), refused);
  EXPECT_TRUE(good(world.finish()));
}

// A promise of fallocate is kept when everything else is full.
TEST(Hazards, H38_fallocated_space_can_be_written) {
  expect_promise_kept("create /kept 0644; fallocate /kept allocate 0 4194304; sync", 0);
}

// Also of what it left behind the end of a sparse file, which has fewer blocks than its size would take.
TEST(Hazards, H38_what_was_allocated_behind_holes_can_be_written) {
  expect_promise_kept("create /kept 0644; truncate /kept 67108864; fallocate /kept keep 67108864 4194304; checkpoint", 67108864);
}

// Holes take room although as many blocks stand behind the end as are missing before it: what others were promised is kept.
TEST(Hazards, H38_holes_before_what_was_allocated_are_charged) {
  World world(device_of(64 * kMiB));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /other 0644; write /other 0 1048576 1; create /f 0644; truncate /f 16777216;"
                                                  "fallocate /f keep 16777216 16777216; checkpoint"))));
  auto write = [&](const char* path, std::uint64_t from) {
    for (std::uint64_t at = 0; at < (path[1] == 'f' ? 16 : 1) * kMiB; at += 524288)
      ASSERT_TRUE(good(world.steps.run(step(fmt::format("write {} {} 524288 {}", path, from + at, 700 + at / 524288)))));
  };
  std::string failure;
  fill(world, 0, failure);
  ASSERT_TRUE(good(failure));
  std::uint64_t refused = world.steps.refused_for_space();
  write("/f", 0);
  EXPECT_GT(world.steps.refused_for_space(), refused + 20) << "of 32";
  refused = world.steps.refused_for_space();
  write("/other", 0);
  write("/f", 16 * kMiB);
  EXPECT_EQ(world.steps.refused_for_space(), refused);
  EXPECT_TRUE(good(world.finish()));
}

// Deleting makes room at once, in the numbers that df shows too.
TEST(Full, statfs_follows_what_is_written_and_deleted) {
  World world(device_of(32 * kMiB));
  ASSERT_TRUE(good(world.start()));
  const std::uint64_t before = *world.fixture.available_bytes();
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644"))));
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(good(world.steps.run(step(fmt::format("write /f {} 1048576 {}", i * kMiB, 1 + i)))));
  }
  const std::uint64_t with_file = *world.fixture.available_bytes();
  EXPECT_LE(with_file, before - 8 * kMiB);
  EXPECT_GE(with_file, before - 9 * kMiB);
  ASSERT_TRUE(good(run_script(world.steps, script("unlink /f; sync; checkpoint"))));
  EXPECT_GE(*world.fixture.available_bytes() + 64 * 1024, before);
}

// Checkpoints are made for space only while they release some.
TEST(Hazards, H33_a_full_device_does_not_checkpoint_for_ever) {
  World world(device_of(16 * kMiB));
  ASSERT_TRUE(good(world.start()));
  std::string failure;
  fill(world, 0, failure);
  ASSERT_TRUE(good(failure));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(good(world.steps.run(step("work"))));
  const std::uint64_t before = world.fixture.fs().status().checkpoints;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(good(world.steps.run(step("work"))));
  EXPECT_LE(world.fixture.fs().status().checkpoints, before + 1);
}

TEST(Full, random_operations_on_a_crowded_device) {
  const Budget budget(0.1);
  ScriptProfile profile;
  profile.steps = 2500;
  profile.names = 8;
  profile.data_weight = 120;
  profile.file_bytes = 4 * kMiB;
  profile.write_bytes = 256 * 1024;
  profile.total_bytes = 40 * kMiB;  // more than there is
  profile.far_percent = 0;
  profile.checkpoint_weight = 1;
  for (std::uint64_t seed = first_seed(); budget.left(); ++seed) {
    WorldParameters parameters = device_of(16 * kMiB);
    parameters.image.seed = seed;
    const Script script = random_script(seed, profile);
    const std::string failure = run_in_world(parameters, script, 500);
    if (!failure.empty()) FAIL() << report(parameters, script, failure, seed);
  }
}

}  // namespace
}  // namespace varve::test
