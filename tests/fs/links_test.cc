// Link counts at their end: nobody can make four thousand million names, so the count is set beforehand.
#include <gtest/gtest.h>

#include "fs/inode_util.h"
#include "support/mounted_test.h"

namespace varve::fs {
namespace {

class Links : public test::MountedTest {
 protected:
  Ino make(std::string_view path, std::uint32_t mode) { return fixture_.make(path, mode)->ino; }

  void set_links(Ino ino, std::uint32_t count) {
    const Status set = fixture_.call([&](Operation& op) {
      return fixture_.fs().operations().attempt(op, [&](operation::Attempt& a) -> Status {
        const changes::InodePtr inode = TRY(a.inode(ino));
        WriteLock lock(inode->mutex);
        TRY(a.admit({.record_bytes = kFewRecordBytes, .places = kFewPlaces}));
        inode->attributes.nlink = count;
        a.staging().set_attributes(*inode);
        return {};
      });
    });
    ASSERT_TRUE(set.ok()) << set.error().message();
  }
  std::uint32_t links(Ino ino) { return fixture_.getattr(ino)->nlink; }

  auto link(Ino file, std::string_view name) {
    return fixture_.call([&](Operation& op) { return fixture_.fs().link(op, file, kRootIno, name); });
  }
  Status rename(Ino from, std::string_view name, Ino to, std::string_view new_name, unsigned flags = 0) {
    return fixture_.call([&](Operation& op) { return fixture_.fs().rename(op, from, name, to, new_name, flags); });
  }
};

TEST_F(Links, of_a_file_end_with_an_error) {
  const Ino file = make("/f", S_IFREG | 0644);
  set_links(file, kMaxLinks - 1);
  ASSERT_TRUE(link(file, "last").ok());
  EXPECT_EQ(links(file), kMaxLinks);
  EXPECT_TRUE(link(file, "one more").fails_with(Errc::too_many_links));
  EXPECT_TRUE(fixture_.lookup(kRootIno, "one more").fails_with(Errc::not_found));
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().unlink(op, kRootIno, "last"); }).ok());
  EXPECT_TRUE(link(file, "one more").ok());
}

TEST_F(Links, of_a_directory_end_with_an_error) {
  const Ino top = make("/top", S_IFDIR | 0755);
  set_links(top, kMaxLinks - 1);
  make("/top/last", S_IFDIR | 0755);
  EXPECT_EQ(links(top), kMaxLinks);
  EXPECT_TRUE(fixture_.make("/top/one more", S_IFDIR | 0755).fails_with(Errc::too_many_links));
  EXPECT_TRUE(fixture_.make("/top/file", S_IFREG | 0644).ok()) << "does not count";
}

TEST_F(Links, of_a_directory_end_for_what_moves_there_too) {
  const Ino top = make("/top", S_IFDIR | 0755);
  make("/top/inside", S_IFDIR | 0755);
  make("/top/file", S_IFREG | 0644);
  make("/outside", S_IFDIR | 0755);
  make("/other", S_IFREG | 0644);
  set_links(top, kMaxLinks);
  EXPECT_TRUE(rename(kRootIno, "outside", top, "new").fails_with(Errc::too_many_links));
  EXPECT_TRUE(rename(kRootIno, "outside", top, "file", kRenameExchange).fails_with(Errc::too_many_links));
  EXPECT_TRUE(rename(top, "file", kRootIno, "outside", kRenameExchange).fails_with(Errc::too_many_links));
  EXPECT_EQ(links(top), kMaxLinks);
  EXPECT_TRUE(rename(kRootIno, "other", top, "other").ok()) << "does not count";
  EXPECT_TRUE(rename(top, "inside", top, "renamed").ok()) << "stays where it is";
  EXPECT_TRUE(rename(kRootIno, "outside", top, "renamed", kRenameExchange).ok()) << "one for another";
  EXPECT_TRUE(rename(kRootIno, "outside", top, "renamed").ok()) << "in the place of another";
  EXPECT_EQ(links(top), kMaxLinks);
}

}  // namespace
}  // namespace varve::fs
