// Random operations on a whole filesystem in memory, every answer and the whole state compared with the model.
#include <gtest/gtest.h>

#include "support/good.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"

namespace varve::test {
namespace {

// Scripts of consecutive seeds until the share of the time is used up; at least one.
void run_seeds(const WorldParameters& base, const ScriptProfile& profile, double share, std::size_t interval = 200) {
  const Budget budget(share);
  std::uint64_t runs = 0;
  for (std::uint64_t seed = first_seed(); runs == 0 || budget.left(); ++seed, ++runs) {
    WorldParameters parameters = base;
    parameters.image.seed = seed;
    const Script script = random_script(seed, profile);
    const std::string failure = run_in_world(parameters, script, interval);
    if (!failure.empty()) FAIL() << report(parameters, script, failure, seed);
  }
  ::testing::Test::RecordProperty("scripts", static_cast<int>(runs));
}

ScriptProfile usual() {
  ScriptProfile profile;
  profile.steps = 1500;
  profile.checkpoint_weight = 2;
  profile.remount_weight = 1;
  profile.read_weight = 4;
  return profile;
}

TEST(RandomModel, small_namespace) { run_seeds({}, usual(), 0.15); }

TEST(RandomModel, all_payload_in_the_chain) {
  WorldParameters parameters;
  parameters.image.segment_blocks = 64;
  parameters.options = [](fs::Options& options) { options.streams = 1; };
  run_seeds(parameters, usual(), 0.08);
}

TEST(RandomModel, nothing_is_ever_made_durable_between_remounts) {
  ScriptProfile profile = usual();
  profile.fsync_weight = 0;
  profile.checkpoint_weight = 0;
  run_seeds({}, profile, 0.08);
}

TEST(RandomModel, checkpoint_after_nearly_every_operation) {
  ScriptProfile profile = usual();
  profile.steps = 600;
  profile.checkpoint_weight = 80;
  profile.remount_weight = 10;
  run_seeds({}, profile, 0.08, 50);
}

TEST(RandomModel, names_by_the_hundred) {
  ScriptProfile profile = usual();
  profile.steps = 4000;
  profile.names = 300;
  profile.depth = 2;
  profile.names_weight = 85;
  profile.data_weight = 5;
  run_seeds({}, profile, 0.12, 1000);
}

TEST(RandomModel, data_of_a_few_files) {
  ScriptProfile profile = usual();
  profile.names = 3;
  profile.depth = 1;
  profile.names_weight = 10;
  profile.data_weight = 100;
  profile.file_bytes = 4u << 20;
  profile.write_bytes = 128u << 10;
  profile.total_bytes = 8u << 20;
  run_seeds({}, profile, 0.12);
}

TEST(RandomModel, sparse_files_with_far_offsets) {
  ScriptProfile profile = usual();
  profile.names = 3;
  profile.names_weight = 10;
  profile.data_weight = 100;
  profile.far_percent = 30;
  profile.write_bytes = 8u << 10;
  run_seeds({}, profile, 0.08);
}

TEST(RandomModel, extended_attributes_in_numbers) {
  ScriptProfile profile = usual();
  profile.attribute_weight = 150;
  run_seeds({}, profile, 0.05);
}

TEST(RandomModel, little_memory_for_caches) {
  WorldParameters parameters;
  parameters.options = [](fs::Options& options) { options.memory_bytes = 4u << 20; };
  ScriptProfile profile = usual();
  profile.names = 100;
  run_seeds(parameters, profile, 0.06);
}

TEST(RandomModel, without_references_held_by_a_kernel) {
  WorldParameters parameters;
  parameters.options = [](fs::Options& options) { options.count_references = false; };
  ScriptProfile profile = usual();
  profile.reference_weight = 0;
  run_seeds(parameters, profile, 0.05);
}

TEST(RandomModel, the_size_changes) {
  WorldParameters parameters;
  parameters.bytes = 24u << 20;
  ScriptProfile profile = usual();
  profile.resize_weight = 12;
  profile.data_weight = 80;
  profile.file_bytes = 1u << 20;
  profile.total_bytes = 5u << 20;
  profile.least_bytes = 11u << 20;
  run_seeds(parameters, profile, 0.1);
  parameters.image.superblocks_in_place = true;
  parameters.options = [](fs::Options& options) { options.strategy = "threaded"; };
  run_seeds(parameters, profile, 0.05);
}

// The log goes round a small device many times: every segment is emptied or cleaned and written again.
TEST(RandomModel, the_log_wraps) {
  WorldParameters parameters;
  parameters.bytes = 16u << 20;
  ScriptProfile profile = usual();
  profile.steps = 2500;
  profile.names = 4;
  profile.depth = 1;
  profile.data_weight = 150;
  profile.file_bytes = 1u << 20;
  profile.write_bytes = 64u << 10;
  profile.total_bytes = 4u << 20;
  profile.far_percent = 0;
  run_seeds(parameters, profile, 0.12, 500);
}

TEST(RandomModel, the_log_wraps_with_discard) {
  WorldParameters parameters;
  parameters.bytes = 16u << 20;
  parameters.options = [](fs::Options& options) { options.discard = true; };
  ScriptProfile profile = usual();
  profile.data_weight = 150;
  profile.file_bytes = 1u << 20;
  profile.write_bytes = 64u << 10;
  profile.total_bytes = 4u << 20;
  run_seeds(parameters, profile, 0.06, 500);
}

TEST(Held, a_directory_is_removed_that_two_hold) {
  EXPECT_TRUE(good(run_in_world({}, script("mkdir /d 0755; hold %3 /d; hold %2 /d; rmdir /d; release %2; release %3"), 1)));
}

// What an engineer pastes from a failure: VARVE_SCRIPT='create /f 0644; …'.
TEST(Repeat, script) {
  const std::string text = setting("VARVE_SCRIPT");
  if (text.empty()) GTEST_SKIP() << "no VARVE_SCRIPT";
  WorldParameters parameters;
  parameters.bytes = number_setting("VARVE_BYTES", parameters.bytes);
  parameters.image.seed = first_seed();
  EXPECT_TRUE(good(run_in_world(parameters, script(text), 1)));
}

}  // namespace
}  // namespace varve::test
