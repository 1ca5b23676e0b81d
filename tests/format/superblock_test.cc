#include "format/superblock.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/crc32c.h"
#include "format/codec.h"
#include "samples.h"

namespace varve::format {
namespace {

using test::Block;
using test::sample_superblock;

Result<Superblock> round_trip(const Superblock& super) {
  Block block;
  encode_superblock(super, block);
  return decode_superblock(block);
}

// A change to raw bytes behind a valid CRC: what a newer version or a hostile image would hold.
void set_with_crc(Block& block, std::size_t at, std::uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) block[at + i] = static_cast<std::byte>(value >> (8 * i));
  for (unsigned i = 8; i < 12; ++i) block[i] = std::byte{0};
  const std::uint32_t crc = crc32c(block);
  for (unsigned i = 0; i < 4; ++i) block[8 + i] = static_cast<std::byte>(crc >> (8 * i));
}

TEST(Superblock, ComesBack) {
  const Superblock super = sample_superblock();
  const auto back = round_trip(super);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, super);
}

TEST(Superblock, TheScrubMarkNeedsItsBit) {
  Superblock super = sample_superblock();
  super.scrub = {100, 0, TreeId::reverse_map, {Ino{7}, ItemKind::dirent, 8}, 9, 10};
  EXPECT_EQ(round_trip(super)->scrub, ScrubMark{}) << "an older program knows nothing of it";
  super.features.compat = kCompatScrubMark;
  EXPECT_EQ(*round_trip(super), super);
  Block block;
  encode_superblock(super, block);
  block[976] = std::byte{99};  // no such tree
  set_with_crc(block, 12, kFormatVersion);
  const auto back = decode_superblock(block);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->scrub, ScrubMark{}) << "nonsense means from the beginning";
}

TEST(Superblock, LimitsOfTailsNeedTheirBit) {
  Superblock super = sample_superblock();
  super.tails = {kMaxTail, kMaxLoggedTail};
  Block without, block;
  encode_superblock(super, without);
  EXPECT_EQ(decode_superblock(without)->tails, TailLimits{});
  EXPECT_TRUE(std::all_of(without.begin() + 1152, without.end(), [](std::byte b) { return b == std::byte{0}; }));
  super.features.incompat |= kIncompatTails;
  EXPECT_EQ(*round_trip(super), super);
  encode_superblock(super, block);
  EXPECT_EQ(Reader(std::span(block).subspan(1152)).u64(), 1024U);
  EXPECT_EQ(Reader(std::span(block).subspan(1160)).u64(), 4096U);
  super.tails.kept = kMaxTail + 1;
  EXPECT_TRUE(round_trip(super).fails_with(Errc::corrupt));
  super.tails = {kMaxTail, kMaxLoggedTail + 1};
  EXPECT_TRUE(round_trip(super).fails_with(Errc::corrupt));
}

TEST(Superblock, WritingCostsNeedTheirBitAndAreKeptRoughly) {
  Superblock super = sample_superblock();
  super.costs = as_kept({1'000'000, 7, 0, 4'000'000'000, 250'000, 1});
  EXPECT_EQ(round_trip(super)->costs, WritingCosts{}) << "an older program knows nothing of them";
  super.features.compat = kCompatWritingCosts;
  EXPECT_EQ(*round_trip(super), super);
  super.scrub = {100, 0, TreeId::reverse_map, {Ino{7}, ItemKind::dirent, 8}, 9, 10};
  super.features.compat |= kCompatScrubMark;
  EXPECT_EQ(*round_trip(super), super);
  EXPECT_NEAR(super.costs.copied, 1'000'000, 50'000);
  EXPECT_NEAR(super.costs.in_row, 250'000, 12'000);
  EXPECT_EQ(super.costs.beside, 0U);
  EXPECT_EQ(as_kept(super.costs), super.costs);
}

TEST(Superblock, StartsWithTheMagicText) {
  Block block;
  encode_superblock(sample_superblock(), block);
  EXPECT_EQ(std::memcmp(block.data(), "VARVEVE\x1a", 8), 0);
}

TEST(Superblock, LongLabelIsCut) {
  Superblock super = sample_superblock();
  super.label = std::string(100, 'l');
  EXPECT_EQ(round_trip(super)->label, std::string(63, 'l'));
  // So is one that has no end on the device.
  Block block;
  encode_superblock(super, block);
  set_with_crc(block, 116, 0x6c6c6c6c);
  EXPECT_EQ(decode_superblock(block)->label, std::string(63, 'l'));
}

TEST(Superblock, EveryFlippedByteIsNoticed) {
  Block block;
  encode_superblock(sample_superblock(), block);
  test::for_each_flip(block, [&](std::size_t at) {
    const auto back = decode_superblock(block);
    ASSERT_TRUE(back.fails_with(at < 8 ? Errc::not_varve : Errc::corrupt)) << "byte " << at;
  });
}

// Any mixture of the sectors of two versions, whichever of them the other copy holds, or an older one.
TEST(Superblock, ATornOneIsToldFromADamagedOne) {
  Superblock super = sample_superblock();
  Block oldest, older, newer;
  encode_superblock(super, oldest);
  ++super.serial;
  ++super.lifetime.mounts;
  encode_superblock(super, older);
  super.epoch += 5;
  ++super.lifetime.mounts;
  encode_superblock(super, newer);
  const auto mixed = [](Block front, const Block& back) {
    std::copy(back.begin() + 512, back.end(), front.begin() + 512);
    return front;
  };
  for (const Block& torn : {mixed(older, newer), mixed(newer, older)})
    for (const Block& good : {oldest, older, newer}) {
      EXPECT_TRUE(decode_superblock(torn).fails_with(Errc::corrupt));
      EXPECT_TRUE(may_be_torn(torn, good));
      EXPECT_EQ(told_device_blocks(torn), super.device_blocks);
    }
  EXPECT_FALSE(may_be_torn(older, newer)) << "it is whole";
  const auto flipped = [&](std::size_t at) {
    Block block = newer;
    block[at] ^= std::byte{4};
    return may_be_torn(block, newer);
  };
  for (const std::size_t at : {0, 12, 121, 165, 187, 300, 511, 1024, 1040, 4095}) EXPECT_FALSE(flipped(at)) << at;
  for (const std::size_t at : {512, 900, 1023, 1044}) EXPECT_TRUE(flipped(at)) << at;  // the last one: streams, which a mount measures
  EXPECT_EQ(told_device_blocks(Block{}), 0U);
}

TEST(Superblock, OtherBytesAreNotVarve) {
  EXPECT_TRUE(decode_superblock(Block{}).fails_with(Errc::not_varve));
  EXPECT_TRUE(decode_superblock(std::span<const std::byte>{}).fails_with(Errc::not_varve));
}

TEST(Superblock, NewerVersionIsToldApartFromDamage) {
  Block block;
  encode_superblock(sample_superblock(), block);
  set_with_crc(block, 12, kFormatVersion + 1);
  const auto back = decode_superblock(block);
  EXPECT_TRUE(back.fails_with(Errc::unknown_feature));
  EXPECT_NE(back.error().message().find("version 2"), std::string::npos);
  set_with_crc(block, 12, 0);
  EXPECT_TRUE(decode_superblock(block).fails_with(Errc::corrupt));
}

TEST(Superblock, ReservedBytesAreIgnored) {
  Block block;
  encode_superblock(sample_superblock(), block);
  set_with_crc(block, 2000, 0x55);
  EXPECT_EQ(*decode_superblock(block), sample_superblock());
}

TEST(Superblock, ImpossibleNumbersAreRefused) {
  auto refused = [](auto change) {
    Superblock super = sample_superblock();
    change(super);
    return round_trip(super).fails_with(Errc::corrupt);
  };
  EXPECT_TRUE(refused([](Superblock& s) { s.device_blocks = kMinDeviceBlocks - 1; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.device_blocks = 1ULL << 48; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.segment_blocks = 32; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.segment_blocks = 96; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.segment_blocks = 2 * kMaxSegmentBlocks; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.segments = 252; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.segments = ~0ULL; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.first_segment = BlockAddr{0}; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.serial = Serial{0}; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.inode_file.address = BlockAddr{255}; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.reverse_map.address = BlockAddr{16383}; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.image = {}; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.inode_file_level = 16; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.clock_unit = 0; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.next_ino = 1; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.chain = {BlockAddr{330}, 64}; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.next_run = {BlockAddr{~0ULL}, 1}; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.heads[0].rest = {BlockAddr{16383}, 1}; }));
  EXPECT_FALSE(refused([](Superblock& s) { s.chain = {BlockAddr{256 + 250 * 64}, 0}; })) << "a run that is used up";
}

TEST(Superblock, FeatureBitsSayWhatIsAllowed) {
  Superblock super = sample_superblock();
  super.features.compat = ~0ULL;
  EXPECT_TRUE(check_features(*round_trip(super), Intent::write).ok());
  super.features.ro_compat = 1ULL << 5;
  EXPECT_TRUE(check_features(*round_trip(super), Intent::read).ok());
  const Status write = check_features(*round_trip(super), Intent::write);
  EXPECT_TRUE(write.fails_with(Errc::unknown_feature));
  EXPECT_NE(write.error().message().find("bits 5"), std::string::npos);
  super.features.incompat = 1ULL << 63 | 1ULL << 40;
  const Status read = check_features(*round_trip(super), Intent::read);
  EXPECT_TRUE(read.fails_with(Errc::unknown_feature));
  EXPECT_NE(read.error().message().find("40, 63"), std::string::npos);
}

TEST(SuperImage, ComesBackWithItsOwnReference) {
  Superblock super = sample_superblock();
  Block block;
  const std::uint32_t crc = encode_super_image(super, block, BlockAddr{700});
  super.image = {BlockAddr{700}, crc, 0};
  const auto back = decode_super_image(block);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, super);
  test::for_each_flip(block, [&](std::size_t at) { ASSERT_FALSE(decode_super_image(block).ok()) << "byte " << at; });
  Bytes leaf(kBlockSize);
  encode_map_leaf(leaf, {}, TreeId::free_map, 0, test::kIdentity, Serial{1}, BlockAddr{3});
  EXPECT_FALSE(decode_super_image(leaf).ok());
}

}  // namespace
}  // namespace varve::format
