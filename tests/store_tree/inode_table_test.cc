// The bound on inodes in memory, with the ways in which mounts go through many of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "changes/inode.h"

namespace varve::changes {
namespace {

class InodeTableTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kMost = 32'000, kMany = 1'000'000;

  // As a name that is looked up and then worked with.
  InodePtr use_twice() {
    const Ino ino{++next_};
    table_.get(ino);
    InodePtr inode = table_.get(ino);
    most_ = std::max(most_, next_ % 1000 ? 0 : table_.size());
    return inode;
  }

  InodeTable table_{kMost};
  std::uint64_t next_ = 0;
  std::size_t most_ = 0;
};

TEST_F(InodeTableTest, AWalkKeepsTheBound) {
  while (next_ < kMany) use_twice();
  EXPECT_LE(most_, kMost * 9 / 8);
}

TEST_F(InodeTableTest, AnotherBoundIsKeptAtOnceByAllThatNobodyHas) {
  InodeDelta delta{Ino{}};
  std::vector<InodePtr> held;
  std::vector<Inode*> changed;
  while (next_ < kMost / 2) {
    InodePtr inode = use_twice();
    if (next_ % 100 == 0) held.push_back(std::move(inode));
    else if (next_ % 100 == 1) {
      inode->assume_locked();  // there is one thread
      inode->active = &delta;
      changed.push_back(inode.get());
    }
  }
  table_.bound(kMost / 16);
  EXPECT_LE(table_.size(), kMost / 16 + 16);
  for (const InodePtr& inode : held) EXPECT_EQ(table_.find(inode->ino), inode);
  for (Inode* inode : changed) EXPECT_EQ(table_.find(inode->ino).get(), inode);
  table_.bound(0);
  EXPECT_GE(table_.size(), held.size() + changed.size());
  table_.bound(kMost);
  while (next_ < kMany) use_twice();
  EXPECT_GE(table_.size(), kMost / 2);
}

// As after a checkpoint on a mount that nobody uses.
TEST_F(InodeTableTest, TheSameBoundAgainDropsWhatHasBecomeClean) {
  InodeDelta delta{Ino{}};
  std::vector<Inode*> changed;
  while (next_ < kMost / 2) {
    changed.push_back(use_twice().get());
    changed.back()->assume_locked();  // there is one thread
    changed.back()->active = &delta;
  }
  table_.bound(kMost / 16);
  EXPECT_EQ(table_.size(), kMost / 2);
  for (Inode* inode : changed) {
    inode->assume_locked();  // the same
    inode->active = nullptr;
  }
  table_.bound(kMost / 16);
  EXPECT_LE(table_.size(), kMost / 16 + 16);
}

TEST_F(InodeTableTest, ThreadsUseItWhileItsBoundChanges) {
  constexpr std::uint64_t kOfOne = 1000;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      InodeDelta delta{Ino{}};
      std::mt19937 random(t);
      auto set = [&](std::uint64_t number, InodeDelta* before, InodeDelta* after) {
        const InodePtr inode = table_.get(Ino{t * kOfOne + number});
        const WriteLock lock(inode->mutex);
        EXPECT_EQ(inode->active, before) << "one with changes stays";
        inode->active = after;
      };
      for (int turn = 0; turn < 5; ++turn) {
        for (std::uint64_t i = 0; i < kOfOne; ++i) set(i, nullptr, &delta);
        for (std::uint64_t i = 0; i < kOfOne; ++i) table_.get(Ino{random() % (10 * kOfOne)});
        for (std::uint64_t i = 0; i < kOfOne; ++i) set(i, &delta, nullptr);
      }
    });
  for (unsigned i = 0; i < 200; ++i) table_.bound(i % 2 ? kMost : 100);
  for (auto& thread : threads) thread.join();
  table_.bound(0);
  EXPECT_LE(table_.size(), 16U);
}

// Names that come or go: the inodes of those have changes, and stay until a checkpoint has taken them.
TEST_F(InodeTableTest, ChangesThatCheckpointsTakeAddNoMoreThanTheyAre) {
  constexpr std::uint64_t kChanged = 40'000;
  std::vector<Inode*> changed, frozen;
  InodeDelta delta{Ino{}};
  while (next_ < kMany) {
    changed.push_back(use_twice().get());
    changed.back()->assume_locked();  // there is one thread
    changed.back()->active = &delta;
    if (changed.size() == kChanged / 4)  // while so many have come, a checkpoint has merged the former ones
      for (Inode* inode : std::exchange(frozen, {})) {
        inode->assume_locked();  // the same
        inode->active = nullptr;
      }
    if (changed.size() == kChanged) frozen.swap(changed);
  }
  EXPECT_LE(most_, kMost + 2 * kChanged);
}

}  // namespace
}  // namespace varve::changes
