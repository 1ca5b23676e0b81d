#include "tree/map_tree.h"

#include <gtest/gtest.h>

#include "store_tree/map_fixture.h"

namespace varve::tree {
namespace {

TEST_F(MapTreeTest, ANewMapIsZero) {
  EXPECT_EQ(value_of(0), 0U);
  EXPECT_EQ(value_of(999'999), 0U);
  EXPECT_TRUE(scan().empty());
  EXPECT_TRUE(find_map_leaf(tree.source, root, 1'000'000).fails_with(Errc::invalid));
}

TEST_F(MapTreeTest, WritesOnlyTheWayToARecord) {
  change({{123456, 7}});
  EXPECT_EQ(root.shape.root_level(), 2U);
  EXPECT_EQ(tree.sink.written.size(), 3U);
  EXPECT_EQ(value_of(123456), 7U);
  EXPECT_EQ(value_of(123457), 0U);
  change({{123457, 8}});
  EXPECT_EQ(tree.sink.released.size(), 3U);
  EXPECT_EQ(value_of(123456), 7U);
}

TEST_F(MapTreeTest, RandomChangesMatchAModel) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 40; ++round) {
    std::map<std::uint64_t, std::uint64_t> changes;
    const std::uint64_t base = random() % 1'000'000;
    for (std::uint64_t i = random() % 400; i > 0; --i)
      changes[round % 2 ? random() % 1'000'000 : (base + i) % 1'000'000] = random() | 1;
    changes[999'999] = random() | 1;
    change(changes);
    ASSERT_FALSE(HasFailure());
    if (round % 10 == 0) tree.cache.clear();
  }
  EXPECT_EQ(scan(), model);
  for (const auto& [index, value] : model) ASSERT_EQ(value_of(index), value);
}

TEST_F(MapTreeTest, OneLeafMayBeEverything) {
  root.shape = {kRecord, 100};
  change({{0, 1}, {99, 2}});
  EXPECT_EQ(tree.sink.written.size(), 1U);
  EXPECT_EQ(scan(), model);
}

TEST_F(MapTreeTest, ScanReadsInLargeBatches) {
  std::map<std::uint64_t, std::uint64_t> changes;
  for (std::uint64_t i = 0; i < 1'000'000; i += 99) changes[i] = i + 1;  // at least one in each leaf
  changes[999'999] = 1;
  change(changes);
  tree.cache.clear();
  BlockingSource source(tree.cache, tree.device, false);
  CountingSource counting(source);
  std::uint64_t leaves = 0;
  const auto visit = [&](std::uint64_t, std::span<const std::byte>) {
    ++leaves;
    return Status();
  };
  ASSERT_TRUE(scan_map(counting, root, visit).ok());
  EXPECT_EQ(leaves, root.shape.leaves());
  EXPECT_LE(counting.batches, 30U);
  for (const auto& [address, times] : counting.gets) EXPECT_EQ(times, 1U);
}

TEST_F(MapTreeTest, ScanStopsAtAnError) {
  change({{0, 1}, {500'000, 2}});
  unsigned visits = 0;
  const auto visit = [&](std::uint64_t, std::span<const std::byte>) {
    ++visits;
    return Status(Errc::interrupted);
  };
  EXPECT_TRUE(scan_map(tree.source, root, visit).fails_with(Errc::interrupted));
  EXPECT_EQ(visits, 1U);
}

// As `.mfile` does: each node of the map needs a record at the index of its own address, and a record for the block
// that it leaves. Addresses are handed out one after the other, so the set closes quickly.
TEST_F(MapTreeTest, AMapThatRecordsItsOwnNodesCloses) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 50; ++round) {
    tree.sink.begin();
    MapEditor editor(tree.source, root);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(editor.touch(500'000 + random() % 400'000).ok());
    std::vector<std::pair<BlockAddr, std::uint8_t>> given;
    unsigned turns = 0;
    const auto note = [&](BlockAddr address, std::uint8_t level) { given.emplace_back(address, level); };
    for (std::size_t done = 0;; ++turns) {
      ASSERT_TRUE(editor.assign(tree.sink, note).ok());
      if (done == given.size()) break;
      for (; done < given.size(); ++done) ASSERT_TRUE(editor.touch(given[done].first.v).ok());
      for (const BlockAddr address : tree.sink.released) ASSERT_TRUE(editor.touch(address.v).ok());
    }
    EXPECT_LE(turns, 6U);
    for (const BlockAddr address : tree.sink.released) set(editor.record(address.v), 0);
    for (const auto& [address, level] : given) set(editor.record(address.v), 100 + level);
    const auto written = editor.write(tree.sink);
    ASSERT_TRUE(written.ok());
    root = *written;
    for (const BlockAddr address : tree.sink.released) nodes.erase(address);
    nodes.insert(tree.sink.written.begin(), tree.sink.written.end());
  }
  const auto owned = scan();
  EXPECT_EQ(owned.size(), nodes.size());
  for (const BlockAddr address : nodes) EXPECT_TRUE(owned.contains(address.v));
}

TEST_F(MapTreeTest, NodesWithoutAddressesAreNotWritten) {
  MapEditor editor(tree.source, root);
  ASSERT_TRUE(editor.touch(5).ok());
  EXPECT_TRUE(editor.write(tree.sink).fails_with(Errc::invalid));
  tree.sink.fail_allocate = true;
  EXPECT_TRUE(editor.assign(tree.sink, {}).fails_with(Errc::no_space));
  EXPECT_TRUE(editor.write(tree.sink).fails_with(Errc::invalid));
  tree.sink.fail_allocate = false;
  ASSERT_TRUE(editor.assign(tree.sink, {}).ok());
  EXPECT_TRUE(editor.write(tree.sink).ok());
  EXPECT_TRUE(editor.record(999).empty());
  EXPECT_TRUE(editor.touch(1'000'000).fails_with(Errc::invalid));
}

// As a repair makes a map that is lost: the content of few leaves at a time is in memory.
TEST_F(MapTreeTest, DeferredLeavesAreMadeInParts) {
  std::map<std::uint64_t, std::uint64_t> before;
  for (std::uint64_t i = 0; i < 900'000; i += 20'011) before[i] = i + 7;
  change(before);
  tree.sink.begin();
  MapEditor editor(tree.source, root);
  editor.defer_leaves();
  std::vector<std::uint64_t> touched;
  for (std::uint64_t i = 3; i < 1'000'000; i += 9'001) touched.push_back(i);
  ASSERT_TRUE(editor.touch(touched).ok());
  ASSERT_TRUE(editor.assign(tree.sink, {}).ok());
  EXPECT_TRUE(editor.write(tree.sink).fails_with(Errc::invalid)) << "no leaf has content yet";
  for (std::uint64_t part = 0; part < 1'000'000; part += 100'000) {
    ASSERT_TRUE(editor.load_leaves(part, part + 100'000).ok());
    std::size_t loaded = 0;
    for (const std::uint64_t index : touched) {
      if (editor.record(index).empty()) continue;
      ++loaded;
      if (index < part || index >= part + 100'000) continue;
      set(editor.record(index), index);
      model[index] = index;
    }
    EXPECT_LE(loaded, 13U) << "what has been written is let go, what comes later is not loaded";
    ASSERT_TRUE(editor.write_leaves(tree.sink).ok());
  }
  const auto written = editor.write(tree.sink);
  ASSERT_TRUE(written.ok()) << written.error().message();
  root = *written;
  EXPECT_EQ(scan(), model) << "old content of the touched leaves included";
}

// As a checkpoint goes on from one lot of leaves to the next.
TEST_F(MapTreeTest, TouchedLeavesAreCountedOff) {
  const std::uint64_t per_leaf = root.shape.per_leaf();
  MapEditor editor(tree.source, root);
  editor.defer_leaves();
  EXPECT_EQ(editor.end_of_leaves(0, 3), 0U);
  for (const std::uint64_t leaf : {2, 3, 300, 5'000}) ASSERT_TRUE(editor.touch(leaf * per_leaf + 1).ok());
  EXPECT_EQ(editor.end_of_leaves(0, 1), 3 * per_leaf);
  EXPECT_EQ(editor.end_of_leaves(0, 3), 301 * per_leaf);
  EXPECT_EQ(editor.end_of_leaves(3 * per_leaf, 3), 5'001 * per_leaf);
  EXPECT_EQ(editor.end_of_leaves(301 * per_leaf, 3), 5'001 * per_leaf);
  EXPECT_EQ(editor.end_of_leaves(5'001 * per_leaf, 3), 5'001 * per_leaf) << "interior nodes are none";
}

TEST_F(MapTreeTest, DamageIsAnError) {
  change({{5, 1}, {600'000, 2}});
  const NodePtr leaf = find_map_leaf(tree.source, root, 5).value();
  tree.device.poke((leaf->header().address.v << kBlockShift) + 3000, std::array{std::byte{1}});
  tree.cache.clear();
  EXPECT_TRUE(find_map_leaf(tree.source, root, 5).fails_with(Errc::corrupt));
  EXPECT_EQ(value_of(600'000), 2U);
  EXPECT_TRUE(scan_map(tree.source, root, [](auto, auto) { return Status(); }).fails_with(Errc::corrupt));
  MapEditor editor(tree.source, root);
  EXPECT_TRUE(editor.touch(6).fails_with(Errc::corrupt));
}

// Whole and with the right CRC, but it holds other records than those that the way leads to.
TEST_F(MapTreeTest, ANodeInTheWrongPlaceIsAnError) {
  change({{5, 1}});
  root.shape.records = 100;  // now the root should be a leaf
  EXPECT_TRUE(find_map_leaf(tree.source, root, 5).fails_with(Errc::corrupt));
  AlignedBuffer block(kBlockSize);
  root.ref.address = BlockAddr{5000};
  root.ref.crc = format::encode_map_leaf(block.span(), {}, root.tree, 168, kIdentity, Serial{1}, root.ref.address);
  tree.device.poke(5000 << kBlockShift, block.span());
  EXPECT_TRUE(find_map_leaf(tree.source, root, 5).fails_with(Errc::corrupt));
}

}  // namespace
}  // namespace varve::tree
