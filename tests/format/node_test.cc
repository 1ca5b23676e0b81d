#include "format/node.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "format/codec.h"
#include "format/item.h"
#include "samples.h"

namespace varve::format {
namespace {

using test::Block;
using test::kIdentity;

constexpr BlockAddr kHere{1234};
constexpr Serial kSerial{5};

Key random_key(Random& random) {
  const unsigned bits = random.next() % 4 == 0 ? 64 : 6;  // clustered, with far outliers
  const std::uint64_t mask = bits == 64 ? ~0ULL : (1ULL << bits) - 1;
  return {Ino{random.next() & mask}, static_cast<ItemKind>(1 + random.next() % 7), random.next() & mask};
}

std::vector<Key> random_keys(Random& random, std::size_t count) {
  std::vector<Key> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back(random_key(random));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

struct Leaf {
  Block block{};
  std::uint32_t crc = 0;
  std::size_t items = 0;
};

// Single-block extents of consecutive file blocks at scattered addresses: what random 4 KiB writes leave behind.
Leaf leaf_of_single_blocks() {
  SeededRandom random(1);
  LeafBuilder builder;
  Leaf leaf;
  for (std::uint64_t block = 1'000'000;; ++block, ++leaf.items) {
    Bytes value;
    encode_extent(test::sample_extent(random, 1), value);
    if (!builder.add({Ino{4711}, ItemKind::extent, block}, value)) break;
  }
  leaf.crc = builder.finish(leaf.block, kIdentity, kSerial, kHere);
  return leaf;
}

NodeExpectation expectation(std::uint32_t crc, TreeId tree = TreeId::inode_file, int level = 0) {
  return {kIdentity, kHere, crc, tree, level};
}

TEST(Leaf, RandomItemsComeBackInOrder) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SeededRandom random(seed);
    LeafBuilder builder;
    std::vector<std::pair<Key, Bytes>> added;
    for (const Key& key : random_keys(random, 300)) {
      Bytes value(random.next() % (seed % 2 ? 20 : kMaxItemValue + 1));
      for (auto& byte : value) byte = static_cast<std::byte>(random.next());
      if (!builder.add(key, value)) break;
      added.emplace_back(key, value);
    }
    Block block;
    EXPECT_EQ(builder.first(), added.front().first);
    const std::uint32_t crc = builder.finish(block, kIdentity, kSerial, kHere);
    EXPECT_TRUE(builder.empty());
    EXPECT_EQ(crc, block_crc(block));
    const auto header = check_node(block, expectation(crc));
    ASSERT_TRUE(header.ok()) << header.error().message();
    EXPECT_EQ(header->serial, kSerial);
    EXPECT_EQ(header->first, added.front().first);
    ASSERT_TRUE(decode_node_header(block).ok());
    const auto items = decode_items(block, *header);
    ASSERT_TRUE(items.ok()) << items.error().message();
    ASSERT_EQ(items->size(), added.size());
    for (std::size_t i = 0; i < added.size(); ++i) {
      EXPECT_EQ((*items)[i].key, added[i].first);
      EXPECT_TRUE(std::ranges::equal((*items)[i].value, added[i].second));
    }
  }
}

TEST(Leaf, ThreeLargestItemsAlwaysFit) {
  LeafBuilder builder;
  const Bytes largest(kMaxItemValue);
  EXPECT_FALSE(builder.add({Ino{1}, ItemKind::xattr, 0}, Bytes(kMaxItemValue + 1)));
  EXPECT_TRUE(builder.add({Ino{1ULL << 63}, ItemKind::xattr, ~0ULL}, largest));
  EXPECT_TRUE(builder.add({Ino{~0ULL - 1}, ItemKind::dirent, ~0ULL}, largest));
  EXPECT_TRUE(builder.add({Ino{~0ULL}, ItemKind::extent, ~0ULL}, largest));
  EXPECT_FALSE(builder.add({Ino{~0ULL}, ItemKind::attributes, ~0ULL}, largest));
  Block block;
  const auto crc = builder.finish(block, kIdentity, kSerial, kHere);
  EXPECT_EQ(decode_items(block, *check_node(block, expectation(crc)))->size(), 3U);
}

TEST(Leaf, PacksSingleBlockExtentsDensely) {
  // 16 bytes of value, 1 tag, 1 offset, 1 length: 19 bytes each, the first one 24.
  EXPECT_EQ(leaf_of_single_blocks().items, 211U);
}

TEST(Leaf, PacksFullExtentsAndFreshFiles) {
  SeededRandom random(2);
  LeafBuilder builder;
  std::size_t extents = 0;
  for (;; ++extents) {
    Bytes value;
    encode_extent(test::sample_extent(random, kMaxExtentBlocks), value);
    if (!builder.add({Ino{2}, ItemKind::extent, extents * kMaxExtentBlocks}, value)) break;
  }
  EXPECT_EQ(extents, 3U);
  LeafBuilder files;
  std::size_t count = 0;
  for (std::uint64_t ino = 100'000;; ++ino, ++count) {  // a file of one block each: extent and attributes
    Bytes extent, attributes;
    encode_extent(test::sample_extent(random, 1), extent);
    encode_attributes(test::sample_attributes(), attributes);
    if (!files.add({Ino{ino}, ItemKind::extent, 0}, extent)) break;
    if (!files.add({Ino{ino}, ItemKind::attributes, 0}, attributes)) break;
  }
  EXPECT_GE(count, 70U);
}

TEST(Leaf, EveryFlippedByteIsNoticed) {
  Leaf leaf = leaf_of_single_blocks();
  test::for_each_flip(leaf.block, [&](std::size_t at) {
    ASSERT_FALSE(decode_node_header(leaf.block).ok()) << "byte " << at;
    ASSERT_FALSE(check_node(leaf.block, expectation(leaf.crc)).ok()) << "byte " << at;
  });
  EXPECT_TRUE(check_node(leaf.block, expectation(leaf.crc)).ok());
}

TEST(Leaf, EveryMismatchWithTheReferrerIsNoticed) {
  const Leaf leaf = leaf_of_single_blocks();
  auto fails = [&](NodeExpectation expected) { return check_node(leaf.block, expected).fails_with(Errc::corrupt); };
  EXPECT_TRUE(check_node(leaf.block, expectation(leaf.crc, TreeId::inode_file, -1)).ok());
  EXPECT_TRUE(fails({kIdentity + 1, kHere, leaf.crc, TreeId::inode_file, 0}));
  EXPECT_TRUE(fails({kIdentity, kHere + 1, leaf.crc, TreeId::inode_file, 0}));
  EXPECT_TRUE(fails({kIdentity, kHere, leaf.crc + 1, TreeId::inode_file, 0}));
  EXPECT_TRUE(fails({kIdentity, kHere, leaf.crc, TreeId::free_map, 0}));
  EXPECT_TRUE(fails({kIdentity, kHere, leaf.crc, TreeId::inode_file, 1}));
  EXPECT_TRUE(check_node(std::span(leaf.block).first(4000), expectation(leaf.crc)).fails_with(Errc::corrupt));
}

// Random bytes and damaged items behind valid CRCs: a decoder may refuse, but must stay inside the block.
TEST(Leaf, HostilePayloadIsRefusedOrDecodedInBounds) {
  const Leaf good = leaf_of_single_blocks();
  const NodeHeader header = *decode_node_header(good.block);
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    SeededRandom random(seed);
    Block block = good.block;
    NodeHeader h = header;
    for (unsigned n = 0; n <= seed % 4; ++n)
      block[kNodeHeaderBytes + random.next() % (seed % 3 ? 64 : kNodePayloadBytes)] = static_cast<std::byte>(random.next());
    if (seed % 5 == 0) h.used = static_cast<std::uint16_t>(random.next());
    if (seed % 7 == 0) h.count = static_cast<std::uint16_t>(random.next());
    if (seed % 2) h.level = 1;
    const std::byte* const end = block.data() + block.size();
    if (h.level == 0) {
      const auto items = decode_items(block, h);
      if (!items.ok()) continue;
      for (std::size_t i = 0; i < items->size(); ++i) {
        ASSERT_LE((*items)[i].value.data() + (*items)[i].value.size(), end);
        if (i > 0) {
          ASSERT_LT((*items)[i - 1].key, (*items)[i].key);
        }
      }
    } else {
      (void)decode_children(block, h).ok();
    }
  }
}

TEST(Leaf, RefusesMalformedItems) {
  const Leaf good = leaf_of_single_blocks();
  const NodeHeader header = *decode_node_header(good.block);
  auto broken = [&](std::size_t at, std::uint8_t value) {
    Block block = good.block;
    block[kNodeHeaderBytes + at] = static_cast<std::byte>(value);
    return decode_items(block, header).fails_with(Errc::corrupt);
  };
  EXPECT_TRUE(broken(0, 3)) << "the first item must be coded in full";
  EXPECT_TRUE(broken(0, 4)) << "unknown tag bits";
  EXPECT_TRUE(broken(1, 0x77)) << "first key differs from the header";
  EXPECT_TRUE(broken(3, 0)) << "no such kind";
  EXPECT_TRUE(broken(3, 8)) << "no such kind";
  EXPECT_TRUE(broken(7, 0xFF)) << "absurd length";
  NodeHeader h = header;
  h.count++;
  EXPECT_TRUE(decode_items(good.block, h).fails_with(Errc::corrupt));
  h = header;
  h.count--;
  EXPECT_TRUE(decode_items(good.block, h).fails_with(Errc::corrupt));
  h = header;
  h.used--;
  EXPECT_TRUE(decode_items(good.block, h).fails_with(Errc::corrupt));
  h = header;
  h.used = 0xFFFF;
  EXPECT_TRUE(decode_items(good.block, h).fails_with(Errc::corrupt));
  h = header;
  h.level = 1;
  EXPECT_TRUE(decode_items(good.block, h).fails_with(Errc::corrupt));
}

TEST(Interior, RandomChildrenComeBackInOrder) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SeededRandom random(seed);
    InteriorBuilder builder;
    std::vector<ChildRef> added;
    std::uint64_t total = 0;
    auto keys = random_keys(random, 400);
    keys.front() = kMinKey;
    for (const Key& key : keys) {
      const ChildRef child{key,
                           {BlockAddr{1 + random.next() % (1ULL << 47)}, static_cast<std::uint32_t>(random.next()),
                            random.next() % 100'000}};
      if (!builder.add(child)) break;
      added.push_back(child);
      total += child.ref.blocks;
    }
    EXPECT_EQ(builder.blocks(), total);
    Block block;
    const auto crc = builder.finish(block, 2, kIdentity, kSerial, kHere);
    EXPECT_EQ(builder.blocks(), 0U);
    const auto header = check_node(block, expectation(crc, TreeId::inode_file, 2));
    ASSERT_TRUE(header.ok()) << header.error().message();
    const auto children = decode_children(block, *header);
    ASSERT_TRUE(children.ok()) << children.error().message();
    ASSERT_EQ(children->size(), added.size());
    for (std::size_t i = 0; i < added.size(); ++i) {
      EXPECT_EQ((*children)[i].first, added[i].first);
      EXPECT_EQ((*children)[i].ref, added[i].ref);
    }
  }
}

TEST(Interior, FanOutIsHigh) {
  SeededRandom random(3);
  InteriorBuilder builder;
  std::size_t count = 0;
  for (;; ++count) {
    const ChildRef child{{Ino{1'000'000 + count * 70}, ItemKind::extent, 0},
                         {BlockAddr{random.next() % (1ULL << 28) + 1}, static_cast<std::uint32_t>(random.next()), 80}};
    if (!builder.add(child)) break;
  }
  EXPECT_GE(count, 280U);  // tag, inode delta, offset, address, CRC, blocks: 14 bytes
}

}  // namespace
}  // namespace varve::format
