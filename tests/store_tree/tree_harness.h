// A device, a sink and a model to run trees against.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "format/item.h"
#include "io/mem_device.h"
#include "tree/item_merge.h"
#include "tree/item_tree.h"

namespace varve::tree {

inline constexpr std::uint64_t kIdentity = 0x1D1D;

using Model = std::map<format::Key, format::Bytes>;
using Addresses = std::set<BlockAddr>;

format::Bytes extent_value(std::uint64_t length, bool unwritten = false, std::uint32_t seed = 1);
std::uint64_t model_blocks(const Model& model, Ino ino, std::uint64_t from, std::uint64_t to);

// Writes nodes straight to a device. Addresses released by one merge are handed out again by later ones, as on a real
// device, so that stale nodes in a cache show up.
class TestSink : public NodeSink {
 public:
  explicit TestSink(io::MemDevice& device) : device_(device) {}

  void begin();  // of a merge
  std::uint64_t identity() const override { return kIdentity; }
  Serial serial() const override { return serial_; }
  Result<BlockAddr> allocate() override;
  Status write(BlockAddr address, std::span<const std::byte> block, std::uint32_t crc, format::TreeId tree,
               std::uint8_t level) override;
  void release(BlockAddr address, Serial birth) override;

  Addresses allocated, written, released;  // by the current merge
  bool fail_allocate = false;

 private:
  io::MemDevice& device_;
  Serial serial_;
  std::uint64_t next_ = 1;
  std::vector<BlockAddr> free_;
};

// Counts what a merge asks for.
class CountingSource : public NodeSource {
 public:
  explicit CountingSource(NodeSource& inner) : inner_(inner) {}
  Result<NodePtr> get(const NodeWant& want) override {
    ++gets[want.ref.address];
    return inner_.get(want);
  }
  void prefetch(std::span<const NodeWant> wants) override {
    ++batches;
    for (const NodeWant& want : wants) prefetched.insert(want.ref.address);
    inner_.prefetch(wants);
  }
  void reset() {
    gets.clear();
    prefetched.clear();
    batches = 0;
  }

  std::map<BlockAddr, unsigned> gets;
  Addresses prefetched;
  unsigned batches = 0;

 private:
  NodeSource& inner_;
};

// Point edits (nullopt deletes) after range deletions [first, second).
struct Edits {
  std::map<format::Key, std::optional<format::Bytes>> points;
  std::map<format::Key, format::Key> ranges;  // disjoint

  void apply_to(Model& model) const;
};

class ModelEditor : public ItemEditor {
 public:
  explicit ModelEditor(Edits edits, bool looks_ahead = true) : edits_(std::move(edits)), looks_ahead_(looks_ahead) {}
  std::optional<format::Key> next_key() override { return first_from(format::kMinKey); }
  Status edit(std::span<const format::ItemRef> old_items, const format::Key& bound, ItemSink& out) override;
  std::optional<format::Key> peek_key(const format::Key& from) override {
    return looks_ahead_ ? first_from(from) : std::nullopt;
  }

  unsigned leaves_edited = 0;

 private:
  std::optional<format::Key> first_from(const format::Key& from) const;
  void consume(const format::Key& bound);

  Edits edits_;
  bool looks_ahead_;
};

struct TreeFacts {
  Addresses nodes;
  Model items;
  std::vector<std::vector<std::size_t>> used;  // [level]: bytes of each node, left to right
  std::uint64_t blocks = 0;

  double leaf_fill() const;
};
// Reads the whole tree and checks everything that must hold in any tree.
TreeFacts inspect(NodeSource& source, const TreeRoot& root);

// A tree, its model, and a merge with all its promises checked.
class TreeFixture {
 public:
  explicit TreeFixture(std::size_t cache_bytes = 64 << 20, std::uint64_t device_bytes = 1ULL << 30);

  void merge(const Edits& edits, const MergeOptions& options = {}, bool looks_ahead = true);
  void check(const TreeFacts& before, const TreeFacts& after, bool looks_ahead);

  io::MemDevice device;
  NodeCache cache;
  BlockingSource source;
  CountingSource counting;
  TestSink sink;
  TreeRoot root;
  Model model;
  TreeFacts facts;
};

// Random keys and values in a few inodes; extents never overlap.
class RandomItems {
 public:
  RandomItems(std::uint64_t seed, std::uint64_t inodes, std::uint64_t slots, std::size_t value_max)
      : random(seed), inodes_(inodes), slots_(slots), value_max_(value_max) {}

  std::uint64_t below(std::uint64_t n) { return random() % n; }
  format::Key key();
  format::Bytes value(const format::Key& key);
  Edits edits(const Model& model, std::size_t count);

  std::mt19937_64 random;

 private:
  std::uint64_t inodes_, slots_;
  std::size_t value_max_;
};

}  // namespace varve::tree
