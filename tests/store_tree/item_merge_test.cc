// Merges against a map: after each one, the new tree holds what the map holds, and nothing was read, written or
// released that should not have been (TreeFixture::check).
#include <gtest/gtest.h>

#include <algorithm>

#include "store_tree/tree_harness.h"

namespace varve::tree {
namespace {

using format::Bytes;
using format::ItemKind;
using format::Key;

Edits numbered(std::uint64_t first, std::uint64_t count, std::size_t bytes, std::uint64_t step = 1) {
  Edits edits;
  for (std::uint64_t i = 0; i < count; ++i)
    edits.points[{Ino{first + i * step}, ItemKind::attributes, 0}] = Bytes(bytes, static_cast<std::byte>(i));
  return edits;
}

Key attributes_of(std::uint64_t ino) { return {Ino{ino}, ItemKind::attributes, 0}; }

TEST(ItemMerge, StartsFromNothingAndEndsWithNothing) {
  TreeFixture tree;
  tree.merge(numbered(1, 1, 10));
  EXPECT_EQ(tree.root.level, 0);
  Edits all;
  all.ranges[format::kMinKey] = format::kMaxKey;
  tree.merge(all);
  EXPECT_FALSE(tree.root.ref);
  tree.merge(Edits{});
  EXPECT_FALSE(tree.root.ref);
}

TEST(ItemMerge, WithoutEditsKeepsTheRoot) {
  TreeFixture tree;
  tree.merge(numbered(1, 5000, 40));
  const TreeRoot root = tree.root;
  tree.merge(Edits{});
  EXPECT_EQ(tree.root, root);
  EXPECT_TRUE(tree.counting.gets.empty());
}

TEST(ItemMerge, PacksWhatComesAtOnce) {
  TreeFixture tree;
  tree.merge(numbered(1, 20000, 60));
  EXPECT_EQ(tree.root.level, 2);
  EXPECT_GE(tree.facts.leaf_fill(), 0.90);
}

TEST(ItemMerge, RewritesOnlyThePath) {
  TreeFixture tree;
  tree.merge(numbered(1, 20000, 60));
  tree.merge(numbered(9000, 1, 61));
  EXPECT_EQ(tree.sink.written.size(), 3U);
  EXPECT_EQ(tree.sink.released.size(), 3U);
}

TEST(ItemMerge, AppendingLeavesFullNodesBehind) {
  TreeFixture tree;
  for (std::uint64_t i = 0; i < 100; ++i) tree.merge(numbered(1 + i * 23, 23, 60));
  EXPECT_GE(tree.facts.leaf_fill(), 0.85);
}

TEST(ItemMerge, AThinLeafTakesItsNeighbourAlong) {
  TreeFixture tree;
  tree.merge(numbered(1, 5000, 60));
  for (std::uint64_t from = 500; from < 4500; from += 500) {
    Edits edits;
    edits.ranges[attributes_of(from)] = attributes_of(from + 54);  // nearly a leaf
    tree.merge(edits);
  }
  tree.facts.used[0].pop_back();  // the right edge may be thin
  EXPECT_GE(std::ranges::min(tree.facts.used[0]), format::kNodePayloadBytes * 40 / 100);
}

TEST(ItemMerge, ARangeSpanningManyLeavesRemovesThem) {
  TreeFixture tree;
  tree.merge(numbered(1, 40000, 60));
  Edits edits;
  edits.ranges[attributes_of(10)] = attributes_of(39990);
  edits.points[attributes_of(20000)] = Bytes(5);
  tree.merge(edits);
  EXPECT_EQ(tree.root.level, 0);
  EXPECT_EQ(tree.model.size(), 21U);
}

// What is left of the first parent is too little, and there is nothing to its left.
TEST(ItemMerge, TheLeftEdgeTakesItsRightNeighbourAlong) {
  TreeFixture tree;
  tree.merge(numbered(1, 40000, 60));
  for (const std::uint64_t end : {9000, 9001, 20000, 39000}) {
    Edits edits;
    edits.ranges[attributes_of(2)] = attributes_of(end);
    tree.merge(edits);
  }
}

TEST(ItemMerge, BigValues) {
  TreeFixture tree;
  tree.merge(numbered(1, 2000, format::kMaxItemValue));
  tree.merge(numbered(2, 700, format::kMaxItemValue, 3));
  Edits edits = numbered(1, 900, 0, 2);
  edits.ranges[attributes_of(500)] = attributes_of(900);
  tree.merge(edits);
}

struct Shape {
  std::uint64_t inodes, slots;
  std::size_t value_max, edits_max;
  unsigned rounds;
};

void work(const Shape& shape, std::uint64_t seed, std::size_t cache_bytes) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  TreeFixture tree(cache_bytes);
  RandomItems items(seed, shape.inodes, shape.slots, shape.value_max);
  for (unsigned round = 0; round < shape.rounds && !testing::Test::HasFailure(); ++round) {
    const bool looks_ahead = items.below(4) != 0;
    const Edits edits = items.edits(tree.model, 1 + items.below(items.below(4) ? 10 : shape.edits_max));
    tree.merge(edits, {}, looks_ahead);
    const bool is_large = tree.facts.used[0].size() >= 20;
    EXPECT_TRUE(!is_large || tree.facts.leaf_fill() >= 0.5) << "round " << round;
  }
}

TEST(ItemMerge, RandomWorkOnSmallTrees) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) work({3, 50, format::kMaxItemValue, 100, 400}, seed, 64 << 20);
}

TEST(ItemMerge, RandomWorkOnMiddleTrees) {
  for (std::uint64_t seed = 11; seed <= 12; ++seed) work({20, 1000, format::kMaxItemValue, 2000, 300}, seed, 64 << 20);
}

TEST(ItemMerge, RandomWorkWithHardlyAnyCache) { work({40, 1000, 300, 2000, 200}, 21, 64 << 10); }

// Scattered single changes, no bulk packing: fill comes from splitting and merging alone.
TEST(ItemMerge, LongRandomWorkKeepsLeavesFilled) {
  TreeFixture tree;
  RandomItems items(31, 60, 400, 200);
  while (tree.model.size() < 5000) {
    Edits edits;
    for (int i = 0; i < 40; ++i) {
      const Key key = items.key();
      edits.points[key] = items.value(key);
    }
    tree.merge(edits);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GE(tree.facts.leaf_fill(), 0.60) << "after inserting";
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    Edits edits;
    for (int i = 0; i < 20; ++i) {
      const Key key = items.key();
      edits.points[key] = items.value(key);
      auto gone = tree.model.lower_bound(items.key());
      if (gone != tree.model.end()) edits.points[gone->first] = std::nullopt;
    }
    tree.merge(edits);
  }
  EXPECT_GE(tree.facts.leaf_fill(), 0.60) << "after replacing";
}

TEST(ItemMerge, FourLevels) {
  TreeFixture tree(256 << 20);
  Edits edits;
  std::mt19937_64 random(5);
  while (edits.points.size() < 52000)
    edits.points[{Ino{random() >> 1}, ItemKind::name_hash, random()}] = Bytes(format::kMaxItemValue);
  tree.merge(edits);
  ASSERT_EQ(tree.root.level, 3);
  for (int round = 0; round < 5 && !HasFailure(); ++round) {
    Edits some;
    for (int i = 0; i < 50; ++i) {
      some.points[{Ino{random() >> 1}, ItemKind::name_hash, random()}] = Bytes(random() % 1000);
      some.points[tree.model.lower_bound({Ino{random() >> 2}, ItemKind::extent, 0})->first] = std::nullopt;
    }
    const Ino from{random() >> 2};
    some.ranges[{from, ItemKind::extent, 0}] = {from + (1ULL << 58), ItemKind::extent, 0};
    tree.merge(some);
    EXPECT_LE(tree.counting.batches, 12U) << "scattered edits are to be fetched in few batches";
  }
}

// --- evacuation -----------------------------------------------------------------------------------------------------

TEST(ItemMerge, EvacuatesNodesItComesAcross) {
  TreeFixture tree;
  tree.merge(numbered(1, 20000, 60));
  Addresses victims;
  for (const BlockAddr address : tree.facts.nodes)
    if (address.v % 7 == 0) victims.insert(address);
  MergeOptions options;
  options.evacuate = [&](BlockAddr address) { return victims.contains(address); };
  tree.merge(numbered(1, 1, 61), options);  // the root and the first child of it
  EXPECT_TRUE(std::ranges::any_of(victims, [&](BlockAddr a) { return tree.sink.released.contains(a); }));
  tree.merge(numbered(1, 20000 / 40, 62, 40), options);  // every node above leaves
  for (const BlockAddr address : victims) EXPECT_FALSE(tree.facts.nodes.contains(address));
}

TEST(ItemMerge, GoesToTheNodesThatMustBeEvacuated) {
  TreeFixture tree;
  tree.merge(numbered(1, 20000, 60));
  MergeOptions options;
  Addresses victims;
  const auto top = get_root(tree.source, tree.root).value();
  const auto& middle = top->children().front();
  options.evacuate_keys.push_back({middle.first, 1});
  victims.insert(middle.ref.address);
  const auto parent = get_child(tree.source, format::TreeId::inode_file, top->children().back(), 1).value();
  const auto& leaf = parent->children()[5];
  options.evacuate_keys.push_back({leaf.first, 0});
  victims.insert(leaf.ref.address);
  tree.merge(Edits{}, options);
  for (const BlockAddr address : victims) EXPECT_TRUE(tree.sink.released.contains(address));
  EXPECT_EQ(tree.sink.released.size(), 4U);  // with the root and the leaf's parent
}

TEST(ItemMerge, EvacuatesARoot) {
  TreeFixture tree;
  tree.merge(numbered(1, 3, 60));
  const BlockAddr root = tree.root.ref.address;
  MergeOptions options;
  options.evacuate = [&](BlockAddr address) { return address == root; };
  tree.merge(Edits{}, options);
  EXPECT_NE(tree.root.ref.address, root);
}

// --- what goes wrong ------------------------------------------------------------------------------------------------

Error merge_error(TreeFixture& tree, ItemEditor& editor) {
  tree.sink.begin();
  BlockingSource source(tree.cache, tree.device);
  const auto result = merge_items(source, tree.root, editor, tree.sink, {});
  tree.sink.released.clear();  // forgotten with the merge
  return result.ok() ? Error(Errc::would_block, "no error") : result.error();
}

TEST(ItemMerge, ADamagedNodeIsAnErrorAndTheOldTreeStays) {
  TreeFixture tree;
  tree.merge(numbered(1, 20000, 60));
  for (const BlockAddr address : Addresses(tree.facts.nodes)) {
    if (address.v % 10 != 0) continue;
    std::array<std::byte, kBlockSize> good, bad;
    tree.device.peek(address.v << kBlockShift, good);
    bad = good;
    bad[100] ^= std::byte{1};
    tree.device.poke(address.v << kBlockShift, bad);
    tree.cache.clear();
    ModelEditor editor(numbered(1, 20000, 5));
    const Error error = merge_error(tree, editor);
    EXPECT_TRUE(error.is(Errc::corrupt)) << error.message();
    EXPECT_NE(error.message().find(fmt::format("block {}", address)), std::string::npos) << error.message();
    tree.device.poke(address.v << kBlockShift, good);
  }
  EXPECT_TRUE(inspect(tree.source, tree.root).items == tree.model);
}

// A leaf, or a node above leaves, of which a merge leaves next to nothing, between bad ones: these stay, and are none of its concern.
TEST(ItemMerge, ABadNeighbourIsNotTakenAlong) {
  for (const std::uint8_t level : {0, 1})
    for (const unsigned bad : {1U, 2U, 3U}) {
      SCOPED_TRACE(fmt::format("level {}, bad neighbours {}", level, bad));
      TreeFixture tree;
      tree.merge(numbered(1, 40000, 60));
      NodePtr parent = get_root(tree.source, tree.root).value();
      while (parent->header().level > level + 1U)
        parent = get_child(tree.source, format::TreeId::inode_file, parent->children()[1],
                           static_cast<std::uint8_t>(parent->header().level - 1)).value();
      const std::vector<format::ChildRef> children(parent->children().begin(), parent->children().end());
      ASSERT_GE(children.size(), 3U);
      const auto before = tree.device.snapshot();
      for (const std::size_t i : {0, 2})
        if (bad & (i == 0 ? 1U : 2U)) tree.device.poke(children[i].ref.address.v << kBlockShift, std::array<std::byte, kBlockSize>{});
      tree.cache.clear();

      Edits edits;
      edits.ranges[{children[1].first.ino, children[1].first.kind, children[1].first.offset + 1}] = children[2].first;
      ModelEditor editor(edits);
      tree.sink.begin();
      BlockingSource source(tree.cache, tree.device);
      const auto merged = merge_items(source, tree.root, editor, tree.sink, {});
      ASSERT_TRUE(merged.ok()) << merged.error().message();
      for (const std::size_t i : {0, 2}) {
        const BlockAddr address = children[i].ref.address;
        if (!(bad & (i == 0 ? 1U : 2U))) continue;
        EXPECT_FALSE(tree.sink.released.contains(address));
        std::array<std::byte, kBlockSize> good;
        before->peek(address.v << kBlockShift, good);
        tree.device.poke(address.v << kBlockShift, good);
      }
      tree.cache.clear();
      edits.apply_to(tree.model);
      EXPECT_TRUE(inspect(tree.source, *merged).items == tree.model);
    }
}

// A node that is whole, and has the right CRC, but whose keys do not fit in its place.
TEST(ItemMerge, ANodeWithKeysOutsideItsPlaceIsCorrupt) {
  TreeFixture tree;
  tree.merge(numbered(1, 10, 60));
  const auto leaf = [&](std::uint64_t first, std::uint64_t last, BlockAddr address) {
    format::LeafBuilder builder;
    EXPECT_TRUE(builder.add(attributes_of(first), {}) && builder.add(attributes_of(last), {}));
    std::array<std::byte, kBlockSize> block;
    const std::uint32_t crc = builder.finish(block, kIdentity, Serial{1}, address);
    tree.device.poke(address.v << kBlockShift, block);
    return format::ChildRef{attributes_of(first), {address, crc, 0}};
  };
  format::InteriorBuilder builder;
  EXPECT_TRUE(builder.add(leaf(1, 500, BlockAddr{1000})) && builder.add(leaf(100, 600, BlockAddr{1001})));
  std::array<std::byte, kBlockSize> block;
  const std::uint32_t crc = builder.finish(block, 1, kIdentity, Serial{1}, BlockAddr{1002});
  tree.device.poke(1002 << kBlockShift, block);
  tree.root = {{BlockAddr{1002}, crc, 0}, 1};
  ModelEditor editor(numbered(5, 100, 5));
  EXPECT_TRUE(merge_error(tree, editor).is(Errc::corrupt));
}

TEST(ItemMerge, AFullDeviceIsAnError) {
  TreeFixture tree;
  tree.merge(numbered(1, 100, 60));
  tree.sink.fail_allocate = true;
  ModelEditor editor(numbered(5, 100, 5));
  EXPECT_TRUE(merge_error(tree, editor).is(Errc::no_space));
}

class BadEditor : public ItemEditor {
 public:
  enum class Way { backwards, beyond, too_big, leaves_behind };
  explicit BadEditor(Way way) : way_(way) {}
  std::optional<Key> next_key() override { return attributes_of(3); }
  Status edit(std::span<const format::ItemRef>, const Key& bound, ItemSink& out) override {
    switch (way_) {
      case Way::backwards: TRY(out.put(attributes_of(2), {})); return out.put(attributes_of(1), {});
      case Way::beyond: return out.put(bound, {});
      case Way::too_big: return out.put(attributes_of(2), Bytes(format::kMaxItemValue + 1));
      case Way::leaves_behind: return {};
    }
    return {};
  }

 private:
  Way way_;
};

TEST(ItemMerge, AnEditorThatBreaksItsContractIsAnError) {
  for (const auto way : {BadEditor::Way::backwards, BadEditor::Way::beyond, BadEditor::Way::too_big,
                         BadEditor::Way::leaves_behind}) {
    TreeFixture tree;
    tree.merge(numbered(1, 100, 60));
    BadEditor editor(way);
    EXPECT_TRUE(merge_error(tree, editor).is(Errc::invalid));
  }
}

}  // namespace
}  // namespace varve::tree
