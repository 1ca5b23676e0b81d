// Repairs where there is no room: a device that users have filled, one without any free block, and little memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include "base/types.h"
#include "check/checking.h"
#include "checkpoint/superblocks.h"
#include "fsck/recovery.h"
#include "repair/brimful.h"
#include "repair/fsck_image.h"
#include "repair/node_surgery.h"
#include "repair/populated.h"
#include "support/crash_scenario.h"
#include "support/settings.h"

namespace varve::repair::test {
namespace {

using namespace varve::test;

// Filled until a write is refused, with a file in many pieces, so that the trees are large; not unmounted if `unclean`.
std::unique_ptr<io::MemDevice> full_image(bool unclean) {
  auto device = std::make_unique<io::MemDevice>(24 * kMiB);
  ManualClock clock;
  SeededRandom random(5);
  EXPECT_TRUE(make_image(*device, {}).ok());
  FsFixture fixture(*device, test_options(clock, random));
  EXPECT_TRUE(fixture.mount().ok());
  const Ino pieces = fixture.make("/pieces", S_IFREG | 0644)->ino;
  const std::vector<std::byte> large(64 * 1024, std::byte{1}), block(kBlockSize, std::byte{2});
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(fixture.write(pieces, i * large.size(), large).ok());
  for (std::uint64_t i = 0; i < 1600; i += 2) EXPECT_TRUE(fixture.write(pieces, i * kBlockSize, block).ok());
  for (std::uint64_t i = 0, refused = 0; refused == 0; ++i) {
    const auto made = fixture.make(fmt::format("/file-{}", i), S_IFREG | 0644);
    refused = !made.ok() || !fixture.write(made->ino, 0, large).ok();
    EXPECT_LT(i, 1000U);
  }
  EXPECT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().sync(op); }).ok());
  if (unclean) fixture.crash();
  else EXPECT_TRUE(fixture.unmount().ok());
  return device;
}

// Blocks that the newest trees consist of.
std::vector<BlockAddr> current_nodes(const io::MemDevice& device) {
  std::vector<BlockAddr> nodes;
  std::array<std::byte, kBlockSize> block;
  for (const BlockAddr address : metadata_blocks(device)) {
    device.peek(address.v * kBlockSize, block);
    const auto header = format::decode_node_header(block);
    if (header.ok() && header->address == address) nodes.push_back(address);
  }
  return nodes;
}

void expect_same_blocks(const io::MemDevice& one, const io::MemDevice& other) {
  const auto block = first_difference(one, other);
  EXPECT_FALSE(block) << "block " << block->v;
}

void expect_room_after_deleting(io::BlockDevice& device) {
  ManualClock clock;
  clock.set_elapsed(9'000'000'000'000);
  SeededRandom random(6);
  FsFixture fixture(device, test_options(clock, random));
  const Status mounted = fixture.mount();
  ASSERT_TRUE(mounted.ok()) << mounted.error().message();
  for (const char* name : {"file-3", "file-4", "file-5"}) {
    const auto removed = fixture.call([&](fs::Operation& op) { return fixture.fs().unlink(op, kRootIno, name); });
    EXPECT_TRUE(removed.ok()) << removed.error().message();
  }
  const auto made = fixture.make("/after", S_IFREG | 0644);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_TRUE(fixture.write(made->ino, 0, std::vector<std::byte>(64 * 1024, std::byte{3})).ok());
  const Status unmounted = fixture.unmount();
  EXPECT_TRUE(unmounted.ok()) << unmounted.error().message();
}

TEST(RepairFull, EachNodeLost) {
  for (const bool unclean : {false, true}) {
    const auto image = full_image(unclean);
    const auto nodes = current_nodes(*image);
    ASSERT_GT(nodes.size(), 40U);
    const std::size_t step = std::max<std::size_t>(nodes.size() / number_setting("VARVE_FULL_NODES", 25), 1);
    for (std::size_t i = 0; i < nodes.size(); i += step) {
      const auto device = image->snapshot();
      wipe(*device, nodes[i]);
      const auto done = repair(*device, fsck::recover, {.search = true});
      ASSERT_TRUE(done.ok()) << "block " << nodes[i].v << (unclean ? ", unclean: " : ": ") << done.error().message();
      EXPECT_EQ(done->errors_left(), 0U) << "block " << nodes[i].v << "\n" << check::test::lines(done->after);
      EXPECT_EQ(done->actions.count(ActionCode::log_cut), 0U) << "block " << nodes[i].v;
    }
  }
}

// All nodes of one tree at once: everything has to be made anew.
TEST(RepairFull, EachTreeLost) {
  for (const bool unclean : {false, true}) {
    const auto image = full_image(unclean);
    for (const format::TreeId tree : {format::TreeId::inode_file, format::TreeId::reverse_map, format::TreeId::free_map}) {
      const auto device = image->snapshot();
      std::array<std::byte, kBlockSize> block;
      for (const BlockAddr address : current_nodes(*image)) {
        device->peek(address.v * kBlockSize, block);
        const auto header = *format::decode_node_header(block);
        const bool leaf_of_files = tree == format::TreeId::inode_file && header.level == 0;  // these cannot be made anew
        if (header.tree == tree && !leaf_of_files) wipe(*device, address);
      }
      const auto done = repair(*device, fsck::recover, {.search = true});
      ASSERT_TRUE(done.ok()) << "tree " << static_cast<int>(tree) << (unclean ? ", unclean: " : ": ") << done.error().message();
      EXPECT_EQ(done->errors_left(), 0U) << check::test::lines(done->after);
      expect_room_after_deleting(*device);
    }
  }
}

TEST(RepairFull, WithoutAFreeBlockItSaysWhatToDo) {
  const auto image = image_without_a_free_block();
  const auto device = image->snapshot();
  const auto done = repair(*device, fsck::recover, {.search = true});
  ASSERT_TRUE(done.fails_with(Errc::no_space)) << check::test::lines(done->after);
  EXPECT_THAT(done.error().message(), testing::HasSubstr("varve salvage"));
  expect_same_blocks(*image, *device);
}

// What has been written since the checkpoint is good: it must not be cut off because there is no room to replay it.
TEST(RepairFull, ALogThatHasNoRoomIsNotCut) {
  const auto image = populated_image(true);
  for (const Errc why : {Errc::no_space, Errc::no_memory}) {
    const auto device = image->snapshot();
    const auto done = repair(*device, [why](io::BlockDevice&, Tolerance) -> Status { return why; }, {});
    ASSERT_TRUE(done.fails_with(why));
    EXPECT_THAT(done.error().message(), testing::HasSubstr("varve salvage"));
    expect_same_blocks(*image, *device);
  }
}

// The trees have been repaired by then, and what that has cost is told.
TEST(RepairFull, ARepairThatFailsLateTellsWhatItHasDone) {
  const auto image = populated_image(true);
  wipe(*image, checkpoint::read_superblocks(*image)->best.inode_file.address);
  const Recover fail = [](io::BlockDevice&, Tolerance) -> Status { return Errc::no_space; };
  const auto done = repair(*image->snapshot(), fail, {});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_TRUE(done->ended.fails_with(Errc::no_space));
  EXPECT_EQ(done->actions.count(ActionCode::tree_rebuilt), 1U);
  EXPECT_EQ(done->actions.count(ActionCode::log_replayed), 0U);
  FsckImage file;
  file.recover = fail;
  for (const bool json : {false, true}) {
    file.save(*image);
    const int code = file.fsck(json ? std::vector<std::string>{"-y", "--json"} : std::vector<std::string>{"-y"});
    EXPECT_EQ(code & ~fsck::kErrorsLeft, fsck::kCorrected | fsck::kOperationalError) << file.said();
    EXPECT_THAT(file.said(), testing::HasSubstr(json ? "tree_rebuilt" : "R811"));
    EXPECT_THAT(file.said(), testing::HasSubstr(json ? "\"ended_early\": " : "has ended early"));
    EXPECT_THAT(file.said(), testing::HasSubstr("fsck.varve: "));
  }
}

// Not the oldest image that stands somewhere, but the newest: nothing is lost.
TEST(RepairSuperblocks, H46_the_image_of_the_last_checkpoint_is_found) {
  for (const bool unclean : {false, true}) {
    const auto image = populated_image(unclean);
    const Seen expected = look_at(*image->snapshot());
    ASSERT_EQ(expected.error, "");
    wipe(*image, BlockAddr{0});
    wipe(*image, BlockAddr{image->geometry().blocks() - 1});
    const auto done = repair(*image, fsck::recover, {.search = true});
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(done->errors_left(), 0U) << check::test::lines(done->after);
    EXPECT_EQ(look_at(*image).paths, expected.paths) << (unclean ? "unclean" : "clean");
  }
}

// A map that is lost is made a few leaves at a time, and is the same whatever that number is.
TEST(RepairMemory, AMapIsMadeInParts) {
  const auto image = full_image(false);
  const format::Superblock super = checkpoint::read_superblocks(*image)->best;
  std::vector<Seen> seen;
  for (const std::uint64_t memory : {std::uint64_t{0}, std::uint64_t{5 * kBlockSize}, std::uint64_t{64 * kMiB}}) {
    const auto device = image->snapshot();
    wipe(*device, super.reverse_map.address);
    const auto done = repair(*device, fsck::recover, {.search = true, .map_memory = memory});
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_GT(done->before.errors(), 0U);
    const auto report = check::check(*device, {});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->errors() + report->warnings(), 0U) << "with " << memory << " bytes:\n" << check::test::lines(*report);
    seen.push_back(look_at(*device));
    EXPECT_EQ(seen.back().error, "");
    EXPECT_EQ(seen.back().paths, seen.front().paths);
  }
}

}  // namespace
}  // namespace varve::repair::test
