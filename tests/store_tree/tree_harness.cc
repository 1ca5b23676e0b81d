#include "store_tree/tree_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace varve::tree {

using format::Bytes;
using format::ItemKind;
using format::Key;

namespace {

constexpr std::uint64_t kExtentSlot = 256;  // blocks; extents begin at multiples

}  // namespace

Bytes extent_value(std::uint64_t length, bool unwritten, std::uint32_t seed) {
  format::Extent extent;
  extent.length = length;
  extent.unwritten = unwritten;
  if (!unwritten) {
    extent.address = BlockAddr{1000 + seed};
    for (std::uint64_t i = 0; i < length; ++i) extent.crcs.push_back(seed + static_cast<std::uint32_t>(i));
  }
  Bytes value;
  format::encode_extent(extent, value);
  return value;
}

std::uint64_t model_blocks(const Model& model, Ino ino, std::uint64_t from, std::uint64_t to) {
  std::uint64_t sum = 0;
  for (auto at = model.lower_bound({ino, ItemKind::extent, 0}); at != model.end(); ++at) {
    if (at->first.ino != ino || at->first.kind != ItemKind::extent) break;
    const std::uint64_t begin = std::max(at->first.offset, from);
    const std::uint64_t end = std::min(at->first.offset + format::owned_blocks(at->second).value(), to);
    if (begin < end) sum += end - begin;
  }
  return sum;
}

void TestSink::begin() {
  ++serial_;
  free_.insert(free_.end(), released.begin(), released.end());
  allocated.clear();
  written.clear();
  released.clear();
}

Result<BlockAddr> TestSink::allocate() {
  if (fail_allocate) return Error(Errc::no_space, "no block for a node");
  BlockAddr address{next_};
  if (free_.size() > 64) {
    address = free_.front();
    free_.erase(free_.begin());
  } else {
    ++next_;
  }
  allocated.insert(address);
  return address;
}

Status TestSink::write(BlockAddr address, std::span<const std::byte> block, std::uint32_t crc, format::TreeId tree,
                       std::uint8_t level) {
  EXPECT_TRUE(allocated.contains(address));
  EXPECT_TRUE(written.insert(address).second) << "block written twice";
  EXPECT_TRUE(format::check_node(block, {kIdentity, address, crc, tree, level}).ok());
  device_.poke(address.v << kBlockShift, block);
  return {};
}

void TestSink::release(BlockAddr address, Serial) { EXPECT_TRUE(released.insert(address).second) << "released twice"; }

void Edits::apply_to(Model& model) const {
  for (const auto& [first, last] : ranges) model.erase(model.lower_bound(first), model.lower_bound(last));
  for (const auto& [key, value] : points) {
    if (value) model[key] = *value;
    else model.erase(key);
  }
}

std::optional<Key> ModelEditor::first_from(const Key& from) const {
  std::optional<Key> first;
  if (const auto point = edits_.points.lower_bound(from); point != edits_.points.end()) first = point->first;
  auto range = edits_.ranges.upper_bound(from);
  if (range != edits_.ranges.begin() && std::prev(range)->second > from) return from;
  if (range != edits_.ranges.end() && (!first || range->first < *first)) first = range->first;
  return first;
}

Status ModelEditor::edit(std::span<const format::ItemRef> old_items, const Key& bound, ItemSink& out) {
  ++leaves_edited;
  Model leaf;
  for (const auto& item : old_items) leaf[item.key] = Bytes(item.value.begin(), item.value.end());
  Edits part;
  part.ranges = edits_.ranges;
  part.points.insert(edits_.points.begin(), edits_.points.lower_bound(bound));
  part.apply_to(leaf);
  for (const auto& [key, value] : leaf) TRY(out.put(key, value));
  consume(bound);
  return {};
}

void ModelEditor::consume(const Key& bound) {
  edits_.points.erase(edits_.points.begin(), edits_.points.lower_bound(bound));
  while (!edits_.ranges.empty() && edits_.ranges.begin()->first < bound) {
    const Key end = edits_.ranges.begin()->second;
    edits_.ranges.erase(edits_.ranges.begin());
    if (end > bound) edits_.ranges[bound] = end;
  }
}

double TreeFacts::leaf_fill() const {
  const auto& leaves = used[0];
  return static_cast<double>(std::accumulate(leaves.begin(), leaves.end(), std::size_t{0})) /
         static_cast<double>(leaves.size() * format::kNodePayloadBytes);
}

namespace {

void inspect_node(NodeSource& source, const format::ChildRef& ref, unsigned level, const Key& lower, const Key& bound,
                  TreeFacts& facts) {
  ASSERT_TRUE(facts.nodes.insert(ref.ref.address).second) << "node used twice";
  const auto node = source.get({ref.ref, format::TreeId::inode_file, static_cast<std::uint8_t>(level)});
  ASSERT_TRUE(node.ok()) << node.error().message();
  const auto& header = (*node)->header();
  ASSERT_EQ(header.first, ref.first);
  facts.used[level].push_back(header.used);
  std::uint64_t blocks = 0;
  if (level == 0) {
    for (const auto& item : (*node)->items()) {
      ASSERT_TRUE(item.key >= lower && item.key < bound);
      facts.items[item.key] = Bytes(item.value.begin(), item.value.end());
      if (item.key.kind == ItemKind::extent) blocks += format::owned_blocks(item.value).value();
    }
    facts.blocks += blocks;
  } else {
    const auto children = (*node)->children();
    for (std::size_t i = 0; i < children.size(); ++i) {
      const Key child_lower = i == 0 ? lower : children[i].first;
      const Key child_bound = i + 1 < children.size() ? children[i + 1].first : bound;
      ASSERT_TRUE(children[i].first >= lower && children[i].first < bound);
      inspect_node(source, children[i], level - 1, child_lower, child_bound, facts);
      blocks += children[i].ref.blocks;
    }
  }
  EXPECT_EQ(blocks, ref.ref.blocks);
}

}  // namespace

TreeFacts inspect(NodeSource& source, const TreeRoot& root) {
  TreeFacts facts;
  facts.used.resize(root.level + 1U);
  if (!root.ref) return facts;
  const auto top = get_root(source, root);
  EXPECT_TRUE(top.ok());
  if (!top.ok()) return facts;
  inspect_node(source, {(*top)->header().first, root.ref}, root.level, format::kMinKey, format::kMaxKey, facts);
  return facts;
}

TreeFixture::TreeFixture(std::size_t cache_bytes, std::uint64_t device_bytes)
    : device(device_bytes), cache(kIdentity, cache_bytes), source(cache, device), counting(source), sink(device) {
  facts.used.resize(1);
}

void TreeFixture::merge(const Edits& edits, const MergeOptions& options, bool looks_ahead) {
  const TreeFacts before = std::move(facts);
  sink.begin();
  counting.reset();
  ModelEditor editor(edits, looks_ahead);
  const auto merged = merge_items(counting, root, editor, sink, options);
  ASSERT_TRUE(merged.ok()) << merged.error().message();
  root = *merged;
  edits.apply_to(model);
  facts = inspect(source, root);
  check(before, facts, looks_ahead);
}

void TreeFixture::check(const TreeFacts& before, const TreeFacts& after, bool looks_ahead) {
  EXPECT_TRUE(after.items == model);
  // The new tree consists of old nodes that were not released and of all that was written, and nothing is lost.
  Addresses expected;
  std::ranges::set_difference(before.nodes, sink.released, std::inserter(expected, expected.end()));
  EXPECT_EQ(expected.size() + sink.released.size(), before.nodes.size()) << "released what was not in the tree";
  expected.insert(sink.written.begin(), sink.written.end());
  EXPECT_TRUE(after.nodes == expected);
  EXPECT_TRUE(sink.allocated == sink.written);
  // Read once, and only what is rewritten (but for a look at a node that may have to make way as the root).
  for (const auto& [address, times] : counting.gets) EXPECT_EQ(times, 1U);
  EXPECT_LE(sink.released.size(), counting.gets.size());
  EXPECT_LE(counting.gets.size(), sink.released.size() + 1);
  const auto was_used = [&](BlockAddr address) { return counting.gets.contains(address); };
  EXPECT_TRUE(!looks_ahead || std::ranges::all_of(counting.prefetched, was_used));
  // Nothing but the right edge is thin. Values of a quarter node make cuts uneven.
  for (const auto& level : after.used)
    for (std::size_t i = 0; i + 1 < level.size(); ++i) EXPECT_GE(level[i], format::kNodePayloadBytes * 26 / 100);
}

Key RandomItems::key() {
  const Ino ino{1 + below(inodes_)};
  switch (below(8)) {
    case 0: return {ino, ItemKind::attributes, 0};
    case 1: return {ino, ItemKind::dirent, below(slots_)};
    case 2: return {ino, ItemKind::name_hash, random()};
    default: return {ino, ItemKind::extent, below(slots_) * kExtentSlot};
  }
}

Bytes RandomItems::value(const Key& key) {
  const bool is_big = below(16) == 0;
  if (key.kind == ItemKind::extent) {
    const auto seed = static_cast<std::uint32_t>(below(1 << 20));
    const std::uint64_t longest = std::min<std::uint64_t>(kExtentSlot, (value_max_ - 12) / 4);
    return extent_value(1 + below(is_big ? longest : 3), below(5) == 0, seed);
  }
  Bytes bytes(below(is_big ? value_max_ + 1 : 40));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

Edits RandomItems::edits(const Model& model, std::size_t count) {
  Edits edits;
  const auto existing = [&] {
    auto at = model.lower_bound(key());
    return at == model.end() ? model.begin() : at;
  };
  const unsigned deletes = static_cast<unsigned>(below(100));  // percent: phases of growing and shrinking
  for (std::size_t i = 0; i < count; ++i) {
    if (!model.empty() && below(100) < deletes) {
      edits.points[existing()->first] = std::nullopt;
    } else {
      const Key at = !model.empty() && below(3) == 0 ? existing()->first : key();
      edits.points[at] = value(at);
    }
  }
  if (!model.empty() && below(10) == 0) {
    Key from = existing()->first, to = key();
    if (below(2)) to = Key{from.ino + 1, ItemKind::extent, 0};
    if (from > to) std::swap(from, to);
    if (from < to) edits.ranges[from] = to;
  }
  return edits;
}

}  // namespace varve::tree
