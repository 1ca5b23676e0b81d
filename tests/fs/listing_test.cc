// What a listing tells of its directory: whether more follows, and whether names have come or gone.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
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

  // How far a reader has come. As for the kernel, a listing ends where its directory ended when it began.
  struct Place {
    std::uint64_t cookie = 0, last = 0;
  };
  std::vector<std::string> next_names(Ino directory, Place& place) {
    constexpr std::size_t kMost = 20;
    std::vector<std::string> names;
    EXPECT_TRUE(fixture_
                    .call([&](Operation& op) {
                      return fixture_.fs().readdir(op, directory, place.cookie, false, [&](const DirectoryEntry& entry) {
                        if (!place.last) place.last = entry.last_cookie;
                        if (names.size() == kMost || entry.cookie > place.last) return false;
                        names.emplace_back(entry.name);
                        place.cookie = entry.cookie;
                        return true;
                      });
                    })
                    .ok());
    return names;
  }
  void rename(Ino from, const std::string& name, Ino to, const std::string& other, unsigned flags) {
    ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().rename(op, from, name, to, other, flags); }).ok());
  }
};

// As `rsync --delete` lists its source: a name that it does not see it takes for one that has gone.
TEST_F(Listings, have_each_name_once_that_is_given_to_other_files_meanwhile) {
  constexpr int kNames = 400;
  for (const unsigned flags : {0U, unsigned{kRenameExchange}, unsigned{kRenameWhiteout}}) {
    const std::string top = "/d" + std::to_string(flags), other = top + "-other";
    const Ino directory = fixture_.make(top, S_IFDIR | 0755)->ino, others = fixture_.make(other, S_IFDIR | 0755)->ino;
    std::map<std::string, int> wanted{{".", 1}, {"..", 1}}, seen;
    for (int i = 0; i < kNames; ++i) {
      if (i == kNames / 2) {  // what follows is in the delta map
        ASSERT_TRUE(fixture_.checkpoint().ok());
      }
      make(top + "/" + std::to_string(i));
      ++wanted[std::to_string(i)];
    }
    int replaced = 0;
    const auto replace = [&](int i) {
      const std::string name = std::to_string(i), apart = std::to_string(++replaced);
      if (flags == kRenameWhiteout) return rename(directory, name, others, apart, flags);
      make(other + "/" + apart);
      rename(others, apart, directory, name, flags);
    };
    Place place;
    for (int turn = 0;; ++turn) {
      const auto names = next_names(directory, place);
      if (names.empty()) break;
      for (const std::string& name : names) ++seen[name];
      for (const int i : {turn * 61, turn * 61 + 150, turn * 61 + 300}) replace(i % kNames);  // before the reader and behind it
      if (turn % 6 == 5) {
        ASSERT_TRUE(fixture_.checkpoint().ok());
      }
    }
    EXPECT_GT(replaced, 50);
    EXPECT_EQ(seen, wanted) << "flags " << flags;
    const auto listed = *fixture_.list(directory);
    EXPECT_TRUE(std::ranges::is_sorted(listed, {}, &test::ListedEntry::cookie)) << "flags " << flags;
    remount();
    EXPECT_EQ(*fixture_.list(directory), listed) << "flags " << flags;
  }
}

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
  make("/d/d");
  look();
  rename(directory, "d", directory, "c", 0);
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
