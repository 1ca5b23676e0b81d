// What chattr(1) may set, in both of the kernel's spellings.
#include <linux/fs.h>

#include "fuse/served_mount.h"

namespace varve::fuse {
namespace {

class Flags : public ::testing::Test {
 protected:
  Flags() {
    mount_.initialise();
    file_ = Ino{mount_.create(1, "f").nodeid};
  }

  template <class T>
  Reply ask(unsigned long command, const T& value) {
    fuse_ioctl_in in{};
    in.cmd = static_cast<std::uint32_t>(command);
    in.in_size = in.out_size = sizeof value;
    return mount_.kernel().call(FUSE_IOCTL, file_.v, bytes_of(in) + bytes_of(value));
  }
  int set(std::uint32_t flags) { return ask(FS_IOC_SETFLAGS, flags).error; }
  int set_extended(std::uint32_t xflags) {
    fsxattr all{};
    all.fsx_xflags = xflags;
    return ask(FS_IOC_FSSETXATTR, all).error;
  }
  std::uint32_t get() {
    return ask(FS_IOC_GETFLAGS, std::uint32_t{0}).as<std::uint32_t>(sizeof(fuse_ioctl_out));
  }
  std::uint32_t get_extended() {
    return ask(FS_IOC_FSGETXATTR, fsxattr{}).as<fsxattr>(sizeof(fuse_ioctl_out)).fsx_xflags;
  }

  ServedMount mount_;
  Ino file_;
};

TEST_F(Flags, AreKept) {
  EXPECT_EQ(set(FS_NODUMP_FL | FS_NOATIME_FL), 0);
  EXPECT_EQ(get(), FS_NODUMP_FL | FS_NOATIME_FL);
  EXPECT_EQ(get_extended(), FS_XFLAG_NODUMP | FS_XFLAG_NOATIME);
  EXPECT_EQ(set_extended(FS_XFLAG_APPEND), 0);
  EXPECT_EQ(get(), FS_APPEND_FL);
}

TEST_F(Flags, ThatNobodyWouldHonourAreRefused) {
  EXPECT_EQ(set(FS_COMPR_FL), EOPNOTSUPP);
  EXPECT_EQ(set(FS_SYNC_FL), EOPNOTSUPP);
  EXPECT_EQ(set_extended(FS_XFLAG_SYNC), EOPNOTSUPP);
  EXPECT_EQ(set(FS_SYNC_FL | FS_NODUMP_FL), EOPNOTSUPP);
  EXPECT_EQ(get(), 0u);
}

TEST_F(Flags, SynchronousFilesOfOldImagesStaySoUntilThatIsCleared) {
  mount_.set_flags(file_, FS_SYNC_FL);
  EXPECT_EQ(get(), FS_SYNC_FL);
  EXPECT_EQ(get_extended(), FS_XFLAG_SYNC);
  EXPECT_EQ(set(FS_SYNC_FL | FS_NODUMP_FL), 0);
  EXPECT_EQ(get(), FS_SYNC_FL | FS_NODUMP_FL);
  EXPECT_EQ(set_extended(FS_XFLAG_SYNC), 0);
  EXPECT_EQ(set(FS_NODUMP_FL), 0);
  EXPECT_EQ(get(), FS_NODUMP_FL);
  EXPECT_EQ(set(FS_SYNC_FL), EOPNOTSUPP);
}

}  // namespace
}  // namespace varve::fuse
