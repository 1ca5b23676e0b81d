// Filesystems that grow and shrink.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "checkpoint/reshaping.h"
#include "device/faults.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "jobs/jobs.h"
#include "segments/segment_table.h"
#include "store/store.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/script_generator.h"
#include "support/sparse_device.h"
#include "support/waiting.h"
#include "support/world.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
using Phase = jobs::ResizeState::Phase;

WorldParameters of(std::uint64_t bytes, bool in_place = false) {
  WorldParameters parameters;
  parameters.bytes = bytes;
  parameters.image.superblocks_in_place = in_place;
  return parameters;
}

// Files of half a MiB, named by their number.
std::string fill(World& world, int first, int last) {
  for (int i = first; i < last; ++i) {
    std::string text = world.steps.run(step(fmt::format("create /f{} 0644", i)));
    if (text.empty()) text = world.steps.run(step(fmt::format("write /f{} 0 524288 {}", i, i)));
    if (!text.empty()) return text;
  }
  return "";
}

std::string empty(World& world, int first, int last) {
  for (int i = first; i < last; ++i)
    if (std::string text = world.steps.run(step(fmt::format("unlink /f{}", i))); !text.empty()) return text;
  return "";
}

void resize(FsFixture& fixture, std::uint64_t bytes) {
  const Status started = fixture.fs().start_resize({bytes});
  ASSERT_TRUE(started.ok()) << started.error().message();
  const jobs::ResizeState state = fixture.fs().resize_state();
  EXPECT_EQ(state.phase, Phase::finished) << state.reason;
  EXPECT_EQ(state.blocks, bytes / kBlockSize);
  EXPECT_EQ(fixture.fs().status().device_blocks, bytes / kBlockSize);
  EXPECT_EQ(foresight(fixture), "");
}

class Resize : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Superblocks, Resize, testing::Bool(), [](const auto& is) { return is.param ? "in_place" : "in_an_area"; });

TEST_P(Resize, grows_at_once_and_users_have_the_room) {
  World world(of(16 * kMiB, GetParam()));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(fill(world, 0, 8)));
  const auto before = world.fixture.available_bytes();
  resize(world.fixture, 48 * kMiB);
  const auto after = world.fixture.available_bytes();
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_GT(*after, *before + 24 * kMiB);
  ASSERT_TRUE(good(fill(world, 8, 60)));
  EXPECT_EQ(world.steps.refused_for_space(), 0U);
  EXPECT_TRUE(good(world.finish()));
  EXPECT_EQ(world.fixture.fs().status().device_blocks, 48 * kMiB / kBlockSize);
}

TEST_P(Resize, H52_shrinks_what_stands_at_the_end) {
  World world(of(64 * kMiB, GetParam()));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(fill(world, 0, 80)));
  ASSERT_TRUE(good(empty(world, 0, 70)));
  resize(world.fixture, 24 * kMiB);
  EXPECT_EQ(world.device.geometry().size_bytes, 24 * kMiB) << "an image is as long as the filesystem";
  EXPECT_GT(world.fixture.fs().resize_state().moved, 0U);
  ASSERT_TRUE(good(world.compare_now()));
  ASSERT_TRUE(good(fill(world, 100, 108)));
  EXPECT_TRUE(good(world.finish()));
  EXPECT_EQ(world.fixture.fs().status().segments.total, world.fixture.store().segments().geometry().count);
}

TEST_P(Resize, H52_there_and_back_many_times) {
  World world(of(32 * kMiB, GetParam()));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(fill(world, 0, 6)));
  int next = 6;
  for (const std::uint64_t mib : {40, 24, 200, 33, 12, 1024, 12, 20, 16}) {
    resize(world.fixture, mib * kMiB);
    if (HasFatalFailure()) FAIL() << mib;
    ASSERT_TRUE(good(fill(world, next, next + 4))) << mib;
    ASSERT_TRUE(good(empty(world, next - 4, next))) << mib;
    next += 4;
    ASSERT_TRUE(good(world.finish())) << mib;
  }
}

// Of any number of blocks, also such that no segment comes or goes.
TEST_P(Resize, by_single_blocks) {
  World world(of(16 * kMiB, GetParam()));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(fill(world, 0, 4)));
  for (std::uint64_t blocks = 4096 - 70; blocks < 4096 + 70; blocks += 7) {
    resize(world.fixture, blocks * kBlockSize);
    ASSERT_TRUE(good(world.finish())) << blocks;
  }
}

TEST(ResizeLimits, sizes_that_cannot_be_are_refused_with_the_least) {
  World world(of(64 * kMiB));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(fill(world, 0, 60)));
  const Status refused = world.fixture.fs().start_resize({16 * kMiB});
  ASSERT_TRUE(refused.fails_with(Errc::no_space));
  const std::uint64_t least = world.fixture.fs().resize_state().least_blocks * kBlockSize;
  EXPECT_NE(refused.error().message().find(fmt::format("{} MiB", least / kMiB)), std::string::npos) << refused.error().message();
  EXPECT_GT(least, 30 * kMiB);
  EXPECT_LT(least, 64 * kMiB);
  EXPECT_TRUE(world.fixture.fs().start_resize({4 * kMiB}).fails_with(Errc::invalid));
  EXPECT_TRUE(world.fixture.fs().start_resize({std::uint64_t{1} << 62}).fails_with(Errc::invalid));
  EXPECT_TRUE(world.fixture.fs().start_resize({64 * kMiB}).ok());
  EXPECT_EQ(world.fixture.fs().resize_state().reason, "it has this size already");
  EXPECT_TRUE(good(world.finish()));
}

// What it names as the least can be had.
TEST(ResizeLimits, the_least_size_is_reached) {
  for (const int files : {0, 1, 5, 20, 60, 90}) {
    World world(of(64 * kMiB));
    ASSERT_TRUE(good(world.start()));
    ASSERT_TRUE(good(fill(world, 0, 90)));
    ASSERT_TRUE(good(empty(world, 0, 90 - files)));
    ASSERT_TRUE(world.fixture.checkpoint().ok());
    const std::uint64_t least = world.fixture.fs().resize_state().least_blocks * kBlockSize;
    resize(world.fixture, least);
    ASSERT_TRUE(good(world.finish())) << files << " files, " << least;
    if (HasFailure()) FAIL() << files << " files, " << least / kMiB << " MiB";
  }
}

// After a recovery nothing stands open: that is no reason to take what a checkpoint needs.
TEST(ResizeLimits, no_limit_is_accepted_below_which_nothing_can_be_written) {
  World world(of(24 * kMiB));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(fill(world, 0, 30)));
  ASSERT_TRUE(good(world.steps.run(step("sync"))));
  world.fixture.crash();
  ASSERT_TRUE(world.fixture.mount().ok());
  store::Store& store = world.fixture.store();
  std::uint64_t limit = store.segments().geometry().count;
  while (store.segments().end().clean_below(limit) > 1) --limit;
  for (; limit > 0 && store.segments().end().clean_below(limit) < 4; ++limit) {
    const Result<bool> done = store.reshaping().retreat(limit, space::Space::Margin::least);
    ASSERT_TRUE(done.ok()) << done.error().message();
    ASSERT_FALSE(*done) << store.segments().end().clean_below(limit) << " segments are clean below";
    ASSERT_FALSE(store.faults().read_only()) << store.faults().reason();
  }
  EXPECT_TRUE(good(world.finish()));
}

// Users find no more room than the new size leaves them, from the beginning.
TEST(ResizeLimits, a_full_filesystem_grows_and_a_shrinking_one_is_full_sooner) {
  World world(of(24 * kMiB));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(fill(world, 0, 60)));  // the model knows ENOSPC
  EXPECT_GT(world.steps.refused_for_space(), 0U);
  resize(world.fixture, 40 * kMiB);
  const std::uint64_t refused = world.steps.refused_for_space();
  ASSERT_TRUE(good(fill(world, 100, 116)));
  EXPECT_EQ(world.steps.refused_for_space(), refused);
  EXPECT_TRUE(world.fixture.fs().start_resize({24 * kMiB}).fails_with(Errc::no_space));
  ASSERT_TRUE(good(empty(world, 100, 116)));
  const std::uint64_t least = world.fixture.fs().resize_state().least_blocks * kBlockSize;
  EXPECT_LE(least, 25 * kMiB);
  resize(world.fixture, least);
  ASSERT_TRUE(good(fill(world, 200, 240)));
  EXPECT_GT(world.steps.refused_for_space(), refused);
  EXPECT_TRUE(good(world.finish()));
}

TEST(ResizeLimits, a_device_that_cannot_grow_is_an_error) {
  io::MemDevice memory(32 * kMiB);
  ASSERT_TRUE(make_image(memory, {}).ok());
  class Fixed final : public io::BlockDevice {
   public:
    explicit Fixed(io::BlockDevice& below) : below_(below) {}
    const io::Geometry& geometry() const override { return below_.geometry(); }
    const std::string& name() const override { return below_.name(); }
    bool read_only() const override { return false; }
    void submit(io::Reactor& reactor, io::IoRequest& request) override { below_.submit(reactor, request); }
    int execute(io::IoRequest& request) override { return below_.execute(request); }

   private:
    io::BlockDevice& below_;
  } fixed(memory);
  ManualClock clock;
  SeededRandom random(1);
  FsFixture fixture(fixed, test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  EXPECT_TRUE(fixture.fs().start_resize({64 * kMiB}).fails_with(Errc::invalid));
  resize(fixture, 16 * kMiB);
  EXPECT_EQ(fixed.geometry().size_bytes, 32 * kMiB);
  resize(fixture, 32 * kMiB);
  ASSERT_TRUE(fixture.unmount().ok());
  EXPECT_EQ(check_image(fixed), "");
}

// As a partition that has been made larger: the size of the device without being told one.
TEST(ResizeLimits, without_a_size_it_fills_the_device) {
  World world(of(16 * kMiB));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(world.device.set_length(50 * kMiB + 12345).ok());
  ASSERT_TRUE(world.fixture.fs().start_resize({}).ok());
  EXPECT_EQ(world.fixture.fs().status().device_blocks, (50 * kMiB + 12345) / kBlockSize);
  EXPECT_TRUE(good(world.finish()));
}

TEST(ResizeFar, from_8_mib_to_16_tib_and_back) {
  constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;
  SparseDevice device(8 * kMiB);
  ASSERT_TRUE(make_image(device, {}).ok());
  ManualClock clock;
  SeededRandom random(1);
  FsFixture fixture(device, test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  const auto file = fixture.make("/file", 0100644);
  ASSERT_TRUE(file.ok());
  const auto bytes = pattern_bytes(1, 0, 300'000);
  ASSERT_TRUE(fixture.write(file->ino, 0, bytes).ok());
  const auto expect_file = [&] { EXPECT_EQ(fixture.read(file->ino, 0, bytes.size()).value(), bytes); };

  resize(fixture, 16 * kTiB);
  EXPECT_LT(device.blocks_written(), 2048U) << "nothing is written for what is empty";
  expect_file();
  const auto far = fixture.make("/far", 0100644);
  ASSERT_TRUE(far.ok());
  for (std::uint64_t at = 0; at < 64; ++at) ASSERT_TRUE(fixture.write(far->ino, at << 30, pattern_bytes(at, 0, 1 << 20)).ok());
  ASSERT_TRUE(fixture.unmount().ok());
  ASSERT_TRUE(fixture.mount().ok());
  EXPECT_EQ(fixture.read(far->ino, std::uint64_t{63} << 30, 1 << 20).value(), pattern_bytes(63, 0, 1 << 20));
  EXPECT_GT(fixture.available_bytes().value(), 14 * kTiB);

  EXPECT_TRUE(fixture.fs().start_resize({8 * kMiB}).fails_with(Errc::no_space));
  resize(fixture, kTiB / 8 + 4096 * 5);
  const auto unlinked = fixture.call([&](fs::Operation& op) { return fixture.fs().unlink(op, kRootIno, "far"); });
  ASSERT_TRUE(unlinked.ok());
  ASSERT_TRUE(fixture.unmount().ok());
  ASSERT_TRUE(fixture.mount().ok());
  resize(fixture, 8 * kMiB);
  expect_file();
  ASSERT_TRUE(fixture.unmount().ok());
  EXPECT_EQ(check_image(device), "");
  ASSERT_TRUE(fixture.mount().ok());
  expect_file();
}

// Stopped in the middle: all is as before, and may be tried again.
TEST(ResizeLive, H52_is_cancelled_and_tried_again_beside_writers) {
  io::MemDevice device(96 * kMiB);
  ASSERT_TRUE(make_image(device, {}).ok());
  ManualClock clock;
  SeededRandom random(1);
  fs::Options options = test_options(clock, random);
  options.background = true;
  options.clock = &Clock::system();
  options.random = &Random::system();
  FsFixture fixture(device, options);
  ASSERT_TRUE(fixture.mount().ok());
  std::vector<Ino> files;
  for (int i = 0; i < 40; ++i) {
    files.push_back(fixture.make(fmt::format("/f{}", i), 0100644)->ino);
    ASSERT_TRUE(fixture.write(files.back(), 0, pattern_bytes(i, 0, 1 << 20)).ok());
  }
  std::atomic<bool> stop{false};
  std::vector<std::uint64_t> seeds(files.size());
  std::thread writer([&] {
    SeededRandom dice(7);
    for (std::uint64_t round = 100; !stop; ++round) {
      const std::uint64_t at = dice.next() % files.size();
      ASSERT_TRUE(fixture.write(files[at], 0, pattern_bytes(round, 0, 1 << 20)).ok());
      seeds[at] = round;
    }
  });
  const auto wait = [&] {
    jobs::ResizeState state;
    wait_until([&] { return (state = fixture.fs().resize_state()).phase != Phase::running; });
    return state;
  };
  for (const std::uint64_t mib : {64, 96, 70, 128, 60, 61, 90}) {
    const Status started = fixture.fs().start_resize({mib * kMiB});
    ASSERT_TRUE(started.ok()) << started.error().message();
    if (mib == 70) fixture.fs().stop_resize();
    const jobs::ResizeState state = wait();
    if (mib == 70 && state.phase == Phase::stopped) EXPECT_EQ(state.blocks, 96 * kMiB / kBlockSize);
    else EXPECT_EQ(state.phase, Phase::finished) << mib << ": " << state.reason;
  }
  stop = true;
  writer.join();
  for (std::size_t i = 0; i < files.size(); ++i)
    EXPECT_EQ(fixture.read(files[i], 0, 1 << 20).value(), pattern_bytes(seeds[i] ? seeds[i] : i, 0, 1 << 20));
  ASSERT_TRUE(fixture.unmount().ok());
  EXPECT_EQ(check_image(device), "");
}

// An unmount ends it, and so does a crash: the size is that of before.
TEST(ResizeLive, ends_with_the_mount) {
  World world(of(64 * kMiB));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(fill(world, 0, 70)));
  ASSERT_TRUE(good(empty(world, 0, 60)));
  const auto begin = [&world] {
    jobs::Jobs& jobs = world.fixture.fs().engine().jobs();
    ASSERT_TRUE(jobs.resize_job().start({24 * kMiB}).ok());
    for (int i = 0; i < 2; ++i) jobs.scheduler().step(jobs.resize_job());
    ASSERT_TRUE(jobs.resize_job().is_active()) << "it is over before it could be ended";
  };
  begin();
  EXPECT_TRUE(world.fixture.fs().start_clean({}).fails_with(Errc::busy));
  EXPECT_TRUE(world.fixture.fs().start_resize({32 * kMiB}).fails_with(Errc::busy));
  ASSERT_TRUE(good(world.finish()));
  EXPECT_EQ(world.fixture.fs().status().device_blocks, 64 * kMiB / kBlockSize);
  begin();
  world.fixture.crash();
  ASSERT_TRUE(world.fixture.mount().ok());
  EXPECT_EQ(world.fixture.fs().status().device_blocks, 64 * kMiB / kBlockSize);
  EXPECT_EQ(world.device.geometry().size_bytes, 64 * kMiB);
  ASSERT_TRUE(good(world.compare_now()));
  EXPECT_TRUE(good(world.finish()));
}

}  // namespace
}  // namespace varve::test
