#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "io/reactor.h"
#include "store_tree/tree_harness.h"
#include "tree/neighbours.h"

namespace varve::tree {
namespace {

using format::Key;
using testing::Test;

struct MadeNode {
  NodeWant want;
  AlignedBuffer block{kBlockSize};

  AlignedBuffer copy() const {
    AlignedBuffer other(kBlockSize);
    std::memcpy(other.data(), block.data(), kBlockSize);
    return other;
  }
};

MadeNode make_leaf(BlockAddr address, std::uint64_t seed = 0) {
  MadeNode made;
  format::LeafBuilder builder;
  EXPECT_TRUE(builder.add({Ino{address.v + seed}, format::ItemKind::attributes, 0}, format::Bytes(20)));
  made.want.ref.address = address;
  made.want.ref.crc = builder.finish(made.block.span(), kIdentity, Serial{1}, address);
  return made;
}

TEST(NodeCache, FindsWhatItWasGiven) {
  NodeCache cache(kIdentity, 1 << 20);
  const MadeNode made = make_leaf(BlockAddr{7});
  EXPECT_FALSE(cache.find(made.want));
  const auto node = cache.insert(made.want, made.copy());
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(cache.find(made.want), *node);
  EXPECT_EQ(cache.hits(), 1U);
  EXPECT_EQ(cache.misses(), 1U);
  EXPECT_EQ((*node)->items().size(), 1U);
  cache.erase(BlockAddr{7});
  EXPECT_FALSE(cache.find(made.want));
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(NodeCache, AnAddressUsedAgainIsAnotherNode) {
  NodeCache cache(kIdentity, 1 << 20);
  const MadeNode old_node = make_leaf(BlockAddr{7}, 1), new_node = make_leaf(BlockAddr{7}, 2);
  ASSERT_TRUE(cache.insert(old_node.want, old_node.copy()).ok());
  EXPECT_FALSE(cache.find(new_node.want));
  ASSERT_TRUE(cache.insert(new_node.want, new_node.copy()).ok());
  EXPECT_TRUE(cache.find(new_node.want));
  EXPECT_FALSE(cache.find(old_node.want));
  const std::size_t bytes = cache.bytes();
  ASSERT_TRUE(cache.insert(new_node.want, new_node.copy()).ok());
  EXPECT_EQ(cache.bytes(), bytes);
}

TEST(NodeCache, AHitMustBeOfTheSameTreeAndLevel) {
  NodeCache cache(kIdentity, 1 << 20);
  const MadeNode made = make_leaf(BlockAddr{7});
  ASSERT_TRUE(cache.insert(made.want, made.copy()).ok());
  NodeWant other = made.want;
  other.level = 1;
  EXPECT_FALSE(cache.find(other));
  other = made.want;
  other.tree = format::TreeId::free_map;
  EXPECT_FALSE(cache.find(other));
}

TEST(NodeCache, StaysWithinItsBoundAndKeepsWhatIsUsed) {
  constexpr std::size_t kBytes = 1 << 20;
  NodeCache cache(kIdentity, kBytes);
  const MadeNode used = make_leaf(BlockAddr{1});
  ASSERT_TRUE(cache.insert(used.want, used.copy()).ok());
  for (std::uint64_t i = 2; i < 2000; ++i) {
    const MadeNode made = make_leaf(BlockAddr{i});
    ASSERT_TRUE(cache.insert(made.want, made.copy()).ok());
    ASSERT_TRUE(cache.find(used.want)) << "evicted though used all the time, at " << i;
    ASSERT_LE(cache.bytes(), kBytes);
  }
  EXPECT_GE(cache.bytes(), kBytes / 2);
  EXPECT_FALSE(cache.find(make_leaf(BlockAddr{2}).want));
  cache.clear();
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(NodeCache, AnotherBoundIsKeptAtOnce) {
  constexpr std::size_t kBytes = 4 << 20;
  NodeCache cache(kIdentity, kBytes);
  const MadeNode first = make_leaf(BlockAddr{1});
  const NodePtr pinned = cache.insert(first.want, first.copy()).value();
  std::uint64_t next = 2;
  auto fill = [&](std::size_t bytes) {
    for (const std::uint64_t end = next + 2000; next < end; ++next) {
      const MadeNode made = make_leaf(BlockAddr{next});
      ASSERT_TRUE(cache.insert(made.want, made.copy()).ok());
      ASSERT_LE(cache.bytes(), bytes);
    }
    EXPECT_GE(cache.bytes(), bytes / 2);
  };
  fill(kBytes);
  cache.bound(kBytes / 8);
  EXPECT_LE(cache.bytes(), kBytes / 8);
  EXPECT_GE(cache.bytes(), kBytes / 16) << "no more than is too much";
  EXPECT_FALSE(cache.contains(first.want));
  EXPECT_EQ(pinned->header().address, BlockAddr{1}) << "a caller that has a node keeps it";
  EXPECT_EQ(std::memcmp(pinned->block().data(), first.block.data(), kBlockSize), 0);
  fill(kBytes / 8);
  cache.bound(kBytes);
  fill(kBytes);
}

TEST(NodeCache, WhatIsReadAheadDrivesOutNothingThatIsUsed) {
  constexpr std::size_t kBytes = 256 << 10;
  NodeCache cache(kIdentity, kBytes);
  std::vector<MadeNode> used;
  for (std::uint64_t i = 1; cache.bytes() < kBytes * 3 / 4; ++i) {
    used.push_back(make_leaf(BlockAddr{i}));
    ASSERT_TRUE(cache.insert(used.back().want, used.back().copy()).ok());
  }
  for (std::uint64_t i = 1000; i < 3000; ++i) {
    const MadeNode made = make_leaf(BlockAddr{i});
    cache.insert_ahead(cache.decode(made.want, made.copy()).value(), made.want.ref.crc);
    ASSERT_LE(cache.bytes(), kBytes * 7 / 8 + 8192);
  }
  for (const MadeNode& made : used) EXPECT_TRUE(cache.contains(made.want));
  const MadeNode last = make_leaf(BlockAddr{2999}), first = make_leaf(BlockAddr{1000});
  EXPECT_FALSE(cache.contains(first.want));
  EXPECT_TRUE(cache.find(last.want));
  for (std::uint64_t i = 4000; i < 5000; ++i) {  // it has been used now, and these have not
    const MadeNode made = make_leaf(BlockAddr{i});
    cache.insert_ahead(cache.decode(made.want, made.copy()).value(), made.want.ref.crc);
  }
  EXPECT_TRUE(cache.contains(last.want));
  cache.clear();
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(NodeCache, WhatIsReadAheadReplacesNothing) {
  NodeCache cache(kIdentity, 1 << 20);
  const MadeNode old_node = make_leaf(BlockAddr{7}, 1), new_node = make_leaf(BlockAddr{7}, 2);
  ASSERT_TRUE(cache.insert(new_node.want, new_node.copy()).ok());
  cache.insert_ahead(cache.decode(old_node.want, old_node.copy()).value(), old_node.want.ref.crc);
  EXPECT_TRUE(cache.contains(new_node.want));
  EXPECT_FALSE(cache.contains(old_node.want));
}

std::vector<MadeNode> leaves(std::uint64_t count) {
  std::vector<MadeNode> nodes;
  for (std::uint64_t i = 1; i <= count; ++i) nodes.push_back(make_leaf(BlockAddr{i}));
  return nodes;
}

// Threads that look nodes up at random. `erases`: now and then one of them goes.
std::vector<std::thread> lookers(unsigned count, NodeCache& cache, const std::vector<MadeNode>& nodes, bool erases) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t)
    threads.emplace_back([&cache, &nodes, erases, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 5000; ++i) {
        const MadeNode& made = nodes[random() % nodes.size()];
        NodePtr node = cache.find(made.want);
        if (!node) node = cache.insert(made.want, made.copy()).value();
        EXPECT_EQ(node->header().address, made.want.ref.address);
        if (erases && random() % 50 == 0) cache.erase(made.want.ref.address);
      }
    });
  return threads;
}

TEST(NodeCache, ThreadsShareIt) {
  NodeCache cache(kIdentity, 256 << 10);
  const std::vector<MadeNode> nodes = leaves(200);
  for (auto& thread : lookers(4, cache, nodes, true)) thread.join();
}

TEST(NodeCache, ThreadsShareItWhileItsBoundChanges) {
  constexpr std::size_t kMost = 4 << 20, kLeast = 256 << 10;
  NodeCache cache(kIdentity, kMost);
  const std::vector<MadeNode> nodes = leaves(200);
  std::vector<std::thread> threads = lookers(3, cache, nodes, false);
  for (unsigned i = 0; i < 200; ++i) cache.bound(i % 2 ? kMost : kLeast);
  for (auto& thread : threads) thread.join();
  cache.bound(kLeast);
  EXPECT_LE(cache.bytes(), kLeast);
}

// --- BlockingSource -------------------------------------------------------------------------------------------------

// Remembers the requests that reach the device.
class WatchedDevice : public io::BlockDevice {
 public:
  explicit WatchedDevice(std::uint64_t bytes) : inner_(bytes) {}
  const io::Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return inner_.name(); }
  bool read_only() const override { return false; }
  void make_rotational() { geometry_.rotational = true; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override {
    note(request);
    reactor.begin(request);
    waiting_.push_back(&request);
    deepest = std::max(deepest, waiting_.size());
    reactor.post([this, r = &reactor] { complete_last(*r); });
  }
  int execute(io::IoRequest& request) override {
    note(request);
    return carry_out(request);
  }

  std::vector<std::pair<std::uint64_t, std::size_t>> reads;  // first block, blocks
  std::size_t deepest = 0;
  BlockAddr broken;
  io::MemDevice inner_;

 private:
  void note(const io::IoRequest& request) { reads.emplace_back(request.offset >> kBlockShift, request.length >> kBlockShift); }
  int carry_out(io::IoRequest& request) {
    const std::uint64_t first = request.offset >> kBlockShift;
    const bool fails = broken && broken.v >= first && broken.v < first + (request.length >> kBlockShift);
    return fails ? EIO : inner_.execute(request);
  }
  void complete_last(io::Reactor& reactor) {
    io::IoRequest& request = *waiting_.back();
    waiting_.pop_back();
    reactor.finish(request, carry_out(request));
  }

  std::vector<io::IoRequest*> waiting_;
  io::Geometry geometry_ = inner_.geometry();
};

class BlockingSourceTest : public Test {
 protected:
  BlockingSourceTest() : device(64 << 20), cache(kIdentity, 8 << 20) {}

  NodeWant put(std::uint64_t address) {
    const MadeNode made = make_leaf(BlockAddr{address});
    device.inner_.poke(address << kBlockShift, made.block.span());
    return made.want;
  }

  WatchedDevice device;
  NodeCache cache;
};

TEST_F(BlockingSourceTest, ReadsAMissOnce) {
  BlockingSource source(cache, device);
  const NodeWant want = put(9);
  EXPECT_TRUE(source.get(want).ok());
  EXPECT_TRUE(source.get(want).ok());
  EXPECT_EQ(device.reads.size(), 1U);
}

TEST_F(BlockingSourceTest, PrefetchJoinsNeighboursAndDropsRepetitions) {
  BlockingSource source(cache, device);
  std::vector<NodeWant> wants;
  for (const std::uint64_t address : {12, 10, 11, 20, 10, 12, 30, 31}) wants.push_back(put(address));
  ASSERT_TRUE(source.get(wants[3]).ok());  // 20 is cached already
  device.reads.clear();
  source.prefetch(wants);
  const std::vector<std::pair<std::uint64_t, std::size_t>> expected{{10, 3}, {30, 2}};
  EXPECT_EQ(device.reads, expected);
  for (const NodeWant& want : wants) EXPECT_EQ((*source.get(want))->header().address, want.ref.address);
  EXPECT_EQ(device.reads, expected);
}

TEST_F(BlockingSourceTest, PrefetchKeepsManyButNotTooManyInFlight) {
  BlockingSource source(cache, device);
  std::vector<NodeWant> wants;
  for (std::uint64_t i = 1; i <= 500; ++i) wants.push_back(put(2 * i));
  source.prefetch(wants);
  EXPECT_EQ(device.reads.size(), 500U);
  EXPECT_EQ(device.deepest, 64U);
}

TEST_F(BlockingSourceTest, WithoutCachingAPrefetchIsStillUsed) {
  BlockingSource source(cache, device, false);
  std::vector<NodeWant> wants{put(4), put(8)};
  source.prefetch(wants);
  for (const NodeWant& want : wants) EXPECT_TRUE(source.get(want).ok());
  EXPECT_EQ(device.reads.size(), 2U);
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST_F(BlockingSourceTest, ErrorsSayWhere) {
  BlockingSource source(cache, device);
  const std::vector<NodeWant> wants{put(4), put(5), put(6)};
  device.broken = BlockAddr{5};
  source.prefetch(wants);  // one request, which fails
  EXPECT_TRUE(source.get(wants[0]).ok());
  const auto failed = source.get(wants[1]);
  ASSERT_TRUE(failed.fails_with(Errc::io));
  for (const char* part : {"memory", ".ifile", "block 5"})
    EXPECT_NE(failed.error().message().find(part), std::string::npos) << failed.error().message();
}

// --- neighbours -----------------------------------------------------------------------------------------------------

class Neighbours : public BlockingSourceTest {
 protected:
  void put_children(std::initializer_list<std::uint64_t> addresses) {
    for (const std::uint64_t address : addresses)
      children.push_back({{Ino{address}, format::ItemKind::attributes, 0}, put(address).ref});
  }
  std::vector<std::uint64_t> beside(std::size_t at, bool seeks) {
    std::vector<std::uint64_t> addresses;
    for (const NodeWant& want : neighbours_of(cache, {children, at}, 0, seeks)) addresses.push_back(want.ref.address.v);
    return addresses;
  }
  void walk(std::size_t from, std::size_t to) {
    BlockingSource source(cache, device);
    for (; from < to; ++from) EXPECT_TRUE(source.get({children[from].ref}).ok());
  }
  using Addresses = std::vector<std::uint64_t>;

  std::vector<format::ChildRef> children;
};

TEST_F(Neighbours, AreNotReadWithALookUpWhereReadsDoNotSeek) {
  put_children({10, 11, 12, 13, 14, 15, 16});
  EXPECT_EQ(beside(3, false), Addresses());
  walk(1, 2);
  EXPECT_EQ(beside(2, false), Addresses()) << "one before it may be chance";
}

TEST_F(Neighbours, AreReadAheadOfAWalkAsFarAsItHasCome) {
  put_children({10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  walk(0, 2);
  EXPECT_EQ(beside(2, false), (Addresses{13, 14, 15, 16}));
  walk(2, 3);
  EXPECT_EQ(beside(3, false), (Addresses{14, 15, 16, 17, 18, 19}));
}

TEST_F(Neighbours, LieOnBothSidesWhereReadsSeek) {
  put_children({10, 11, 12, 13, 14, 15});
  EXPECT_EQ(beside(2, true), (Addresses{13, 14, 15, 11, 10}));
  walk(1, 2);
  EXPECT_EQ(beside(2, true), (Addresses{13, 14, 15})) << "a walk comes from there";
}

TEST_F(Neighbours, StandNearOnTheDevice) {
  put_children({100, 500, 103, 101, 104, 200, 120});  // what was rewritten elsewhere is left out
  EXPECT_EQ(beside(0, true), (Addresses{103, 104, 120}));
  put_children({1000});
  EXPECT_EQ(beside(7, true), Addresses());
}

TEST_F(Neighbours, FitInOneRequest) {
  for (std::uint64_t i = 0; i < 300; ++i) put_children({1000 + i});
  walk(0, 100);
  EXPECT_EQ(beside(100, true).size(), kMostNodesInRun - 1);
  EXPECT_EQ(beside(100, true).back(), 1000 + 100 + kMostNodesInRun - 1);
}

TEST_F(Neighbours, ComeInOneRequestOfAWalk) {
  device.make_rotational();
  for (std::uint64_t i = 0; i < 200; ++i) put_children({1000 + i});
  BlockingSource source(cache, device);
  for (std::size_t i = 0; i < children.size(); ++i) ASSERT_TRUE(source.get_child({children, i}, 0).ok());
  std::vector<std::pair<std::uint64_t, std::size_t>> expected{{1000, 17}, {1017, 35}, {1052, 64}, {1116, 64}, {1180, 20}};
  EXPECT_EQ(device.reads, expected);
}

TEST_F(Neighbours, ThatCannotBeReadHarmNobody) {
  device.make_rotational();
  put_children({10, 11, 12, 13});
  device.broken = BlockAddr{12};
  device.inner_.poke((11 << kBlockShift) + 2000, std::array{std::byte{1}});
  BlockingSource source(cache, device);
  EXPECT_TRUE(source.get_child({children, 0}, 0).ok());
  EXPECT_TRUE(source.get_child({children, 1}, 0).fails_with(Errc::corrupt));
  EXPECT_TRUE(source.get_child({children, 2}, 0).fails_with(Errc::io));
  EXPECT_TRUE(source.get_child({children, 3}, 0).ok());
}

TEST_F(BlockingSourceTest, DamageIsAnErrorThatSaysWhere) {
  BlockingSource source(cache, device);
  const NodeWant want = put(4);
  device.inner_.poke((4 << kBlockShift) + 2000, std::array{std::byte{1}});
  source.prefetch({&want, 1});
  const auto damaged = source.get(want);
  ASSERT_TRUE(damaged.fails_with(Errc::corrupt));
  for (const char* part : {"memory", ".ifile", "block 4"})
    EXPECT_NE(damaged.error().message().find(part), std::string::npos) << damaged.error().message();
}

TEST_F(BlockingSourceTest, AnAddressBeyondTheDeviceIsDamage) {
  BlockingSource source(cache, device);
  NodeWant want = put(4);
  for (const std::uint64_t address : std::vector<std::uint64_t>{0, device.geometry().blocks(), (1ULL << 48) - 1}) {
    want.ref.address = BlockAddr{address};
    source.prefetch({&want, 1});
    EXPECT_TRUE(source.get(want).fails_with(Errc::corrupt));
  }
  EXPECT_TRUE(device.reads.empty());
}

}  // namespace
}  // namespace varve::tree
