// Laws of the model: what POSIX says about names, links, attributes and references.
#include "support/model_fs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/script.h"

namespace varve::test {
namespace {

class Model : public ::testing::Test {
 protected:
  // Runs a step; its error, or nothing.
  std::optional<Errc> run(std::string_view text) {
    ++now_.seconds;
    auto result = apply(model, *parse_step(text), now_);
    if (result.ok()) return std::nullopt;
    return result.error().code();
  }
  void all(std::string_view text) {
    for (const Step& step : script(text)) {
      ++now_.seconds;
      auto result = apply(model, step, now_);
      ASSERT_TRUE(result.ok()) << to_string(step) << ": " << result.error().message();
    }
  }
  const ModelInode& at(std::string_view target) { return model.inode(*inode_of(model, target)); }
  bool exists(std::string_view path) { return model.resolve(path).ok(); }

  ModelFs model;
  Timestamp now_{1000, 0};
};

TEST_F(Model, directories_count_their_subdirectories) {
  all("mkdir /a 0755; mkdir /a/b 0755; mkdir /a/c 0755; create /a/f 0644");
  EXPECT_EQ(at("/a").nlink, 4U);
  EXPECT_EQ(at("/").nlink, 3U);
  all("rmdir /a/b; rename /a/c /c move");
  EXPECT_EQ(at("/a").nlink, 2U);
  EXPECT_EQ(at("/").nlink, 4U);
}

TEST_F(Model, a_name_is_made_once) {
  all("create /f 0644; mkdir /d 0755");
  EXPECT_EQ(run("create /f 0644"), Errc::exists);
  EXPECT_EQ(run("mkdir /f 0755"), Errc::exists);
  EXPECT_EQ(run("link /f /d"), Errc::exists);
  EXPECT_EQ(run("create /f/x 0644"), Errc::not_directory);
  EXPECT_EQ(run("create /no/x 0644"), Errc::not_found);
  EXPECT_EQ(run("create /" + std::string(256, 'n') + " 0644"), Errc::name_too_long);
  EXPECT_EQ(run("create /" + std::string(255, 'n') + " 0644"), std::nullopt);
}

TEST_F(Model, removing_asks_for_the_right_kind) {
  all("create /f 0644; mkdir /d 0755; create /d/x 0644");
  EXPECT_EQ(run("unlink /d"), Errc::is_directory);
  EXPECT_EQ(run("rmdir /f"), Errc::not_directory);
  EXPECT_EQ(run("rmdir /d"), Errc::not_empty);
  EXPECT_EQ(run("unlink /no"), Errc::not_found);
}

TEST_F(Model, hard_links_share_everything) {
  all("create /f 0644; link /f /g; write /g 0 10 1; unlink /f");
  EXPECT_EQ(at("/g").nlink, 1U);
  EXPECT_EQ(at("/g").size, 10U);
  all("mkdir /d 0755");
  EXPECT_EQ(run("link /d /e"), Errc::not_permitted);
}

TEST_F(Model, an_unlinked_inode_lives_while_it_is_held) {
  all("create /f 0644; write /f 0 10 1; hold %1 /f; unlink /f");
  EXPECT_FALSE(exists("/f"));
  EXPECT_EQ(at("%1").nlink, 0U);
  all("write %1 10 10 2");
  EXPECT_EQ(at("%1").size, 20U);
  const std::size_t before = model.inode_count();
  all("release %1");
  EXPECT_EQ(model.inode_count(), before - 1);
}

TEST_F(Model, a_file_made_without_a_name_can_get_one) {
  all("tmpfile %1 / 0600; write %1 0 5 1");
  EXPECT_EQ(at("%1").nlink, 0U);
  all("link %1 /named; release %1");
  EXPECT_EQ(at("/named").size, 5U);
  all("tmpfile %1 / 0600; remount");
  EXPECT_EQ(model.inode_count(), 2U);
}

TEST_F(Model, rename_replaces_what_fits) {
  all("create /f 0644; create /g 0644; mkdir /d 0755; mkdir /e 0755; create /e/x 0644");
  EXPECT_EQ(run("rename /no /f move"), Errc::not_found);
  EXPECT_EQ(run("rename /f /d move"), Errc::is_directory);
  EXPECT_EQ(run("rename /d /f move"), Errc::not_directory);
  EXPECT_EQ(run("rename /d /e move"), Errc::not_empty);
  EXPECT_EQ(run("rename /f /g noreplace"), Errc::exists);
  EXPECT_EQ(run("rename /f /no exchange"), Errc::not_found);
  EXPECT_EQ(run("rename /f /g noreplace+exchange"), Errc::invalid);
  EXPECT_EQ(run("rename /f /g move"), std::nullopt);
  EXPECT_FALSE(exists("/f"));
  EXPECT_EQ(run("rename /e /d move"), std::nullopt);
  EXPECT_TRUE(exists("/d/x"));
}

TEST_F(Model, a_directory_cannot_go_into_itself) {
  all("mkdir /a 0755; mkdir /a/b 0755; mkdir /a/b/c 0755");
  EXPECT_EQ(run("rename /a /a/b/c/d move"), Errc::loop);
  EXPECT_EQ(run("rename /a/b /a move"), Errc::not_empty);
  EXPECT_EQ(run("rename /a/b /a exchange"), Errc::loop);
  EXPECT_EQ(run("rename /a/b /a/b move"), std::nullopt);
}

TEST_F(Model, two_names_of_one_inode_are_not_renamed) {
  all("create /f 0644; link /f /g");
  const Timestamp before = at("/").mtime;
  EXPECT_EQ(run("rename /f /g move"), std::nullopt);
  EXPECT_TRUE(exists("/f"));
  EXPECT_TRUE(exists("/g"));
  EXPECT_EQ(at("/").mtime, before);
}

TEST_F(Model, exchange_keeps_both_and_moves_parents) {
  all("mkdir /a 0755; mkdir /a/d 0755; create /f 0644; rename /a/d /f exchange");
  EXPECT_TRUE(at("/f").is_directory());
  EXPECT_TRUE(at("/a/d").is_file());
  EXPECT_EQ(at("/a").nlink, 2U);
  EXPECT_EQ(at("/f").parent, kModelRoot);
}

TEST_F(Model, sizes_follow_writes_truncates_and_fallocates) {
  all("create /f 0644; write /f 100 50 1");
  EXPECT_EQ(at("/f").size, 150U);
  all("fallocate /f keep 0 9000");
  EXPECT_EQ(at("/f").size, 150U);
  all("fallocate /f allocate 0 9000; fallocate /f zero-keep 0 20000; fallocate /f punch 0 20000");
  EXPECT_EQ(at("/f").size, 9000U);
  all("fallocate /f zero 9000 1; truncate /f 5");
  EXPECT_EQ(at("/f").size, 5U);
  EXPECT_EQ(run("fallocate /f punch 0 0"), Errc::invalid);
  EXPECT_EQ(run("truncate / 0"), Errc::is_directory);
  EXPECT_EQ(run("write /f 18446744073709551615 1 1"), Errc::file_too_big);
}

TEST_F(Model, xattr_flags_are_honoured) {
  all("create /f 0644; setxattr /f user.a 10 1 create");
  EXPECT_EQ(run("setxattr /f user.a 10 1 create"), Errc::exists);
  EXPECT_EQ(run("setxattr /f user.b 10 1 replace"), Errc::no_attribute);
  EXPECT_EQ(run("setxattr /f user.a 65537 1 set"), Errc::argument_too_big);
  EXPECT_EQ(run("removexattr /f user.b"), Errc::no_attribute);
}

TEST_F(Model, group_and_sgid_come_from_an_sgid_directory) {
  all("mkdir /d 02755; chown /d 1 7; create /d/f 0644; mkdir /d/e 0755");
  EXPECT_EQ(at("/d/f").gid, 7U);
  EXPECT_EQ(at("/d/e").gid, 7U);
  EXPECT_TRUE(at("/d/e").mode & S_ISGID);
}

TEST_F(Model, a_copy_is_a_moment_that_stays) {
  all("create /f 0644; write /f 0 10 1");
  const ModelFs before = model;
  all("write /f 0 20 2; create /g 0644; unlink /f");
  EXPECT_EQ(before.inode(*before.resolve("/f")).size, 10U);
  EXPECT_FALSE(before.resolve("/g").ok());
  EXPECT_EQ(before.inode(kModelRoot).entries.size(), 1U);
}

TEST_F(Model, a_failed_step_changes_nothing) {
  all("mkdir /a 0755; create /a/f 0644; create /g 0644");
  for (const char* step : {"rename /g /a move", "rename /a /g move", "link /a /x", "truncate /a 5", "rmdir /a",
                           "setxattr /g user.x 1 1 replace", "create /a/f 0600"}) {
    const Timestamp root = at("/").ctime;
    const Timestamp file = at("/g").ctime;
    EXPECT_NE(run(step), std::nullopt) << step;
    EXPECT_EQ(at("/").ctime, root) << step;
    EXPECT_EQ(at("/g").ctime, file) << step;
    EXPECT_EQ(at("/a").entries.size(), 1U) << step;
  }
}

}  // namespace
}  // namespace varve::test
