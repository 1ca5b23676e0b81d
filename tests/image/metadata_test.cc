// Images of filesystems that have everything: files in pieces, links, large sets of attributes, snapshots with moved blocks, a log.
#include "image/metadata.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "check/image_builder.h"
#include "check/check.h"
#include "checkpoint/superblocks.h"
#include "format/image_mark.h"
#include "repair/populated.h"
#include "shared/recovery.h"

namespace varve::image {
namespace {

using repair::test::metadata_blocks;
using repair::test::populated_image;
using repair::test::populated_with_snapshots;

struct Copied {
  std::unique_ptr<io::MemDevice> device;
  Report report;
};

format::Superblock super_of(io::BlockDevice& device) {
  const auto found = checkpoint::read_superblocks(device);
  EXPECT_TRUE(found.ok());
  return found.ok() ? found->best : format::Superblock();
}

Copied copied(io::MemDevice& source, const Choice& choice) {
  Copied copy{std::make_unique<io::MemDevice>(source.geometry().size_bytes.get()), {}};
  auto report = copy_metadata(source, super_of(source), *copy.device, choice);
  EXPECT_TRUE(report.ok());
  if (report.ok()) copy.report = *report;
  return copy;
}

check::Report checked(io::BlockDevice& device) {
  auto report = check::check(device, {.verify_data = true});
  EXPECT_TRUE(report.ok()) << report.error().message();
  return report.ok() ? std::move(*report) : check::Report();
}

void expect_whole(const check::Report& report) {
  std::string lines;
  for (const check::Problem& problem : report.problems.kept()) lines += check::to_line(problem) + "\n";
  EXPECT_EQ(lines, "");
  EXPECT_EQ(report.statistics.verified_blocks, 0U);
}

bool holds(const io::MemDevice& device, std::string_view text) {
  std::vector<std::byte> all(device.geometry().size_bytes.get());
  device.peek(0, all);
  return std::ranges::search(all, std::as_bytes(std::span(text))).size() > 0;
}

std::set<BlockAddr> used_blocks(const io::MemDevice& device) {
  std::set<BlockAddr> used;
  std::vector<std::byte> block(kBlockSize);
  for (BlockAddr at{0}; at.v < device.geometry().blocks(); at = at + 1) {
    device.peek(at.v * kBlockSize, block);
    if (std::ranges::any_of(block, [](std::byte byte) { return byte != std::byte{}; })) used.insert(at);
  }
  return used;
}

constexpr std::string_view kContent = "what the owner of the file wrote";

// Two files whose tails have the same content.
check::test::ImageBuilder with_tails() {
  check::test::ImageBuilder builder;
  std::vector<Ino> files;
  for (const char* name : {"a", "b"}) files.push_back(builder.add_file(kRootIno, name, 3));
  for (const Ino ino : files) builder.attributes()[ino].size = 3 * kBlockSize + kContent.size();
  builder.change_image = builder.change_super = [](format::Superblock& super) {
    super.features.incompat |= format::kIncompatTails;
    super.tails = {format::kMaxTail, 0};
  };
  builder.change_items = [files](check::test::Items& items) {
    for (const Ino ino : files)
      format::encode_tail(std::as_bytes(std::span(kContent)), items[{ino, format::ItemKind::extent, 3}]);
  };
  return builder;
}

TEST(ImageOfTails, is_whole_and_has_no_byte_of_them) {
  check::test::ImageBuilder builder = with_tails();
  const auto original = builder.build();
  ASSERT_TRUE(holds(*original, kContent));
  const Copied copy = copied(*original, {});
  expect_whole(checked(*copy.device));
  EXPECT_FALSE(holds(*copy.device, kContent));
}

TEST(ImageOfTails, leaves_out_damaged_nodes) {
  check::test::ImageBuilder builder = with_tails();
  const auto original = builder.build();
  const std::uint64_t root = builder.super().inode_file.address.v * kBlockSize;
  std::vector<std::byte> block(kBlockSize);
  original->peek(root, block);
  block[70] ^= std::byte{1};
  original->poke(root, block);
  const Copied copy = copied(*original, {});
  EXPECT_EQ(copy.report.left_out, 1U);
  EXPECT_FALSE(holds(*copy.device, kContent));
}

TEST(ImageOfTails, has_no_log) {
  check::test::ImageBuilder builder = with_tails();
  const auto original = builder.build();
  io::MemDevice target(original->geometry().size_bytes.get());
  EXPECT_TRUE(copy_metadata(*original, super_of(*original), target, {.has_log = true}).fails_with(Errc::invalid));
}

struct Case {
  const char* name;
  bool has_snapshots, hashes_names;
};
class Images : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<io::MemDevice> source(bool unclean) const {
    return GetParam().has_snapshots ? populated_with_snapshots(unclean) : populated_image(unclean);
  }
};

TEST_P(Images, are_whole_to_fsck) {
  const auto original = source(false);
  const Copied copy = copied(*original, {.hashes_names = GetParam().hashes_names});
  EXPECT_EQ(copy.report.damaged + copy.report.unreadable + copy.report.left_out, 0U);
  const check::Report before = checked(*original), after = checked(*copy.device);
  expect_whole(after);
  EXPECT_EQ(after.statistics.inodes, before.statistics.inodes);
  EXPECT_EQ(after.statistics.entries, before.statistics.entries);
  EXPECT_EQ(after.statistics.extents, before.statistics.extents);
  EXPECT_EQ(after.statistics.node_blocks, before.statistics.node_blocks);
  EXPECT_EQ(after.statistics.held_blocks, before.statistics.held_blocks);
  EXPECT_GT(before.statistics.data_blocks, 0U);
}

TEST_P(Images, have_no_data_of_files) {
  const auto original = source(false);
  const Copied copy = copied(*original, {.hashes_names = GetParam().hashes_names});
  const std::vector<BlockAddr> metadata = metadata_blocks(*original);
  const std::set<BlockAddr> may_be(metadata.begin(), metadata.end());
  const std::set<BlockAddr> used = used_blocks(*copy.device);
  EXPECT_TRUE(std::ranges::includes(may_be, used));
  EXPECT_GT(used.size(), 10U);
}

TEST_P(Images, have_names_unless_they_are_others) {
  const auto original = source(false);
  const bool is_said = !GetParam().hashes_names;
  const Copied copy = copied(*original, {.hashes_names = GetParam().hashes_names});
  ASSERT_TRUE(holds(*original, "file"));
  EXPECT_EQ(holds(*copy.device, "file"), is_said);
  EXPECT_EQ(format::has_other_names(super_of(*copy.device)), !is_said);
}

// Changes that have not been merged yet are in the log. The image has only its headers, which say what has changed.
TEST_P(Images, have_the_log) {
  if (GetParam().hashes_names) GTEST_SKIP() << "the log is replayed before";
  const auto original = source(true);
  const Copied copy = copied(*original, {.has_log = true});
  EXPECT_GT(copy.report.log_blocks, 0U);
  EXPECT_FALSE(copy.report.log_is_damaged);
  EXPECT_TRUE(checked(*copy.device).needs_recovery);
  const auto replayed = original->snapshot();
  ASSERT_TRUE(recover(*replayed, repair::Tolerance::nothing).ok());
  ASSERT_TRUE(recover(*copy.device, repair::Tolerance::nothing).ok());
  const check::Report after = checked(*copy.device);
  expect_whole(after);
  EXPECT_EQ(after.statistics.inodes, checked(*replayed).statistics.inodes);
}

TEST_P(Images, without_the_log_are_as_of_the_checkpoint) {
  const auto original = source(true);
  const Copied copy = copied(*original, {.hashes_names = GetParam().hashes_names});
  const check::Report report = checked(*copy.device);
  EXPECT_FALSE(report.needs_recovery);
  EXPECT_TRUE(report.super.clean);
  EXPECT_EQ(report.super.epoch, 0U) << "that of a mount which may go on";
  expect_whole(report);
}

TEST_P(Images, are_not_mounted) {
  const auto original = source(false);
  const Copied copy = copied(*original, {.hashes_names = GetParam().hashes_names});
  for (const bool read_only : {false, true}) {
    fs::Options options;
    options.read_only = read_only;
    options.background = false;
    const auto mounted = fs::Filesystem::mount(*copy.device, options);
    ASSERT_FALSE(mounted.ok());
    EXPECT_NE(mounted.error().message().find("varve image"), std::string::npos) << mounted.error().message();
  }
}

INSTANTIATE_TEST_SUITE_P(All, Images,
                         ::testing::Values(Case{"plain", false, false}, Case{"other_names", false, true}, Case{"snapshots", true, false},
                                           Case{"snapshots_with_other_names", true, true}),
                         [](const auto& one) { return std::string(one.param.name); });

// Damage is in the image as it is on the device. But where names are to be others, nobody knows what damaged bytes are.
TEST(Image, has_what_is_damaged) {
  const auto original = populated_image(false);
  const BlockAddr root = super_of(*original).inode_file.address;
  original->poke(root.v * kBlockSize + 200, std::as_bytes(std::span("damage")));
  const Copied copy = copied(*original, {});
  EXPECT_EQ(copy.report.damaged, 1U);
  std::vector<std::byte> before(kBlockSize), after(kBlockSize);
  original->peek(root.v * kBlockSize, before);
  copy.device->peek(root.v * kBlockSize, after);
  EXPECT_EQ(before, after);
  EXPECT_EQ(checked(*copy.device).problems.count(check::Code::node_damaged), 1U);
  const Copied other = copied(*original, {.hashes_names = true});
  EXPECT_EQ(other.report.left_out, 1U);
  other.device->peek(root.v * kBlockSize, after);
  EXPECT_EQ(after, std::vector<std::byte>(kBlockSize));
}

TEST(Image, with_other_names_has_no_log) {
  const auto original = populated_image(true);
  io::MemDevice target(original->geometry().size_bytes.get());
  EXPECT_TRUE(copy_metadata(*original, super_of(*original), target, {.hashes_names = true, .has_log = true}).fails_with(Errc::invalid));
}

}  // namespace
}  // namespace varve::image
