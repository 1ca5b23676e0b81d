// The walk through all files below some inodes: order, and that it comes to an end.
#include <gtest/gtest.h>

#include "check/image_builder.h"
#include "jobs/file_walk.h"
#include "support/fs_fixture.h"

namespace varve::jobs {
namespace {

using check::test::ImageBuilder;

// The files that a walk from these inodes meets, at most `most`.
std::vector<Ino> walked(ImageBuilder& builder, const std::vector<Ino>& roots, std::size_t most = 1000) {
  const auto device = builder.build();
  test::ManualClock clock;
  clock.set_elapsed(9'000'000'000'000);  // no image was made later
  SeededRandom random(4711);
  test::FsFixture fixture(*device, test::test_options(clock, random));
  EXPECT_TRUE(fixture.mount().ok());
  FileWalk walk(fixture.fs().operations(), roots);
  std::vector<Ino> files;
  while (files.size() < most) {
    const auto file = walk.next();
    EXPECT_TRUE(file.ok()) << file.error().message();
    if (!file.ok() || !*file) break;
    files.push_back(**file);
  }
  return files;
}

struct Tree {
  ImageBuilder builder{4096};
  Ino first = builder.add_file(kRootIno, "first", 1);
  Ino dir = builder.add_directory(kRootIno, "dir");
  Ino inner = builder.add_file(dir, "inner", 1);
  Ino sub = builder.add_directory(dir, "sub");
  Ino deep = builder.add_file(sub, "deep", 1);
  Ino last = builder.add_file(kRootIno, "last", 1);
};

TEST(FileWalk, goes_in_directory_order) {
  Tree tree;
  tree.builder.add_symlink(tree.dir, "link", "inner");
  EXPECT_EQ(walked(tree.builder, {kRootIno}), (std::vector<Ino>{tree.first, tree.inner, tree.deep, tree.last}));
}

TEST(FileWalk, begins_where_it_is_told_to) {
  Tree tree;
  EXPECT_EQ(walked(tree.builder, {tree.last, tree.sub, tree.dir}), (std::vector<Ino>{tree.last, tree.deep, tree.inner}));
}

// As malice has made them, or damage: names that lead back, two in one directory.
TEST(FileWalk, ends_where_directories_lead_to_themselves) {
  Tree tree;
  tree.builder.add_link(tree.dir, "self", tree.dir);
  tree.builder.add_link(tree.sub, "up", tree.dir);
  tree.builder.add_link(tree.sub, "top", kRootIno);
  EXPECT_EQ(walked(tree.builder, {kRootIno}), (std::vector<Ino>{tree.first, tree.inner, tree.deep, tree.last}));
}

}  // namespace
}  // namespace varve::jobs
