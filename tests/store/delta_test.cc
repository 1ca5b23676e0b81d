#include "changes/delta.h"

#include <gtest/gtest.h>

namespace varve::changes {
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

// A replay does not look at older layers. So they are hidden by a removal, which stays when the name goes at last.
TEST(DirectoryDelta, AReplacedEntryHidesThatOfOlderLayers) {
  DirectoryDelta entries;
  for (const Ino ino : {Ino{7}, Ino{8}}) {
    entries.replace(5, {ino, 0, "name"});
    EXPECT_EQ(entries.by_name.at("name"), 5U);
    EXPECT_EQ(entries.added.at(5).ino, ino);
    EXPECT_TRUE(entries.removed.contains(5));
    EXPECT_TRUE(entries.unsealed_removed.contains(5));
    EXPECT_TRUE(entries.unsealed_added.contains(5));
  }
  entries.remove(5, "name", false);
  EXPECT_TRUE(entries.added.empty());
  EXPECT_TRUE(entries.by_name.empty());
  EXPECT_TRUE(entries.removed.contains(5));
  EXPECT_TRUE(entries.unsealed_removed.contains(5));
  EXPECT_TRUE(entries.unsealed_added.empty());
}

TEST(DirectoryDelta, AnEntryThatNobodyHasHeardOfIsReplacedWithoutARemoval) {
  DirectoryDelta entries;
  entries.add(5, {Ino{7}, 0, "name"});
  entries.unsealed_added.insert(5);
  entries.replace(5, {Ino{8}, 0, "name"});
  EXPECT_EQ(entries.added.at(5).ino, Ino{8});
  EXPECT_TRUE(entries.removed.empty());
  EXPECT_TRUE(entries.unsealed_removed.empty());
  EXPECT_EQ(entries.unsealed_added.size(), 1U);
}

}  // namespace
}  // namespace varve::changes
