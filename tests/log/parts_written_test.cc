#include "log/parts_written.h"

#include <gtest/gtest.h>

#include <vector>

namespace varve::log {
namespace {

class Parts : public testing::Test {
 protected:
  void add(std::uint64_t address, std::uint32_t crc, int byte) {
    parts_.add(BlockAddr{address}, crc, std::vector(kBlockSize, static_cast<std::byte>(byte)));
  }
  // The byte that the block is full of, or -1.
  int found(std::uint64_t address, std::uint32_t crc) const {
    std::vector<std::byte> out(kBlockSize);
    if (!parts_.find(BlockAddr{address}, crc, out)) return -1;
    EXPECT_EQ(out, std::vector(kBlockSize, out[0]));
    return std::to_integer<int>(out[0]);
  }

  PartsWritten parts_;
};

TEST_F(Parts, AreFoundByAddressAndChecksum) {
  EXPECT_EQ(found(10, 7), -1);
  add(10, 7, 1);
  add(11, 7, 2);
  EXPECT_EQ(found(10, 7), 1);
  EXPECT_EQ(found(11, 7), 2);
  EXPECT_EQ(found(12, 7), -1);
  EXPECT_EQ(found(0, 0), -1) << "an empty place has no name";
}

TEST_F(Parts, AnOlderBlockOfTheAddressIsAnotherOne) {
  add(10, 7, 1);
  add(10, 8, 2);
  EXPECT_EQ(found(10, 8), 2);
  EXPECT_EQ(found(10, 9), -1);
}

TEST_F(Parts, TheOldestOneGoes) {
  for (std::size_t i = 1; i <= PartsWritten::kBlocks + 1; ++i) add(i, 7, static_cast<int>(i));
  EXPECT_EQ(found(1, 7), -1);
  EXPECT_EQ(found(2, 7), 2);
  EXPECT_EQ(found(PartsWritten::kBlocks + 1, 7), static_cast<int>(PartsWritten::kBlocks + 1));
}

}  // namespace
}  // namespace varve::log
