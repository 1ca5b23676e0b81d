// Maps that grow and shrink, over the borders of their levels.
#include <random>

#include "store_tree/map_fixture.h"

namespace varve::tree {
namespace {

class MapReshapeTest : public MapTreeTest {
 protected:
  MapReshapeTest() { root.shape.records = 100; }

  // Its nodes afterwards are exactly those that are written and not released.
  void finish(MapEditor& editor) {
    std::uint64_t addresses = 0;
    ASSERT_TRUE(editor.assign(tree.sink, [&](BlockAddr, std::uint8_t) { ++addresses; }).ok());
    const auto written = editor.write(tree.sink);
    ASSERT_TRUE(written.ok()) << written.error().message();
    root = *written;
    EXPECT_EQ(tree.sink.written.size(), addresses);
    for (const BlockAddr address : tree.sink.released) EXPECT_EQ(nodes.erase(address), 1U) << address.v;
    nodes.insert(tree.sink.written.begin(), tree.sink.written.end());
  }

  void reshape(std::uint64_t records, bool deferred = false) {
    tree.sink.begin();
    MapEditor editor(tree.source, root);
    if (deferred) editor.defer_leaves();
    ASSERT_TRUE(editor.reshape({kRecord, records}, tree.sink).ok());
    if (deferred) {
      ASSERT_TRUE(editor.load_leaves(0, records).ok());
      ASSERT_TRUE(editor.assign(tree.sink, {}).ok());
      ASSERT_TRUE(editor.write_leaves(tree.sink).ok());
    }
    model.erase(model.lower_bound(records), model.end());
    finish_after(editor, deferred);
    EXPECT_EQ(root.shape.records, records);
  }

  void finish_after(MapEditor& editor, bool deferred) {
    if (!deferred) return finish(editor);
    const auto written = editor.write(tree.sink);
    ASSERT_TRUE(written.ok()) << written.error().message();
    root = *written;
    for (const BlockAddr address : tree.sink.released) EXPECT_EQ(nodes.erase(address), 1U);
    nodes.insert(tree.sink.written.begin(), tree.sink.written.end());
  }

  // All nodes that the root leads to.
  std::uint64_t reachable() { return root.ref ? below(root.ref, root.shape.root_level()) : 0; }
  std::uint64_t below(const format::NodeRef& ref, unsigned level) {
    EXPECT_TRUE(nodes.contains(ref.address)) << "a node that was released";
    std::uint64_t count = 1;
    const auto node = tree.source.get({ref, root.tree, static_cast<std::uint8_t>(level)});
    EXPECT_TRUE(node.ok());
    for (std::size_t i = 0; level > 0 && node.ok() && i < format::kMapFanout; ++i)
      if ((*node)->slots()[i]) count += below((*node)->slots()[i], level - 1);
    return count;
  }
  void expect_whole() {
    EXPECT_EQ(scan(), model);
    EXPECT_EQ(reachable(), nodes.size());
  }
};

constexpr std::uint64_t kLeaf = 168, kLevel1 = kLeaf * 256, kLevel2 = kLevel1 * 256;

TEST_F(MapReshapeTest, GrowingAddsLevelsAboveTheOldRoot) {
  change({{3, 30}, {99, 990}});
  reshape(kLeaf + 1);
  EXPECT_EQ(tree.sink.written.size(), 1U) << "a root over the old leaf, which stays";
  EXPECT_TRUE(tree.sink.released.empty());
  expect_whole();
  reshape(kLevel2 + 1);
  EXPECT_EQ(root.shape.root_level(), 3U);
  EXPECT_EQ(tree.sink.written.size(), 2U);
  expect_whole();
  change({{kLevel2, 7}, {3, 31}});
  expect_whole();
}

TEST_F(MapReshapeTest, GrowingWithinALevelWritesNothing) {
  change({{3, 30}});
  reshape(kLeaf);
  EXPECT_TRUE(tree.sink.written.empty());
  change({{kLeaf - 1, 5}});
  expect_whole();
}

TEST_F(MapReshapeTest, AMapOfZerosGrowsAndShrinks) {
  for (const std::uint64_t records : {kLevel2 * 5, kLevel1, std::uint64_t{16}, kLevel2 + 3}) {
    reshape(records);
    EXPECT_FALSE(root.ref);
    EXPECT_TRUE(nodes.empty());
  }
}

TEST_F(MapReshapeTest, ShrinkingReleasesWhatStandsBeyondAndDescends) {
  reshape(kLevel2 * 3);
  std::map<std::uint64_t, std::uint64_t> changes;
  for (std::uint64_t i = 5; i < kLevel2 * 3; i += kLevel1 / 2 + 77) changes[i] = i;
  change(changes);
  for (const std::uint64_t records :
       {kLevel2 * 2 + 1, kLevel2 * 2, kLevel2, kLevel1 * 3 + kLeaf + 9, kLevel1 + 1, kLevel1, kLeaf, std::uint64_t{6}}) {
    reshape(records);
    EXPECT_EQ(root.shape.root_level(), (format::MapShape{kRecord, records}.root_level()));
    expect_whole();
    if (HasFailure()) FAIL() << records;
  }
  EXPECT_EQ(model.size(), 1U);
}

// What comes back reads as zeros: the rest of the last leaf has been cleared.
TEST_F(MapReshapeTest, WhatWasCutOffIsForgotten) {
  reshape(1000);
  change({{10, 1}, {20, 2}, {300, 3}, {900, 4}});
  reshape(20);
  reshape(1000);
  EXPECT_EQ(value_of(10), 1U);
  EXPECT_EQ(value_of(20), 0U);
  EXPECT_EQ(value_of(300), 0U);
  expect_whole();
}

TEST_F(MapReshapeTest, LeavesMayBeLoadedLater) {
  reshape(kLevel1 * 2);
  change({{10, 1}, {kLeaf + 20, 2}, {kLeaf + 21, 3}, {kLevel1 + 4, 4}});
  reshape(kLeaf + 21, true);
  EXPECT_EQ(value_of(kLeaf + 20), 2U);
  expect_whole();
  reshape(kLevel1 * 2, true);
  EXPECT_EQ(value_of(kLeaf + 21), 0U);
  expect_whole();
}

TEST_F(MapReshapeTest, TheEndIsClearedWithoutAnotherShape) {
  reshape(kLevel2 * 2);
  change({{7, 1}, {kLevel1 + 8, 2}, {kLevel1 + 9, 3}, {kLevel1 * 5, 4}, {kLevel2 + 1, 5}});
  tree.sink.begin();
  MapEditor editor(tree.source, root);
  ASSERT_TRUE(editor.clear_from(kLevel1 + 9, tree.sink).ok());
  model.erase(model.lower_bound(kLevel1 + 9), model.end());
  finish(editor);
  EXPECT_EQ(root.shape.records, kLevel2 * 2);
  expect_whole();
}

TEST_F(MapReshapeTest, RandomSizesMatchAModel) {
  std::mt19937_64 random(11);
  const std::uint64_t most[] = {kLeaf * 2, kLevel1 * 2, kLevel2 * 2};
  for (int round = 0; round < 150; ++round) {
    reshape(1 + random() % most[random() % 3], random() % 2);
    std::map<std::uint64_t, std::uint64_t> changes;
    for (std::uint64_t i = random() % 50; i > 0; --i) changes[random() % root.shape.records] = random() | 1;
    if (random() % 2) changes[root.shape.records - 1] = random() | 1;
    if (!changes.empty()) change(changes);
    if (random() % 5 == 0) tree.cache.clear();
    expect_whole();
    if (HasFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace varve::tree
