#include <gtest/gtest.h>

#include <algorithm>

#include "format/snapshot.h"
#include "store_tree/tree_harness.h"
#include "tree/edit_list.h"

namespace varve::tree {
namespace {

using format::Bytes;
using format::ItemKind;
using format::Key;

// Answers the first request for each node with would_block, at random, as the source of a parked operation does.
class FlakySource : public NodeSource {
 public:
  FlakySource(NodeSource& inner, std::uint64_t seed) : inner_(inner), random_(seed) {}
  Result<NodePtr> get(const NodeWant& want) override {
    if (asked_.insert(want.ref.address).second && random_() % 3 != 0) return Errc::would_block;
    return inner_.get(want);
  }
  void prefetch(std::span<const NodeWant> wants) override { inner_.prefetch(wants); }
  void forget() { asked_.clear(); }

 private:
  NodeSource& inner_;
  std::mt19937_64 random_;
  Addresses asked_;
};

// Starts again as long as something has to be fetched.
template <class Function>
auto retry(Function function) {
  auto result = function();
  while (result.fails_with(Errc::would_block)) result = function();
  return result;
}

class ItemTreeTest : public testing::Test {
 protected:
  ItemTreeTest() : items(77, 30, 500, format::kMaxItemValue), flaky(tree.source, 3) {
    for (int round = 0; round < 5; ++round) {
      Edits edits;
      for (int i = 0; i < 2500; ++i) {
        const Key key = items.key();
        edits.points[key] = items.value(key);
        if (key.kind != ItemKind::extent) edits.points[key] = Bytes(400);
        if (i % 5 == 0) edits.points[key] = std::nullopt;
      }
      tree.merge(edits);
    }
    EXPECT_GE(tree.root.level, 2);
  }

  void expect_at(const Cursor& cursor, Model::const_iterator at) {
    ASSERT_EQ(cursor.valid(), at != tree.model.end());
    if (!cursor.valid()) return;
    EXPECT_EQ(cursor.key(), at->first);
    EXPECT_TRUE(std::ranges::equal(cursor.value(), at->second));
  }

  // A key of the tree, or one near it.
  Key some_key() {
    Key key = items.key();
    const auto at = tree.model.lower_bound(key);
    if (at == tree.model.end() || items.below(3) == 0) return key;
    key = at->first;
    const std::uint64_t way = items.below(3);
    if (way == 0 && key.offset > 0) --key.offset;
    if (way == 1) ++key.offset;
    return key;
  }

  Model::const_iterator floor_of(const Key& key) const {
    auto at = tree.model.upper_bound(key);
    return at == tree.model.begin() ? at : std::prev(at);
  }

  TreeFixture tree;
  RandomItems items;
  FlakySource flaky;
};

TEST_F(ItemTreeTest, CursorVisitsEverythingInOrder) {
  Cursor cursor(tree.source, tree.root);
  ASSERT_TRUE(cursor.seek(format::kMinKey).ok());
  for (auto at = tree.model.begin(); at != tree.model.end(); ++at) {
    expect_at(cursor, at);
    ASSERT_TRUE(cursor.next().ok());
  }
  EXPECT_FALSE(cursor.valid());
}

TEST_F(ItemTreeTest, CursorSeeksAsAMapDoes) {
  Cursor cursor(tree.source, tree.root);
  for (int i = 0; i < 5000; ++i) {
    const Key key = some_key();
    ASSERT_TRUE(cursor.seek(key).ok());
    expect_at(cursor, tree.model.lower_bound(key));
    ASSERT_TRUE(cursor.seek_floor(key).ok());
    expect_at(cursor, floor_of(key));
  }
  ASSERT_TRUE(cursor.seek_floor(format::kMinKey).ok());
  expect_at(cursor, tree.model.begin());
  ASSERT_TRUE(cursor.seek_floor(format::kMaxKey).ok());
  expect_at(cursor, std::prev(tree.model.end()));
  ASSERT_TRUE(cursor.seek(format::kMaxKey).ok());
  EXPECT_FALSE(cursor.valid());
}

TEST_F(ItemTreeTest, CursorKeepsItsValueAliveAfterEviction) {
  Cursor cursor(tree.source, tree.root);
  ASSERT_TRUE(cursor.seek(format::kMinKey).ok());
  const NodePtr leaf = cursor.leaf();
  const auto value = cursor.value();
  tree.cache.clear();
  while (cursor.valid()) ASSERT_TRUE(cursor.next().ok());
  EXPECT_TRUE(std::ranges::equal(value, tree.model.begin()->second));
}

TEST_F(ItemTreeTest, CursorFetchesLeavesAheadInOneBatch) {
  Cursor cursor(tree.counting, tree.root);
  ASSERT_TRUE(cursor.seek(format::kMinKey).ok());
  tree.counting.reset();
  cursor.prefetch_leaves(8);
  EXPECT_EQ(tree.counting.batches, 1U);
  EXPECT_EQ(tree.counting.prefetched.size(), 8U);
  for (unsigned leaves = 0; leaves < 9; ++leaves)
    for (const NodePtr leaf = cursor.leaf(); cursor.leaf() == leaf;) ASSERT_TRUE(cursor.next().ok());
  for (const BlockAddr address : tree.counting.prefetched) EXPECT_EQ(tree.counting.gets[address], 1U);
}

TEST_F(ItemTreeTest, FindsExactlyWhatIsThere) {
  for (int i = 0; i < 5000; ++i) {
    const Key key = some_key();
    const auto found = find_item(tree.source, tree.root, key);
    ASSERT_TRUE(found.ok());
    const auto at = tree.model.find(key);
    ASSERT_EQ(found->has_value(), at != tree.model.end());
    EXPECT_TRUE(!found->has_value() || std::ranges::equal((*found)->value, at->second));
  }
}

TEST_F(ItemTreeTest, CountsBlocksAsAMapDoes) {
  for (int i = 0; i < 3000; ++i) {
    const Ino ino{items.below(32)};
    std::uint64_t from = items.below(500 * 256 + 300), to = items.below(500 * 256 + 300);
    if (from > to) std::swap(from, to);
    if (i % 7 == 0) from = 0;
    if (i % 11 == 0) to = format::kMaxFileBlocks;
    if (i % 13 == 0) to = from + 1;
    const auto counted = count_blocks(tree.source, tree.root, ino, from, to);
    ASSERT_TRUE(counted.ok());
    ASSERT_EQ(*counted, model_blocks(tree.model, ino, from, to)) << ino.v << " [" << from << ", " << to << ")";
  }
}

TEST_F(ItemTreeTest, CountsBlocksOfAWholeFileWithFewReads) {
  TreeFixture big;
  Edits edits;
  for (std::uint64_t i = 0; i < 50000; ++i) edits.points[{Ino{5}, ItemKind::extent, 2 * i}] = extent_value(1);
  big.merge(edits);
  big.counting.reset();
  EXPECT_EQ(count_blocks(big.counting, big.root, Ino{5}, 0, format::kMaxFileBlocks).value(), 50000U);
  EXPECT_EQ(count_blocks(big.counting, big.root, Ino{5}, 1001, 81001).value(), 40000U);
  EXPECT_LE(big.counting.gets.size(), 10U);
}

TEST_F(ItemTreeTest, OneExtentCanReachOverBothEnds) {
  TreeFixture one;
  Edits edits;
  edits.points[{Ino{5}, ItemKind::extent, 10}] = extent_value(100);
  edits.points[{Ino{5}, ItemKind::extent, 200}] = extent_value(1ULL << 30, true);
  one.merge(edits);
  const auto count = [&](std::uint64_t from, std::uint64_t to) {
    return count_blocks(one.source, one.root, Ino{5}, from, to).value();
  };
  EXPECT_EQ(count(20, 30), 10U);
  EXPECT_EQ(count(0, 11), 1U);
  EXPECT_EQ(count(109, 200), 1U);
  EXPECT_EQ(count(110, 200), 0U);
  EXPECT_EQ(count(1000, 2000), 1000U);
  EXPECT_EQ(count(30, 30), 0U);
  EXPECT_EQ(count(30, 20), 0U);
}

TEST_F(ItemTreeTest, ATailIsNoBlock) {
  Bytes tail;
  format::encode_tail(Bytes(100), tail);
  TreeFixture files;
  Edits edits;
  for (std::uint64_t ino = 5; ino < 500; ++ino) {
    edits.points[{Ino{ino}, ItemKind::extent, 0}] = extent_value(10);
    edits.points[{Ino{ino}, ItemKind::extent, 10}] = tail;
  }
  files.merge(edits);
  EXPECT_EQ(files.root.ref.blocks, 495U * 10);
  const auto count = [&](std::uint64_t from, std::uint64_t to) {
    return count_blocks(files.source, files.root, Ino{77}, from, to).value();
  };
  EXPECT_EQ(count(0, format::kMaxFileBlocks), 10U);
  EXPECT_EQ(count(9, 11), 1U);
  EXPECT_EQ(count(10, 11), 0U);
  EXPECT_EQ(count(11, 20), 0U);
  Edits truncated;
  truncated.points[{Ino{77}, ItemKind::extent, 0}] = std::nullopt;
  files.merge(truncated);
  EXPECT_EQ(count(0, format::kMaxFileBlocks), 0U) << "the tail alone";
  EXPECT_EQ(files.root.ref.blocks, 494U * 10);
}

TEST_F(ItemTreeTest, WaitingForNodesChangesNothing) {
  for (int i = 0; i < 300; ++i) {
    flaky.forget();
    const Key key = some_key();
    Cursor cursor(flaky, tree.root);
    ASSERT_TRUE(retry([&] { return cursor.seek(key); }).ok());
    auto at = tree.model.lower_bound(key);
    for (int step = 0; step < 300 && at != tree.model.end(); ++step, ++at) {
      expect_at(cursor, at);
      ASSERT_TRUE(retry([&] { return cursor.next(); }).ok());
    }
    flaky.forget();
    ASSERT_TRUE(retry([&] { return cursor.seek_floor(key); }).ok());
    expect_at(cursor, floor_of(key));
    flaky.forget();
    const auto found = retry([&] { return find_item(flaky, tree.root, key); });
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->has_value(), tree.model.contains(key));
    flaky.forget();
    const auto counted = retry([&] { return count_blocks(flaky, tree.root, key.ino, 777, 77777); });
    ASSERT_TRUE(counted.ok());
    EXPECT_EQ(*counted, model_blocks(tree.model, key.ino, 777, 77777));
  }
}

TEST_F(ItemTreeTest, ADamagedNodeIsAnError) {
  const BlockAddr address = tree.root.ref.address;
  tree.device.poke((address.v << kBlockShift) + 200, std::array{std::byte{0x55}, std::byte{0xAA}});
  tree.cache.clear();
  BlockingSource source(tree.cache, tree.device);
  Cursor cursor(source, tree.root);
  EXPECT_TRUE(cursor.seek(format::kMinKey).fails_with(Errc::corrupt));
  EXPECT_FALSE(cursor.valid());
  EXPECT_TRUE(find_item(source, tree.root, format::kMinKey).fails_with(Errc::corrupt));
  EXPECT_TRUE(count_blocks(source, tree.root, Ino{1}, 0, 10).fails_with(Errc::corrupt));
}

// All checksums are right, and each node has many parents: 17 leaves, and more paths to them than could be walked in years.
class SharedSubtrees {
 public:
  static constexpr std::uint64_t kLeaves = 17;

  explicit SharedSubtrees(TreeFixture& tree) : tree_(tree) {
    for (std::uint64_t i = 0; i < kLeaves; ++i) level_.push_back(write_leaf(i));
    for (std::uint8_t level = 1; level <= format::kMaxTreeLevel; ++level) {
      std::vector<format::ChildRef> above;
      for (std::size_t i = 0; i < level_.size(); ++i) above.push_back(write_interior(std::span(level_).subspan(i), level));
      level_ = std::move(above);
    }
    tree.root = {level_[0].ref, format::kMaxTreeLevel};
  }

 private:
  format::ChildRef write_leaf(std::uint64_t number) {
    format::LeafBuilder leaf;
    const Key key{Ino{5}, ItemKind::extent, number};
    leaf.add(key, extent_value(1));
    return write(key, 1, [&](auto block, BlockAddr address) { return leaf.finish(block, kIdentity, Serial{1}, address); });
  }
  format::ChildRef write_interior(std::span<const format::ChildRef> children, std::uint8_t level) {
    format::InteriorBuilder interior;
    for (const format::ChildRef& child : children) interior.add(child);
    return write(children[0].first, interior.blocks(), [&](auto block, BlockAddr address) {
      return interior.finish(block, level, kIdentity, Serial{1}, address);
    });
  }
  format::ChildRef write(const Key& first, std::uint64_t blocks, auto&& finish) {
    std::array<std::byte, kBlockSize> block;
    const BlockAddr address{++last_};
    const std::uint32_t crc = finish(std::span<std::byte>(block), address);
    tree_.device.poke(address.v << kBlockShift, block);
    return {first, {address, crc, blocks}};
  }

  TreeFixture& tree_;
  std::vector<format::ChildRef> level_;
  std::uint64_t last_ = 0;
};

TEST(HostileItemTree, NoLeafIsVisitedTwice) {
  TreeFixture tree;
  const SharedSubtrees made(tree);
  Cursor cursor(tree.source, tree.root);
  ASSERT_TRUE(cursor.seek(format::kMinKey).ok());
  Status moved;
  std::uint64_t visited = 0;
  for (; moved.ok() && cursor.valid() && visited <= made.kLeaves; moved = cursor.next()) ++visited;
  EXPECT_TRUE(moved.fails_with(Errc::corrupt));
  EXPECT_EQ(visited, made.kLeaves);
  ASSERT_TRUE(cursor.valid()) << "it stays where it was";
  EXPECT_EQ(cursor.key().offset, made.kLeaves - 1);
}

TEST(EmptyItemTree, HasNothing) {
  TreeFixture tree;
  Cursor cursor(tree.source, tree.root);
  EXPECT_TRUE(cursor.seek(format::kMinKey).ok());
  EXPECT_FALSE(cursor.valid());
  EXPECT_TRUE(cursor.seek_floor(format::kMaxKey).ok());
  EXPECT_FALSE(cursor.valid());
  EXPECT_FALSE(find_item(tree.source, tree.root, format::kMinKey).value());
  EXPECT_EQ(count_blocks(tree.source, tree.root, Ino{1}, 0, 10).value(), 0U);
}

// Also where the tree has so many levels that some are neither root nor leaf.
TEST(FindNode, FindsEachNodeOfTheTreeOfSnapshots) {
  TreeFixture fixture;
  EditList edits;
  for (std::uint64_t i = 1; i <= 2000; ++i) edits.put(format::dead_key(Serial{i}, 0), format::Bytes(1000));
  edits.rewind();
  fixture.sink.begin();
  const TreeRoot root = merge_items(fixture.source, {{}, 0, format::TreeId::snapshots}, edits, fixture.sink, {}).value();
  ASSERT_GE(root.level, 2);
  fixture.cache.clear();
  NodePtr node = get_root(fixture.source, root).value();
  while (node->header().level > 0) {
    const auto below = static_cast<std::uint8_t>(node->header().level - 1);
    for (const format::ChildRef& child : node->children()) {
      const auto found = find_node(fixture.source, root, child.first, below);
      ASSERT_TRUE(found.ok()) << found.error().message();
      EXPECT_EQ(found->address, child.ref.address);
    }
    node = get_child(fixture.source, root.tree, node->children().back(), below).value();
  }
}

}  // namespace
}  // namespace varve::tree
