#include "store/delta.h"

#include <gtest/gtest.h>

namespace varve::store {
namespace {

// As only a log made by hand has it. The former name's view would point to memory that has gone.
TEST(DirectoryDelta, ForgetsTheNameThatACookieHadBefore) {
  DirectoryDelta entries;
  const std::string first(40, 'a'), second(60, 'b');
  entries.add(5, {Ino{7}, 0, first});
  entries.add(5, {Ino{8}, 0, second});
  EXPECT_EQ(entries.by_name.count(first), 0U);
  EXPECT_EQ(entries.by_name.at(second), 5U);
  EXPECT_EQ(entries.by_name.size(), 1U);
}

TEST(DirectoryDelta, ANameBelongsToTheNewestCookie) {
  DirectoryDelta entries;
  entries.add(5, {Ino{7}, 0, "name"});
  entries.add(6, {Ino{8}, 0, "name"});
  EXPECT_EQ(entries.by_name.at("name"), 6U);
  entries.remove(5, "name", false);
  EXPECT_EQ(entries.by_name.at("name"), 6U);
  entries.remove(6, "name", false);
  EXPECT_TRUE(entries.by_name.empty());
}

}  // namespace
}  // namespace varve::store
