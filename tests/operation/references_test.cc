#include "operation/references.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace varve::operation {
namespace {

TEST(References, CountWhatWasAddedAndDropped) {
  References references;
  references.add(Ino{7}, 2);
  references.add(Ino{7}, 1);
  EXPECT_EQ(references.count(Ino{7}), 3u);
  EXPECT_EQ(references.drop(Ino{7}, 2), 1u);
  EXPECT_EQ(references.drop(Ino{7}, 5), 0u);
  EXPECT_EQ(references.drop(Ino{7}, 1), 0u);
  EXPECT_EQ(references.inodes(), 0u);
}

// Numbers and counts on both sides of what a slot can hold.
TEST(References, CountsAndNumbersHaveNoLimit) {
  References references;
  for (const std::uint64_t ino : std::vector<std::uint64_t>{1, (1ULL << 40) - 1, 1ULL << 40, ~0ULL}) {
    references.add(Ino{ino}, (1u << 24) - 1);
    references.add(Ino{ino}, 2);
    EXPECT_EQ(references.count(Ino{ino}), (1u << 24) + 1);
    EXPECT_EQ(references.inodes(), 1u);
    EXPECT_EQ(references.drop(Ino{ino}, 2), (1u << 24) - 1);
    EXPECT_EQ(references.count(Ino{ino}), (1u << 24) - 1);
    EXPECT_EQ(references.drop(Ino{ino}, (1u << 24) - 1), 0u);
    EXPECT_EQ(references.inodes(), 0u);
  }
}

TEST(References, AgreeWithAMapOverRandomChanges) {
  std::mt19937_64 random(20);
  References references;
  std::map<std::uint64_t, std::uint64_t> expected;
  for (int step = 0; step < 200'000; ++step) {
    // Grows for a while, then shrinks, so that the table is resized both ways.
    const bool grows = step % 50'000 < 25'000;
    const std::uint64_t ino = 1 + random() % 3'000 * (random() % 64 ? 1 : 1ULL << 36);
    if (random() % 8 < (grows ? 6u : 2u)) {
      references.add(Ino{ino}, 1 + step % 3);
      expected[ino] += 1 + step % 3;
    } else {
      std::uint64_t& count = expected[ino];
      count -= std::min<std::uint64_t>(count, 2);
      ASSERT_EQ(references.drop(Ino{ino}, 2), count);
      if (!count) expected.erase(ino);
    }
  }
  EXPECT_EQ(references.inodes(), expected.size());
  for (const auto& [ino, count] : expected) ASSERT_EQ(references.count(Ino{ino}), count) << ino;
  const std::vector<Ino> all = references.all();
  EXPECT_EQ(all.size(), expected.size());
  for (const Ino ino : all) ASSERT_TRUE(expected.contains(ino.v)) << ino.v;
}

TEST(References, TakeAtMostSixteenBytesAnInodeAndGiveThemBack) {
  References references;
  constexpr std::uint64_t kInodes = 300'000;
  for (std::uint64_t ino = 1; ino <= kInodes; ++ino) {
    references.add(Ino{ino}, 1);
    ASSERT_LE(references.bytes(), 16 * std::max<std::uint64_t>(ino, 4'096)) << ino;
  }
  for (std::uint64_t ino = 1; ino <= kInodes; ++ino) {
    references.drop(Ino{ino}, 1);
    ASSERT_LE(references.bytes(), 16 * std::max<std::uint64_t>(kInodes - ino, 4'096)) << ino;
  }
}

TEST(References, AnOrphanIsTakenOnce) {
  References references;
  references.add_orphan(Ino{5});
  EXPECT_TRUE(references.take_orphan(Ino{5}));
  EXPECT_FALSE(references.take_orphan(Ino{5}));
  references.add_orphan(Ino{6});
  EXPECT_EQ(references.take_orphans(), std::vector<Ino>{Ino{6}});
  EXPECT_TRUE(references.take_orphans().empty());
}

}  // namespace
}  // namespace varve::operation
