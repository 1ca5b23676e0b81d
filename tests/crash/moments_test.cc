// Scenarios of the design review in which something happens in the middle of something else. A block changes while it is
// moved, the power goes between two superblocks, or while a file without a name is held.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <set>
#include <string>
#include <utility>

#include "checkpoint/seals.h"
#include "cleaner/mover.h"
#include "device/io_context.h"
#include "format/item.h"
#include "fs/engine.h"
#include "image_tools.h"
#include "log/log.h"
#include "segments/segment_table.h"
#include "store/store.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/world.h"
#include "sweep.h"
#include "tree/item_tree.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

// Calls the test when a block has been read or written, once.
class InterruptedDevice : public io::MemDevice {
 public:
  using io::MemDevice::MemDevice;
  void when(io::IoKind kind, BlockAddr address, std::function<void()> call) {
    kind_ = kind;
    offset_ = address.v << kBlockShift;
    call_ = std::move(call);
  }
  int execute(io::IoRequest& request) override {
    const bool hit = call_ && request.kind == kind_ && request.offset <= offset_ && offset_ < request.offset + request.length;
    const int error = io::MemDevice::execute(request);
    if (hit) std::exchange(call_, {})();
    return error;
  }
  bool waits() const { return static_cast<bool>(call_); }

 private:
  io::IoKind kind_ = io::IoKind::read;
  std::uint64_t offset_ = 0;
  std::function<void()> call_;
};

class Moves : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_image(device_, {}).ok());
    ASSERT_TRUE(fixture_.mount().ok());
    file_ = fixture_.make("/f", S_IFREG | 0644)->ino;
    write(1);
    checkpoint();
  }

  store::Store& store() { return fixture_.store(); }
  void write(std::uint64_t seed) { ASSERT_TRUE(fixture_.write(file_, 0, pattern_bytes(seed, 0, 3 * kBlockSize)).ok()); }
  void checkpoint() {
    ASSERT_TRUE(fixture_.checkpoint().ok());
  }
  BlockAddr address() {
    tree::BlockingSource source = store().trees().source();
    const auto item = *tree::find_item(source, store().trees().own_view().inode_file, {file_, format::ItemKind::extent, 0});
    return format::decode_extent(item->value)->address;
  }
  // Moves the file's blocks; `change` happens when they have been read and not been written yet.
  void move(std::function<void()> change) {
    cleaner::Mover mover(store());
    const BlockAddr from = address();
    const auto blocks = mover.live_blocks(store().segments().geometry().segment_of(from));
    ASSERT_TRUE(blocks.ok());
    ASSERT_EQ(blocks->size(), 3U);
    device_.when(io::IoKind::read, from, std::move(change));
    const Status moved = mover.move(*blocks);
    ASSERT_TRUE(moved.ok()) << moved.error().message();
    ASSERT_FALSE(device_.waits()) << "the blocks were never read";
  }
  void expect(const std::vector<std::byte>& content) {
    for (const char* when : {"at once", "after a checkpoint", "after a crash"}) {
      EXPECT_EQ(*fixture_.read(file_, 0, content.size()), content) << when;
      checkpoint();
      if (std::string_view(when) == "after a checkpoint") {
        fixture_.crash();
        ASSERT_TRUE(fixture_.mount().ok());
      }
    }
    ASSERT_TRUE(fixture_.unmount().ok());
    EXPECT_TRUE(good(check_image(device_)));
  }

  InterruptedDevice device_{16u << 20};
  ManualClock clock_;
  SeededRandom random_{5};
  FsFixture fixture_{device_, test_options(clock_, random_)};
  Ino file_;
};

TEST_F(Moves, H34_a_block_that_stays_is_moved) {
  const BlockAddr before = address();
  move([] {});
  checkpoint();
  EXPECT_NE(address(), before);
  expect(pattern_bytes(1, 0, 3 * kBlockSize));
}

TEST_F(Moves, H34_a_block_that_is_overwritten_meanwhile_is_not_moved) {
  move([this] { write(2); });
  expect(pattern_bytes(2, 0, 3 * kBlockSize));
}

TEST_F(Moves, H34_a_block_that_is_overwritten_and_sealed_meanwhile_is_not_moved) {
  move([this] {
    write(2);
    ASSERT_TRUE(fixture_.seal().ok());
  });
  expect(pattern_bytes(2, 0, 3 * kBlockSize));
}

TEST_F(Moves, H34_a_block_that_is_cut_off_meanwhile_is_not_moved) {
  move([this] {
    for (const std::uint64_t size : {std::uint64_t{0}, 3 * kBlockSize}) {
      fs::AttrChange change;
      change.size = size;
      ASSERT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().setattr(op, file_, change); }).ok());
    }
  });
  expect(std::vector<std::byte>(3 * kBlockSize));
}

TEST_F(Moves, H34_a_block_of_a_file_that_is_removed_meanwhile_is_not_moved) {
  move([this] {
    ASSERT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().unlink(op, kRootIno, "f"); }).ok());
  });
  ASSERT_TRUE(fixture_.unmount().ok());
  EXPECT_TRUE(good(check_image(device_)));
}

// The copies are no writes of the log, and the records that name them go with whatever is synced next.
TEST(Hazards, H6_an_fsync_covers_what_the_cleaner_has_copied) {
  io::MemDevice made(16u << 20);
  ASSERT_TRUE(make_image(made, {}).ok());
  CrashDevice device(made);
  ManualClock clock;
  SeededRandom random(9);
  FsFixture fixture(device, test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  const auto content = pattern_bytes(1, 0, 3 * kBlockSize);
  const Ino file = fixture.make("/f", S_IFREG | 0644)->ino;
  ASSERT_TRUE(fixture.write(file, 0, content).ok());
  auto call = [&](auto function) { return fixture.call([&](fs::Operation& op) { return (fixture.fs().*function)(op); }).ok(); };
  ASSERT_TRUE(call(&fs::Filesystem::checkpoint));
  store::Store& store = fixture.store();
  cleaner::Mover mover(store);
  for (std::uint64_t i = 0; i < store.segments().geometry().count; ++i) {
    const auto blocks = mover.live_blocks(SegmentId{i});
    ASSERT_TRUE(blocks.ok());
    ASSERT_TRUE(mover.move(*blocks).ok());
  }
  for (const char* path : {"/g", "/h"}) {
    ASSERT_TRUE(fixture.make(path, S_IFREG | 0644).ok());
    ASSERT_TRUE(call(&fs::Filesystem::sync));
    const auto image = device.image({device.position(), CutPolicy::lost});
    FsFixture after(*image, test_options(clock, random));
    ASSERT_TRUE(after.mount().ok());
    EXPECT_TRUE(after.resolve(path).ok());
    const auto found = after.read(file, 0, content.size());
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(*found, content);
  }
}

// The chain fills a segment after a checkpoint has frozen and before it settles: nothing of that is in its trees.
TEST(Hazards, H32_chunks_written_during_a_checkpoint_are_kept) {
  InterruptedDevice device(32u << 20);
  ASSERT_TRUE(make_image(device, {}).ok());
  ManualClock clock;
  SeededRandom random(6);
  FsFixture fixture(device, test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  auto make_and_sync = [&](const std::string& path) {  // a chunk that is nothing but a header
    ASSERT_TRUE(fixture.make(path, S_IFREG | 0644).ok());
    ASSERT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().fsync(op, kRootIno); }).ok());
  };
  auto sync_often = [&] {
    for (int i = 0; i < 150; ++i) make_and_sync("/f" + std::to_string(i));
  };
  make_and_sync("/first");
  const format::Superblock newest = superblock_of(device);
  const BlockAddr next_superblock = newest.area.place_of(newest.sequence + 1);
  device.when(io::IoKind::write, next_superblock, sync_often);
  ASSERT_TRUE(fixture.checkpoint().ok());
  ASSERT_FALSE(device.waits());
  const auto& segments = fixture.store().segments();
  std::set<SegmentId> closed;
  for (const FoundChunk& chunk : chain_of(device)) {
    const SegmentId id = segments.geometry().segment_of(chunk.header.address);
    EXPECT_NE(segments.info(id).state, segments::SegmentState::clean) << "chunk " << chunk.header.lsn.v;
    if (segments.info(id).state == segments::SegmentState::used) closed.insert(id);
  }
  EXPECT_FALSE(closed.empty()) << "no segment was filled";
}

// A mount that replays and one that need not, after a crash and after an unmount.
TEST(Hazards, H16_H17_each_mount_has_an_epoch_of_its_own) {
  World world(WorldParameters{});
  ASSERT_TRUE(good(world.start()));
  std::set<std::uint64_t> epochs;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::string path = "/f" + std::to_string(i);
    ASSERT_TRUE(world.fixture.make(path, S_IFREG | 0644).ok());
    ASSERT_TRUE(world.fixture.call([&](fs::Operation& op) { return world.fixture.fs().fsync(op, kRootIno); }).ok());
    epochs.insert(superblock_of(world.device).epoch);
    EXPECT_EQ(epochs.size(), i + 1) << "mount " << i;
    if (i % 3) world.fixture.crash();
    else ASSERT_TRUE(world.fixture.unmount().ok());
    ASSERT_TRUE(world.fixture.mount().ok());
  }
}

// What a mount says is durable before its epoch is would not be replayed.
TEST(Hazards, H17_an_epoch_is_on_disk_before_its_chunks_count) {
  for (const std::uint64_t order : {0, 1, 2, 3}) {
    CrashSetup setup;
    setup.completion_seed = order;
    ASSERT_TRUE(good(sweep_all(setup, "create /f 0644", "create /a 0644; fsync /a; remount; create /b 0644; fsync /b", exhaustive())));
  }
}

// A truncate comes while a block that it cuts is on its way, and is lost: what was synced before it is whole.
TEST(Hazards, H47_a_block_in_flight_keeps_its_bytes) {
  io::MemDevice device(16u << 20);
  ASSERT_TRUE(make_image(device, {}).ok());
  ManualClock clock;
  SeededRandom random(7);
  FsFixture fixture(device, test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  const Ino file = fixture.make("/f", S_IFREG | 0644)->ino;
  const auto content = pattern_bytes(1, 0, 40 * kBlockSize);
  ASSERT_TRUE(fixture.write(file, 0, content).ok());
  store::Store& store = fixture.store();
  const auto lsn = store.seals().seal(checkpoint::Seals::Purpose::commit);
  ASSERT_TRUE(lsn.ok());
  ASSERT_GT(store.log().in_flight().count(), 0U);
  fs::AttrChange change;
  change.size = 100;
  ASSERT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().setattr(op, file, change); }).ok());
  bool durable = false;
  store.log().durability().when_durable(*lsn, [&](const Status& status) { durable = status.ok(); });
  while (store.io().pump()) {
  }
  ASSERT_TRUE(durable);
  fixture.crash();
  ASSERT_TRUE(fixture.mount().ok());
  const auto found = fixture.read(*fixture.resolve("/f"), 0, content.size());
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(*found, content);
}

// Whatever is torn of the first, the second is whole, and the other way round. Snapshots change more than one sector of them.
TEST(Hazards, H26_superblocks_are_written_one_after_the_other) {
  SweepOptions options = exhaustive();
  options.plan.seeds = 12;
  for (const bool in_place : {false, true}) {
    CrashSetup setup;
    setup.superblocks_in_place = in_place;
    EXPECT_TRUE(good(sweep_all(setup, "create /f 0644",
                               "write /f 0 50000 1; keep a; unlink /f; keep b; create /g 0644; checkpoint", options)));
  }
}

// Nobody holds the file after a crash: it goes when the next mount comes, not when the space is wanted.
TEST(Hazards, H41_a_mount_frees_what_was_held) {
  Recording recording({}, prepare({}, script("create /f 0644; write /f 0 100000 1; checkpoint")),
                      script("hold %1 /f; unlink /f; fsync /; checkpoint"));
  ASSERT_TRUE(good(recording.failed()));
  const auto image = recording.device().image_now();
  ManualClock clock;
  clock.set_elapsed(recording.clock_after() + 1);
  SeededRandom random(8);
  FsFixture fixture(*image, test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  ASSERT_TRUE(fixture.checkpoint().ok());
  const tree::TreeView& view = fixture.store().trees().own_view();
  EXPECT_EQ(view.inodes, 1U) << "the root";
  EXPECT_EQ(view.data_blocks, 0U);
}

}  // namespace
}  // namespace varve::test
