// What the kernel had accepted into its cache is refused by a filesystem that has become read-only.
#include "fuse/served_mount.h"

namespace varve::fuse {
namespace {

class RefusedWrites : public ::testing::Test {
 protected:
  RefusedWrites() {
    mount_.initialise();
    file_ = mount_.create(1, "f").nodeid;
  }

  int write_back(std::uint64_t offset) {
    fuse_write_in in{};
    in.offset = offset;
    in.size = kBlockSize;
    in.write_flags = FUSE_WRITE_CACHE;
    return mount_.kernel().call(FUSE_WRITE, file_, bytes_of(in) + Bytes(kBlockSize, std::byte{7})).error;
  }
  int sync() { return mount_.kernel().call(FUSE_FSYNC, file_, bytes_of(fuse_fsync_in{})).error; }

  // What the kernel asks for before a write(2) that it collects.
  Reply ask_for_attributes() {
    fuse_getattr_in in{};
    in.getattr_flags = FUSE_GETATTR_FH;
    return mount_.kernel().call(FUSE_GETATTR, file_, bytes_of(in));
  }
  void ask_for_capability() {
    mount_.kernel().call(FUSE_GETXATTR, file_, bytes_of(fuse_getxattr_in{}) + name_bytes("security.capability"));
  }

  ServedMount mount_;
  std::uint64_t file_ = 0;
};

TEST_F(RefusedWrites, AreToldToTheNextWriterAndToEachSync) {
  ASSERT_EQ(write_back(0), 0);
  ASSERT_EQ(sync(), 0);
  EXPECT_EQ(ask_for_attributes().as<fuse_attr_out>().attr_valid, kForeverSeconds);
  mount_.session().fs().stop_writing(Error(Errc::io, "the device has been pulled out"));

  ASSERT_EQ(write_back(kBlockSize), EROFS);
  EXPECT_EQ(mount_.session().lost_writes().why_lacking(Ino{file_}), Errc::read_only);
  EXPECT_EQ(ask_for_attributes().error, 0) << "it is not known to write";
  EXPECT_EQ(ask_for_attributes().as<fuse_attr_out>().attr_valid, 0U) << "the kernel is to ask each time";
  ask_for_capability();
  EXPECT_EQ(ask_for_attributes().error, EROFS);
  EXPECT_EQ(ask_for_attributes().error, 0) << "once for each refusal";
  ASSERT_EQ(write_back(2 * kBlockSize), EROFS);
  EXPECT_EQ(ask_for_attributes().error, EROFS);
  EXPECT_NE(sync(), 0);
  EXPECT_NE(sync(), 0);
}

}  // namespace
}  // namespace varve::fuse
