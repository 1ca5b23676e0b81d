// What a listing tells of its directory: whether more follows, and whether names have come or gone.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "support/mounted_test.h"

namespace varve::fs {
namespace {

class Listings : public test::MountedTest {
 protected:
  struct Seen {
    std::size_t names = 0;
    std::size_t said_to_be_last = 0;
    bool the_last_one_was = false;
    std::uint64_t last_cookie = 0;
  };

  Seen list(Ino directory) {
    Seen seen;
    std::uint64_t cookie = 0;
    for (bool more = true; more;) {
      more = false;
      EXPECT_TRUE(fixture_
                      .call([&](Operation& op) {
                        return fixture_.fs().readdir(op, directory, cookie, false, [&](const DirectoryEntry& entry) {
                          ++seen.names;
                          seen.said_to_be_last += entry.is_last;
                          seen.the_last_one_was = entry.is_last;
                          seen.last_cookie = entry.last_cookie;
                          cookie = entry.cookie;
                          return more = true;
                        });
                      })
                      .ok());
    }
    return seen;
  }
  void make(const std::string& path) { ASSERT_TRUE(fixture_.make(path, S_IFREG | 0644).ok()); }
};

TEST_F(Listings, say_which_entry_is_the_last) {
  const Ino directory = fixture_.make("/d", S_IFDIR | 0755)->ino;
  for (std::size_t names = 2; names < 700; ++names) {
    const Seen seen = list(directory);
    EXPECT_EQ(seen.names, names);
    // Where a batch ends with the last one, nobody knows yet that it was that.
    EXPECT_EQ(seen.said_to_be_last, seen.the_last_one_was ? 1U : 0U);
    if (names < 250) {
      EXPECT_TRUE(seen.the_last_one_was) << names;
    }
    make("/d/" + std::to_string(names));
  }
}

TEST_F(Listings, H59_tell_that_names_have_come_or_gone) {
  const Ino directory = fixture_.make("/d", S_IFDIR | 0755)->ino;
  make("/d/a");
  std::vector<std::uint64_t> seen;
  const auto look = [&] { seen.push_back(list(directory).last_cookie); };
  look();
  make("/d/b");
  look();
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().rename(op, directory, "b", directory, "c", 0); }).ok());
  look();
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().unlink(op, directory, "a"); }).ok());
  look();
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GT(seen[i], seen[i - 1]) << i;
  EXPECT_EQ(list(directory).last_cookie, seen.back()) << "listing changes nothing";
  ASSERT_TRUE(fixture_.seal().ok());
  fixture_.crash();
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_EQ(list(directory).last_cookie, seen.back()) << "nor does a recovery";
  ASSERT_TRUE(fixture_.unmount().ok());
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_EQ(list(directory).last_cookie, seen.back());
}

}  // namespace
}  // namespace varve::fs
