// Opening: what is refused and in which words, locks, fallbacks, and a real block device where there is one.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <functional>

#include "base/types.h"
#include "io/backends.h"
#include "io/block_device.h"
#include "io/file_device.h"
#include "io/write_guard.h"
#include "remote/open_device.h"

namespace varve::io::test {
namespace {

using testing::HasSubstr;

void expect_refusal(const std::string& path, const OpenOptions& options, Errc code, const std::string& words) {
  const auto device = remote::open_device(path, options);
  ASSERT_FALSE(device.ok()) << path;
  EXPECT_EQ(name_of(device.error().code()), std::string(name_of(code)));
  EXPECT_THAT(device.error().message(), HasSubstr(path));
  EXPECT_THAT(device.error().message(), HasSubstr(words));
}

// Sets an environment variable as long as it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

// Acts as a user without rights as long as it lives.
class Unprivileged {
 public:
  Unprivileged() : worked_(::geteuid() != 0 || ::seteuid(65534) == 0) {}
  ~Unprivileged() {
    if (::getuid() == 0 && ::seteuid(0) != 0) std::abort();
  }
  bool worked() const { return worked_; }

 private:
  bool worked_;
};

TEST(OpenDevice, NothingThere) {
  expect_refusal("/nonexistent/device", {}, Errc::not_found, "check the name");
  expect_refusal("/dev/null/x", {}, Errc::not_directory, "not a directory");
}

TEST(OpenDevice, NotADevice) {
  expect_refusal(TempImage::temp_directory(), {}, Errc::is_directory, "block device or the image file");
  expect_refusal("/dev/null", {}, Errc::invalid, "character device");
  const TempImage image(kMiB);
  const std::string pipe = image.path() + ".pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refusal(pipe, {}, Errc::invalid, "pipe");  // and does not hang
  ::unlink(pipe.c_str());
}

TEST(OpenDevice, TooSmall) {
  const TempImage image(4095);
  expect_refusal(image.path(), {}, Errc::invalid, "less than a block");
}

TEST(OpenDevice, SizeIsRoundedDown) {
  const TempImage image(2 * kBlockSize + 100);
  const auto device = remote::open_device(image.path(), {});
  ASSERT_TRUE(device.ok()) << device.error().message();
  EXPECT_EQ((*device)->geometry().size_bytes, 2 * kBlockSize);
}

TEST(OpenDevice, PermissionDenied) {
  const TempImage image(kMiB);
  ASSERT_EQ(::chmod(image.path().c_str(), 0444), 0);
  if (::geteuid() != 0) {
    expect_refusal(image.path(), {}, Errc::access, "permission denied");
    return;
  }
  const Unprivileged user;
  if (!user.worked()) GTEST_SKIP() << "cannot give up root's rights here";
  expect_refusal(image.path(), {}, Errc::access, "permission denied");
  OpenOptions options;
  options.access = Access::read_only;
  EXPECT_TRUE(remote::open_device(image.path(), options).ok());
}

TEST(OpenDevice, ReadOnlyRefusesChanges) {
  const TempImage image(kMiB);
  for (const bool threads : {false, true}) {
    OpenOptions options;
    options.access = Access::read_only;
    options.force_threads = threads;
    const auto device = remote::open_device(image.path(), options);
    ASSERT_TRUE(device.ok());
    EXPECT_TRUE((*device)->read_only());
    AlignedBuffer data = AlignedBuffer::zeroed(kBlockSize);
    EXPECT_TRUE((*device)->read(0, data.span()).ok());
    EXPECT_TRUE((*device)->write(0, data.span()).fails_with(Errc::read_only));
    EXPECT_TRUE((*device)->discard(0, kBlockSize).fails_with(Errc::read_only));
  }
}

TEST(OpenDevice, OneWriterOrManyReaders) {
  const TempImage image(kMiB);
  OpenOptions reader;
  reader.access = Access::read_only;
  {
    const auto writer = remote::open_device(image.path(), {});
    ASSERT_TRUE(writer.ok());
    expect_refusal(image.path(), {}, Errc::in_use, "in use");
    expect_refusal(image.path(), reader, Errc::in_use, "in use");
    OpenOptions careless;
    careless.exclusive = false;
    EXPECT_TRUE(remote::open_device(image.path(), careless).ok());
  }
  {
    const auto one = remote::open_device(image.path(), reader);
    const auto two = remote::open_device(image.path(), reader);
    EXPECT_TRUE(one.ok());
    EXPECT_TRUE(two.ok());
    expect_refusal(image.path(), {}, Errc::in_use, "in use");
  }
}

TEST(OpenDevice, TheLockGoesWithTheDevice) {
  const TempImage image(kMiB);
  for (int i = 0; i < 100; ++i) {
    const auto device = remote::open_device(image.path(), {});
    ASSERT_TRUE(device.ok()) << device.error().message();
    const auto reactor = Reactor::make();
    Batch batch;
    for (std::uint64_t block = 0; block < 10; ++block) batch.write(block, block);
    batch.flush();
    batch.submit_all(**device, *reactor);
    drain(*reactor);
  }
}

TEST(OpenDevice, EnvironmentOverrides) {
  const TempImage image(kMiB);
  {
    const Environment threads("VARVE_IO", "threads");
    const auto device = remote::open_device(image.path(), {});
    ASSERT_TRUE(device.ok());
    EXPECT_EQ((*device)->geometry().backend, "threads");
  }
  {
    const Environment buffered("VARVE_IO_BUFFERED", "1");
    const auto device = remote::open_device(image.path(), {});
    ASSERT_TRUE(device.ok());
    EXPECT_FALSE((*device)->geometry().direct);
  }
  if (Reactor::probe_ring() != 0) GTEST_SKIP() << "no io_uring here";
  const auto device = remote::open_device(image.path(), {});
  ASSERT_TRUE(device.ok());
  EXPECT_EQ((*device)->geometry().backend, "io_uring");
}

// As container runtimes do it.
bool forbid_io_uring() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

bool writes_and_reads(BlockDevice& device) {
  const auto reactor = Reactor::make();
  Batch writes;
  for (std::uint64_t i = 0; i < 100; ++i) writes.write(i, i);
  writes.submit_all(device, *reactor);
  drain(*reactor);
  Batch reads;
  reads.read(99);
  reads.submit_all(device, *reactor);
  drain(*reactor);
  return writes.failed() == 0 && has_pattern(reads.data(0), 99, 99);
}

// Runs a check in a process of its own; true if it returned 0.
bool in_child(const std::function<int()>& check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check());
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the number of the step that failed";
  return status == 0;
}

TEST(OpenDevice, ThreadsWhereRingsAreForbidden) {
  if (Reactor::probe_ring() != 0) GTEST_SKIP() << "no io_uring here";
  const TempImage image(kMiB);
  in_child([&] {
    if (!forbid_io_uring()) return 1;
    const auto device = remote::open_device(image.path(), {});
    if (!device.ok()) return 2;
    if ((*device)->geometry().backend != "threads") return 3;
    return writes_and_reads(**device) ? 0 : 4;
  });
}

TEST(OpenDevice, ThreadsForAQueueThatFindsNoRing) {
  if (Reactor::probe_ring() != 0) GTEST_SKIP() << "no io_uring here";
  const TempImage image(kMiB);
  in_child([&] {
    const auto device = remote::open_device(image.path(), {});
    if (!device.ok()) return 1;
    if (!forbid_io_uring()) return 2;
    return writes_and_reads(**device) ? 0 : 3;
  });
}

TEST(OpenDevice, AFileThatShrankGivesErrorsNotData) {
  for (const bool threads : {false, true}) {
    const TempImage image(kMiB);
    OpenOptions options;
    options.force_threads = threads;
    const auto device = remote::open_device(image.path(), options);
    ASSERT_TRUE(device.ok());
    ASSERT_EQ(::truncate(image.path().c_str(), kMiB / 2), 0);
    AlignedBuffer data(4 * kBlockSize);
    EXPECT_TRUE((*device)->read(kMiB - 4 * kBlockSize, data.span()).fails_with(Errc::io));
    EXPECT_TRUE((*device)->read(kMiB / 2 - 2 * kBlockSize, data.span()).fails_with(Errc::io)) << "short, then the end";
    EXPECT_TRUE((*device)->read(0, data.span()).ok());
  }
}

// Says "not now" a few times, and then what it is to say at last.
class LateGuard : public WriteGuard {
 public:
  explicit LateGuard(Verdict last) : last_(last) {}
  Verdict may_send(std::uint64_t) override { return wished_ < 3 ? Verdict::not_now : last_; }
  void look_soon() override { ++wished_; }

 private:
  const Verdict last_;
  std::atomic<unsigned> wished_{0};
};

TEST(OpenDevice, WritesThatWaitForAThreadAreAskedAboutWhenTheyAreSent) {
  using Verdict = WriteGuard::Verdict;
  const TempImage image(kMiB);
  OpenOptions options;
  options.force_threads = true;
  const auto device = remote::open_device(image.path(), options);
  ASSERT_TRUE(device.ok());
  for (const Verdict verdict : {Verdict::never, Verdict::yes}) {
    LateGuard guard(verdict);
    (*device)->ask(&guard);
    const auto reactor = Reactor::make();
    Batch batch;
    for (std::uint64_t i = 0; i < 20; ++i) batch.write(8 + i, 4);
    batch.discard(40, 1);
    batch.flush();
    batch.read(8);
    batch[0].by_guard = true;  // the lease's own waits for nothing
    batch.submit_all(**device, *reactor);
    drain(*reactor);
    (*device)->ask(nullptr);
    EXPECT_EQ(batch.failed(), verdict == Verdict::never ? 20U : 0U);
    EXPECT_EQ(batch[1].error, verdict == Verdict::never ? EBUSY : 0);
    AlignedBuffer block(kBlockSize);
    ASSERT_TRUE((*device)->read(9 * kBlockSize, block.span()).ok());
    EXPECT_EQ(has_pattern(block.data(), 9, 4), verdict == Verdict::yes);
  }
}

// A loop device over an image.
class Loop {
 public:
  explicit Loop(const std::string& image) {
    const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0) return;
    const int file = ::open(image.c_str(), O_RDWR | O_CLOEXEC);
    while (take(::ioctl(control, LOOP_CTL_GET_FREE), file) == EBUSY) {  // another program has taken that one meanwhile
    }
    ::close(file);
    ::close(control);
  }
  ~Loop() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool works() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }
  int fd() const { return fd_; }

 private:
  // Returns the errno of what failed, or 0.
  int take(int number, int file) {
    if (number < 0) return errno;
    path_ = "/dev/loop" + std::to_string(number);
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd_ < 0) return errno;
    loop_config config{};
    config.fd = static_cast<__u32>(file);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (::ioctl(fd_, LOOP_CONFIGURE, &config) == 0) return 0;
    const int error = errno;
    ::close(fd_);
    fd_ = -1;
    return error;
  }

  std::string path_;
  int fd_ = -1;
};

#define NEED_LOOP(loop) \
  if (!(loop).works()) GTEST_SKIP() << "no loop devices here (they need root and the loop driver)"

TEST(BlockDeviceFile, ReadsWritesFlushesDiscards) {
  const TempImage image(16 * kMiB);
  const Loop loop(image.path());
  NEED_LOOP(loop);
  for (const bool threads : {false, true}) {
    OpenOptions options;
    options.force_threads = threads;
    const auto device = remote::open_device(loop.path(), options);
    ASSERT_TRUE(device.ok()) << device.error().message();
    const Geometry& geometry = (*device)->geometry();
    EXPECT_TRUE(geometry.is_block_device);
    EXPECT_EQ(geometry.size_bytes, 16 * kMiB);
    const auto reactor = Reactor::make();
    Batch batch;
    batch.write(8, 4, 64);
    batch.submit_all(**device, *reactor);
    drain(*reactor);
    EXPECT_TRUE((*device)->flush().ok());
    if (geometry.supports_discard) {
      // Many at once: an old kernel refuses them all in the ring, and all must find the way to the pool.
      Batch discards;
      for (std::uint64_t i = 0; i < 20; ++i) discards.discard(16 + i, 1);
      discards.submit_all(**device, *reactor);
      drain(*reactor);
      EXPECT_EQ(discards.failed(), 0U);
    }
    Batch reads;
    reads.read(8, 64);
    reads.submit_all(**device, *reactor);
    drain(*reactor);
    EXPECT_TRUE(has_pattern(reads.data(0), 8, 4, 8));
    EXPECT_TRUE(has_pattern(reads.data(0) + 28 * kBlockSize, 36, 4, 36));
  }
}

// As on two machines: what the one has in its page cache does not change when the other writes.
TEST(BlockDeviceFile, TheLeaseIsReadPastThePageCache) {
  const TempImage image(16 * kMiB);
  const Loop loop(image.path()), other(image.path());
  NEED_LOOP(loop);
  NEED_LOOP(other);
  OpenOptions options;
  options.buffered = true;
  options.exclusive = false;
  const auto device = remote::open_device(loop.path(), options), second = remote::open_device(other.path(), options);
  ASSERT_TRUE(device.ok() && second.ok());
  AlignedBuffer bytes(4 * kBlockSize), written(kBlockSize);
  ASSERT_TRUE((*device)->read(0, bytes.span()).ok());
  fill_pattern(written.data(), 1, 7);
  ASSERT_TRUE((*second)->write(kBlockSize, written.span()).ok());
  ASSERT_TRUE((*second)->flush().ok());
  IoRequest look;
  look.by_guard = true;
  look.add(bytes.data(), bytes.size());
  ASSERT_EQ((*device)->execute(look), 0);
  EXPECT_TRUE(has_pattern(bytes.data() + kBlockSize, 1, 7));
}

TEST(BlockDeviceFile, PoolDiscardsForARingThatCannot) {
  const TempImage image(16 * kMiB);
  const Loop loop(image.path());
  NEED_LOOP(loop);
  const auto device = remote::open_device(loop.path(), {});
  ASSERT_TRUE(device.ok()) << device.error().message();
  auto* file = dynamic_cast<FileDevice*>(device->get());
  if (!file || file->geometry().backend != "io_uring" || !file->geometry().supports_discard) GTEST_SKIP() << "needs io_uring and discard";
  file->no_ring_discards();
  const auto reactor = Reactor::make();
  Batch batch;
  for (std::uint64_t i = 0; i < 50; ++i) batch.discard(i * 3, 2);
  batch.write(1000, 1);
  batch.submit_all(**device, *reactor);
  drain(*reactor);
  EXPECT_EQ(batch.completed(), 51U);
  EXPECT_EQ(batch.failed(), 0U);
}

TEST(BlockDeviceFile, SecondUseIsRefusedWithTheReason) {
  const TempImage image(16 * kMiB);
  const Loop loop(image.path());
  NEED_LOOP(loop);
  {
    const auto device = remote::open_device(loop.path(), {});
    ASSERT_TRUE(device.ok()) << device.error().message();
    expect_refusal(loop.path(), {}, Errc::in_use, "in use");
    // The kernel can still claim it for a mount: the daemon must not stand in its way.
    const int claim = ::open(loop.path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
    EXPECT_GE(claim, 0);
    ::close(claim);
  }
  const int claim = ::open(loop.path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
  ASSERT_GE(claim, 0);
  expect_refusal(loop.path(), {}, Errc::in_use, "in use");
  ::close(claim);
}

TEST(BlockDeviceFile, NamesTheMountPoint) {
  const TempImage image(16 * kMiB);
  const Loop loop(image.path());
  NEED_LOOP(loop);
  if (std::system(("mkfs.ext4 -q " + loop.path() + " >/dev/null 2>&1").c_str()) != 0) GTEST_SKIP() << "no mkfs.ext4";
  const std::string point = image.path() + " mount";
  ASSERT_EQ(::mkdir(point.c_str(), 0700), 0);
  const bool mounted = ::mount(loop.path().c_str(), point.c_str(), "ext4", 0, nullptr) == 0;
  if (mounted) {
    expect_refusal(loop.path(), {}, Errc::in_use, "is mounted at " + point);
    EXPECT_EQ(::umount(point.c_str()), 0);
  }
  ::rmdir(point.c_str());
  if (!mounted) GTEST_SKIP() << "may not mount here";
}

TEST(BlockDeviceFile, WriteProtected) {
  const TempImage image(16 * kMiB);
  const Loop loop(image.path());
  NEED_LOOP(loop);
  int protect = 1;
  ASSERT_EQ(::ioctl(loop.fd(), BLKROSET, &protect), 0);
  expect_refusal(loop.path(), {}, Errc::read_only, "write-protected");
  OpenOptions options;
  options.access = Access::read_only;
  EXPECT_TRUE(remote::open_device(loop.path(), options).ok());
  protect = 0;
  ::ioctl(loop.fd(), BLKROSET, &protect);
}

}  // namespace
}  // namespace varve::io::test
