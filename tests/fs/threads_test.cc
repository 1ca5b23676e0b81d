// The engine's own threads on a real device: what they wait on is not what a device in memory has.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>
#include <vector>

#include "fs/engine.h"
#include "io/backends.h"
#include "support/fs_fixture.h"
#include "support/mounted_test.h"

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

class LogSinceCheckpoint : public MountedTest {
 protected:
  LogSinceCheckpoint() { fixture_.options().background = true; }
};

// Whoever asks for the status is not who makes the checkpoints: for the thread sanitizer, and no sum may be below nothing.
TEST_F(LogSinceCheckpoint, IsAskedForBesideCheckpoints) {
  const auto file = fixture_.make("/file", S_IFREG | 0644);
  ASSERT_TRUE(file.ok());
  std::atomic<bool> done{false};
  std::thread asking([&] {
    const meta::Store& store = fixture_.store();
    while (!done) EXPECT_LT(store.log_blocks_since_checkpoint(), device_.geometry().blocks());
  });
  const std::vector<std::byte> data(64 * 1024, std::byte{1});
  for (int i = 0; i < 60; ++i) {
    EXPECT_TRUE(fixture_.write(file->ino, 0, data).ok());
    EXPECT_TRUE(fixture_.checkpoint().ok());
  }
  done = true;
  asking.join();
  EXPECT_TRUE(fixture_.unmount().ok());
}

INSTANTIATE_TEST_SUITE_P(Backends, Threads, ::testing::Values(io::test::Backend::uring, io::test::Backend::threads),
                         [](const auto& backend) { return io::test::name_of(backend.param); });

}  // namespace
}  // namespace varve::test
