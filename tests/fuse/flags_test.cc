// What chattr(1) may set, in both of the kernel's spellings.
#include <linux/capability.h>
#include <linux/fs.h>
#include <sys/syscall.h>

#include "fuse/protocol/privilege.h"
#include "fuse/served_mount.h"

namespace varve::fuse {
namespace {

bool is_privileged() { return has_capability(static_cast<std::uint32_t>(::getpid()), CAP_LINUX_IMMUTABLE); }

// Takes CAP_LINUX_IMMUTABLE away from this process, whose number the requests bear, for a while.
class Deprived {
 public:
  Deprived() {
    ::syscall(SYS_capget, &header_, data_);
    const auto before = data_[0].effective;
    data_[0].effective &= ~(1U << CAP_LINUX_IMMUTABLE);
    ::syscall(SYS_capset, &header_, data_);
    data_[0].effective = before;
  }
  ~Deprived() { ::syscall(SYS_capset, &header_, data_); }

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data_[2]{};
};

class Flags : public ::testing::Test {
 protected:
  Flags() {
    mount_.initialise();
    file_ = Ino{mount_.create(1, "f").nodeid};
  }

  template <class T>
  Reply ask(unsigned long command, const T& value, std::uint32_t how = 0) {
    fuse_ioctl_in in{};
    in.flags = how;
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
}

TEST_F(Flags, ThatAreForRootNeedTheCapability) {
  {
    const Deprived deprived;
    EXPECT_EQ(set(FS_IMMUTABLE_FL), EPERM);
    EXPECT_EQ(set_extended(FS_XFLAG_APPEND), EPERM);
    EXPECT_EQ(set(FS_NODUMP_FL), 0);
  }
  if (!is_privileged()) GTEST_SKIP() << "no CAP_LINUX_IMMUTABLE";
  EXPECT_EQ(set_extended(FS_XFLAG_APPEND), 0);
  EXPECT_EQ(get(), FS_APPEND_FL);
  const Deprived deprived;
  EXPECT_EQ(set(FS_APPEND_FL | FS_NODUMP_FL), 0);
  EXPECT_EQ(set(0), EPERM);
}

// What such a program asks is marked so; of others the kernel lets the number pass by its own checks.
TEST_F(Flags, The32BitNumbersAreFor32BitPrograms) {
  EXPECT_EQ(ask(FS_IOC32_SETFLAGS, std::uint32_t{FS_NODUMP_FL}).error, ENOTTY);
  EXPECT_EQ(ask(FS_IOC32_GETFLAGS, std::uint32_t{0}).error, ENOTTY);
  EXPECT_EQ(ask(FS_IOC32_SETFLAGS, std::uint32_t{FS_NODUMP_FL}, FUSE_IOCTL_COMPAT).error, 0);
  const Reply got = ask(FS_IOC32_GETFLAGS, std::uint32_t{0}, FUSE_IOCTL_COMPAT);
  EXPECT_EQ(got.as<std::uint32_t>(sizeof(fuse_ioctl_out)), std::uint32_t{FS_NODUMP_FL});
}

// The commands are numbered as if it were a long.
TEST_F(Flags, AnAnswerIsAsLongAsTheIntOfTheCaller) {
  ASSERT_EQ(set(FS_NODUMP_FL), 0);
  for (const unsigned long command : {FS_IOC_GETFLAGS, FS_IOC_GETVERSION, FS_IOC32_GETVERSION}) {
    EXPECT_EQ(ask(command, std::uint64_t{0}).body.size(), sizeof(fuse_ioctl_out) + 4) << command;
    EXPECT_EQ(ask(command, std::uint32_t{0}).body.size(), sizeof(fuse_ioctl_out) + 4) << command;
  }
  EXPECT_EQ(ask(FS_IOC_GETFLAGS, std::uint64_t{0}).as<std::uint32_t>(sizeof(fuse_ioctl_out)), std::uint32_t{FS_NODUMP_FL});
}

TEST_F(Flags, ThatNobodyWouldHonourAreRefused) {
  EXPECT_EQ(set(FS_COMPR_FL), EOPNOTSUPP);
  EXPECT_EQ(set(FS_SYNC_FL), EOPNOTSUPP);
  EXPECT_EQ(set_extended(FS_XFLAG_SYNC), EOPNOTSUPP);
  EXPECT_EQ(set(FS_SYNC_FL | FS_NODUMP_FL), EOPNOTSUPP);
  EXPECT_EQ(get(), 0u);
}

// With times alone the kernel names an open file only when it writes back its own.
TEST_F(Flags, LetTheKernelWriteBackItsTimesAndNobodyElse) {
  std::uint64_t seconds = 4'000'000'000;  // later than the flag
  const auto date = [&](std::uint32_t how) {
    fuse_setattr_in in{};
    in.valid = FATTR_MTIME | FATTR_CTIME | how;
    in.mtime = in.ctime = ++seconds;
    return mount_.kernel().call(FUSE_SETATTR, file_.v, bytes_of(in)).error;
  };
  for (const std::uint32_t flag : {FS_IMMUTABLE_FL, FS_APPEND_FL}) {
    mount_.set_flags(file_, flag);
    EXPECT_EQ(date(0), EPERM) << flag;
    EXPECT_EQ(date(FATTR_FH), 0) << flag;
    mount_.set_flags(file_, 0);
    EXPECT_EQ(date(0), 0);
  }
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
