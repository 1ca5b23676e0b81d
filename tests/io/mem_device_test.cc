#include "io/mem_device.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "io/backends.h"

namespace varve::io::test {
namespace {

void poke(MemDevice& device, std::uint64_t block, std::uint64_t seed) {
  std::vector<std::byte> data(kBlockSize);
  fill_pattern(data.data(), block, seed);
  device.poke(block * kBlockSize, data);
}

TEST(MemDevice, SnapshotsAreIndependent) {
  MemDevice device(kSmallBytes);
  poke(device, 1, 1);
  poke(device, 200, 1);
  const auto first = device.snapshot();
  poke(device, 1, 2);
  poke(*first, 200, 3);
  poke(*first, 300, 3);
  const auto second = first->snapshot();
  EXPECT_TRUE(device.discard(200 * kBlockSize, kBlockSize).ok());
  EXPECT_TRUE(block_has(device, 1, 2));
  EXPECT_TRUE(block_has(device, 200, 0));
  EXPECT_TRUE(block_has(device, 300, 0));
  for (const MemDevice* copy : {first.get(), second.get()}) {
    EXPECT_TRUE(block_has(*copy, 1, 1));
    EXPECT_TRUE(block_has(*copy, 200, 3));
    EXPECT_TRUE(block_has(*copy, 300, 3));
  }
}

TEST(MemDevice, PokeChangesSingleBytes) {
  MemDevice device(kSmallBytes);
  poke(device, 7, 7);
  const auto before = device.snapshot();
  const std::byte wrong{0x5A};
  device.poke(7 * kBlockSize + 5, std::span(&wrong, 1));
  EXPECT_FALSE(block_has(device, 7, 7));
  EXPECT_TRUE(block_has(*before, 7, 7));
  std::byte read{};
  device.peek(7 * kBlockSize + 5, std::span(&read, 1));
  EXPECT_EQ(read, wrong);
}

TEST(MemDevice, DiscardCrossesChunks) {
  MemDevice device(kSmallBytes);
  for (std::uint64_t block = 0; block < device.geometry().blocks(); ++block) poke(device, block, 1);
  const auto before = device.snapshot();
  EXPECT_TRUE(device.discard(100 * kBlockSize, 500 * kBlockSize).ok());
  for (std::uint64_t block = 0; block < device.geometry().blocks(); ++block)
    ASSERT_TRUE(block_has(device, block, block >= 100 && block < 600 ? 0 : 1)) << block;
  EXPECT_TRUE(block_has(*before, 300, 1));
}

TEST(MemDevice, SaveAndLoad) {
  const TempImage image(0);
  MemDevice device(kSmallBytes);
  poke(device, 0, 5);
  poke(device, 513, 6);
  poke(device, device.geometry().blocks() - 1, 7);
  ASSERT_TRUE(device.save(image.path()).ok());
  const auto loaded = MemDevice::load(image.path());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ((*loaded)->geometry().size_bytes, kSmallBytes);
  for (std::uint64_t block = 0; block < device.geometry().blocks(); ++block) {
    const std::uint64_t seed = block == 0 ? 5 : block == 513 ? 6 : block == device.geometry().blocks() - 1 ? 7 : 0;
    ASSERT_TRUE(block_has(**loaded, block, seed)) << block;
  }
}

TEST(MemDevice, LoadAndSaveSayWhatFailed) {
  const auto missing = MemDevice::load("/nonexistent/image");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message().find("/nonexistent/image"), std::string::npos);
  EXPECT_FALSE(MemDevice(kSmallBytes).save("/nonexistent/image").ok());
}

TEST(MemDevice, CompletesInOrder) {
  MemDevice device(kSmallBytes);
  const auto reactor = Reactor::make();
  std::vector<int> order;
  Batch batch;
  for (int i = 0; i < 20; ++i)
    batch.write(3, static_cast<std::uint64_t>(i) + 1).done = [&order, i](IoRequest&) { order.push_back(i); };
  batch.submit_all(device, *reactor);
  EXPECT_EQ(reactor->poll(), 20U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(block_has(device, 3, 20));
}

TEST(MemDevice, SnapshotsWhileOthersWrite) {
  MemDevice device(kSmallBytes);
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    threads.emplace_back([&, seed] {
      for (std::uint64_t i = 0; i < 2000; ++i) poke(device, i % 64 + seed * 64, seed);
    });
  for (int i = 0; i < 200; ++i) {
    const auto copy = device.snapshot();
    poke(*copy, 70, 9);
    EXPECT_TRUE(block_has(*copy, 70, 9));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(block_has(device, 70, 1));
}

}  // namespace
}  // namespace varve::io::test
