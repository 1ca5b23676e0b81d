// An operation that waits for clean segments is refused when nothing is to be gained, not before.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "base/types.h"
#include "base/wait_list.h"
#include "checkpoint/checkpoints.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "operation/wait.h"
#include "segments/log_clock.h"
#include "segments/segment_table.h"
#include "space/charge.h"
#include "space/demand.h"
#include "space/discards.h"
#include "space/space.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/stalling_device.h"
#include "support/waiting.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes blocks_of(std::uint64_t count) { return Bytes(count * kBlockSize, std::byte{1}); }

// Without a cleaner. What users may have of the clean segments can be taken away, and given back to the next checkpoint.
class SpaceWait : public ::testing::Test {
 protected:
  void start(bool background = false) {
    ASSERT_TRUE(make_image(memory_, {}).ok());
    fs::Options options = test_options(clock_, random_);
    options.cleaner = false;
    options.background = background;
    fixture_ = std::make_unique<FsFixture>(device_, options);
    ASSERT_TRUE(fixture_->mount().ok());
    file_ = file("/file");
    other_ = file("/other");
  }
  void TearDown() override {
    give_back();
    ASSERT_TRUE(fixture_->unmount().ok());
  }
  store::Store& store() { return fixture_->store(); }
  Ino file(const std::string& path) { return fixture_->make(path, S_IFREG | 0644)->ino; }
  void checkpoint() { ASSERT_TRUE(store().checkpoints().make({}).ok()); }

  // Calls take() until so many blocks of payload are not let in any more.
  template <class Take>
  void take_while_let_in(std::uint64_t payload, Take&& take) {
    const Gate::Closure closed(store().gate());
    const space::Demand claim{.payload = payload};
    while (!HasFatalFailure() && store().space().admit(claim) == space::Space::Room::granted) {
      store().space().withdraw(claim);
      take();
    }
  }
  void take_segments(std::uint64_t payload) {
    take_while_let_in(payload, [this] {
      const auto taken = store().segments().take(0);
      ASSERT_TRUE(taken);
      taken_.push_back(*taken);
    });
  }
  // The same by discards, which come to no end before discarded() is called.
  std::vector<SegmentId> discard_segments(std::uint64_t payload) {
    std::vector<SegmentId> discarding;
    take_while_let_in(payload, [this, &discarding, at = SegmentId{0}]() mutable {
      ASSERT_LT(at.v, store().segments().geometry().count);
      if (store().segments().begin_discard(at)) discarding.push_back(at);
      ++at.v;
    });
    return discarding;
  }
  void give_back() {
    for (SegmentId segment : taken_) store().segments().close(segment, store().log_clock().now());
    taken_.clear();
  }

  // Once, without waiting for more than nodes.
  template <class Function>
  Status once(fs::Operation& op, Function&& function) {
    for (;;) {
      op.wait().for_settled = op.wait().for_space = false;
      const auto result = function(op);
      if (result.ok()) return {};
      if (!result.fails_with(Errc::would_block) || op.wait().for_settled) return result.error();
      op.block();
    }
  }
  Status write_once(fs::Operation& op) {
    return once(op, [&](fs::Operation& o) { return fixture_->fs().write(o, file_, 0, data_, {}); });
  }
  Status allocate_once(fs::Operation& op, std::uint64_t blocks) {
    return once(op, [&](fs::Operation& o) {
      return fixture_->fs().fallocate(o, file_, fs::FallocateMode::allocate_keep_size, 0, blocks * kBlockSize);
    });
  }
  std::uint64_t most_chargeable() {
    const Gate::Pass pass(store().gate());
    std::uint64_t blocks = 0;
    while (store().charge().fits({.new_blocks = blocks + 1})) ++blocks;
    return blocks;
  }
  void overwrite_cold(std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += kMiB / 4) {
      store().trees().cache().clear();
      ASSERT_TRUE(fixture_->write(other_, at, blocks_of(64)).ok());
    }
  }
  std::uint64_t waits() {
    return fixture_->fs().operations().wait_times().counts()[static_cast<std::size_t>(operation::WaitCause::space)].times;
  }

  io::MemDevice memory_{64 * kMiB};
  StallingDevice device_{memory_};
  ManualClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<FsFixture> fixture_;
  Ino file_, other_;
  const Bytes data_ = blocks_of(256);
  std::vector<SegmentId> taken_;
};

TEST_F(SpaceWait, IsNotCountedByWakeUps) {
  start(true);
  checkpoint();
  take_segments(256);
  file("/third");
  device_.hold(true);
  constexpr unsigned kWakeUps = 8;
  std::atomic<bool> ended{false};
  std::atomic<unsigned> refused{0};  // attempts that did not get what they wanted, and wait once more
  fixture_->watch_waits([&](const operation::Wait& wait) { refused += wait.for_space; });
  Status written;
  std::thread writer([&] {
    written = fixture_->write(file_, 0, data_);
    ended = true;
  });
  wait_until([&] {
    store().waiters().wake();
    return refused > kWakeUps || ended;
  });
  EXPECT_FALSE(ended) << written.error().message();
  EXPECT_GE(waits(), kWakeUps);
  give_back();
  device_.hold(false);
  writer.join();
  EXPECT_TRUE(written.ok()) << written.error().message();
}

TEST_F(SpaceWait, GoesOnWhileOthersFindRoomAndEndsWhenNobodyDoes) {
  start();
  checkpoint();
  take_segments(256);
  fs::Operation op(fixture_->fs().operations(), {});
  for (std::uint64_t i = 0; i < 12; ++i) {
    ASSERT_TRUE(write_once(op).fails_with(Errc::would_block)) << i;
    ASSERT_TRUE(fixture_->write(other_, 0, blocks_of(1)).ok()) << i;
    checkpoint();
  }
  int rounds = 0;
  for (; write_once(op).fails_with(Errc::would_block) && rounds < 50; ++rounds) checkpoint();
  EXPECT_LT(rounds, 12);
  EXPECT_TRUE(write_once(op).fails_with(Errc::no_space));
}

// Nothing can be released, but what is being discarded will be clean.
TEST_F(SpaceWait, GoesOnWhileSegmentsAreDiscarded) {
  start();
  checkpoint();
  const auto discarding = discard_segments(256);
  fs::Operation op(fixture_->fs().operations(), {});
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(write_once(op).fails_with(Errc::would_block)) << i;
    bool told = false;
    store().waiters().add([&told] { told = true; });
    store().checkpoints().note_pointless_round();
    EXPECT_FALSE(told) << "it would look again and again";
    store().waiters().wake();
  }
  bool told = false;
  store().waiters().add([&told] { told = true; });
  for (SegmentId segment : discarding) store().discards().came(segment, 1);
  EXPECT_TRUE(told);
  EXPECT_TRUE(write_once(op).ok());
}

// The checkpoint that made the charge exact has shown that there is room. It is taken by others while there are no segments.
TEST_F(SpaceWait, LeavesTheChargeToBeCountedAgain) {
  start();
  for (std::uint64_t at = 0; at < 16 * kMiB; at += kMiB) ASSERT_TRUE(fixture_->write(other_, at, blocks_of(256)).ok());
  checkpoint();
  const std::uint64_t wanted = most_chargeable() - 600;
  fs::Operation op(fixture_->fs().operations(), {});
  overwrite_cold(4 * kMiB);
  ASSERT_TRUE(allocate_once(op, wanted).fails_with(Errc::would_block));
  ASSERT_FALSE(op.wait().for_space);
  checkpoint();
  take_segments(0);
  ASSERT_TRUE(allocate_once(op, wanted).fails_with(Errc::would_block));
  ASSERT_TRUE(op.wait().for_space);
  give_back();
  checkpoint();
  overwrite_cold(4 * kMiB);
  ASSERT_TRUE(allocate_once(op, wanted).fails_with(Errc::would_block));
  checkpoint();
  EXPECT_TRUE(allocate_once(op, wanted).ok());
}

}  // namespace
}  // namespace varve::test
