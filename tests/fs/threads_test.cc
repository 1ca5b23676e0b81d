// The engine's own threads on a real device: what they wait on is not what a device in memory has.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "checkpoint/checkpoints.h"
#include "checkpoint/seals.h"
#include "fs/engine.h"
#include "io/backends.h"
#include "io/mem_device.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/mounted_test.h"
#include "support/stalling_device.h"
#include "support/waiting.h"
#include "support/world.h"

namespace varve::test {
namespace {

class Threads : public ::testing::TestWithParam<io::test::Backend> {};

// The queue of the service thread ends with that thread, which the unmounting thread wakes for its end: for the thread sanitizer.
TEST_P(Threads, EndWhileTheyAreWoken) {
  const auto opened = io::test::open_backend(GetParam(), 64u << 20);
  if (!opened.device) GTEST_SKIP() << "no " << io::test::name_of(GetParam()) << " here";
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

// The thread that asks for the status is not the one that makes the checkpoints: for the thread sanitizer, and no sum may be below nothing.
TEST_F(LogSinceCheckpoint, IsAskedForBesideCheckpoints) {
  const auto file = fixture_.make("/file", S_IFREG | 0644);
  ASSERT_TRUE(file.ok());
  std::atomic<bool> done{false};
  std::thread asking([&] {
    store::Store& store = fixture_.store();
    while (!done) EXPECT_LT(store.checkpoints().log_blocks_since(), device_.geometry().blocks());
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

// The first chunk wants its epoch in the superblocks. The thread that writes them takes its time, and another makes a checkpoint
// meanwhile: the older superblock must not replace the newer one.
TEST(Superblocks, AreWrittenByOneAtATime) {
  io::MemDevice memory(64u << 20);
  ASSERT_TRUE(make_image(memory, {}).ok());
  std::atomic<bool> stalled{false};
  StallingDevice device(memory, [&](const io::IoRequest& request) {
    return is_superblock_write(request) && !stalled.exchange(true);
  });
  ManualClock clock;
  SeededRandom random(1);
  fs::Options options = test_options(clock, random);
  options.background = true;
  FsFixture fixture(device, options);
  ASSERT_TRUE(fixture.mount().ok());
  store::Store& store = fixture.store();

  device.hold(true);
  ASSERT_TRUE(fixture.make("/first", S_IFREG | 0644).ok());
  ASSERT_TRUE(store.seals().seal().ok());
  while (!stalled) std::this_thread::yield();
  std::atomic<pid_t> thread{0};
  std::atomic<bool> ended{false};
  std::thread checkpoint([&] {
    thread = ::gettid();
    EXPECT_TRUE(store.checkpoints().make({}).ok());
    ended = true;
  });
  SleepWatch watch;
  wait_until([&] { return ended || watch.is_asleep_for_good(thread); });
  EXPECT_FALSE(ended || store.checkpoints().running()) << "it was let in beside the other one";
  device.hold(false);
  checkpoint.join();
  EXPECT_TRUE(fixture.make("/second", S_IFREG | 0644).ok());
  const Status unmounted = fixture.unmount();  // ends the thread that was late, then makes a checkpoint after the newest
  EXPECT_TRUE(unmounted.ok()) << unmounted.error().message();
  ASSERT_TRUE(fixture.mount().ok());
  EXPECT_TRUE(fixture.lookup(kRootIno, "second").ok());
}

class ReplacedNames : public MountedTest {
 protected:
  ReplacedNames() { fixture_.options().background = true; }
};

// A name that is given to another file keeps its cookie. An operation that is about to remove it must notice that it leads elsewhere now.
TEST_F(ReplacedNames, AreRemovedBesideTheirRename) {
  const auto inodes = [&] {
    const auto space = *fixture_.call([&](fs::Operation& op) { return fixture_.fs().statfs(op); });
    return space.inodes - space.inodes_free;
  };
  const auto before = inodes();
  std::atomic<bool> done{false};
  std::thread removing([&] {
    while (!done) static_cast<void>(fixture_.call([&](fs::Operation& op) { return fixture_.fs().unlink(op, kRootIno, "name"); }));
  });
  constexpr int kTurns = 5000;
  for (int i = 0; i < kTurns; ++i) {
    EXPECT_TRUE(fixture_.make("/new", S_IFREG | 0644).ok());
    Status renamed;
    do renamed = fixture_.call([&](fs::Operation& op) { return fixture_.fs().rename(op, kRootIno, "new", kRootIno, "name", 0); });
    while (renamed.fails_with(Errc::not_found));  // it has found the name, and the file has gone by then; the kernel asks one by one
    EXPECT_TRUE(renamed.ok()) << renamed.error().message();
  }
  done = true;
  removing.join();
  static_cast<void>(fixture_.call([&](fs::Operation& op) { return fixture_.fs().unlink(op, kRootIno, "name"); }));
  EXPECT_FALSE(fixture_.fs().read_only());
  EXPECT_EQ(inodes(), before);
  EXPECT_TRUE(fixture_.unmount().ok());
  EXPECT_EQ(check_image(device_), "");
}

INSTANTIATE_TEST_SUITE_P(Backends, Threads, ::testing::Values(io::test::Backend::uring, io::test::Backend::threads),
                         [](const auto& backend) { return io::test::name_of(backend.param); });

}  // namespace
}  // namespace varve::test
