#include <gtest/gtest.h>

#include <map>

#include "fuse/operations/block_counts.h"
#include "support/waiting.h"

namespace varve::fuse {
namespace {

using test::wait_until;

constexpr Ino kLog{7}, kBeside{8};

// What the kernel was made to ask for again.
class Dropped {
 public:
  void add(Ino ino) {
    const Lock lock(mutex_);
    ++times_[ino];
  }
  int times(Ino ino) const {
    const Lock lock(mutex_);
    const auto found = times_.find(ino);
    return found == times_.end() ? 0 : found->second;
  }

 private:
  mutable Mutex mutex_;
  std::map<Ino, int> times_ GUARDED_BY(mutex_);
};

fs::Attr empty_file(Ino ino) {
  fs::Attr attr;
  attr.ino = ino;
  return attr;
}

class BlockCountsTest : public testing::Test {
 protected:
  Dropped dropped_;
  BlockCounts blocks_{[this](Ino ino) { dropped_.add(ino); }};
};

TEST_F(BlockCountsTest, the_kernel_hears_of_what_was_written) {
  for (int i = 0; i < 100; ++i) blocks_.wrote(kLog);
  wait_until([&] { return dropped_.times(kLog) == 1; });
  blocks_.wrote(kLog);
  wait_until([&] { return dropped_.times(kLog) == 2; });
}

TEST_F(BlockCountsTest, the_kernel_hears_of_names_that_have_changed) {
  for (int i = 0; i < 100; ++i) blocks_.named_in(kBeside);
  wait_until([&] { return dropped_.times(kBeside) == 1; });
}

TEST_F(BlockCountsTest, it_hears_nothing_of_what_it_has_asked_for_since) {
  blocks_.wrote(kLog);
  blocks_.wrote(kBeside);
  blocks_.asked(kLog);
  wait_until([&] { return dropped_.times(kBeside) == 1; });
  EXPECT_EQ(dropped_.times(kLog), 0);
}

TEST_F(BlockCountsTest, a_write_after_it_has_asked_is_news_again) {
  blocks_.wrote(kLog);
  blocks_.asked(kLog);
  blocks_.wrote(kLog);
  wait_until([&] { return dropped_.times(kLog) == 1; });
}

TEST_F(BlockCountsTest, a_file_without_blocks_that_is_being_written_counts_as_one_that_has_one) {
  EXPECT_EQ(blocks_.with_unseen(empty_file(kLog)).blocks, 0U);
  blocks_.will_write(kLog);
  EXPECT_EQ(blocks_.with_unseen(empty_file(kLog)).blocks, 1U);
  EXPECT_EQ(blocks_.with_unseen(empty_file(kBeside)).blocks, 0U);
  wait_until([&] { return dropped_.times(kLog) == 1; });  // the kernel believes that it has none
  blocks_.asked(kLog);
  EXPECT_EQ(blocks_.with_unseen(empty_file(kLog)).blocks, 1U) << "the kernel still holds what was written";
  blocks_.wrote(kLog);
  EXPECT_EQ(blocks_.with_unseen(empty_file(kLog)).blocks, 0U) << "now its own blocks count";
  blocks_.will_write(kBeside);
  blocks_.forget(kBeside);
  EXPECT_FALSE(blocks_.any_unseen());
}

}  // namespace
}  // namespace varve::fuse
