// The memory bound holds on a device that cannot keep up.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "fs/engine.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"
#include "support/good.h"
#include "support/world.h"

namespace varve::test {
namespace {

// While it is held, no blocking flush returns, so that a checkpoint does not end.
class StallingDevice : public io::BlockDevice {
 public:
  explicit StallingDevice(io::BlockDevice& below) : below_(below) {}

  const io::Geometry& geometry() const override { return below_.geometry(); }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return below_.read_only(); }
  std::unique_ptr<io::IoQueue> make_queue() override { return below_.make_queue(); }
  int execute(io::IoRequest& request) override {
    if (request.kind == io::IoKind::flush) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !held_; });
    }
    return below_.execute(request);
  }

  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }

 private:
  io::BlockDevice& below_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
};

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
