// Which superblock of an area counts, whatever a crash or rot has left of the others.
#include "format/superblock_ring.h"

#include <gtest/gtest.h>

#include <map>

#include "format/make.h"

namespace varve::format {
namespace {

constexpr std::uint64_t kBlocks = 2048;  // four slots

// An area as mkfs fills it, to which superblocks are written one by one.
class Ring : public ::testing::Test {
 protected:
  Ring() {
    SeededRandom random(3);
    const EmptyFilesystem made = *make_filesystem({.device_blocks = kBlocks, .label = {}, .uuid = {}, .now = {1, 2}}, random);
    super_ = made.super;
    for (const MadeNode& block : superblocks_of(made)) blocks_[block.address.v] = block.bytes;
    super_.sequence = super_.area.slots;
  }

  std::array<std::byte, kBlockSize>& slot(std::uint64_t sequence) { return blocks_.at(super_.area.place_of(sequence).v); }
  void write() {
    ++super_.sequence;
    encode_superblock(super_, slot(super_.sequence));
  }
  void checkpoint() {
    ++super_.serial;
    write();
    write();
  }
  void spoil(std::uint64_t sequence) { slot(sequence)[700] ^= std::byte{1}; }

  SuperblockRing ring() {
    std::vector<Result<Superblock>> slots;
    for (std::uint64_t i = 0; i < super_.area.slots; ++i) slots.push_back(decode_slot(super_, i, slot(i + 1)));
    return {super_.area, std::move(slots)};
  }

  Superblock super_;
  std::map<std::uint64_t, std::array<std::byte, kBlockSize>> blocks_;
};

TEST_F(Ring, MkfsFillsAllSlotsWithTheSame) {
  ASSERT_EQ(super_.area.slots, 4U);
  ASSERT_EQ(blocks_.size(), 2 + super_.area.slots) << "and the anchors";
  EXPECT_EQ(ring().newest()->sequence, 4U);
  EXPECT_TRUE(ring().is_pair());
  EXPECT_FALSE(ring().may_lack_newer());
  const auto anchor = decode_superblock(blocks_.at(0));
  EXPECT_EQ(anchor->sequence, 0U);
  EXPECT_EQ(anchor->area, super_.area);
  EXPECT_EQ(blocks_.at(0), blocks_.at(kBlocks - 1));
}

TEST_F(Ring, TheNewestCountsAllTheWayRound) {
  for (int i = 0; i < 10; ++i) {
    checkpoint();
    ASSERT_EQ(ring().newest()->serial, super_.serial) << i;
    ASSERT_TRUE(ring().is_pair()) << i;
    ++super_.serial;
    write();  // and a crash: the second one is missing
    ASSERT_EQ(ring().newest()->serial, super_.serial) << i;
    ASSERT_FALSE(ring().is_pair()) << i;
    ASSERT_FALSE(ring().may_lack_newer()) << i;
  }
}

TEST_F(Ring, OneTornSlotBehindTheNewestIsACrash) {
  checkpoint();
  spoil(super_.sequence + 1);
  EXPECT_EQ(ring().newest()->sequence, super_.sequence);
  EXPECT_TRUE(ring().is_pair());
  EXPECT_FALSE(ring().may_lack_newer());
  EXPECT_FALSE(ring().after_newest().ok());
}

TEST_F(Ring, TwoDamagedSlotsMayHaveBeenNewer) {
  checkpoint();
  const std::uint64_t before = super_.sequence;
  checkpoint();
  spoil(super_.sequence);
  EXPECT_EQ(ring().newest()->serial, super_.serial) << "the first copy is left";
  EXPECT_FALSE(ring().may_lack_newer());
  slot(super_.sequence - 1) = {};  // erased
  EXPECT_EQ(ring().newest()->sequence, before);
  EXPECT_TRUE(ring().may_lack_newer());
  for (std::uint64_t i = 1; i <= super_.area.slots; ++i) slot(i) = {};
  EXPECT_EQ(ring().newest(), nullptr);
}

TEST_F(Ring, WhatBelongsElsewhereDoesNotCount) {
  checkpoint();
  const Superblock good = super_;
  super_.sequence += 4;  // its place, but another filesystem's
  super_.identity ^= 1;
  encode_superblock(super_, slot(super_.sequence));
  super_.identity ^= 1;
  EXPECT_EQ(ring().newest()->sequence, good.sequence - 1);
  super_.sequence += 1;  // misdirected
  encode_superblock(super_, slot(super_.sequence + 1));
  EXPECT_EQ(ring().newest()->sequence, good.sequence - 1);
}

TEST_F(Ring, ANewerProgramsSuperblockIsNotTakenForDamage) {
  checkpoint();
  super_.version = kFormatVersion + 1;
  write();
  ASSERT_NE(ring().unknown_feature(), nullptr);
  EXPECT_TRUE(ring().unknown_feature()->is(Errc::unknown_feature));
}

TEST_F(Ring, ImpossibleAreasAreRefused) {
  const auto with = [this](SuperblockArea area) {
    Superblock super = super_;
    super.area = area;
    std::array<std::byte, kBlockSize> block;
    encode_superblock(super, block);
    return decode_superblock(block).ok();
  };
  EXPECT_TRUE(with(super_.area));
  for (const SuperblockArea area :
       {SuperblockArea{}, {BlockAddr{4}, 3, 1}, {BlockAddr{3}, 4, 1}, {BlockAddr{5}, 4, 1}, {BlockAddr{4}, 4, 2}, {BlockAddr{4}, 4, 0},
        {BlockAddr{4}, 1U << 31, 1}, {BlockAddr{~0ULL}, 4, 1}, {BlockAddr{8}, 4, 1}})
    EXPECT_FALSE(with(area)) << area.start.v << " " << area.slots << " " << area.slot_blocks;
}

}  // namespace
}  // namespace varve::format
