// Tree nodes that a round of cleaning leaves to the checkpoint after it: until then nobody else gets the segments that they
// will take, or the checkpoint ends halfway and with it all writing (H39).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include <fmt/format.h>

#include "checkpoint/checkpoints.h"
#include "cleaner/cleaner.h"
#include "format/map_record.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "segments/log_clock.h"
#include "segments/segment_table.h"
#include "space/demand.h"
#include "space/space.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/good.h"
#include "support/settings.h"
#include "support/timed_device.h"
#include "support/world.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

// Thousands of names, some of which are removed again: segments are full of tree nodes, dead and live. Without the engine's cleaner.
class Evacuation : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_image(device_, {}).ok());
    fixture_.options().cleaner = false;
    ASSERT_TRUE(fixture_.mount().ok());
    fs::NewNode file;
    file.mode = S_IFREG | 0644;
    for (std::size_t i = 0; i < kNames; ++i)
      ASSERT_TRUE(call([&](fs::Operation& op) { return fixture_.fs().make(op, kRootIno, name_of(i), file); })) << i;
    for (std::size_t i = 0; i < kNames / 8; ++i) {
      ASSERT_TRUE(call([&](fs::Operation& op) { return fixture_.fs().unlink(op, kRootIno, name_of(i * 7919 % kNames)); })) << i;
      if (i % 512 == 0) { ASSERT_TRUE(store().checkpoints().make({}).ok()); }
    }
    ASSERT_TRUE(store().checkpoints().make({}).ok());
  }
  void TearDown() override {
    EXPECT_TRUE(good(foresight(fixture_)));
    for (SegmentId segment : taken_) store().segments().close(segment, store().log_clock().now());
    ASSERT_TRUE(fixture_.unmount().ok());
    EXPECT_EQ(check_image(device_, false), "");
  }

  static constexpr std::size_t kNames = 32'000;
  static std::string name_of(std::size_t i) { return fmt::format("{:0>250}", i * 7919 % 100'003); }
  template <class Function>
  bool call(Function&& function) {
    return fixture_.call(std::forward<Function>(function)).ok();
  }
  store::Store& store() { return fixture_.store(); }

  // In the place of users, all that they are let in for.
  void take_segments() {
    const Gate::Closure closed(store().gate());
    const space::Demand claim{.payload = store().segments().geometry().blocks};
    while (store().space().admit(claim) == space::Space::Room::granted) {
      store().space().withdraw(claim);
      const auto taken = store().segments().take(0);
      ASSERT_TRUE(taken);
      taken_.push_back(*taken);
    }
  }
  void checkpoint(const std::vector<SegmentId>& evacuate) {
    const Status status = store().checkpoints().make({.evacuate = evacuate});
    EXPECT_TRUE(status.ok()) << status.error().message();
  }
  std::vector<SegmentId> segments_of_nodes() {
    std::vector<SegmentId> found;
    const std::uint64_t settled = store().trees().own_view().generation;
    store().segments().for_each([&](SegmentId id, const segments::SegmentInfo& s) {
      const bool of_nodes = s.state == segments::SegmentState::used && s.group == format::kGroupNodes;
      if (of_nodes && s.touched <= settled && s.live()) found.push_back(id);
    });
    return found;
  }

  io::MemDevice device_{64u << 20};
  ManualClock clock_;
  SeededRandom random_{first_seed()};
  std::atomic<std::uint64_t> reads_{0};
  TimedDevice counted_{device_, clock_, false, [this](const io::IoRequest& request) {
                         reads_ += request.kind == io::IoKind::read;
                         return std::uint64_t{0};
                       }};
  FsFixture fixture_{counted_, test_options(clock_, random_)};
  std::vector<SegmentId> taken_;
};

TEST_F(Evacuation, HasItsRoomWhateverUsersTake) {
  cleaner::Task task;
  task.wanted = 32 * store().segments().geometry().blocks;
  cleaner::Cleaner& cleaner = fixture_.fs().engine().cleaner();
  const auto rules = cleaner.rules({"copying", "greedy", ""});
  ASSERT_TRUE(rules.ok());
  const cleaner::Round round = cleaner.run_round(task, *rules);
  ASSERT_GE(round.emptied.size(), 4U) << round.why;
  take_segments();
  checkpoint(round.emptied);
  EXPECT_FALSE(store().checkpoints().evacuation_was_cut());
}

// Somebody may wait for the checkpoint, and what is to be moved stands close together.
TEST_F(Evacuation, ReadsManyNodesByOneRequest) {
  std::vector<SegmentId> some = segments_of_nodes();
  ASSERT_GE(some.size(), 4U);
  std::ranges::sort(some, std::greater{}, [&](SegmentId segment) { return store().segments().info(segment).live(); });
  some.resize(4);
  std::uint64_t nodes = 0;
  for (SegmentId segment : some) nodes += store().segments().info(segment).live();
  ASSERT_GT(nodes, 100U);
  const std::uint64_t before = reads_;
  checkpoint(some);
  EXPECT_FALSE(store().checkpoints().evacuation_was_cut());
  EXPECT_GT(reads_ - before, 0U);
  EXPECT_LT(reads_ - before, nodes / 3) << "of " << nodes;
}

// A second line: whatever was overlooked.
TEST_F(Evacuation, IsPutOffForWantOfRoom) {
  const std::vector<SegmentId> all = segments_of_nodes();
  take_segments();
  checkpoint(all);
  EXPECT_TRUE(store().checkpoints().evacuation_was_cut());
}

}  // namespace
}  // namespace varve::test
