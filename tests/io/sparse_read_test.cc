#include "io/sparse_read.h"

#include <cstring>

#include <gtest/gtest.h>

#include "io/mem_device.h"
#include "support/fault_device.h"

namespace varve::io {
namespace {

constexpr std::uint64_t kBlocks = 4096;

// Each block begins with its own number.
class SparseReads : public ::testing::Test {
 protected:
  SparseReads() {
    AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      std::memcpy(block.data(), &i, sizeof i);
      EXPECT_TRUE(device_.write(i << kBlockShift, block.span()).ok());
    }
  }

  // Reads them and looks at what came.
  static SparseRead read_all(const std::vector<BlockAddr>& wanted, io::BlockDevice& device) {
    SparseRead read(wanted);
    io::Batch batch(device);
    EXPECT_TRUE(read.run(batch).ok());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      std::uint64_t number = 0;
      std::memcpy(&number, read.block(i), sizeof number);
      EXPECT_EQ(number, wanted[i].v);
    }
    return read;
  }

  io::MemDevice device_{kBlocks << kBlockShift};
};

std::vector<BlockAddr> every(std::uint64_t step, std::uint64_t count) {
  std::vector<BlockAddr> blocks;
  for (std::uint64_t i = 0; i < count; ++i) blocks.push_back(BlockAddr{7 + i * step});
  return blocks;
}

TEST_F(SparseReads, NeighboursComeInOneRequestUpToItsLimit) {
  const SparseRead read = read_all(every(1, 200), device_);
  EXPECT_EQ(read.requests(), 4u);
  EXPECT_EQ(read.bytes(), 200 * kBlockSize);
}

TEST_F(SparseReads, SmallGapsAreReadAlong) {
  const SparseRead read = read_all(every(2, 100), device_);
  EXPECT_LE(read.requests(), 5u);
}

TEST_F(SparseReads, WideGapsAreNot) {
  const SparseRead read = read_all(every(40, 100), device_);
  EXPECT_EQ(read.bytes(), 100 * kBlockSize);
}

TEST_F(SparseReads, NeverMoreDeadBlocksThanOthers) {
  const SparseRead read = read_all(every(8, 500), device_);
  EXPECT_LE(read.bytes(), 2 * 500 * kBlockSize);
}

TEST_F(SparseReads, ABadBlockInBetweenDoesNoHarm) {
  test::FaultDevice faulty(device_);
  faulty.add({.kind = io::IoKind::read, .times = test::Fault::kForEver, .touches_block = 8});
  read_all(every(2, 20), faulty);  // 7, 9, …
}

TEST_F(SparseReads, ABadBlockIsAnErrorOfThatBlock) {
  test::FaultDevice faulty(device_);
  for (const std::uint64_t bad : {20, 21, 300})
    faulty.add({.kind = io::IoKind::read, .times = test::Fault::kForEver, .touches_block = bad});
  std::vector<BlockAddr> wanted = every(1, 64);
  wanted.push_back(BlockAddr{300});
  SparseRead read(wanted);
  io::Batch batch(faulty);
  EXPECT_FALSE(read.run(batch).ok());
  EXPECT_EQ(batch.size(), 0u);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::uint64_t address = wanted[i].v;
    EXPECT_EQ(read.failed(i), address == 20 || address == 21 || address == 300) << address;
    std::uint64_t number = 0;
    std::memcpy(&number, read.block(i), sizeof number);
    EXPECT_TRUE(read.failed(i) || number == address) << address;
  }
}

TEST_F(SparseReads, ABadBlockThatIsWantedIsAnError) {
  test::FaultDevice faulty(device_);
  faulty.add({.kind = io::IoKind::read, .times = test::Fault::kForEver, .touches_block = 9});
  SparseRead read(every(2, 20));
  io::Batch batch(faulty);
  EXPECT_FALSE(read.run(batch).ok());
}

}  // namespace
}  // namespace varve::io
