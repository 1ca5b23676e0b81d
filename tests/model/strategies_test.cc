// Every strategy under the model: whatever it moves, in the background or because somebody asks for it, contents, maps and
// counters stay right; and each does what it is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "cleaner/file_layout.h"
#include "fs/engine.h"
#include "jobs/clean_job.h"
#include "jobs/jobs.h"
#include "model/aging.h"
#include "model/strategy_names.h"
#include "segments/segment_table.h"
#include "store/store.h"
#include "support/good.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"

namespace varve::test {
namespace {

using Phase = jobs::CleanState::Phase;

jobs::CleanRequest by(const std::string& strategy) {
  jobs::CleanRequest request;
  request.strategy = strategy;
  return request;
}

// Cleans and compares everything. Empty or what went wrong.
std::string clean(World& world, const jobs::CleanRequest& request) {
  if (Status started = world.fixture.fs().start_clean(request); !started.ok()) return started.error().message();
  const jobs::CleanState state = world.fixture.fs().clean_state();
  if (state.phase != Phase::finished) return fmt::format("{}: {}", name_of(state.phase), state.reason);
  return world.compare_now();
}

class EveryStrategy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryStrategy, makes_room_in_the_background) {
  WorldParameters parameters = world_of("decline", "learned");
  parameters.options = [](fs::Options& options) { options.strategy = GetParam(); };
  World world(parameters);
  ASSERT_TRUE(good(world.start()));
  EXPECT_EQ(world.fixture.fs().status().strategy, GetParam());
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  ASSERT_TRUE(good(aging.write(3 * kAgedBlocks / 2)));
  EXPECT_GT(world.fixture.fs().status().cleaned_blocks_written, 0U);
  EXPECT_EQ(world.steps.refused_for_space(), 0U);
  EXPECT_TRUE(good(foresight(world.fixture)));
  EXPECT_TRUE(good(world.finish()));
}

// Random operations, cleaned after every few hundred, everything compared after every clean.
TEST_P(EveryStrategy, keeps_what_the_model_says_between_random_operations) {
  const Budget budget(0.5 / static_cast<double>(every_strategy().size()));
  std::uint64_t moved = 0, runs = 0;
  for (std::uint64_t seed = first_seed(); runs == 0 || budget.left(); ++seed, ++runs) {
    WorldParameters parameters;
    parameters.bytes = 24u << 20;
    parameters.image.seed = seed;
    World world(parameters);
    ASSERT_TRUE(good(world.start()));
    ScriptProfile profile;
    profile.steps = 300;
    profile.names = 8;
    profile.data_weight = 80;
    profile.file_bytes = 1u << 20;
    profile.total_bytes = 10u << 20;
    ScriptGenerator generator(seed, profile);
    for (int part = 0; part < 6; ++part) {
      for (std::size_t i = 0; i < profile.steps; ++i)
        ASSERT_TRUE(good(world.steps.run(generator.next(world.steps.model)))) << "seed " << seed;
      ASSERT_TRUE(good(clean(world, by(GetParam())))) << "seed " << seed << ", part " << part;
      moved += world.fixture.fs().clean_state().written;
      EXPECT_TRUE(good(foresight(world.fixture)));
    }
    ASSERT_TRUE(good(world.finish())) << "seed " << seed;
  }
  EXPECT_GT(moved, 0U);
}

// What it takes for itself users do not have: they must be able to go on.
TEST_P(EveryStrategy, leaves_users_their_room) {
  for (const int stretches : {130, 145, 160}) {  // each nearly a segment: 68 to 84 % of the device
    WorldParameters parameters;
    parameters.bytes = 48u << 20;
    parameters.image.segment_blocks = 64;
    World world(parameters);
    ASSERT_TRUE(good(world.start()));
    auto run = [&](const std::string& text) { ASSERT_TRUE(good(world.steps.run(step(text)))) << text; };
    run("create /cold 0644");
    run("create /hot 0644");
    for (int i = 0; i < stretches; ++i) {
      run(fmt::format("write /cold {} 4096 1", i * 4096));
      for (int part = 0; part < 4; ++part) run(fmt::format("write /hot {} 61440 2", (i * 4 + part) * 61440));
      run("seal");
    }
    Dice dice(1);
    auto overwrite = [&](int times) {
      for (int i = 0; i < times; ++i) run(fmt::format("write /hot {} 65536 3", dice.below(stretches * 60ULL / 16) * 65536));
    };
    overwrite(1500);
    run("checkpoint");
    ASSERT_TRUE(good(clean(world, by(GetParam())))) << stretches;
    overwrite(400);
    EXPECT_EQ(world.steps.refused_for_space(), 0U) << stretches;
    ASSERT_TRUE(good(world.finish()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, ::testing::ValuesIn(every_strategy()), name_of_strategy);

// --- compacting -----------------------------------------------------------------------------------------------------------

TEST(Compacting, brings_everything_to_the_start_of_the_device) {
  World world(world_of("greedy", "none"));
  ASSERT_TRUE(good(world.start()));
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  ASSERT_TRUE(good(aging.write(kAgedBlocks / 4)));
  ASSERT_TRUE(good(world.steps.run(step(fmt::format("truncate /big {}", kAgedBlocks * 4096 / 3)))));
  ASSERT_TRUE(good(clean(world, by("compacting"))));
  const jobs::CleanState state = world.fixture.fs().clean_state();
  EXPECT_LT(state.now.end, state.before.end);
  // What is open stays where it is.
  std::uint64_t high = 0;
  world.fixture.store().segments().for_each([&](SegmentId id, const segments::SegmentInfo& s) {
    high += s.state == segments::SegmentState::used && id.v >= state.segments - state.now.clean + 2;
  });
  EXPECT_EQ(high, 0U) << "of " << state.now.used << " used and " << state.now.open << " open ones: " << state.reason;
  ASSERT_TRUE(good(world.finish()));
}

TEST(Compacting, has_nothing_to_do_a_second_time) {
  World world(world_of("greedy", "none"));
  ASSERT_TRUE(good(world.start()));
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  ASSERT_TRUE(good(clean(world, by("compacting"))));
  ASSERT_TRUE(good(clean(world, by("compacting"))));
  const auto& state = world.fixture.fs().clean_state();
  EXPECT_LE(state.written, 2 * state.segment_blocks) << state.reason;
}

// --- defragmenting --------------------------------------------------------------------------------------------------------

// Two files whose blocks take turns on the device.
std::string interleave(World& world, int blocks) {
  std::string failure = world.steps.run(step("mkdir /d 0755"));
  for (const char* file : {"/a", "/d/b"})
    if (failure.empty()) failure = world.steps.run(step(fmt::format("create {} 0644", file)));
  for (int i = 0; i < blocks && failure.empty(); ++i)
    for (const char* file : {"/a", "/d/b"}) {
      if (failure.empty()) failure = world.steps.run(step(fmt::format("write {} {} 4096 {}", file, i * 4096, i + 1)));
      if (failure.empty()) failure = world.steps.run(step(fmt::format("fsync {}", file)));
    }
  return failure;
}

std::uint64_t fragments_of(World& world, std::string_view path) {
  const auto ino = world.fixture.resolve(path);
  EXPECT_TRUE(ino.ok());
  auto part = cleaner::read_layout(world.fixture.store(), *ino, 0, 1u << 20);
  EXPECT_TRUE(part.ok() && part->last);
  return cleaner::count_fragments(part->blocks);
}

TEST(Defragmenting, makes_files_contiguous) {
  World world({});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(interleave(world, 150)));
  ASSERT_TRUE(good(clean(world, by("defragmenting"))));
  const jobs::CleanState state = world.fixture.fs().clean_state();
  EXPECT_EQ(state.files.seen, 2U);
  EXPECT_EQ(state.files.moved, 2U);
  EXPECT_GE(state.files.fragments_before, 300U);
  EXPECT_LE(state.files.fragments_after, 8U);
  EXPECT_EQ(fragments_of(world, "/a") + fragments_of(world, "/d/b"), state.files.fragments_after);
  ASSERT_TRUE(good(clean(world, by("defragmenting"))));
  EXPECT_EQ(world.fixture.fs().clean_state().written, 0U) << "contiguous files were moved again";
  ASSERT_TRUE(good(world.finish()));
}

TEST(Defragmenting, leaves_alone_what_was_not_named) {
  World world({});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(interleave(world, 80)));
  jobs::CleanRequest request = by("defragmenting");
  request.roots.push_back(*world.fixture.resolve("/d"));
  ASSERT_TRUE(good(clean(world, request)));
  EXPECT_EQ(world.fixture.fs().clean_state().files.seen, 1U);
  EXPECT_LE(fragments_of(world, "/d/b"), 4U);
  EXPECT_GE(fragments_of(world, "/a"), 80U);
  ASSERT_TRUE(good(world.finish()));
}

TEST(Defragmenting, works_in_little_room) {
  World world(world_of("greedy", "none"));
  ASSERT_TRUE(good(world.start()));
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  ASSERT_TRUE(good(aging.write(kAgedBlocks)));
  ASSERT_TRUE(good(clean(world, by("defragmenting"))));
  const jobs::CleanState state = world.fixture.fs().clean_state();
  EXPECT_LT(state.files.fragments_after, state.files.fragments_before / 2) << state.reason;
  EXPECT_TRUE(good(foresight(world.fixture)));
  ASSERT_TRUE(good(world.finish()));
}

// --- what is asked for ----------------------------------------------------------------------------------------------------

class Asked : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(good(world.start()));
    Aging aging(world, first_seed());
    ASSERT_TRUE(good(aging.fill()));
    ASSERT_TRUE(good(aging.write(kAgedBlocks / 3)));
  }
  fs::Filesystem& fs() { return world.fixture.fs(); }
  World world{world_of("greedy", "none")};
};

TEST_F(Asked, stops_when_enough_is_free) {
  jobs::CleanRequest request = by("copying");
  request.free_blocks = 512;
  ASSERT_TRUE(good(clean(world, request)));
  const jobs::CleanState part = fs().clean_state();
  EXPECT_GE((part.now.clean - part.before.clean) * part.segment_blocks, 512U);
  ASSERT_TRUE(good(clean(world, by("copying"))));
  EXPECT_GT(fs().clean_state().now.clean, part.now.clean) << "the whole was no more than the part";
  ASSERT_TRUE(good(world.finish()));
}

TEST_F(Asked, stops_when_enough_is_moved) {
  ASSERT_TRUE(good(interleave(world, 60)));
  jobs::CleanRequest request = by("defragmenting");
  request.move_blocks = 1;
  ASSERT_TRUE(good(clean(world, request)));
  const std::uint64_t part = fs().clean_state().written;
  EXPECT_GT(part, 0U);
  ASSERT_TRUE(good(clean(world, by("defragmenting"))));
  EXPECT_GT(fs().clean_state().written, 0U) << "a part moved everything";
}

TEST_F(Asked, a_small_buffer_is_enough_for_copying) {
  jobs::CleanRequest request = by("copying");
  request.buffer_blocks = 3;
  ASSERT_TRUE(good(clean(world, request)));
  EXPECT_GT(fs().clean_state().written, 3U);
  ASSERT_TRUE(good(world.finish()));
}

TEST_F(Asked, a_small_buffer_is_enough_for_files_and_holes) {
  ASSERT_TRUE(good(interleave(world, 60)));
  for (const char* strategy : {"defragmenting", "hole-plugging"}) {
    jobs::CleanRequest request = by(strategy);
    request.buffer_blocks = 3;
    ASSERT_TRUE(good(clean(world, request))) << strategy;
    EXPECT_GT(fs().clean_state().written, 3U) << strategy;
  }
  ASSERT_TRUE(good(world.finish()));
}

TEST_F(Asked, dry_run_writes_nothing) {
  const auto settled = world.fixture.checkpoint();
  ASSERT_TRUE(settled.ok());
  for (const std::string& strategy : every_strategy()) {
    const auto before = fs().status();
    jobs::CleanRequest request = by(strategy);
    request.dry_run = true;
    ASSERT_TRUE(good(clean(world, request))) << strategy;
    const auto after = fs().status();
    EXPECT_EQ(before.device_bytes_written, after.device_bytes_written) << strategy;
    EXPECT_EQ(before.serial, after.serial) << strategy;
    EXPECT_FALSE(fs().clean_state().forecast.what.empty()) << strategy;
  }
  // And what it says comes true, by and large.
  jobs::CleanRequest request = by("copying");
  request.dry_run = true;
  ASSERT_TRUE(good(clean(world, request)));
  const auto forecast = fs().clean_state().forecast;
  EXPECT_GT(forecast.frees, 0U);
  ASSERT_TRUE(good(clean(world, by("copying"))));
  const auto foreseen = static_cast<double>(forecast.writes);
  EXPECT_NEAR(static_cast<double>(fs().clean_state().written), foreseen, 0.3 * foreseen);
}

// A checkpoint that is waited for meanwhile changes nothing of that.
TEST_F(Asked, dry_run_looks_at_everything) {
  jobs::CleanRequest request = by("defragmenting");
  request.dry_run = true;
  ASSERT_TRUE(good(clean(world, request)));
  const std::uint64_t files = fs().clean_state().forecast.files.seen;
  ASSERT_GT(files, 0U);
  fs().engine().jobs().requests().ask_for_checkpoint();
  ASSERT_TRUE(good(clean(world, request)));
  EXPECT_EQ(fs().clean_state().forecast.files.seen, files);
}

TEST_F(Asked, nonsense_is_refused) {
  EXPECT_TRUE(fs().start_clean(by("magic")).fails_with(Errc::invalid));
  jobs::CleanRequest request = by("copying");
  request.policy = "fancy";
  EXPECT_TRUE(fs().start_clean(request).fails_with(Errc::invalid));
  request = by("copying");
  request.roots.push_back(kRootIno);
  EXPECT_TRUE(fs().start_clean(request).fails_with(Errc::invalid));
  EXPECT_EQ(fs().clean_state().phase, Phase::never);
  EXPECT_TRUE(fs().tune("strategy", "magic").fails_with(Errc::invalid));
}

TEST_F(Asked, a_read_only_filesystem_is_not_cleaned_but_forecast) {
  ASSERT_TRUE(world.fixture.unmount().ok());
  world.fixture.options().read_only = true;
  ASSERT_TRUE(world.fixture.mount().ok());
  EXPECT_TRUE(fs().start_clean(by("copying")).fails_with(Errc::read_only));
  jobs::CleanRequest request = by("copying");
  request.dry_run = true;
  ASSERT_TRUE(fs().start_clean(request).ok());
  EXPECT_EQ(fs().clean_state().phase, Phase::finished);
  EXPECT_GT(fs().clean_state().forecast.frees, 0U);
}

TEST(Tuning, strategies_change_while_it_is_mounted) {
  World world(world_of("decline", "learned"));
  ASSERT_TRUE(good(world.start()));
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  for (const std::string& strategy : every_strategy()) {
    ASSERT_TRUE(world.fixture.fs().tune("strategy", strategy).ok()) << strategy;
    EXPECT_EQ(world.fixture.fs().status().strategy, strategy);
    ASSERT_TRUE(good(aging.write(kAgedBlocks / 3))) << strategy;
  }
  EXPECT_TRUE(good(world.finish()));
}

// --- adaptive -------------------------------------------------------------------------------------------------------------

TEST(Adaptive, explains_what_it_decided) {
  WorldParameters parameters = world_of("decline", "learned");
  parameters.options = [](fs::Options& options) { options.strategy = "adaptive:power=mains"; };
  World world(parameters);
  ASSERT_TRUE(good(world.start()));
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  ASSERT_TRUE(good(aging.write(kAgedBlocks)));
  EXPECT_NE(world.fixture.fs().status().strategy_explanation.find("room is needed"), std::string::npos)
      << world.fixture.fs().status().strategy_explanation;
}

// With the engine's threads, on a device of which much is used and a part is garbage.
class IdleTime : public ::testing::Test {
 protected:
  void start(const std::string& power) {
    WorldParameters parameters;
    parameters.bytes = 24u << 20;
    parameters.options = [power](fs::Options& options) {
      options.background = true;
      options.strategy = "adaptive:power=" + power;
    };
    world = std::make_unique<World>(parameters);
    ASSERT_TRUE(good(world->start()));
    ASSERT_TRUE(good(world->steps.run(step("create /f 0644"))));
    for (std::uint64_t at = 0; at < 14u << 20; at += 256 << 10)
      ASSERT_TRUE(good(world->steps.run(step(fmt::format("write /f {} {} {}", at, 256 << 10, at + 1)))));
    for (std::uint64_t at = 0; at < 7u << 20; at += 256 << 10)
      ASSERT_TRUE(good(world->steps.run(step(fmt::format("fallocate /f punch {} {}", at, 192 << 10)))));
    ASSERT_TRUE(good(world->steps.run(step("checkpoint"))));
  }
  fs::FilesystemStatus status() { return world->fixture.fs().status(); }
  // Minutes go by, until `seen`. Only what hangs takes as many as that.
  bool wait(const std::function<bool()>& seen) {
    for (int minutes = 0; minutes < 6000 && !seen(); ++minutes) {
      world->clock.advance(61'000'000'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the thread that cleans looks at the clock now and then
    }
    return seen();
  }
  std::unique_ptr<World> world;
};

TEST_F(IdleTime, is_used_until_there_is_nothing_left_to_do) {
  start("mains");
  const auto before = status();
  auto rests = [&] { return status().strategy_explanation.rfind("resting", 0) == 0; };
  ASSERT_TRUE(wait([&] { return rests() && status().segments.clean > before.segments.clean; })) << status().strategy_explanation;
  EXPECT_GT(status().cleaned_blocks_written, 0U);
  // The thread may be late: what it writes by the first of these minutes it may have decided before.
  std::uint64_t written = 0;
  int quiet = 0;
  EXPECT_TRUE(wait([&] {
    const std::uint64_t now = status().device_bytes_written;
    quiet = now == written ? quiet + 1 : 0;
    written = now;
    return quiet > 8;
  })) << "it does not come to rest";
  EXPECT_TRUE(good(world->finish()));
}

TEST_F(IdleTime, is_left_unused_on_battery) {
  start("battery");
  ASSERT_TRUE(wait([&] { return status().strategy_explanation.find("battery") != std::string::npos; })) << status().strategy_explanation;
  EXPECT_EQ(status().cleaned_blocks_written, 0U);
}

}  // namespace
}  // namespace varve::test
