// The memory bound holds on a device that cannot keep up.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "fs/engine.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"
#include "support/good.h"
#include "support/stalling_device.h"
#include "support/world.h"

namespace varve::test {
namespace {

TEST(MemoryBound, operations_wait_while_a_slow_checkpoint_keeps_what_they_staged) {
  constexpr std::uint64_t kBound = 4u << 20;
  constexpr std::uint64_t kShare = kBound / 8 * 3;  // of the changes
  constexpr int kFiles = 20'000;                    // several times the bound
  io::MemDevice memory(256u << 20);
  ASSERT_TRUE(make_image(memory, {}).ok());
  StallingDevice device(memory);
  ManualClock clock;
  SeededRandom random(1);
  fs::Options options = test_options(clock, random);
  options.background = true;
  options.memory_bytes = kBound;
  FsFixture fixture(device, options);
  ASSERT_TRUE(fixture.mount().ok());
  ASSERT_TRUE(fixture.make("/first", S_IFREG | 0644).ok());
  // What only the first chunk of a mount waits for is done with.
  ASSERT_TRUE(fixture.fs().engine().store().checkpoint({}).ok());

  device.hold(true);
  std::atomic<int> made{0};
  std::atomic<std::uint64_t> most{0};
  std::thread maker([&] {
    for (int i = 0; i < kFiles && fixture.make(fmt::format("/f{}", i), S_IFREG | 0644).ok(); ++i) {
      most = std::max<std::uint64_t>(most, fixture.fs().status().delta_bytes);
      ++made;
    }
  });
  // Until the bound is reached, and then some time for going beyond it.
  while (most < kShare - 4096 && made < kFiles) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  device.hold(false);
  maker.join();

  EXPECT_EQ(made, kFiles);
  EXPECT_GT(most, kBound / 6) << "the test did not come near the bound";
  EXPECT_LT(most, kShare + 8192);
  ASSERT_TRUE(fixture.unmount().ok());
  EXPECT_TRUE(good(check_image(memory)));
}

}  // namespace
}  // namespace varve::test
