// Many operations that lack the same tree nodes: how often the device is asked, and what each of them hears.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "device/faults.h"
#include "device/io_context.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "io/reactor.h"
#include "operation/node_reads.h"
#include "operation/wait.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "tree/item_tree.h"
#include "tree/node_cache.h"
#include "tree/trees.h"

namespace varve::operation {
namespace {

using test::FsFixture;

// Keeps reads until it is told to go on, and breaks those of some blocks.
class HeldReads : public io::BlockDevice {
 public:
  struct Read {
    std::uint64_t first, blocks;
    bool operator==(const Read&) const = default;
  };

  const io::Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return false; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override {
    if (request.kind != io::IoKind::read) return below_.submit(reactor, request);
    reads.push_back({request.offset >> kBlockShift, request.length >> kBlockShift});
    reactor.begin(request);
    held_.push_back({&reactor, &request});
    if (!holds_) go_on();
  }
  void make_rotational() { geometry_.rotational = true; }
  void hold() { holds_ = true; }
  void go_on() {
    holds_ = false;
    for (const auto& [reactor, request] : std::exchange(held_, {})) reactor->finish_later(*request, carry_out(*request));
  }

  void forget() { held_.clear(); }

  std::vector<Read> reads;
  std::optional<std::uint64_t> broken;  // block

 private:
  int carry_out(io::IoRequest& request) {
    const std::uint64_t first = request.offset >> kBlockShift, end = first + (request.length >> kBlockShift);
    return broken && *broken >= first && *broken < end ? EIO : below_.execute(request);
  }

  io::MemDevice below_{64u << 20};
  io::Geometry geometry_ = below_.geometry();
  bool holds_ = false;
  std::vector<std::pair<io::Reactor*, io::IoRequest*>> held_;
};

class NodeReadsTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kFiles = 3000;

  void SetUp() override {
    ASSERT_TRUE(test::make_image(device_, {}).ok());
    ASSERT_TRUE(fixture_.mount().ok());
    for (std::uint64_t i = 0; i < kFiles; ++i) {
      const auto made = fixture_.make("/f" + std::to_string(i), S_IFREG | 0644);
      ASSERT_TRUE(made.ok());
      files_.push_back(made->ino);
    }
    ASSERT_TRUE(fixture_.unmount().ok());
    ASSERT_TRUE(fixture_.mount().ok());
    ASSERT_TRUE(fixture_.getattr(Ino{1}).ok());  // what is above the leaves is in memory
    device_.reads.clear();
  }

  struct Asked {
    Asked(Operations& operations, io::Reactor* reactor) : operation(operations, {}, reactor) {}
    Operation operation;
    std::optional<Result<fs::Attr>> got;
  };
  void ask(Ino ino) {
    Asked& asked = all_.emplace_back(fixture_.fs().operations(), reactor_.get());
    run(asked.operation, [this, &asked, ino] { return fixture_.fs().getattr(asked.operation, ino); },
        [&asked](Result<fs::Attr> result) { asked.got = std::move(result); });
  }
  void pump() {
    for (int i = 0; i < 100; ++i) {
      while (fixture_.store().io().pump()) {}
      reactor_->poll();
    }
  }
  void answer() {
    device_.go_on();
    pump();
  }
  std::uint64_t ok() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(all_, [](const Asked& asked) { return asked.got && asked.got->ok(); }));
  }
  // The leaves of the tree, in the order of keys.
  std::vector<tree::NodeWant> children() {
    tree::Trees& trees = fixture_.store().trees();
    tree::BlockingSource source(trees.cache(), device_);
    const auto root = tree::get_root(source, trees.own_view().inode_file).value();
    EXPECT_EQ(root->header().level, 1);
    std::vector<tree::NodeWant> wants;
    for (const auto& child : root->children()) wants.push_back({child.ref, format::TreeId::inode_file, 0});
    device_.reads.clear();
    return wants;
  }
  std::vector<std::uint64_t> leaves() {
    std::vector<std::uint64_t> addresses;
    for (const tree::NodeWant& want : children()) addresses.push_back(want.ref.address.v);
    return addresses;
  }

  HeldReads device_;
  test::ManualClock clock_;
  SeededRandom random_{7};
  FsFixture fixture_{device_, test::test_options(clock_, random_)};
  std::unique_ptr<io::Reactor> reactor_ = io::Reactor::make();
  std::vector<Ino> files_;
  std::list<Asked> all_;
};

TEST_F(NodeReadsTest, OneRequestForAllThatWaitForANode) {
  device_.hold();
  for (int i = 0; i < 20; ++i) ask(files_[kFiles / 2]);
  EXPECT_EQ(device_.reads.size(), 1u);
  answer();
  EXPECT_EQ(ok(), 20u);
  EXPECT_EQ(device_.reads.size(), 1u);
}

TEST_F(NodeReadsTest, ABlockingThreadDoesNotWaitForItsOwnReactor) {
  device_.hold();
  ask(files_[kFiles / 2]);
  device_.go_on();  // for those to come: what is there waits for its reactor, which is not polled
  const auto got = fixture_.getattr(files_[kFiles / 2]);
  EXPECT_TRUE(got.ok());
  EXPECT_EQ(ok(), 0u);
  pump();
  EXPECT_EQ(ok(), 1u);
}

TEST_F(NodeReadsTest, EachHearsOfAReadThatFailed) {
  const auto all = leaves();
  device_.hold();
  for (int i = 0; i < 5; ++i) ask(files_[kFiles / 2]);
  ASSERT_EQ(device_.reads.size(), 1u);
  device_.broken = device_.reads[0].first;
  answer();
  for (const Asked& asked : all_) {
    ASSERT_TRUE(asked.got);
    EXPECT_TRUE(asked.got->fails_with(Errc::io));
  }
  device_.broken.reset();
  ask(files_[kFiles / 2]);
  answer();
  EXPECT_EQ(ok(), 1u) << "the next one tries again";
}

TEST_F(NodeReadsTest, NeighboursComeInOneRequestWhereReadsSeek) {
  device_.make_rotational();
  const auto all = leaves();
  ASSERT_GE(all.size(), 32u);
  for (const Ino ino : files_) {
    ask(ino);
    answer();
  }
  EXPECT_EQ(ok(), kFiles);
  EXPECT_LE(device_.reads.size(), all.size() / 16 + 4);
}

TEST_F(NodeReadsTest, AWalkIsReadAheadOfWhereReadsDoNotSeek) {
  const auto all = leaves();
  for (const Ino ino : files_) {
    ask(ino);
    answer();
  }
  EXPECT_EQ(ok(), kFiles);
  EXPECT_LE(device_.reads.size(), 10u);
}

TEST_F(NodeReadsTest, LookUpsHereAndThereReadNothingElseWhereReadsDoNotSeek) {
  for (std::uint64_t i = 0; i < kFiles; i += 700) {
    ask(files_[i]);
    answer();
  }
  for (const auto& read : device_.reads) EXPECT_EQ(read.blocks, 1u);
}

TEST_F(NodeReadsTest, WhatIsOnItsWayAsANeighbourIsNotAskedForAgain) {
  device_.make_rotational();
  device_.hold();
  ask(files_[100]);
  ask(files_[400]);
  ask(files_[250]);
  EXPECT_EQ(device_.reads.size(), 1u);
  answer();
  EXPECT_EQ(ok(), 3u);
}

// The request for many nodes fails because of one: only those that wait for that one hear of it.
TEST_F(NodeReadsTest, ABadNeighbourIsNobodysFault) {
  device_.make_rotational();
  const auto all = leaves();
  device_.hold();
  ask(files_[kFiles / 2]);
  ask(files_[kFiles / 2 + 300]);
  ASSERT_EQ(device_.reads.size(), 1u);
  const auto many = device_.reads[0];
  ASSERT_GT(many.blocks, 8u);
  device_.broken = many.first + many.blocks - 1;
  answer();
  EXPECT_EQ(ok(), 2u);
  EXPECT_EQ(device_.reads.size(), 3u) << "each by itself";
  EXPECT_EQ(fixture_.store().faults().counts().all(), 0u);
}

TEST_F(NodeReadsTest, ADamagedNeighbourIsNobodysFault) {
  device_.make_rotational();
  const auto all = leaves();
  AlignedBuffer rubbish = AlignedBuffer::zeroed(kBlockSize);
  io::IoRequest write;
  write.kind = io::IoKind::write;
  write.offset = all[all.size() - 2] << kBlockShift;
  write.add(rubbish.data(), rubbish.size());
  ASSERT_EQ(device_.execute(write), 0);
  ask(files_[kFiles / 2]);
  answer();
  EXPECT_EQ(ok(), 1u);
  EXPECT_EQ(device_.reads.size(), 1u);
  unsigned corrupt = 0;
  for (const Ino ino : files_) {
    ask(ino);
    answer();
    corrupt += all_.back().got->fails_with(Errc::corrupt);
  }
  EXPECT_GT(corrupt, 0u);
  EXPECT_LT(corrupt, 200u);
}

// Memory is taken for what is read along, so there is a bound; then each node is read by itself.
TEST_F(NodeReadsTest, ReadingAlongIsBounded) {
  device_.make_rotational();
  const auto roots = children();
  NodeReads reads({fixture_.store().io(), fixture_.store().trees()}, 10);
  unsigned over = 0;
  std::list<Wait> waits;
  const auto begin = [&](std::size_t at) {
    Wait& wait = waits.emplace_back(fixture_.fs().operations().wait_times());
    wait.nodes.push_back(roots[at]);
    for (std::size_t i = 1; i <= 6; ++i) wait.beside.push_back(roots[at + i]);
    wait.waiter.begin(reactor_.get(), [&over] { ++over; });
    reads.begin(wait, reactor_.get());
    wait.waiter.all_asked_for();
    return device_.reads.empty() ? 0 : std::exchange(device_.reads, {}).back().blocks;
  };
  device_.hold();
  EXPECT_GE(begin(1), 7u);
  EXPECT_GE(begin(8), 7u);
  EXPECT_EQ(begin(15), 1u);
  EXPECT_EQ(begin(22), 1u);
  answer();
  EXPECT_EQ(over, 4u);
  device_.hold();
  EXPECT_GE(begin(16), 7u);
  answer();
  EXPECT_EQ(over, 5u);
}

// One thread's reactor brings what operations of another wait for.
TEST_F(NodeReadsTest, AnotherThreadsReadIsWaitedForToo) {
  device_.hold();
  ask(files_[kFiles / 2]);
  std::thread other([this] {
    const auto reactor = io::Reactor::make();
    Asked asked(fixture_.fs().operations(), reactor.get());
    run(asked.operation, [&] { return fixture_.fs().getattr(asked.operation, files_[kFiles / 2]); },
        [&asked](Result<fs::Attr> result) { asked.got = std::move(result); });
    while (!asked.got) reactor->wait(1'000'000);
    EXPECT_TRUE(asked.got->ok());
  });
  while (fixture_.fs().operations().node_reads().waiting() < 2) std::this_thread::yield();
  answer();
  other.join();
  EXPECT_EQ(ok(), 1u);
  EXPECT_EQ(device_.reads.size(), 1u);
}

// A thread must not end as long as another one may tell its reactor something.
TEST_F(NodeReadsTest, AReactorIsNeededWhileAnOperationOfItsWaitsForWhatAnotherReads) {
  const auto other = io::Reactor::make();
  device_.hold();
  ask(files_[kFiles / 2]);
  Operation joined(fixture_.fs().operations(), {}, other.get());
  std::optional<Result<fs::Attr>> got;
  run(joined, [&] { return fixture_.fs().getattr(joined, files_[kFiles / 2]); }, [&](Result<fs::Attr> result) { got = std::move(result); });
  EXPECT_EQ(other->in_flight(), 0u);
  EXPECT_TRUE(other->is_needed());
  answer();
  while (!got) other->poll();
  EXPECT_TRUE(got->ok());
  EXPECT_FALSE(other->is_needed());
  EXPECT_EQ(device_.reads.size(), 1u);
}

// The thread that would have brought it ends: others ask for it themselves.
TEST_F(NodeReadsTest, AReactorThatEndsLeavesNobodyWaiting) {
  auto ending = io::Reactor::make();
  ending->poll();
  device_.hold();
  Operation gone(fixture_.fs().operations(), {}, ending.get());
  ASSERT_TRUE(fixture_.fs().getattr(gone, files_[kFiles / 2]).fails_with(Errc::would_block));
  gone.resume([] { FAIL() << "nobody is there to do so"; });
  ask(files_[kFiles / 2]);
  EXPECT_EQ(device_.reads.size(), 1u);
  device_.forget();
  ending.reset();
  answer();
  EXPECT_EQ(ok(), 1u);
  EXPECT_EQ(device_.reads.size(), 2u);
}

}  // namespace
}  // namespace varve::operation
