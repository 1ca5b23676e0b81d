// Crash sweeps: bounded exhaustive scripts, random ones, several crashes in a row.
#include "sweep.h"

#include <gtest/gtest.h>

#include <cstdio>

#include <fmt/format.h>

#include "cleaner/victim_rule.h"
#include "support/ace.h"
#include "support/good.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/shrink.h"

namespace varve::test {
namespace {

// Says at the end how much was tried: the nightly run's figure.
class Tally : public ::testing::Environment {
 public:
  void TearDown() override { fmt::print("{} crash states tried\n", states_tried()); }
};
[[maybe_unused]] const auto* const kTally = ::testing::AddGlobalTestEnvironment(new Tally);

SweepOptions few_per_script(std::uint64_t seed, std::size_t positions) {
  SweepOptions options;
  options.plan.max_positions = positions;
  options.plan.seeds = 1;
  options.plan.seed = seed;
  return options;
}

// The failing script with all that is not needed left out, if somebody asks for it: takes minutes.
std::string smaller(const CrashSetup& setup, const DurableState& start, const Script& script,
                    const SweepOptions& options) {
  if (number_setting("VARVE_SHRINK", 0) == 0) return "(VARVE_SHRINK=1 makes the script smaller)\n";
  const auto fails = [&](const Script& candidate) { return !sweep(setup, start, {}, candidate, options).empty(); };
  return "smallest script that fails:\n" + to_string(shrink(script, fails, 200)) + "\n";
}

TEST(Ace, every_single_operation) {
  const CrashSetup setup;
  const DurableState start = prepare(setup, ace_setup());
  for (const Script& script : ace_sequences(1)) {
    ASSERT_TRUE(good(sweep(setup, start, ace_setup(), script, few_per_script(1, 1000))));
  }
}

// All of them given time (VARVE_TEST_SECONDS), a sample else.
TEST(Ace, pairs_of_operations) {
  const CrashSetup setup;
  const DurableState start = prepare(setup, ace_setup());
  const auto sequences = ace_sequences(2);
  const Budget budget(0.25);
  std::uint64_t done = 0;
  const std::uint64_t stride = 1031;  // a prime: any number of them is spread over the alphabet
  for (std::uint64_t i = 0; i < sequences.size() && budget.left(); ++i, ++done) {
    const Script& script = sequences[(first_seed() + i * stride) % sequences.size()];
    ASSERT_TRUE(good(sweep(setup, start, ace_setup(), script, few_per_script(i, 12))));
  }
  fmt::print("{} of {} pairs\n", done, sequences.size());
}

ScriptProfile crash_profile() {
  ScriptProfile profile;
  profile.steps = 80;
  profile.names = 4;
  profile.depth = 2;
  profile.file_bytes = 128u << 10;
  profile.write_bytes = 16u << 10;
  profile.total_bytes = 1u << 20;
  profile.fsync_weight = 8;
  profile.seal_weight = 8;
  profile.checkpoint_weight = 2;
  profile.move_weight = 4;
  profile.remount_weight = 1;
  profile.error_percent = 3;
  return profile;
}

void sweep_seed(CrashSetup setup, const ScriptProfile& profile, std::uint64_t seed, std::size_t positions) {
  setup.seed = seed;
  setup.completion_seed = seed % 3 == 0 ? 0 : seed;
  const DurableState start = prepare(setup, {});
  const Script script = random_script(seed, profile);
  const SweepOptions options = few_per_script(seed, positions);
  const std::string failure = sweep(setup, start, {}, script, options);
  if (!failure.empty()) FAIL() << "seed " << seed << "\n" << failure << smaller(setup, start, script, options);
}

// `least` turns, and more while there is time. Before each, prepare(turn) may change setup and profile.
template <class Prepare>
void sweep_turns(const CrashSetup& setup, const ScriptProfile& profile, double share, std::uint64_t least, std::size_t positions,
                 Prepare&& prepare) {
  const Budget budget(share);
  for (std::uint64_t turn = 0; turn < least || budget.left(); ++turn) {
    prepare(turn);
    sweep_seed(setup, profile, first_seed() + turn, positions);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void sweep_seeds(const CrashSetup& setup, const ScriptProfile& profile, double share, std::size_t positions = 40) {
  sweep_turns(setup, profile, share, 1, positions, [](std::uint64_t) {});
}

TEST(Random, mixed_operations) { sweep_seeds({}, crash_profile(), 0.15); }

TEST(Random, long_time_between_checkpoints) {
  ScriptProfile profile = crash_profile();
  profile.steps = 250;
  profile.checkpoint_weight = 0;
  profile.remount_weight = 0;
  sweep_seeds({}, profile, 0.1);
}

TEST(Random, many_checkpoints) {
  CrashSetup setup;
  setup.checkpoint_records = 30;
  ScriptProfile profile = crash_profile();
  profile.checkpoint_weight = 15;
  profile.work_weight = 10;
  sweep_seeds(setup, profile, 0.1);
}

// The device stays as long as it is: what comes behind the end of the filesystem is there from before.
TEST(Random, the_size_changes) {
  CrashSetup setup;
  setup.bytes = 16u << 20;
  ScriptProfile profile = crash_profile();
  profile.resize_weight = 8;
  profile.most_bytes = setup.bytes;
  profile.clean_weight = 1;
  profile.strategies = {"copying", "defragmenting"};
  sweep_seeds(setup, profile, 0.1);
  setup.superblocks_in_place = true;
  sweep_seeds(setup, profile, 0.05);
}

TEST(Random, large_writes_and_group_heads) {
  CrashSetup setup;
  setup.bytes = 32u << 20;
  ScriptProfile profile = crash_profile();
  profile.data_weight = 120;
  profile.file_bytes = 4u << 20;
  profile.write_bytes = 128u << 10;
  profile.total_bytes = 8u << 20;
  profile.steps = 60;
  sweep_seeds(setup, profile, 0.1, 30);
}

// Small enough that segments are written again and the cleaner works while power fails.
TEST(Random, the_log_wraps_and_the_cleaner_works) {
  CrashSetup setup;
  setup.bytes = 12u << 20;
  setup.checkpoint_records = 200;
  setup.discard = true;
  ScriptProfile profile = crash_profile();
  crowd(profile);
  profile.steps = 250;
  sweep_seeds(setup, profile, 0.15, 30);
}

// By turns, so that each rule meets each placement in time.
void take_turns(CrashSetup& setup, std::uint64_t turn) {
  const auto rules = cleaner::victim_rules();
  const auto placements = cleaner::registry().placements.names();
  setup.victims = rules[turn % rules.size()].name;
  setup.placement = placements[(turn + turn / rules.size()) % placements.size()].name;
}

// Blocks at the heads of several groups, and moved from one to another, while power fails.
TEST(Random, every_policy_and_placement) {
  CrashSetup setup;
  setup.bytes = 12u << 20;
  setup.checkpoint_records = 200;
  ScriptProfile profile = crash_profile();
  crowd(profile);
  profile.steps = 250;
  const std::uint64_t least = cleaner::victim_rules().size();
  sweep_turns(setup, profile, 0.1, least, 10, [&](std::uint64_t turn) { take_turns(setup, turn); });
}

// Each strategy in the background, and asked for now and then, while power fails.
TEST(Random, every_strategy) {
  CrashSetup setup;
  setup.bytes = 12u << 20;
  setup.checkpoint_records = 200;
  const auto strategies = cleaner::registry().strategies.names();
  ScriptProfile profile = crash_profile();
  crowd(profile);
  profile.steps = 250;
  profile.clean_weight = 4;
  for (const auto& [name, help] : strategies) profile.strategies.push_back(name);
  sweep_turns(setup, profile, 0.15, strategies.size(), 10, [&](std::uint64_t turn) {
    setup.strategy = strategies[turn % strategies.size()].name;
  });
}

ScriptProfile snapshot_profile() {
  ScriptProfile profile = crash_profile();
  crowd(profile);
  profile.steps = 200;
  profile.clean_weight = 3;
  profile.snapshot_weight = 10;
  profile.reference_weight = 0;
  profile.total_bytes = 2u << 20;
  for (const auto& [name, help] : cleaner::registry().strategies.names()) profile.strategies.push_back(name);
  return profile;
}

// Snapshots come and go, blocks are moved under them and given back, also because the size changes, while power fails. Every state that
// is kept is part of what is compared.
TEST(Random, snapshots) {
  CrashSetup setup;
  setup.bytes = 16u << 20;
  setup.checkpoint_records = 200;
  const auto strategies = cleaner::registry().strategies.names();
  ScriptProfile profile = snapshot_profile();
  profile.least_bytes = 10u << 20;
  profile.most_bytes = setup.bytes;
  sweep_turns(setup, profile, 0.1, 4, 12, [&](std::uint64_t turn) {
    setup.superblocks_in_place = turn % 2;
    profile.resize_weight = turn % 2 * 4;
    setup.strategy = strategies[turn % strategies.size()].name;
  });
}

// Also those that come and go by themselves, beside those that were asked for, and where they hold so much that they must go early.
TEST(Random, automatic_snapshots) {
  CrashSetup setup;
  setup.checkpoint_records = 200;
  setup.protect = true;
  const auto strategies = cleaner::registry().strategies.names();
  ScriptProfile profile = snapshot_profile();
  profile.pass_weight = 15;
  profile.checkpoint_weight = 6;
  sweep_turns(setup, profile, 0.1, 4, 12, [&](std::uint64_t turn) {
    setup.bytes = turn % 2 ? 12u << 20 : 24u << 20;
    profile.snapshot_weight = turn % 3 ? 4 : 0;
    setup.strategy = strategies[turn % strategies.size()].name;
  });
}

// Checkpoints and the cleaner run beside the operations.
TEST(Random, with_the_engines_threads) {
  CrashSetup setup;
  setup.bytes = 12u << 20;
  setup.checkpoint_records = 40;
  setup.background = true;
  ScriptProfile profile = crash_profile();
  profile.steps = 400;
  profile.names = 3;
  profile.depth = 1;
  profile.data_weight = 100;
  profile.file_bytes = 512u << 10;
  profile.write_bytes = 64u << 10;
  profile.total_bytes = 3u << 20;
  profile.far_percent = 0;
  sweep_seeds(setup, profile, 0.1, 30);
}

// Holes of used segments are written, by heads and by the cleaner, while power fails. What is written there must be free in
// both superblocks' trees and named by no chunk that a recovery reads (H26, H28, H29).
void take_turns_at_holes(CrashSetup& setup, std::uint64_t turn) {
  static constexpr std::string_view kStrategies[] = {"threaded:small=split", "hole-plugging", "threaded:small=compact",
                                                     "threaded:when=short", "threaded:least=2:clean=copying"};
  setup.strategy = kStrategies[turn % std::size(kStrategies)];
  setup.discard = turn % 2 == 0;
  setup.checkpoint_records = turn % 3 == 0 ? 60 : 200;
}

TEST(Random, holes_are_written) {
  CrashSetup setup;
  setup.bytes = 12u << 20;
  ScriptProfile profile = crash_profile();
  crowd(profile);
  profile.steps = 250;
  sweep_turns(setup, profile, 0.3, 5, 15, [&](std::uint64_t turn) { take_turns_at_holes(setup, turn); });
}

// Crash, recover, work, crash again, ten times over: nothing that an earlier crash left behind may come back.
TEST(Random, ten_crashes_in_a_row) {
  const Budget budget(0.1);
  for (std::uint64_t seed = first_seed(); seed == first_seed() || budget.left(); ++seed) {
    CrashSetup setup;
    setup.seed = seed;
    setup.completion_seed = seed;
    DurableState state = prepare(setup, {});
    ScriptProfile profile = crash_profile();
    profile.steps = 25;
    Dice dice(seed);
    for (int round = 0; round < 10; ++round) {
      ScriptGenerator generator(seed * 100 + static_cast<std::uint64_t>(round), profile);
      Script script;
      ModelFs model = state.model;
      for (std::size_t i = 0; i < profile.steps; ++i) {
        script.push_back(generator.next(model));
        (void)apply(model, script.back(), Timestamp{});
      }
      setup.seed = seed * 100 + static_cast<std::uint64_t>(round);
      Recording recording(setup, state, script);
      ASSERT_TRUE(good(recording.failed())) << "seed " << seed << " round " << round << "\n" << to_string(script);
      const Cut cut{dice.below(recording.device().position() + 1), static_cast<CutPolicy>(dice.below(5)),
                    dice.below(1000)};
      DurableState next;
      const std::string failure = verify(recording, cut, {}, &next);
      ASSERT_TRUE(good(failure)) << "seed " << seed << " round " << round << " cut " << to_string(cut) << "\n"
                             << to_string(script);
      state = std::move(next);
    }
  }
}

// The nightly run: all kinds of scripts in turn, from seeds of their own, until so many states have been tried.
TEST(Nightly, as_many_states_as_asked_for) {
  const std::uint64_t wanted = number_setting("VARVE_CRASH_STATES", 0);
  if (wanted == 0) GTEST_SKIP() << "no VARVE_CRASH_STATES";
  const std::uint64_t before = states_tried();
  const auto pairs = ace_sequences(2);
  const DurableState ace_start = prepare({}, ace_setup());
  const std::uint64_t first = 1'000'000 * first_seed();
  for (std::uint64_t seed = first; states_tried() - before < wanted; ++seed) {
    CrashSetup setup;
    setup.seed = seed;
    setup.completion_seed = seed % 3 == 0 ? 0 : seed;
    setup.superblocks_in_place = seed % 4 == 1;
    ScriptProfile profile = crash_profile();
    if (seed % 6 == 1) profile.steps = 250, profile.checkpoint_weight = 0, profile.remount_weight = 0;
    if (seed % 6 == 2) setup.checkpoint_records = 30, profile.checkpoint_weight = 15, profile.work_weight = 10;
    if (seed % 6 >= 3) {  // crowded: the log wraps, the cleaner works
      setup.bytes = 12u << 20;
      setup.checkpoint_records = 200;
      setup.discard = seed % 2 == 0;
      crowd(profile);
      profile.steps = 250;
      if (seed % 6 == 5) profile.total_bytes = 7u << 20;  // these meet ENOSPC
      if (seed % 6 == 4) take_turns(setup, seed / 6);
      if (seed % 6 == 3) take_turns_at_holes(setup, seed / 6);
    }
    const SweepOptions options = few_per_script(seed, 60);
    const Script script = random_script(seed, profile);
    const std::string failure = sweep(setup, prepare(setup, {}), {}, script, options);
    if (!failure.empty()) FAIL() << "seed " << seed << "\n" << failure;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const Script& pair = pairs[(seed * 40 + i) * 1031 % pairs.size()];
      ASSERT_TRUE(good(sweep({}, ace_start, ace_setup(), pair, few_per_script(seed, 12))));
    }
  }
}

// What a failure's report tells to run.
TEST(Repeat, crash) {
  const std::string text = setting("VARVE_CRASH_SCRIPT");
  if (text.empty()) GTEST_SKIP() << "no VARVE_CRASH_SCRIPT";
  const CrashSetup setup = parse_setup(setting("VARVE_CRASH_SETUP"));
  const Script preparation = script(setting("VARVE_CRASH_START"));
  Recording recording(setup, prepare(setup, preparation), script(text));
  ASSERT_TRUE(good(recording.failed()));
  const auto cut = parse_cut(setting("VARVE_CRASH_CUT"));
  ASSERT_TRUE(cut) << "VARVE_CRASH_CUT=position:policy:seed";
  EXPECT_TRUE(good(verify(recording, *cut, VerifyOptions{true, true, 8})));
}

}  // namespace
}  // namespace varve::test
