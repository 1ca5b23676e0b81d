#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "io/reactor.h"
#include "store_tree/tree_harness.h"

namespace varve::store::test {
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

TEST(NodeCache, ThreadsShareIt) {
  NodeCache cache(kIdentity, 256 << 10);
  std::vector<MadeNode> nodes;
  for (std::uint64_t i = 1; i <= 200; ++i) nodes.push_back(make_leaf(BlockAddr{i}));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 5000; ++i) {
        const MadeNode& made = nodes[random() % nodes.size()];
        NodePtr node = cache.find(made.want);
        if (!node) node = cache.insert(made.want, made.copy()).value();
        EXPECT_EQ(node->header().address, made.want.ref.address);
        if (random() % 50 == 0) cache.erase(made.want.ref.address);
      }
    });
  for (auto& thread : threads) thread.join();
}

// --- BlockingSource -------------------------------------------------------------------------------------------------

// Remembers the requests that reach the device.
class WatchedDevice : public io::BlockDevice {
 public:
  explicit WatchedDevice(std::uint64_t bytes) : inner_(bytes) {}
  const io::Geometry& geometry() const override { return inner_.geometry(); }
  const std::string& name() const override { return inner_.name(); }
  bool read_only() const override { return false; }
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
  void note(const io::IoRequest& request) { reads.emplace_back(request.offset >> kBlockShift, request.iov.size()); }
  int carry_out(io::IoRequest& request) {
    const std::uint64_t first = request.offset >> kBlockShift;
    const bool fails = broken && broken.v >= first && broken.v < first + request.iov.size();
    return fails ? EIO : inner_.execute(request);
  }
  void complete_last(io::Reactor& reactor) {
    io::IoRequest& request = *waiting_.back();
    waiting_.pop_back();
    reactor.finish(request, carry_out(request));
  }

  std::vector<io::IoRequest*> waiting_;
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
}  // namespace varve::store::test
