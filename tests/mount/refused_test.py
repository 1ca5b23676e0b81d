#!/usr/bin/env python3
"""What FUSE does not let a filesystem do is refused with the errno that says so, and changes nothing (docs/posix.md)."""

import errno
import fcntl
import mmap
import select
import struct

from harness import *
from system_calls import *

FS_IOC_FIEMAP, FIFREEZE, FICLONE, FIDEDUPERANGE = 0xC020660B, 0xC0045877, 0x40049409, 0xC0189436
FS_IOC_GETFSUUID, FS_IOC_GETFSSYSFSPATH, FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY = 0x80111500, 0x80811501, 0x40806685, 0x800C6613
RWF_DONTCACHE, RWF_ATOMIC = 0x80, 0x40
FS_IOC_SETFLAGS, IMMUTABLE, APPEND = 0x40086602, 0x10, 0x20
COLLAPSE_RANGE, INSERT_RANGE, UNSHARE_RANGE = 0x8, 0x20, 0x40
Q_QUOTAON, USRQUOTA = 0x800002, 0


class Refused(MountTest):
    size = "64M"

    def setUp(self):
        super().setUp()
        self.path = self.dir / "f"
        self.content = random.Random(SEED).randbytes(64 * KIB)
        self.path.write_bytes(self.content)
        self.fd = os.open(self.path, os.O_RDWR)
        self.addCleanup(self.close)

    def close(self):
        if self.fd is not None:
            os.close(self.fd)
        self.fd = None

    def tearDown(self):
        self.close()
        super().tearDown()

    def refuses(self, numbers, call, *arguments):
        with self.assertRaises(OSError) as caught:
            call(*arguments)
        self.assertIn(caught.exception.errno, numbers, f"{arguments}: {caught.exception}")
        self.assertEqual(self.path.read_bytes(), self.content)

    def test_ioctls(self):
        other = os.open(self.dir / "other", os.O_CREAT | os.O_RDWR)
        none = (errno.EOPNOTSUPP, errno.ENOTTY)
        self.refuses(none, fcntl.ioctl, self.fd, FS_IOC_FIEMAP, struct.pack("QQIIII", 0, 2**63, 0, 0, 0, 0))
        self.refuses(none, fcntl.ioctl, other, FICLONE, self.fd)
        os.write(other, self.content)
        self.refuses(none, fcntl.ioctl, self.fd, FIDEDUPERANGE,
                     struct.pack("QQHHIqQQiI", 0, 4096, 1, 0, 0, other, 0, 0, 0, 0))
        if IS_ROOT:
            self.refuses(none, fcntl.ioctl, self.fd, FIFREEZE, 0)
        os.close(other)

    def test_names_of_the_filesystem_encryption_and_verity(self):
        for number, size in ((FS_IOC_GETFSUUID, 17), (FS_IOC_GETFSSYSFSPATH, 129), (FS_IOC_ENABLE_VERITY, 128),
                             (FS_IOC_SET_ENCRYPTION_POLICY, 12)):
            self.refuses((errno.EOPNOTSUPP, errno.ENOTTY), fcntl.ioctl, self.fd, number, bytearray(size))

    def test_kinds_of_writes(self):
        for flag in (RWF_DONTCACHE, RWF_ATOMIC):
            self.refuses((errno.EOPNOTSUPP,), os.pwritev, self.fd, [bytes(4096)], 0, flag)

    def test_a_regular_file_can_be_watched_by_epoll(self):
        """Not refused, as the kernel gives all files of FUSE a way to be polled; it is always ready."""
        with select.epoll() as watching:
            watching.register(self.fd, select.EPOLLIN | select.EPOLLOUT)
            self.assertEqual(watching.poll(0), [(self.fd, select.EPOLLIN | select.EPOLLOUT)])

    def test_moving_contents_within_a_file(self):
        for mode in (COLLAPSE_RANGE, INSERT_RANGE, UNSHARE_RANGE):
            self.refuses((errno.EOPNOTSUPP,),
                         lambda: fallocate(self.fd, mode, 4096, 4096))

    def test_swap_and_quotas(self):
        if not IS_ROOT:
            self.skipTest("not root")
        swap = self.dir / "swap"
        swap.write_bytes(bytes(MIB))
        command("mkswap", swap)
        self.refuses((errno.EINVAL,), lambda: checked(libc.swapon(os.fsencode(swap), 0)))
        self.refuses((errno.ENOSYS, errno.ENOTBLK, errno.ESRCH, errno.ENODEV, errno.ENOENT, errno.EINVAL), lambda: checked(
            libc.quotactl(Q_QUOTAON << 8 | USRQUOTA, os.fsencode(self.image.path), 2, os.fsencode(self.dir / "aquota"))))

    def test_writing_to_an_immutable_file(self):
        """It opens, and then says no."""
        if not IS_ROOT:
            self.skipTest("not root")
        fcntl.ioctl(self.fd, FS_IOC_SETFLAGS, struct.pack("l", IMMUTABLE))
        writer = os.open(self.path, os.O_RDWR)
        self.refuses((errno.EPERM,), os.write, writer, b"x")
        self.refuses((errno.EPERM,), os.ftruncate, writer, 0)
        os.close(writer)
        fcntl.ioctl(self.fd, FS_IOC_SETFLAGS, struct.pack("l", 0))

    def test_overwriting_an_append_only_file(self):
        """Only without the cache is it known where a write wants to go."""
        if not IS_ROOT:
            self.skipTest("not root")
        fcntl.ioctl(self.fd, FS_IOC_SETFLAGS, struct.pack("l", APPEND))
        direct = os.open(self.path, os.O_RDWR | os.O_DIRECT)
        self.refuses((errno.EPERM,), os.pwritev, direct, [mmap.mmap(-1, 4096)], 0)
        os.close(direct)
        fcntl.ioctl(self.fd, FS_IOC_SETFLAGS, struct.pack("l", 0))

    def test_beyond_the_largest_file(self):
        """truncate and fallocate say it at once, a cached write when it is synced."""
        self.refuses((errno.EFBIG,), os.ftruncate, self.fd, (1 << 52) + 1)
        self.refuses((errno.EFBIG,), os.posix_fallocate, self.fd, 1 << 52, 4096)
        def write():
            os.pwrite(self.fd, b"x", 1 << 52)
            os.fsync(self.fd)
        with self.assertRaises(OSError) as caught:
            write()
        self.assertEqual(caught.exception.errno, errno.EFBIG)
        os.ftruncate(self.fd, len(self.content))
        self.assertEqual(self.path.read_bytes(), self.content)


if __name__ == "__main__":
    main()
