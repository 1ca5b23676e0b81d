// Which copy of the superblock counts, of several that a scan finds.
#include <gtest/gtest.h>

#include "format/superblock.h"
#include "repair/node_surgery.h"
#include "repair/superblock_search.h"

namespace varve::repair::test {
namespace {

void put_image(io::MemDevice& device, const format::Superblock& super, BlockAddr address, std::uint64_t recoveries) {
  format::Superblock copy = super;
  copy.lifetime.recoveries = recoveries;
  std::array<std::byte, kBlockSize> block;
  format::encode_super_image(copy, block, address);
  device.poke(address.v * kBlockSize, block);
}

// A crash has come before the superblocks were written: the checkpoint never was, and the recovery's has its number.
TEST(SuperblockSearch, TakesTheRecoverysCheckpointNotTheOneBeforeTheCrash) {
  constexpr std::uint64_t kAborted = 40;  // so many that sorting them moves them
  for (const std::uint64_t place : {std::uint64_t{0}, kAborted / 2, kAborted}) {
    ImageBuilder builder{4096};
    builder.add_file(kRootIno, "file", 3);
    const auto device = builder.build();
    const format::Superblock super = builder.super();
    const BlockAddr free{super.device_blocks - 1 - super.segment_blocks};
    wipe(*device, super.image.address);
    wipe(*device, BlockAddr{0});
    wipe(*device, BlockAddr{super.device_blocks - 1});
    for (std::uint64_t i = 0; i <= kAborted; ++i) put_image(*device, super, free + i, i == place ? 4 : 3);
    const auto found = search_superblock(*device, nullptr);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(found->super.lifetime.recoveries, 4U) << "it stands after " << place << " others";
    EXPECT_TRUE(found->whole);
  }
}

}  // namespace
}  // namespace varve::repair::test
