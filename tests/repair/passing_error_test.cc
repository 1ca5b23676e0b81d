// Reads that fail now and then: what can be read a moment later is not lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/checking.h"
#include "fsck/recovery.h"
#include "io/overlay_device.h"
#include "repair/node_surgery.h"
#include "repair/populated.h"
#include "repair/tree_reader.h"
#include "support/fault_device.h"

namespace varve::repair::test {
namespace {

using varve::test::Fault;
using varve::test::FaultDevice;

// Both superblock copies have to be written, which nothing is lost by.
std::unique_ptr<io::MemDevice> harmed_image(bool unclean) {
  auto image = populated_image(unclean);
  wipe(*image, BlockAddr{image->geometry().blocks() - 1});
  return image;
}

// A repair in which the n-th read and some that follow fail; whether there were so many reads.
bool repair_with_failing_reads(const io::MemDevice& image, std::uint64_t nth, std::uint64_t times, const Seen& expected) {
  const auto device = image.snapshot();
  FaultDevice faulty(*device);
  faulty.add({.kind = io::IoKind::read, .nth = nth, .times = times});
  const auto done = repair(faulty, fsck::recover, {});
  const std::string what = fmt::format("{} failing reads from {} on", times, nth);
  if (done.ok() && done->ended.ok()) {
    EXPECT_TRUE(done->actions.is_safe()) << what << ": " << to_line(done->actions.kept().front());
    EXPECT_EQ(done->errors_left(), 0U) << what << "\n" << check::test::lines(done->after);
  }
  const Seen seen = look_at(*device);
  EXPECT_EQ(seen.error, "") << what;
  EXPECT_EQ(seen.paths, expected.paths) << what << (done.ok() ? "" : ": " + done.error().message());
  return faulty.hits() == times;
}

class PassingError : public testing::TestWithParam<bool> {};

TEST_P(PassingError, TakesNothing) {
  const auto image = harmed_image(GetParam());
  const Seen expected = look_at(*image->snapshot());
  ASSERT_EQ(expected.error, "");
  for (const std::uint64_t times : {1U, 3U}) {
    std::uint64_t nth = 1;
    while (repair_with_failing_reads(*image, nth, times, expected) && !HasFailure()) ++nth;
    EXPECT_GT(nth, 30U);
  }
}

// --- what cannot be read of the log, and may be readable another day ---

// Chunks that a repair would cut the log at if they were damaged.
std::vector<BlockAddr> chunks_in_the_middle(const io::MemDevice& image) {
  std::vector<BlockAddr> chunks;
  for (BlockAddr at{0}; at.v < image.geometry().blocks(); ++at) {
    if (!is_chunk(image, at)) continue;
    const auto device = image.snapshot();
    wipe(*device, at);
    const auto trial = repair(*device, fsck::recover, {});
    EXPECT_TRUE(trial.ok()) << trial.error().message();
    if (trial.ok() && trial->actions.count(ActionCode::log_cut) > 0) chunks.push_back(at);
  }
  return chunks;
}

void expect_log_is_left(const io::MemDevice& image) {
  const Seen expected = look_at(*image.snapshot());
  const auto chunks = chunks_in_the_middle(image);
  ASSERT_FALSE(chunks.empty());
  for (const BlockAddr chunk : chunks) {
    const auto device = image.snapshot();
    FaultDevice faulty(*device);
    faulty.add({.kind = io::IoKind::read, .times = Fault::kForEver, .touches_block = chunk.v});
    const auto salvaged = repair(*std::make_unique<io::OverlayDevice>(faulty), fsck::recover, {.cut_unreadable_log = true});
    ASSERT_TRUE(salvaged.ok()) << salvaged.error().message();
    EXPECT_EQ(salvaged->actions.count(ActionCode::log_cut), 1U) << "of a copy, all before it is wanted";
    const auto done = repair(faulty, fsck::recover, {});
    ASSERT_TRUE(done.fails_with(Errc::io)) << "the log is cut at block " << chunk.v;
    EXPECT_THAT(done.error().message(), testing::HasSubstr("varve salvage"));
    EXPECT_FALSE(first_difference(image, *device)) << "block " << chunk.v;
    faulty.heal();
    const auto later = repair(faulty, fsck::recover, {});
    ASSERT_TRUE(later.ok()) << later.error().message();
    EXPECT_TRUE(later->actions.is_safe());
    EXPECT_EQ(look_at(*device).paths, expected.paths);
  }
}

TEST(UnreadableLog, IsLeftAsItIs) { expect_log_is_left(*populated_image(true)); }

// The trees need a repair before the log can be replayed.
TEST(UnreadableLog, IsNotBuiltOver) { expect_log_is_left(*harmed_image(true)); }

// The log is whole, but what it changes, or a mount needs, can be read no more when it is replayed.
void expect_log_is_not_cut(const io::MemDevice& image, const format::NodeRef& root, std::uint8_t level, format::TreeId which) {
  const Seen expected = look_at(*image.snapshot());
  const auto whole = image.snapshot();
  unsigned refused = 0;
  LeafPlan tree;
  TreeReader(*whole, check::check(*whole, {})->super, {root, level, which}, tree).run();
  ASSERT_FALSE(tree.leaves.empty());
  for (const LeafPiece& leaf : tree.leaves)
    for (std::uint64_t nth = 2; nth < 6; ++nth) {
      const auto device = image.snapshot();
      FaultDevice faulty(*device);
      faulty.add({.kind = io::IoKind::read, .nth = nth, .times = Fault::kForEver, .touches_block = leaf.address.v});
      const auto done = repair(faulty, fsck::recover, {});
      if (done.ok()) {
        EXPECT_EQ(done->actions.count(ActionCode::log_cut), 0U) << "leaf " << leaf.address.v << ", from read " << nth << " on";
        continue;
      }
      ++refused;
      EXPECT_TRUE(done.fails_with(Errc::io)) << done.error().message();
      EXPECT_FALSE(first_difference(image, *device)) << "leaf " << leaf.address.v;
      faulty.heal();
      EXPECT_EQ(look_at(*device).paths, expected.paths);
    }
  EXPECT_GT(refused, 0U) << "no leaf was needed";
}

TEST(UnreadableLog, IsNotCutForANodeThatCannotBeReadMeanwhile) {
  const auto image = populated_image(true);
  const auto super = check::check(*image, {})->super;
  expect_log_is_not_cut(*image, super.inode_file, super.inode_file_level, format::TreeId::inode_file);
}

TEST(UnreadableLog, IsNotCutForAListOfSnapshotsThatCannotBeReadMeanwhile) {
  const auto image = populated_with_snapshots(true);
  const auto super = check::check(*image, {})->super;
  expect_log_is_not_cut(*image, super.snapshots.root, super.snapshots.level, format::TreeId::snapshots);
}

INSTANTIATE_TEST_SUITE_P(All, PassingError, testing::Values(false, true),
                         [](const auto& test) { return test.param ? "Unclean" : "Clean"; });

// A part of the maps that goes while they are made anew.
TEST(PassingErrorOfMaps, IsNoEndOfTheProgram) {
  const auto image = harmed_image(false);
  for (BlockAddr at{0}; at.v < image->geometry().blocks(); ++at) {
    std::array<std::byte, kBlockSize> bytes;
    image->peek(at.v * kBlockSize, bytes);
    const auto header = format::decode_node_header(bytes);
    const bool is_of_map = header.ok() && header->level == 0 && header->address == at &&
                           (header->tree == format::TreeId::reverse_map || header->tree == format::TreeId::free_map);
    for (std::uint64_t nth = 2; is_of_map && nth < 40; ++nth) {
      const auto device = image->snapshot();
      FaultDevice faulty(*device);
      faulty.add({.kind = io::IoKind::read, .nth = nth, .times = Fault::kForEver, .touches_block = at.v});
      (void)repair(faulty, fsck::recover, {});  // whatever it can do
      if (faulty.hits() == 0) break;
      EXPECT_EQ(look_at(*device).error, "") << "block " << at.v << ", from read " << nth << " on";
    }
  }
}

// --- what was promised to lose nothing does not, whatever a trial has found before ---

std::array<std::byte, kBlockSize> superblock_on(io::BlockDevice& device) {
  std::array<std::byte, kBlockSize> block{};
  EXPECT_TRUE(device.read(0, block).ok());
  return block;
}

void expect_refused(io::MemDevice& image) {
  const auto before = superblock_on(image);
  const auto trial = repair(*image.snapshot(), fsck::recover, {.search = true});
  ASSERT_TRUE(trial.ok()) << trial.error().message();
  ASSERT_FALSE(trial->actions.is_safe());
  const auto done = repair(image, fsck::recover, {.search = true, .only_safe = true});
  ASSERT_TRUE(done.fails_with(Errc::needs_fsck));
  EXPECT_THAT(done.error().message(), testing::HasSubstr("fsck.varve -n"));
  EXPECT_EQ(superblock_on(image), before) << "another checkpoint was switched to";
}

TEST(OnlySafe, ALostLeafIsRefused) {
  ImageBuilder builder;
  check::test::fill(builder);
  const auto image = builder.build();
  wipe(*image, node_of(builder, format::TreeId::inode_file, 0, 2));
  expect_refused(*image);
}

TEST(OnlySafe, AFoundSuperblockIsRefused) {
  const auto image = populated_image(false);
  wipe(*image, BlockAddr{0});
  wipe(*image, BlockAddr{image->geometry().blocks() - 1});
  expect_refused(*image);
}

TEST(OnlySafe, ALogIsNotCut) {
  const auto image = populated_image(true);
  for (std::uint64_t block = 0; block < image->geometry().blocks(); ++block) {
    if (!is_chunk(*image, BlockAddr{block})) continue;
    const auto device = image->snapshot();
    wipe(*device, BlockAddr{block});
    const auto trial = repair(*device->snapshot(), fsck::recover, {});
    ASSERT_TRUE(trial.ok()) << trial.error().message();
    if (trial->actions.count(ActionCode::log_cut) == 0) continue;
    return expect_refused(*device);
  }
  FAIL() << "no chunk whose loss is noticed";
}

}  // namespace
}  // namespace varve::repair::test
