#include "format/make.h"

#include <gtest/gtest.h>

#include "format/map_record.h"

namespace varve::format {
namespace {

constexpr std::uint64_t kMega = 256;  // blocks
constexpr std::uint64_t kGiB = 1024 * kMega;

EmptyFilesystem make(std::uint64_t device_blocks, std::uint32_t segment_blocks = 0) {
  SeededRandom random(1);
  auto made = make_filesystem({.device_blocks = device_blocks, .segment_blocks = segment_blocks, .label = "l",
                               .uuid = {}, .now = {1, 2}}, random);
  EXPECT_TRUE(made.ok()) << made.error().message();
  return *made;
}

bool refused(const MakeParameters& parameters) {
  SeededRandom random(1);
  return make_filesystem(parameters, random).fails_with(Errc::invalid);
}

TEST(Make, ChoosesSegmentSizeByDevice) {
  EXPECT_EQ(auto_segment_blocks(8 * kMega), 64U);
  EXPECT_EQ(auto_segment_blocks(kGiB), 1024U);  // an erase unit, though these are fewer than 1024
  EXPECT_EQ(auto_segment_blocks(512 * kMega), 512U);
  EXPECT_EQ(auto_segment_blocks(64 * kGiB), 2048U);
  EXPECT_EQ(auto_segment_blocks(1024 * kGiB), 2048U);
  EXPECT_EQ(make(8 * kMega).super.segments, 31U);
  EXPECT_EQ(make(8 * kMega).super.first_segment, BlockAddr{8});
  EXPECT_EQ(make(64 * kMega).super.first_segment, BlockAddr{256});
}

TEST(Make, EverySegmentBeginsOnAnEraseUnit) {
  for (const std::uint64_t device : {256 * kMega, kGiB, 10 * kGiB + 77, 64 * kGiB})
    for (const std::uint64_t unit : {std::uint64_t{0}, kMega, 4 * kMega, 8 * kMega, 32 * kMega})
      for (const std::uint64_t before : {std::uint64_t{0}, std::uint64_t{63}, kMega, 5 * kMega}) {
        const EraseUnit erase{unit, before};
        const std::uint32_t segment = auto_segment_blocks(device, erase);
        const BlockAddr first = first_segment_of(device, segment, erase);
        const std::uint64_t whole = unit ? unit : 4 * kMega, step = std::min<std::uint64_t>(segment, whole);
        if (device / whole < 64) continue;
        SCOPED_TRACE(fmt::format("{} blocks, unit {}, behind {}: segments of {} from {}", device, unit, before, segment, first));
        EXPECT_EQ((before + first.v) % whole, 0U);
        EXPECT_EQ(whole % step, 0U) << "none spans a boundary unless it begins on one";
        EXPECT_LE(first.v, std::max<std::uint64_t>(3 * whole, 2 * segment));
        const SuperblockArea area = area_of(device, erase);
        EXPECT_LE(area.start.v + area.blocks(), first.v);
        EXPECT_GE(area.slots, kMinSlots);
        if (whole > 16 * kMega) continue;
        EXPECT_EQ((before + area.start.v) % whole, 0U);
        EXPECT_EQ(area.blocks() % whole, 0U) << "else it would begin anew in the middle of a unit";
      }
}

TEST(Make, TheFirstSegmentBeginsOnAnOddEraseUnit) {
  const EraseUnit unit{3 * kMega, 0};
  const std::uint32_t segment = auto_segment_blocks(64 * kGiB, unit);
  EXPECT_EQ(first_segment_of(64 * kGiB, segment, unit).v % unit.blocks, 0U);
  EXPECT_TRUE(refused({.device_blocks = kGiB, .erase_unit = {1, 0}, .label = {}, .uuid = {}, .now = {}}));
}

TEST(Make, WhatWasMeasuredIsKept) {
  MakeParameters p{.device_blocks = kGiB, .erase_unit = {2 * kMega, 0}, .erase_source = Source::measured, .streams = 2,
                   .streams_source = Source::measured, .costs = {.in_row = 400'000, .scattered = 840'000'000}, .label = {}, .uuid = {},
                   .now = {}};
  SeededRandom random(1);
  const auto made = make_filesystem(p, random);
  ASSERT_TRUE(made.ok()) << made.error().message();
  std::array<std::byte, kBlockSize> block;
  encode_superblock(made->super, block);
  const auto back = decode_superblock(block);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->device, (DeviceProfile{2 * kMega, 2, Source::measured, Source::measured}));
  EXPECT_EQ(back->costs, as_kept(p.costs));
  EXPECT_NEAR(back->costs.scattered, 840e6, 50e6);
  p.costs = {};
  EXPECT_EQ(make_filesystem(p, random)->super.features.compat & kCompatWritingCosts, 0U) << "nothing is known";
}

TEST(Make, NodesAndSuperblockAreConsistentOnEverySize) {
  for (const std::uint64_t blocks : {8 * kMega, 8 * kMega + 1, 64 * kMega - 1, 64 * kMega, 1000 * kMega + 77, 64 * kGiB,
                                     1024 * kGiB, 16 * 1024 * kGiB}) {
    const EmptyFilesystem made = make(blocks);
    const Superblock& s = made.super;
    std::array<std::byte, kBlockSize> block;
    encode_superblock(s, block);
    const auto back = decode_superblock(block);
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(*back, s);
    EXPECT_EQ(made.nodes.size(), s.live_blocks);
    EXPECT_EQ(s.clock_unit, std::max<std::uint64_t>(1, blocks >> 18));
    for (std::size_t i = 0; i < made.nodes.size(); ++i) {
      EXPECT_EQ(made.nodes[i].address, s.first_segment + i);
      const auto header = decode_node_header(made.nodes[i].bytes);
      ASSERT_TRUE(header.ok()) << header.error().message();
      EXPECT_EQ(header->address, made.nodes[i].address);
    }
    const auto image = decode_super_image(made.nodes.back().bytes);
    ASSERT_TRUE(image.ok()) << image.error().message();
    EXPECT_EQ(*image, s);
    EXPECT_EQ(s.image.address, made.nodes.back().address);
  }
}

TEST(Make, RootIsAnEmptyDirectory) {
  const EmptyFilesystem made = make(64 * kMega);
  const auto& leaf = made.nodes.front().bytes;
  const auto items = decode_items(leaf, *decode_node_header(leaf));
  ASSERT_TRUE(items.ok());
  ASSERT_EQ(items->size(), 1U);
  const auto root = decode_attributes(items->front().value);
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->mode, 040755U);
  EXPECT_EQ(root->nlink, 2U);
  EXPECT_EQ(root->parent, kRootIno);
}

TEST(Make, RandomIdentityHidesNothingOfTheUuid) {
  SeededRandom random(1);
  const MakeParameters parameters{.device_blocks = 8 * kMega, .label = {}, .uuid = {1, 2, 3}, .now = {}};
  const auto first = make_filesystem(parameters, random);
  const auto second = make_filesystem(parameters, random);
  EXPECT_EQ(first->super.uuid, second->super.uuid);
  EXPECT_NE(first->super.identity, second->super.identity);
  EXPECT_NE(first->super.epoch, second->super.epoch);
  EXPECT_NE(first->super.hash_key, second->super.hash_key);
}

TEST(Make, RefusesWhatCannotWork) {
  const MakeParameters good{.device_blocks = 64 * kMega, .label = {}, .uuid = {}, .now = {}};
  EXPECT_FALSE(refused(good));
  auto with = [&](auto change) {
    MakeParameters parameters = good;
    change(parameters);
    return refused(parameters);
  };
  EXPECT_TRUE(with([](MakeParameters& p) { p.device_blocks = kMinDeviceBlocks - 1; }));
  EXPECT_TRUE(with([](MakeParameters& p) { p.device_blocks = 1ULL << 48; }));
  EXPECT_TRUE(with([](MakeParameters& p) { p.segment_blocks = 32; }));
  EXPECT_TRUE(with([](MakeParameters& p) { p.segment_blocks = 100; }));
  EXPECT_TRUE(with([](MakeParameters& p) { p.segment_blocks = 2 * kMaxSegmentBlocks; }));
  EXPECT_TRUE(with([](MakeParameters& p) { p.segment_blocks = 1024; })) << "15 segments";
  EXPECT_TRUE(with([](MakeParameters& p) { p.label = std::string(64, 'x'); }));
}

}  // namespace
}  // namespace varve::format
