// Flipped bits anywhere in metadata are found.
#include "checking.h"
#include "checkpoint/superblocks.h"

namespace varve::check::test {
namespace {

void flip(io::MemDevice& device, std::uint64_t block, std::size_t byte, unsigned bit) {
  std::byte value[1];
  device.peek(block * kBlockSize + byte, value);
  value[0] ^= std::byte{static_cast<std::uint8_t>(1U << bit)};
  device.poke(block * kBlockSize + byte, value);
}

TEST(Damage, TheBuilderMakesFaultlessImages) {
  ImageBuilder builder;
  expect_clean(*builder.build());
  fill(builder);
  const auto device = builder.build();
  expect_clean(*device);
  const Report report = run(*device, {.verify_data = true});
  EXPECT_GT(report.super.inode_file_level, 0);
  EXPECT_EQ(report.statistics.directories, 5U);
  EXPECT_EQ(report.statistics.symlinks, 2U);
  EXPECT_EQ(report.statistics.orphans, 1U);
  EXPECT_EQ(report.statistics.verified_blocks, report.super.data_blocks);
}

TEST(Damage, EveryMetadataBlockIsWatched) {
  ImageBuilder builder;
  fill(builder);
  const auto good = builder.build();
  SeededRandom random(7);
  std::vector<std::uint64_t> blocks{0, builder.super().device_blocks - 1};
  for (const auto& node : builder.nodes()) blocks.push_back(node.address.v);
  for (const std::uint64_t block : blocks)
    for (int i = 0; i < 4; ++i) {
      const auto device = good->snapshot();
      const std::size_t byte = random.next() % kBlockSize;
      flip(*device, block, byte, random.next() % 8);
      const Report report = run(*device);  // in a superblock's second sector it may be what a crash leaves: a warning
      EXPECT_GT(report.errors() + report.problems.count(Code::superblock_torn), 0U) << "block " << block << " byte " << byte;
    }
}

TEST(Damage, EveryMetadataBlockLostIsReported) {
  ImageBuilder builder;
  fill(builder);
  const auto good = builder.build();
  for (const auto& node : builder.nodes()) {
    const auto device = good->snapshot();
    const std::vector<std::byte> zeros(kBlockSize);
    device->poke(node.address.v * kBlockSize, zeros);
    const Report report = run(*device);
    EXPECT_GT(report.errors(), 0U) << "block " << node.address.v;
    EXPECT_LT(report.errors(), 3U) << "a cascade from block " << node.address.v << ":\n" << lines(report);
  }
}

TEST(Damage, NodesInEachOthersPlaceAreFound) {
  ImageBuilder builder;
  fill(builder);
  const auto good = builder.build();
  for (std::size_t i = 1; i < builder.nodes().size(); ++i) {
    const auto device = good->snapshot();
    device->poke(builder.nodes()[i - 1].address.v * kBlockSize, builder.nodes()[i].bytes);
    EXPECT_GT(run(*device).errors(), 0U);
  }
}

TEST(Damage, BadDataIsFoundOnlyWhenAsked) {
  ImageBuilder builder;
  fill(builder);
  const auto device = builder.build();
  std::uint64_t address = 0;
  for (const auto& [block, owner] : builder.owners())
    if (owner.owner == format::Owner::file_block) address = block;
  flip(*device, address, 4000, 3);
  EXPECT_EQ(codes(*device), std::set<Code>{});
  const Report report = run(*device, {.verify_data = true});
  ASSERT_EQ(report.problems.kept().size(), 1U) << lines(report);
  EXPECT_EQ(report.problems.kept()[0].code, Code::data_damaged);
  EXPECT_EQ(report.problems.kept()[0].where.address, BlockAddr{address});
}

TEST(Damage, OneGoodSuperblockIsEnough) {
  ImageBuilder builder;
  fill(builder);
  const auto good = builder.build();
  for (const std::uint64_t block : {std::uint64_t{0}, builder.super().device_blocks - 1}) {
    const auto device = good->snapshot();
    const std::vector<std::byte> noise(kBlockSize, std::byte{0x5A});
    device->poke(block * kBlockSize, noise);
    EXPECT_EQ(codes(*device), std::set<Code>{Code::superblock_damaged});
  }
  const auto device = good->snapshot();
  const std::vector<std::byte> zeros(kBlockSize);
  device->poke(0, zeros);
  device->poke((builder.super().device_blocks - 1) * kBlockSize, zeros);
  EXPECT_TRUE(check(*device, {}).fails_with(Errc::not_varve));
}

// Behind the filesystem the device goes on: only the first copy tells where the second is, also when it is torn.
TEST(Damage, ATornSuperblockTellsWhereTheOtherIs) {
  ImageBuilder builder;
  fill(builder);
  const auto small = builder.build();
  std::vector<std::byte> all(small->geometry().size_bytes);
  small->peek(0, all);
  io::MemDevice device(all.size() + (1 << 20));
  device.poke(0, all);
  flip(device, 0, 900, 3);
  EXPECT_EQ(codes(device), std::set<Code>{Code::superblock_torn});
  const auto found = checkpoint::read_superblocks(device);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->best, builder.super());
  EXPECT_FALSE(found->equal);
}

// Wild bytes everywhere, behind valid CRCs where they matter: the checker may say anything, but must come back.
TEST(Damage, CraftedNodesDoNotConfuse) {
  ImageBuilder builder;
  fill(builder);
  const auto good = builder.build();
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SeededRandom random(seed);
    const auto device = good->snapshot();
    // The root of one tree is replaced by a changed copy, and the superblocks refer to it as if it were right.
    format::Superblock super = builder.super();
    format::NodeRef* const roots[] = {&super.inode_file, &super.reverse_map, &super.free_map};
    format::NodeRef& root = *roots[seed % 3];
    std::array<std::byte, kBlockSize> block;
    device->peek(root.address.v * kBlockSize, block);
    for (unsigned i = 0; i <= seed % 8; ++i) block[8 + random.next() % (i % 2 ? 100 : 4088)] ^= static_cast<std::byte>(random.next());
    for (unsigned i = 4; i < 8; ++i) block[i] = std::byte{0};
    const std::uint32_t own = format::block_crc(block);
    for (unsigned i = 0; i < 4; ++i) block[4 + i] = static_cast<std::byte>(own >> (8 * i));
    if (root.crc == format::block_crc(block)) continue;  // two changes have cancelled each other
    root.crc = format::block_crc(block);
    device->poke(root.address.v * kBlockSize, block);
    format::encode_superblock(super, block);
    device->poke(0, block);
    device->poke((super.device_blocks - 1) * kBlockSize, block);
    const auto report = check(*device, {.verify_data = true});
    if (report.ok()) {
      EXPECT_GT(report->errors(), 0U) << "seed " << seed;  // at least the image disagrees
    }
  }
}

}  // namespace
}  // namespace varve::check::test
