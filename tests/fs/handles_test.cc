// Handles may be made up, or be of files that a crash has taken: then their numbers are given again.
#include <gtest/gtest.h>

#include "support/mounted_test.h"

namespace varve::fs {
namespace {

class Handles : public test::MountedTest {
 protected:
  void ask_too_early(Ino ino) {
    EXPECT_TRUE(fixture_.lookup(ino, ".").fails_with(Errc::stale));
    EXPECT_TRUE(fixture_.getattr(ino).fails_with(Errc::stale));
  }
  Ino make(std::string_view path) { return fixture_.make(path, S_IFREG | 0644)->ino; }
};

TEST_F(Handles, a_number_that_was_asked_for_too_early_becomes_a_file_like_any_other) {
  const Ino next{make("/f").v + 1};
  ask_too_early(next);
  ASSERT_EQ(make("/g"), next);
  ASSERT_TRUE(fixture_.lookup(kRootIno, "g").ok());
  const std::vector<std::byte> data(100, std::byte{'x'});
  ASSERT_TRUE(fixture_.write(next, 0, data).ok());
  EXPECT_EQ(*fixture_.read(next, 0, 1000), data);
  ASSERT_TRUE(fixture_.unmount().ok());
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_EQ(fixture_.getattr(next)->size, 100u);
  EXPECT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().unlink(op, kRootIno, "g"); }).ok());
}

TEST_F(Handles, a_number_whose_file_a_crash_has_taken_is_given_again) {
  make("/f");
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().sync(op); }).ok());
  const Ino lost = make("/lost");
  fixture_.crash();
  ASSERT_TRUE(fixture_.mount().ok());
  ask_too_early(lost);
  ASSERT_EQ(make("/again"), lost);
  EXPECT_EQ(fixture_.getattr(lost)->nlink, 1u);
}

}  // namespace
}  // namespace varve::fs
