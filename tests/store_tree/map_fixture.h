// A map of 24-byte records, and a model of what is in it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "store_tree/tree_harness.h"
#include "tree/map_tree.h"

namespace varve::tree {

inline constexpr std::size_t kRecord = 24;

class MapTreeTest : public testing::Test {
 protected:
  MapTreeTest() { root.shape = {kRecord, 1'000'000}; }

  static void set(std::span<std::byte> record, std::uint64_t value) {
    ASSERT_EQ(record.size(), kRecord);
    std::memcpy(record.data(), &value, sizeof value);
  }
  std::uint64_t value_of(std::uint64_t index) {
    const auto leaf = find_map_leaf(tree.source, root, index);
    EXPECT_TRUE(leaf.ok()) << leaf.error().message();
    if (!leaf.ok() || !*leaf) return 0;
    std::uint64_t value = 0;
    std::memcpy(&value, (*leaf)->records().data() + index % root.shape.per_leaf() * kRecord, sizeof value);
    return value;
  }

  // Writes the changes and follows them up in the model. Every node of the old map is released or still in use.
  void change(const std::map<std::uint64_t, std::uint64_t>& changes) {
    tree.sink.begin();
    MapEditor editor(tree.source, root);
    std::vector<std::uint64_t> indices;
    for (const auto& [index, value] : changes) indices.push_back(index);
    ASSERT_TRUE(editor.touch(indices).ok());
    std::uint64_t addresses = 0;
    ASSERT_TRUE(editor.assign(tree.sink, [&](BlockAddr, std::uint8_t) { ++addresses; }).ok());
    for (const auto& [index, value] : changes) {
      set(editor.record(index), value);
      model[index] = value;
    }
    const auto written = editor.write(tree.sink);
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(tree.sink.written.size(), addresses);
    root = *written;
    for (const BlockAddr address : tree.sink.released) EXPECT_EQ(nodes.erase(address), 1U);
    nodes.insert(tree.sink.written.begin(), tree.sink.written.end());
  }

  std::map<std::uint64_t, std::uint64_t> scan() {
    std::map<std::uint64_t, std::uint64_t> found;
    const auto visit = [&](std::uint64_t first, std::span<const std::byte> records) {
      for (std::size_t i = 0; i < records.size() / kRecord; ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, records.data() + i * kRecord, sizeof value);
        EXPECT_LT(first + i, root.shape.records);
        if (value) found[first + i] = value;
      }
      return Status();
    };
    EXPECT_TRUE(scan_map(tree.source, root, visit).ok());
    return found;
  }

  TreeFixture tree;
  MapRoot root;
  std::map<std::uint64_t, std::uint64_t> model;
  Addresses nodes;
};

}  // namespace varve::tree
