// Superblock, log and shape of the trees.
#include "checking.h"
#include "format/chunk.h"

namespace varve::check::test {
namespace {

using format::Superblock;

std::set<Code> with_super(std::function<void(Superblock&)> change) {
  ImageBuilder builder;
  fill(builder);
  builder.change_super = std::move(change);
  return codes(builder);
}

std::set<Code> with_image(std::function<void(Superblock&)> change) {
  ImageBuilder builder;
  fill(builder);
  builder.change_image = std::move(change);
  return codes(builder);
}

TEST(Super, CountsAreChecked) {
  EXPECT_EQ(with_image([](Superblock& s) { ++s.live_blocks; }), std::set{Code::count_wrong});
  EXPECT_EQ(with_image([](Superblock& s) { --s.data_blocks; }), std::set{Code::count_wrong});
  EXPECT_EQ(with_image([](Superblock& s) { ++s.inodes; }), std::set{Code::count_wrong});
  EXPECT_EQ(with_image([](Superblock& s) { s.reserved_blocks = 0; }), std::set{Code::count_wrong});
}

TEST(Super, ImageMustAgree) {
  EXPECT_EQ(with_super([](Superblock& s) { ++s.group_centres[5]; }), std::set{Code::image_wrong});
  EXPECT_EQ(with_super([](Superblock& s) { s.image.crc ^= 1; }), std::set{Code::image_wrong});
}

TEST(Super, RunsMustBeFree) {
  EXPECT_EQ(with_image([](Superblock& s) { s.chain = {s.first_segment, 1}; }), std::set{Code::run_not_free});
  EXPECT_EQ(with_image([](Superblock& s) { s.heads[2].rest = s.next_run; }), std::set{Code::runs_overlap});
}

TEST(Super, CopiesThatDifferAreAWarning) {
  ImageBuilder builder;
  const auto device = builder.build();
  Superblock other = builder.super();
  other.epoch ^= 1;
  std::array<std::byte, kBlockSize> block;
  format::encode_superblock(other, block);
  device->poke(0, block);
  const Report report = run(*device);
  EXPECT_EQ(report.errors(), 0U) << lines(report);
  EXPECT_EQ(report.warnings(), 1U);
  EXPECT_EQ(report.problems.count(Code::superblocks_differ), 1U);
}

TEST(Super, TooSmallADeviceIsSaid) {
  ImageBuilder builder;
  const auto device = builder.build();
  std::vector<std::byte> half(8192 * kBlockSize);
  device->peek(0, half);
  io::MemDevice truncated(half.size());
  truncated.poke(0, half);
  EXPECT_EQ(codes(truncated), std::set{Code::device_too_small});
}

TEST(Super, UnknownFeaturesAreRefused) {
  ImageBuilder builder;
  builder.change_super = [](Superblock& s) { s.features.incompat = 1ULL << 40; };
  const auto device = builder.build();
  EXPECT_TRUE(check(*device, {}).fails_with(Errc::unknown_feature));
}

// A chunk that follows the checkpoint.
void put_chunk(io::MemDevice& device, const Superblock& super, BlockAddr place, std::uint64_t epoch) {
  format::ChunkHeader header;
  header.identity = super.identity;
  header.epoch = epoch;
  header.lsn = super.lsn + 1;
  header.previous_crc = super.chain_crc;
  header.header_blocks = 1;
  header.address = place;
  header.run = place < super.next_run.start ? super.chain : super.next_run;
  std::array<std::byte, kBlockSize> block;
  format::encode_chunk(header, {}, block);
  device.poke(place.v * kBlockSize, block);
}

TEST(Log, ChunkAfterTheCheckpointMeansRecovery) {
  for (const bool in_next : {false, true}) {
    ImageBuilder builder;
    builder.change_image = [](Superblock& s) { s.clean = false; };
    const auto device = builder.build();
    const Superblock& super = builder.super();
    EXPECT_EQ(codes(*device), std::set{Code::not_unmounted});
    put_chunk(*device, super, in_next ? super.next_run.start : super.chain.start, super.epoch + 1);
    EXPECT_FALSE(run(*device).needs_recovery) << "a chunk of another epoch counts for nothing";
    put_chunk(*device, super, in_next ? super.next_run.start : super.chain.start, super.epoch);
    const Report report = run(*device);
    EXPECT_TRUE(report.needs_recovery);
    EXPECT_EQ(report.errors(), 0U) << lines(report);
  }
}

TEST(Log, ChunkAfterACleanUnmountIsDamage) {
  ImageBuilder builder;
  const auto device = builder.build();
  put_chunk(*device, builder.super(), builder.super().chain.start, builder.super().epoch);
  EXPECT_EQ(codes(*device), std::set{Code::log_after_clean});
}

TEST(Tree, RootReferenceHoldsTheSumOfBlocks) {
  EXPECT_EQ(with_image([](Superblock& s) { ++s.inode_file.blocks; }), std::set{Code::block_sum_wrong});
}

TEST(Tree, CheckpointIsTheNewest) {
  EXPECT_THAT(with_super([](Superblock& s) { s.inode_file_level = 9; }), testing::Contains(Code::node_damaged));
  ImageBuilder builder;
  fill(builder);
  auto device = builder.build();
  format::Superblock super = builder.super();
  EXPECT_EQ(super.serial, Serial{1});
}

}  // namespace
}  // namespace varve::check::test
