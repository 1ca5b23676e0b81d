// The memory bound holds on a device that cannot keep up.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "checkpoint/checkpoints.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "operation/references.h"
#include "space/space.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/good.h"
#include "support/stalling_device.h"
#include "support/waiting.h"
#include "support/world.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kBound = 4u << 20;
constexpr std::uint64_t kShare = kBound / 8 * 3;  // of the changes

class MemoryBound : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_image(memory, {}).ok());
    ASSERT_TRUE(fixture.mount().ok());
    ASSERT_TRUE(fixture.make("/first", S_IFREG | 0644).ok());
    checkpoint();  // what only the first chunk of a mount waits for is done with
  }

  fs::Options options() {
    fs::Options result = test_options(clock, random);
    result.background = true;
    result.atime = fs::Atime::always;
    result.memory_bytes = kBound;
    return result;
  }
  void checkpoint() { ASSERT_TRUE(fixture.store().checkpoints().make({}).ok()); }
  std::uint64_t change_bytes() { return fixture.fs().status().delta_bytes; }
  // The most that changes take while `work` is under way and no checkpoint comes to its end; then one may.
  std::uint64_t most_while_held(const std::function<void()>& work) {
    // Names that a kernel knows take some of it.
    const std::uint64_t share = kShare - std::min(kShare / 2, fixture.fs().operations().references().bytes());
    device.hold(true);
    std::atomic<bool> done{false};
    std::atomic<pid_t> thread{0};
    std::thread worker([&] {
      thread = ::gettid();
      work();
      done = true;
    });
    std::uint64_t most = 0;
    SleepWatch watch;
    wait_until([&] {
      most = std::max(most, change_bytes());
      return done || (watch.is_asleep_for_good(thread) && most >= share - 4096);
    });
    device.hold(false);
    worker.join();
    return most;
  }
  void expect_bounded(std::uint64_t most) {
    EXPECT_GT(most, kBound / 6) << "the test did not come near the bound";
    EXPECT_LT(most, kShare + 8192);
  }

  io::MemDevice memory{256u << 20};
  StallingDevice device{memory};
  ManualClock clock;
  SeededRandom random{1};
  FsFixture fixture{device, options()};
};

TEST_F(MemoryBound, operations_wait_while_a_slow_checkpoint_keeps_what_they_staged) {
  constexpr int kFiles = 20'000;  // several times the bound
  int made = 0;
  std::uint64_t most_later = 0;
  const std::uint64_t most = most_while_held([&] {
    for (; made < kFiles && fixture.make(fmt::format("/f{}", made), S_IFREG | 0644).ok(); ++made)
      most_later = std::max(most_later, change_bytes());
  });
  EXPECT_EQ(made, kFiles);
  expect_bounded(most);
  expect_bounded(most_later);
  ASSERT_TRUE(fixture.unmount().ok());
  EXPECT_TRUE(good(check_image(memory)));
}

// What the names take that a kernel knows is not there for changes.
TEST_F(MemoryBound, leaves_changes_less_the_more_names_the_kernel_knows) {
  constexpr std::uint64_t kNames = 30'000;
  const std::uint64_t before = fixture.store().space().memory_beside_changes();
  operation::References& references = fixture.fs().operations().references();
  for (std::uint64_t i = 0; i < kNames; ++i) references.add(Ino{1000 + i}, 1);
  ASSERT_GE(references.bytes(), kNames * 8);
  ASSERT_TRUE(fixture.make("/another", S_IFREG | 0644).ok());
  wait_until([&] { return fixture.store().space().memory_beside_changes() + kNames * 8 <= before; });
  for (std::uint64_t i = 0; i < kNames; ++i) references.drop(Ino{1000 + i}, 1);
}

// A read does not wait: its access times are not kept.
TEST_F(MemoryBound, access_times_are_changes) {
  constexpr std::uint64_t kFiles = 8'000;
  std::vector<Ino> files;
  for (std::uint64_t i = 0; i < kFiles; ++i) {
    files.push_back(fixture.make(fmt::format("/f{}", i), S_IFREG | 0644)->ino);
    ASSERT_TRUE(fixture.write(files.back(), 0, std::vector<std::byte>(1)).ok());
  }
  checkpoint();
  std::uint64_t read = 0;
  const std::uint64_t most = most_while_held([&] {
    while (read < kFiles && fixture.read(files[read], 0, 1).ok()) ++read;
  });
  EXPECT_EQ(read, kFiles);
  expect_bounded(most);
  ASSERT_TRUE(fixture.unmount().ok());
  EXPECT_TRUE(good(check_image(memory)));
}

// What is freed at an unmount because the kernel held it till then.
TEST_F(MemoryBound, an_unmount_waits_with_what_it_frees) {
  constexpr std::uint64_t kFiles = 8'000;
  fs::NewNode node;
  node.mode = S_IFREG | 0644;
  for (std::uint64_t i = 0; i < kFiles; ++i) {
    const std::string name = fmt::format("f{}", i);
    ASSERT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().make(op, kRootIno, name, node); }).ok());
    ASSERT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().unlink(op, kRootIno, name); }).ok());
  }
  checkpoint();
  Status unmounted = Errc::io;
  expect_bounded(most_while_held([&] { unmounted = fixture.fs().unmount(); }));
  EXPECT_TRUE(unmounted.ok());
  fixture.crash();
  EXPECT_TRUE(good(check_image(memory)));
}

}  // namespace
}  // namespace varve::test
