// Blocks of their own, aligned, and given back when many are unused.
#include "base/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace varve {
namespace {

TEST(BlockPool, BlocksAreAlignedAndOfTheirOwn) {
  BlockPool pool;
  std::set<std::byte*> seen;
  std::vector<BlockPool::Block> blocks;
  for (int i = 0; i < 1000; ++i) {
    blocks.push_back(pool.take());
    std::byte* const data = blocks.back().data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % kBlockSize, 0U);
    EXPECT_TRUE(seen.insert(data).second);
    std::memset(data, i % 256, kBlockSize);
  }
  for (int i = 0; i < 1000; ++i) {
    const std::byte* const data = blocks[static_cast<std::size_t>(i)].data();
    EXPECT_TRUE(std::all_of(data, data + kBlockSize, [i](std::byte b) { return b == static_cast<std::byte>(i % 256); }));
  }
  EXPECT_LT(pool.bytes(), 1064 * kBlockSize);
}

TEST(BlockPool, WhatIsGivenBackIsTakenAgain) {
  BlockPool pool;
  {
    std::vector<BlockPool::Block> blocks;
    for (int i = 0; i < 500; ++i) blocks.push_back(pool.take());
  }
  const std::size_t before = pool.bytes();
  for (int i = 0; i < 10'000; ++i) (void)pool.take();
  EXPECT_EQ(pool.bytes(), before);
}

TEST(BlockPool, MostOfWhatIsUnusedGoesBackToTheHeap) {
  constexpr std::size_t kMiB = 1u << 20;
  BlockPool pool;
  {
    std::vector<BlockPool::Block> blocks;
    for (std::size_t i = 0; i < 64 * kMiB / kBlockSize; ++i) blocks.push_back(pool.take());
    EXPECT_EQ(pool.bytes(), 64 * kMiB);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
    while (blocks.size() > 100) blocks.pop_back();
    EXPECT_LE(pool.bytes(), (100 + 100 / 2) * 64 * kBlockSize);  // each one left is in a piece of 64
  }
  EXPECT_LE(pool.bytes(), 4 * kMiB);
}

// A block that is left keeps its whole piece, and where the others of it were there is no memory any more.
TEST(BlockPool, TrimmingGivesFreeBlocksBack) {
  constexpr std::size_t kPieces = 100;
  BlockPool pool;
  std::vector<BlockPool::Block> left;
  {
    std::vector<BlockPool::Block> blocks;
    for (std::size_t i = 0; i < kPieces * 64; ++i) {
      blocks.push_back(pool.take());
      std::memset(blocks.back().data(), 7, kBlockSize);
      if (i % 64 == 5) std::swap(blocks.back(), left.emplace_back());
    }
  }
  EXPECT_EQ(pool.trim(), kPieces * 63 * kBlockSize);
  EXPECT_EQ(pool.trim(), 0U);
  for (const BlockPool::Block& block : left) EXPECT_EQ(block.data()[kBlockSize - 1], std::byte{7});
  for (std::size_t i = 0; i < kPieces * 63; ++i) {
    left.push_back(pool.take());
    ASSERT_EQ(left.back().data()[1], std::byte{0});  // new memory of the kernel
  }
  EXPECT_EQ(pool.bytes(), kPieces * 64 * kBlockSize);
}

// Where pages of the kernel have sixteen blocks, one in use keeps the fifteen others of its page.
TEST(BlockPool, TrimmingGivesWholePagesBackAndNoPartOfOne) {
  constexpr std::size_t kPage = 16 * kBlockSize;
  BlockPool pool(kPage);
  BlockPool::Block left;
  {
    std::vector<BlockPool::Block> blocks;
    for (std::size_t i = 0; i < 64; ++i) {
      blocks.push_back(pool.take());
      std::memset(blocks.back().data(), 7, kBlockSize);
    }
    std::swap(blocks[31], left);  // in a whole page, wherever the first one begins
  }
  const std::size_t given = pool.trim();
  EXPECT_TRUE(given == 2 * kPage || given == 3 * kPage) << given;
  EXPECT_EQ(pool.trim(), 0U);
  EXPECT_EQ(left.data()[0], std::byte{7});
  EXPECT_EQ(left.data()[kBlockSize - 1], std::byte{7});
  left = BlockPool::Block();
  EXPECT_EQ(pool.trim(), kPage);
  EXPECT_EQ(pool.trim(), 0U);
}

TEST(BlockPool, ThreadsGiveWhatOthersHaveTaken) {
  constexpr int kBlocks = 20'000;
  BlockPool pool;
  Mutex mutex;
  std::vector<BlockPool::Block> passed;
  std::thread taker([&] {
    for (int i = 0; i < kBlocks; ++i) {
      BlockPool::Block block = pool.take();
      std::memset(block.data(), i % 256, kBlockSize);
      const Lock lock(mutex);
      passed.push_back(std::move(block));
    }
  });
  for (int given = 0; given < kBlocks;) {
    std::vector<BlockPool::Block> mine;
    {
      const Lock lock(mutex);
      mine.swap(passed);
    }
    for (const BlockPool::Block& block : mine) {
      ASSERT_EQ(block.data()[0], static_cast<std::byte>(given % 256));
      ASSERT_EQ(block.data()[kBlockSize - 1], static_cast<std::byte>(given++ % 256));
    }
    (void)pool.trim();
  }
  taker.join();
  EXPECT_LE(pool.bytes(), std::size_t{16 * 64} * kBlockSize);
}

TEST(BlockPool, ThreadsTakeAndGive) {
  BlockPool pool;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      std::mt19937 random(t);
      std::vector<BlockPool::Block> blocks;
      for (int i = 0; i < 20'000; ++i) {
        if (blocks.size() < 300 && random() % 2) {
          blocks.push_back(pool.take());
          std::memset(blocks.back().data(), static_cast<int>(t), kBlockSize);
        } else if (!blocks.empty()) {
          std::swap(blocks[random() % blocks.size()], blocks.back());
          ASSERT_EQ(blocks.back().data()[kBlockSize - 1], static_cast<std::byte>(t));
          blocks.pop_back();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace varve
