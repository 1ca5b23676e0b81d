#include <gtest/gtest.h>

#include "fuse/operations/lost_writes.h"

namespace varve::fuse {
namespace {

constexpr Ino kFile{7}, kOther{8};

TEST(LostWrites, a_file_lacks_what_was_refused_until_all_of_it_is_written) {
  LostWrites lost;
  EXPECT_FALSE(lost.any());
  lost.refused(kFile, 4096, 12288, Errc::no_space);
  lost.refused(kFile, 20480, 24576, Errc::no_space);
  EXPECT_TRUE(lost.lacks(kFile));
  EXPECT_FALSE(lost.lacks(kOther));
  lost.settled(kFile, 8192, 24576);
  EXPECT_TRUE(lost.lacks(kFile));
  lost.settled(kOther, 0, 1 << 20);
  lost.settled(kFile, 0, 8191);
  EXPECT_TRUE(lost.lacks(kFile));  // a byte
  lost.settled(kFile, 8191, 8192);
  EXPECT_FALSE(lost.lacks(kFile));
  EXPECT_FALSE(lost.any());
}

TEST(LostWrites, writing_in_the_middle_leaves_both_ends) {
  LostWrites lost;
  lost.refused(kFile, 0, 100, Errc::no_space);
  lost.settled(kFile, 40, 60);
  lost.settled(kFile, 0, 40);
  EXPECT_TRUE(lost.lacks(kFile));
  lost.settled(kFile, 60, 100);
  EXPECT_FALSE(lost.lacks(kFile));
}

TEST(LostWrites, cutting_and_forgetting_settle) {
  LostWrites lost;
  lost.refused(kFile, 100, 200, Errc::no_space);
  lost.refused(kOther, 100, 200, Errc::no_space);
  lost.cut(kFile, 101);
  EXPECT_TRUE(lost.lacks(kFile));
  lost.cut(kFile, 100);
  EXPECT_FALSE(lost.lacks(kFile));
  EXPECT_EQ(lost.files(9), std::vector<Ino>{kOther});
  lost.forget(kOther);
  EXPECT_FALSE(lost.any());
}

TEST(LostWrites, more_ranges_than_are_kept_are_joined_and_none_is_forgotten) {
  constexpr std::uint64_t kRanges = 5000;
  LostWrites up, down;
  for (std::uint64_t i = 0; i < kRanges; ++i) up.refused(kFile, 10 * i, 10 * i + 5, Errc::no_space);
  for (std::uint64_t i = kRanges; i-- > 0;) down.refused(kFile, 10 * i, 10 * i + 5, Errc::no_space);
  for (LostWrites* lost : {&up, &down}) {
    lost->settled(kFile, 5, 10 * (kRanges - 1));
    EXPECT_TRUE(lost->lacks(kFile));
    lost->settled(kFile, 0, 5);
    EXPECT_TRUE(lost->lacks(kFile));
    lost->settled(kFile, 10 * (kRanges - 1), 10 * kRanges);
    EXPECT_FALSE(lost->lacks(kFile));
  }
}

TEST(LostWrites, each_thread_that_writes_gets_the_news_once_for_each_refusal) {
  LostWrites lost;
  lost.writes(kFile, 1);  // lacks nothing: nobody is remembered
  lost.refused(kFile, 0, 10, Errc::no_space);
  EXPECT_FALSE(lost.take_news(kFile, 1));
  lost.writes(kFile, 1);
  lost.writes(kFile, 2);
  EXPECT_TRUE(lost.take_news(kFile, 1));
  EXPECT_FALSE(lost.take_news(kFile, 1));
  lost.writes(kFile, 1);
  EXPECT_FALSE(lost.take_news(kFile, 1));
  lost.refused(kFile, 10, 20, Errc::no_space);
  EXPECT_TRUE(lost.take_news(kFile, 1));
  EXPECT_TRUE(lost.take_news(kFile, 2));
  EXPECT_FALSE(lost.take_news(kFile, 2));
  EXPECT_FALSE(lost.take_news(kFile, 3));  // a reader
}

TEST(LostWrites, a_thread_hears_why_the_last_one_was_refused) {
  LostWrites lost;
  EXPECT_EQ(lost.why_lacking(kFile), std::nullopt);
  lost.refused(kFile, 0, 10, Errc::no_space);
  EXPECT_EQ(lost.why_lacking(kFile), Errc::no_space);
  lost.writes(kFile, 1);
  EXPECT_EQ(lost.take_news(kFile, 1), Errc::no_space);
  lost.refused(kFile, 10, 20, Errc::read_only);
  EXPECT_EQ(lost.take_news(kFile, 1), Errc::read_only);
  EXPECT_EQ(lost.why_lacking(kFile), Errc::read_only);
  EXPECT_EQ(lost.take_news(kFile, 1), std::nullopt);
}

TEST(LostWrites, what_the_device_does_not_take_is_lost_and_what_was_never_allowed_is_not) {
  for (const Errc why : {Errc::no_space, Errc::read_only, Errc::io, Errc::corrupt}) EXPECT_TRUE(LostWrites::loses(why)) << name_of(why);
  for (const Errc why : {Errc::not_permitted, Errc::stale, Errc::file_too_big}) EXPECT_FALSE(LostWrites::loses(why)) << name_of(why);
}

}  // namespace
}  // namespace varve::fuse
