// The model's contents against plain bytes: a reference has to be right before anything is measured by it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/types.h"
#include "support/model_content.h"
#include "support/pattern.h"
#include "support/script_generator.h"

namespace varve::test {
namespace {

constexpr std::size_t kFile = 10 * kBlockSize;

struct PlainFile {
  std::vector<std::byte> bytes = std::vector<std::byte>(kFile);
  void blank(std::size_t from, std::size_t end) {
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.begin() + static_cast<std::ptrdiff_t>(end),
              std::byte{0});
  }
};

void change_both(Dice& dice, ModelContent& content, PlainFile& plain) {
  const std::size_t from = dice.below(kFile - 1);
  const std::size_t length = dice.between(1, std::min<std::size_t>(kFile - from, 3 * kBlockSize));
  switch (dice.below(6)) {
    case 0:
      content.shrink(from);
      return plain.blank(from, kFile);
    case 1:
      content.punch(from, length);
      return plain.blank(from, from + length);
    case 2:
      content.zero(from, length);
      return plain.blank(from, from + length);
    case 3:
      return content.allocate(from, length);
    default: {
      const std::uint64_t seed = dice.below(1000);
      content.write(from, length, seed);
      fill_pattern(seed, from, std::span(plain.bytes).subspan(from, length));
    }
  }
}

std::uint64_t hash_of_plain(const PlainFile& plain, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < size; at += kBlockSize) {
    sum += hash_of_block(block_of(at), std::span(plain.bytes).subspan(at, std::min(kBlockSize, size - at)));
  }
  return sum;
}

TEST(ModelContent, reads_and_hashes_like_plain_bytes) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Dice dice(seed);
    ModelContent content;
    PlainFile plain;
    for (int i = 0; i < 40; ++i) {
      change_both(dice, content, plain);
      std::vector<std::byte> bytes(kFile);
      content.read(0, bytes);
      ASSERT_EQ(bytes, plain.bytes) << "seed " << seed << " step " << i;
      const std::size_t size = dice.below(kFile);
      ASSERT_EQ(content.hash(size), hash_of_plain(plain, size)) << "seed " << seed << " step " << i;
    }
  }
}

TEST(ModelContent, pieces_never_overlap_and_blocks_with_data_are_data) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Dice dice(seed);
    ModelContent content;
    PlainFile plain;
    for (int i = 0; i < 40; ++i) {
      change_both(dice, content, plain);
      std::uint64_t end = 0;
      for (const auto& [start, piece] : content.pieces()) {
        ASSERT_LE(end, start);
        ASSERT_LT(start, piece.end);
        end = piece.end;
      }
      for (std::size_t at = 0; at < kFile; at += kBlockSize) {
        const bool any = std::any_of(plain.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                     plain.bytes.begin() + static_cast<std::ptrdiff_t>(at + kBlockSize),
                                     [](std::byte b) { return b != std::byte{0}; });
        const auto state = content.block_state(block_of(at));
        ASSERT_EQ(state == ModelContent::BlockState::data, any) << "seed " << seed << " step " << i;
      }
    }
  }
}

TEST(ModelContent, whole_blocks_punched_are_holes_and_edges_are_not) {
  ModelContent content;
  content.write(0, 4 * kBlockSize, 1);
  content.punch(100, 2 * kBlockSize);
  EXPECT_EQ(content.block_state(0), ModelContent::BlockState::data);
  EXPECT_EQ(content.block_state(1), ModelContent::BlockState::hole);
  EXPECT_EQ(content.block_state(2), ModelContent::BlockState::data);
  content.shrink(3 * kBlockSize + 1);
  EXPECT_EQ(content.block_state(3), ModelContent::BlockState::data);
  content.shrink(3 * kBlockSize);
  EXPECT_EQ(content.block_state(3), ModelContent::BlockState::hole);
  content.allocate(5 * kBlockSize, 1);
  EXPECT_EQ(content.block_state(5), ModelContent::BlockState::either);
}

TEST(ModelContent, cut_bytes_stay_zero_when_the_file_grows_again) {
  ModelContent content;
  content.write(0, kBlockSize, 1);
  content.shrink(100);
  std::vector<std::byte> tail(kBlockSize - 100);
  content.read(100, tail);
  EXPECT_TRUE(std::all_of(tail.begin(), tail.end(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(content.block_state(0), ModelContent::BlockState::data);
}

TEST(ModelContent, far_offsets_cost_nothing) {
  ModelContent content;
  content.write(1ULL << 43, 5, 7);
  content.allocate(0, 1ULL << 44);
  EXPECT_LE(content.pieces().size(), 3U);
  EXPECT_NE(content.hash(1ULL << 44), 0U);
}

TEST(Pattern, is_a_function_of_seed_and_place_and_never_zero) {
  const auto whole = pattern_bytes(5, 0, 1000);
  const auto part = pattern_bytes(5, 333, 100);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 333));
  EXPECT_EQ(std::count(whole.begin(), whole.end(), std::byte{0}), 0);
  EXPECT_NE(pattern_bytes(6, 0, 1000), whole);
}

}  // namespace
}  // namespace varve::test
