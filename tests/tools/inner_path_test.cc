// Which path of its filesystem a path of the host is, by lines of /proc/self/mountinfo.
#include "control/inner_path.h"

#include <gtest/gtest.h>

namespace varve::control {
namespace {

std::vector<Mount> table() {
  std::vector<Mount> found;
  for (const char* line : {
           "20 1 8:1 / / rw - ext4 /dev/sda1 rw",
           "30 20 0:50 / /m rw - fuse.varve /images/m.img rw",
           "31 20 0:50 /sub /q rw - fuse.varve /images/m.img rw",
           "32 20 0:50 /sub/deep\\040er /volumes/b rw - fuse.varve /images/m.img rw",
           "33 20 0:50 /sub/f /etc/file rw - fuse.varve /images/m.img rw",
           "34 30 0:50 /other /m/sub rw - fuse.varve /images/m.img rw",
           "35 20 0:50 /gone//deleted /old rw - fuse.varve /images/m.img rw",
           "36 20 0:60 / /stack rw - tmpfs none rw",
           "37 36 0:50 /sub /stack rw - fuse.varve /images/m.img rw",
           "38 20 0:50 /.varve-snapshots/one /s rw - fuse.varve /images/m.img ro",
       })
    found.push_back(*parse_mount(line));
  return found;
}

std::string inside(const std::string& place, const std::string& id = "") {
  const auto mount = mount_of_path(table(), id, place);
  return mount ? path_inside(*mount, place).value_or("none") : "no mount";
}

TEST(InnerPath, of_a_whole_mount) {
  EXPECT_EQ(inside("/m"), "/");
  EXPECT_EQ(inside("/m/f"), "/f");
  EXPECT_EQ(inside("/m/d/e"), "/d/e");
}

TEST(InnerPath, of_a_mount_of_a_part) {
  EXPECT_EQ(inside("/q"), "/sub");
  EXPECT_EQ(inside("/q/f"), "/sub/f");
  EXPECT_EQ(inside("/volumes/b/f"), "/sub/deep er/f");
  EXPECT_EQ(inside("/etc/file"), "/sub/f");
  EXPECT_EQ(inside("/s/f"), "/.varve-snapshots/one/f");
}

TEST(InnerPath, a_mount_in_the_tree_has_what_it_shows) {
  EXPECT_EQ(inside("/m/sub/f"), "/other/f");
  EXPECT_EQ(inside("/m/subs/f"), "/subs/f");
}

TEST(InnerPath, the_kernel_says_which_one_it_is) {
  EXPECT_EQ(inside("/stack/f"), "/sub/f");
  EXPECT_EQ(inside("/stack/f", "36"), "/f");
  EXPECT_EQ(inside("/m/sub/f", "30"), "/sub/f");
  EXPECT_EQ(inside("/q/f", "99"), "/sub/f");
}

TEST(InnerPath, of_the_root_of_all) {
  const auto mount = parse_mount("20 1 0:50 / / rw - fuse.varve /images/m.img rw");
  EXPECT_EQ(path_inside(*mount, "/"), "/");
  EXPECT_EQ(path_inside(*mount, "/etc/fstab"), "/etc/fstab");
  const auto part = parse_mount("20 1 0:50 /system / rw - fuse.varve /images/m.img rw");
  EXPECT_EQ(path_inside(*part, "/"), "/system");
  EXPECT_EQ(path_inside(*part, "/etc/fstab"), "/system/etc/fstab");
}

TEST(InnerPath, none_where_it_cannot_be_told) {
  EXPECT_EQ(inside("/old/f"), "none");
  EXPECT_FALSE(path_inside(table()[1], "/q/f").has_value());
  EXPECT_FALSE(path_inside(table()[1], "/mm").has_value());
  EXPECT_FALSE(mount_of_path({}, "", "/m").has_value());
}

}  // namespace
}  // namespace varve::control
