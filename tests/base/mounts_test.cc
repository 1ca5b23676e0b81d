#include "base/mounts.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST(Mounts, are_read_with_their_optional_fields) {
  const auto mount = parse_mount("36 35 98:0 /part /mnt/a\\040b rw,noatime shared:1 master:2 - "
                                 "fuse.varve /images/c\\134d.img rw,user_id=1000");
  ASSERT_TRUE(mount.has_value());
  EXPECT_EQ(mount->id, "36");
  EXPECT_EQ(mount->device, "98:0");
  EXPECT_EQ(mount->root, "/part");
  EXPECT_EQ(mount->directory, "/mnt/a b");
  EXPECT_EQ(mount->type, "fuse.varve");
  EXPECT_EQ(mount->source, "/images/c\\d.img");
  EXPECT_EQ(mount->options, "rw,user_id=1000");
}

TEST(Mounts, other_lines_are_none) {
  EXPECT_FALSE(parse_mount("").has_value());
  EXPECT_FALSE(parse_mount("36 35 98:0 / /mnt rw").has_value());
}

TEST(Mounts, the_root_is_one_of_them) {
  for (const Mount& mount : mounts()) {
    EXPECT_FALSE(mount.type.empty());
    EXPECT_EQ(mount.directory.front(), '/');
  }
  EXPECT_FALSE(mounts().empty());
}

TEST(Mounts, a_backslash_at_the_end_stays) {
  EXPECT_EQ(unescape_octal("a\\04"), "a\\04");
  EXPECT_EQ(unescape_octal("\\303\\244"), "ä");
}

}  // namespace
}  // namespace varve
