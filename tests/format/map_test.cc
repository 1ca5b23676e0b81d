#include "format/map_record.h"

#include <gtest/gtest.h>

#include "samples.h"

namespace varve::format {
namespace {

using test::Block;
using test::kIdentity;

TEST(MapShape, CountsLevels) {
  EXPECT_EQ(reverse_map_shape(100).per_leaf(), 168U);
  EXPECT_EQ(reverse_map_shape(168).root_level(), 0U);
  EXPECT_EQ(reverse_map_shape(169).root_level(), 1U);
  EXPECT_EQ(reverse_map_shape(168 * 256).root_level(), 1U);
  EXPECT_EQ(reverse_map_shape(168 * 256 + 1).root_level(), 2U);
  EXPECT_EQ(reverse_map_shape(1ULL << 28).leaves(), 1'597'831U);
  EXPECT_EQ(reverse_map_shape(1ULL << 28).root_level(), 3U);
  EXPECT_EQ(free_map_shape(1000, 64).per_leaf(), 100U);
  EXPECT_EQ(free_map_shape(1000, kMaxSegmentBlocks).per_leaf(), 1U);
}

TEST(MapSlots, ComeBack) {
  std::vector<NodeRef> slots(200);
  for (unsigned i = 0; i < slots.size(); i += 3) slots[i] = {BlockAddr{1000 + i}, i * 7, 0};
  Block block;
  const auto crc = encode_map_slots(block, slots, TreeId::reverse_map, 1, 168 * 256, kIdentity, Serial{2}, BlockAddr{9});
  const auto header = check_node(block, {kIdentity, BlockAddr{9}, crc, TreeId::reverse_map, 1});
  ASSERT_TRUE(header.ok()) << header.error().message();
  EXPECT_EQ(header->first.offset, 168U * 256);
  const auto back = decode_map_slots(block, *header);
  ASSERT_TRUE(back.ok());
  ASSERT_EQ(back->size(), kMapFanout);
  for (unsigned i = 0; i < kMapFanout; ++i) EXPECT_EQ((*back)[i], i < slots.size() ? slots[i] : NodeRef{});
}

TEST(MapSlots, RefusesMalformedNodes) {
  const std::vector<NodeRef> slots{{BlockAddr{1000}, 7, 0}};
  Block block;
  encode_map_slots(block, slots, TreeId::reverse_map, 1, 0, kIdentity, Serial{2}, BlockAddr{9});
  const NodeHeader header = *decode_node_header(block);
  NodeHeader h = header;
  h.count = 255;
  EXPECT_TRUE(decode_map_slots(block, h).fails_with(Errc::corrupt));
  h = header;
  h.used = 12;
  EXPECT_TRUE(decode_map_slots(block, h).fails_with(Errc::corrupt));
  h = header;
  h.tree = TreeId::inode_file;
  EXPECT_TRUE(decode_map_slots(block, h).fails_with(Errc::corrupt));
  block[kNodeHeaderBytes + kMapSlotBytes + 6] = std::byte{1};  // a CRC without an address
  EXPECT_TRUE(decode_map_slots(block, header).fails_with(Errc::corrupt));
  test::for_each_flip(block, [&](std::size_t at) { ASSERT_FALSE(decode_node_header(block).ok()) << "byte " << at; });
}

TEST(MapLeaf, KeepsRecordsWhereTheyAre) {
  std::array<std::byte, kReverseEntryBytes * 168> records{};
  const ReverseEntry file{.owner = Owner::file_block, .estimate = 9, .tree = {}, .level = 0, .ino = Ino{~0ULL}, .block = kMaxFileBlocks - 1,
                          .clock = 5, .crc = 6};
  ReverseEntry node, image;
  node.owner = Owner::node;
  node.tree = TreeId::free_map;
  node.level = 3;
  image.owner = Owner::super_image;
  const ReverseEntry* const all[] = {&file, &node, &image};
  for (std::size_t i = 0; i < std::size(all); ++i)
    encode_reverse_entry(*all[i], std::span(records).subspan((i + 5) * kReverseEntryBytes));
  Block block;
  encode_map_leaf(block, records, TreeId::reverse_map, 168, kIdentity, Serial{1}, BlockAddr{3});
  ASSERT_TRUE(decode_node_header(block).ok());
  const auto payload = map_leaf_records(block);
  for (std::size_t i = 0; i < std::size(all); ++i)
    EXPECT_EQ(*decode_reverse_entry(payload.subspan((i + 5) * kReverseEntryBytes)), *all[i]);
  EXPECT_EQ(*decode_reverse_entry(payload), ReverseEntry{});
}

TEST(ReverseEntry, RefusesImpossibleValues) {
  std::array<std::byte, kReverseEntryBytes> record{};
  record[0] = std::byte{4};
  EXPECT_TRUE(decode_reverse_entry(record).fails_with(Errc::corrupt));
  record[0] = std::byte{1};  // inode 0
  EXPECT_TRUE(decode_reverse_entry(record).fails_with(Errc::corrupt));
  record[0] = std::byte{2};  // tree 0
  EXPECT_TRUE(decode_reverse_entry(record).fails_with(Errc::corrupt));
  EXPECT_TRUE(decode_reverse_entry(std::span(record).first(23)).fails_with(Errc::corrupt));
}

TEST(SegmentRecord, ComesBack) {
  const SegmentRecord record{.group = kGroupNodes, .flags = kSegmentHasBadBlocks, .live = 16384, .youngest = 3,
                             .clock_sum = 4, .rate_sum = 5};
  std::array<std::byte, kSegmentRecordHeaderBytes> bytes{};
  encode_segment_record(record, bytes);
  EXPECT_EQ(*decode_segment_record(bytes), record);
  EXPECT_TRUE(decode_segment_record(std::span(bytes).first(31)).fails_with(Errc::corrupt));
  bytes[0] = std::byte{kMaxGroups};
  EXPECT_TRUE(decode_segment_record(bytes).fails_with(Errc::corrupt));
  bytes[0] = std::byte{0};
  bytes[1] = std::byte{2};
  EXPECT_TRUE(decode_segment_record(bytes).fails_with(Errc::corrupt));
}

}  // namespace
}  // namespace varve::format
