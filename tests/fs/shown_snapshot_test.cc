// Operations that show a snapshot in the running filesystem.
#include <gtest/gtest.h>

#include <numeric>

#include "io/mem_device.h"
#include "snapshots/snapshot_change.h"
#include "support/fs_fixture.h"
#include "support/pattern.h"

namespace varve::test {
namespace {

using Change = snapshots::SnapshotChange;

class ShownSnapshot : public testing::Test {
 protected:
  ShownSnapshot() : device_(32u << 20), random_(1), fixture_(device_, test_options(clock_, random_)) {
    EXPECT_TRUE(make_image(device_, {}).ok());
    EXPECT_TRUE(fixture_.mount().ok());
    EXPECT_TRUE(fixture_.make("/f", S_IFREG | 0644).ok());
    file_ = *fixture_.resolve("/f");
    EXPECT_TRUE(fixture_.write(file_, 0, pattern_bytes(1, 0, kBytes)).ok());
    EXPECT_TRUE(fixture_.snapshot({Change::Kind::create, "s", {}}).ok());
    snapshot_ = Serial{fixture_.fs().snapshots().snapshots.at(0).serial};
    EXPECT_TRUE(fixture_.write(file_, 0, pattern_bytes(2, 0, kBytes)).ok());
  }

  static constexpr std::size_t kBytes = 400'000;
  io::MemDevice device_;
  ManualClock clock_;
  SeededRandom random_;
  FsFixture fixture_;
  Ino file_;
  Serial snapshot_;
};

TEST_F(ShownSnapshot, ReadsWhatWasThere) {
  fixture_.show(snapshot_);
  EXPECT_EQ(*fixture_.read(file_, 0, kBytes), pattern_bytes(1, 0, kBytes));
  fixture_.show({});
  EXPECT_EQ(*fixture_.read(file_, 0, kBytes), pattern_bytes(2, 0, kBytes));
}

TEST_F(ShownSnapshot, ChangesNothing) {
  fixture_.show(snapshot_);
  EXPECT_EQ(fixture_.write(file_, 0, pattern_bytes(3, 0, 10)).error().code(), Errc::read_only);
  EXPECT_EQ(fixture_.make("/g", S_IFREG | 0644).error().code(), Errc::read_only);
  const Status removed = fixture_.call([&](fs::Operation& op) { return fixture_.fs().unlink(op, kRootIno, "f"); });
  EXPECT_EQ(removed.error().code(), Errc::read_only);
  EXPECT_EQ(*fixture_.read(file_, 0, kBytes), pattern_bytes(1, 0, kBytes));
}

// Its blocks stand elsewhere after each round, and others are written to where they stood.
TEST_F(ShownSnapshot, FindsWhatHasBeenMoved) {
  for (unsigned turn = 0; turn < 12; ++turn) {
    ASSERT_TRUE(fixture_.write(file_, 0, pattern_bytes(10 + turn, 0, kBytes)).ok());
    ASSERT_TRUE(fixture_.clean(turn % 2 ? "compacting" : "copying").ok());
    ASSERT_TRUE(fixture_.checkpoint().ok());
    fixture_.show(snapshot_);
    EXPECT_EQ(*fixture_.read(file_, 0, kBytes), pattern_bytes(1, 0, kBytes)) << turn;
    fixture_.show({});
  }
  EXPECT_EQ(fixture_.fs().status().lifetime.errors, 0U);
}

// An operation that has begun before the cleaner moves what it waits for.
TEST_F(ShownSnapshot, AReadThatWaitsMeanwhileIsNotMisled) {
  std::vector<std::byte> out(kBytes);
  fs::Operation operation(fixture_.fs().operations(), {});
  operation.show(snapshot_);
  auto attempt = [&] { return fixture_.fs().read(operation, file_, 0, out); };
  auto result = attempt();
  for (unsigned turn = 0; result.fails_with(Errc::would_block); ++turn) {
    ASSERT_LT(turn, 200U);
    operation.block();  // what it waited for is there,
    if (turn < 6) {     // and is moved and written over before it looks
      for (unsigned i = 0; i < 3; ++i) {
        ASSERT_TRUE(fixture_.clean("compacting").ok());
        ASSERT_TRUE(fixture_.write(file_, 0, pattern_bytes(100 + 3 * turn + i, 0, kBytes)).ok());
        ASSERT_TRUE(fixture_.checkpoint().ok());
      }
    }
    result = attempt();
  }
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(out, pattern_bytes(1, 0, kBytes));
  EXPECT_EQ(fixture_.fs().status().lifetime.errors, 0U);
}

TEST_F(ShownSnapshot, IsStaleWhenItHasGone) {
  ASSERT_TRUE(fixture_.snapshot({Change::Kind::remove, "s", {}}).ok());
  fixture_.show(snapshot_);
  EXPECT_EQ(fixture_.read(file_, 0, kBytes).error().code(), Errc::stale);
  EXPECT_EQ(fixture_.getattr(kRootIno).error().code(), Errc::stale);
}

}  // namespace
}  // namespace varve::test
