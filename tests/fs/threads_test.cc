// The engine's own threads on a real device: what they wait on is not what a device in memory has.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>
#include <vector>

#include "fs/engine.h"
#include "io/backends.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"

namespace varve::test {
namespace {

class Threads : public ::testing::TestWithParam<io::test::Backend> {};

// The queue of the service thread ends with that thread, which whoever unmounts wakes for its end: for the thread sanitizer.
TEST_P(Threads, EndWhileTheyAreWoken) {
  const auto opened = io::test::open_backend(GetParam(), 64u << 20);
  if (!opened.device) return;
  ASSERT_TRUE(make_image(*opened.device, {}).ok());
  ManualClock clock;
  SeededRandom random(1);
  fs::Options options = test_options(clock, random);
  options.background = true;
  for (int i = 0; i < 10; ++i) {
    FsFixture fixture(*opened.device, options);
    ASSERT_TRUE(fixture.mount().ok());
    EXPECT_TRUE(fixture.make("/f" + std::to_string(i), S_IFREG | 0644).ok());
    EXPECT_TRUE(fixture.unmount().ok());
  }
}

// Whoever asks for the status is not who makes the checkpoints: for the thread sanitizer, and no sum may be below nothing.
TEST(LogSinceCheckpoint, IsAskedForBesideCheckpoints) {
  io::MemDevice device(64u << 20);
  ASSERT_TRUE(make_image(device, {}).ok());
  ManualClock clock;
  SeededRandom random(1);
  fs::Options options = test_options(clock, random);
  options.background = true;
  FsFixture fixture(device, options);
  ASSERT_TRUE(fixture.mount().ok());
  const auto file = fixture.make("/file", S_IFREG | 0644);
  ASSERT_TRUE(file.ok());
  std::atomic<bool> done{false};
  std::thread asking([&] {
    const meta::Store& store = fixture.fs().engine().store();
    while (!done) EXPECT_LT(store.log_blocks_since_checkpoint(), (64u << 20) >> kBlockShift);
  });
  const std::vector<std::byte> data(64 * 1024, std::byte{1});
  for (int i = 0; i < 60; ++i) {
    EXPECT_TRUE(fixture.write(file->ino, 0, data).ok());
    EXPECT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().checkpoint(op); }).ok());
  }
  done = true;
  asking.join();
  EXPECT_TRUE(fixture.unmount().ok());
}

INSTANTIATE_TEST_SUITE_P(Backends, Threads, ::testing::Values(io::test::Backend::uring, io::test::Backend::threads),
                         [](const auto& backend) { return io::test::name_of(backend.param); });

}  // namespace
}  // namespace varve::test
