#!/usr/bin/env python3
"""What POSIX and Linux promise about files, through a real mount. The big suites have far more; these are the cases that
FUSE filesystems get wrong."""

import errno
import mmap
import stat
import struct

from harness import *
from system_calls import *

AT_SYMLINK_FOLLOW = 0x400


class Semantics(MountTest):
    size = "256M"
    many = 20_000  # names in a large directory

    def fails(self, number, call, *arguments):
        with self.assertRaises(OSError) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.errno, number, f"{call} {arguments}: {caught.exception}")

    def test_names_are_bytes(self):
        """Of any encoding and none, all 255 of them; no two that differ are taken for one."""
        top = os.fsencode(self.dir)
        names = {("a" * 255).encode(), b"new\nline", b".hidden", b"trailing. ", b"...", b"\\", b"-rf", b"\xff" * 255,
                 bytes(b for b in range(1, 256) if b != ord("/")), "e\u0301".encode(), "\u00e9".encode(), b"CASE", b"case"}
        for letter, encoding in (("ß", "utf-8"), ("本", "utf-8"), ("😀", "utf-8"), ("ß", "latin-1"), ("本", "shift-jis"),
                                 ("本", "gb18030"), ("本", "euc-jp"), ("本", "utf-16-le"), ("я", "koi8-r")):
            code = letter.encode(encoding)
            self.assertFalse(set(code) & set(b"\0/"), f"{letter} of {encoding} is not fit for a name")
            names.add((code * 255)[:255 // len(code) * len(code)])
            names.add((code * 255)[:255])  # cut in the middle of a letter
        for name in names:
            Path(os.fsdecode(top + b"/" + name)).write_bytes(name)
        for _ in range(2):
            self.assertEqual(set(os.listdir(top)), names)
            for name in names:
                self.assertEqual(Path(os.fsdecode(top + b"/" + name)).read_bytes(), name)
            self.image.remount()
        self.fails(errno.ENOENT, os.stat, top + b"/Case")
        for name in names:
            os.unlink(top + b"/" + name)
        self.assertEqual(os.listdir(top), [])

    def test_long_names(self):
        self.fails(errno.ENAMETOOLONG, os.stat, self.dir / ("a" * 256))
        self.fails(errno.ENAMETOOLONG, os.mkdir, self.dir / ("a" * 300))
        self.fails(errno.ENAMETOOLONG, os.symlink, "x", self.dir / ("a" * 256))
        os.symlink("t" * 4095, self.dir / "link")
        self.assertEqual(os.readlink(self.dir / "link"), "t" * 4095)
        deep = self.dir
        for _ in range(100):
            deep = deep / "directory"
            deep.mkdir()
        self.image.remount()
        self.assertTrue(deep.is_dir())

    def test_links_and_removal(self):
        (self.dir / "d/e").mkdir(parents=True)
        (self.dir / "f").write_text("x")
        os.link(self.dir / "f", self.dir / "d/g")
        self.assertEqual(os.stat(self.dir / "f").st_nlink, 2)
        self.assertEqual(os.stat(self.dir / "d").st_nlink, 3)
        self.fails(errno.ENOTEMPTY, os.rmdir, self.dir / "d")
        self.fails(errno.ENOTDIR, os.rmdir, self.dir / "f")
        self.fails(errno.EISDIR, os.unlink, self.dir / "d")
        self.fails(errno.EPERM, os.link, self.dir / "d", self.dir / "dd")
        self.fails(errno.EEXIST, os.mkdir, self.dir / "f")
        fd = os.open(self.dir / "f", os.O_RDWR)
        os.unlink(self.dir / "f")
        os.unlink(self.dir / "d/g")
        self.assertEqual(os.fstat(fd).st_nlink, 0)
        os.pwrite(fd, b"still", 0)
        self.assertEqual(os.pread(fd, 5, 0), b"still")
        os.close(fd)

    def test_unnamed_files(self):
        if LINUX < (6, 1):
            self.fails(errno.EOPNOTSUPP, os.open, self.dir, os.O_TMPFILE | os.O_RDWR)
            self.skipTest("FUSE has O_TMPFILE from Linux 6.1 on; before, it is refused with EOPNOTSUPP")
        fd = os.open(self.dir, os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(fd, b"unnamed")
        self.assertEqual(os.listdir(self.dir), [])
        checked(libc.linkat(AT_FDCWD, f"/proc/self/fd/{fd}".encode(), AT_FDCWD, os.fsencode(self.dir / "named"), AT_SYMLINK_FOLLOW))
        os.close(fd)
        self.assertEqual((self.dir / "named").read_bytes(), b"unnamed")

    def test_rename(self):
        a, b = self.dir / "a", self.dir / "b"
        a.write_text("a")
        b.write_text("b")
        self.fails(errno.EEXIST, renameat2, a, b, RENAME_NOREPLACE)
        renameat2(a, b, RENAME_EXCHANGE)
        self.assertEqual((a.read_text(), b.read_text()), ("b", "a"))
        os.rename(a, b)
        self.assertEqual(b.read_text(), "b")
        self.assertFalse(a.exists())
        (self.dir / "d/e").mkdir(parents=True)
        self.fails(errno.EINVAL, os.rename, self.dir / "d", self.dir / "d/e/d")
        self.fails(errno.EISDIR, os.rename, b, self.dir / "d")
        self.fails(errno.ENOTDIR, os.rename, self.dir / "d", b)
        (self.dir / "x").mkdir()
        self.fails(errno.ENOTEMPTY, os.rename, self.dir / "x", self.dir / "d")
        renameat2(b, self.dir / "d/e", RENAME_EXCHANGE)
        self.assertTrue(b.is_dir())
        self.assertEqual((self.dir / "d/e").read_text(), "b")
        self.assertEqual(os.stat(self.dir / "d").st_nlink, 2)

    def test_xattrs(self):
        path = self.dir / "f"
        path.touch()
        os.setxattr(path, "user.small", b"")
        os.setxattr(path, "user.big", b"v" * 65536)
        self.fails(errno.E2BIG, os.setxattr, path, "user.huge", b"v" * 65537)
        self.fails(errno.EEXIST, os.setxattr, path, "user.big", b"", os.XATTR_CREATE)
        self.fails(errno.ENODATA, os.setxattr, path, "user.none", b"", os.XATTR_REPLACE)
        self.fails(errno.ENODATA, os.getxattr, path, "user.none")
        for i in range(100):
            os.setxattr(path, f"user.n{i}", str(i).encode())
        self.image.remount()
        self.assertEqual(os.getxattr(path, "user.big"), b"v" * 65536)
        self.assertEqual(set(os.listxattr(path)), {"user.small", "user.big"} | {f"user.n{i}" for i in range(100)})
        for i in range(100):
            os.removexattr(path, f"user.n{i}")
        self.fails(errno.ENODATA, os.removexattr, path, "user.n0")
        self.assertEqual(set(os.listxattr(path)), {"user.small", "user.big"})

    def test_acls_and_modes_agree(self):
        def acl(*entries):
            return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, who) for tag, bits, who in entries)
        owner, user, group, mask, other, nobody = 1, 2, 4, 16, 32, 0xFFFFFFFF
        path = self.dir / "f"
        path.touch(0o600)
        # One that says no more than a mode does, as cp -a sets it, is a chmod.
        os.setxattr(path, "system.posix_acl_access", acl((owner, 7, nobody), (group, 5, nobody), (other, 4, nobody)))
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o754)
        self.fails(errno.ENODATA, os.getxattr, path, "system.posix_acl_access")
        full = [(owner, 6, nobody), (user, 7, 1234), (group, 4, nobody), (mask, 5, nobody), (other, 0, nobody)]
        os.setxattr(path, "system.posix_acl_access", acl(*full))
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o650)
        path.chmod(0o773)
        self.image.remount()
        full[0], full[3], full[4] = (owner, 7, nobody), (mask, 7, nobody), (other, 3, nobody)
        self.assertEqual(os.getxattr(path, "system.posix_acl_access"), acl(*full))
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o773)

    def test_sparse_files(self):
        path = self.dir / "f"
        with open(path, "wb") as file:
            file.truncate(16 << 40)
            file.seek(10 << 40)
            file.write(b"island")
        fd = os.open(path, os.O_RDWR)
        os.fsync(fd)
        self.assertEqual(os.lseek(fd, 0, os.SEEK_DATA), 10 << 40)
        self.assertEqual(os.lseek(fd, 10 << 40, os.SEEK_HOLE), (10 << 40) + PAGE)
        self.fails(errno.ENXIO, os.lseek, fd, 11 << 40, os.SEEK_DATA)
        os.pwrite(fd, b"unsynced", 1 << 30)  # dirty in the kernel's cache: no hole
        self.assertEqual(os.lseek(fd, 0, os.SEEK_DATA), 1 << 30)
        self.assertLessEqual(os.fstat(fd).st_blocks, 4 * PAGE // 512)
        self.assertEqual(os.pread(fd, 10, 5 << 40), bytes(10))
        os.ftruncate(fd, 5)
        self.assertEqual(os.pread(fd, 10, 0), bytes(5))
        os.close(fd)

    def test_the_size_on_the_disk_of_a_file_that_stays_open(self):
        """With `tar -S` a file that seems to have no blocks is one hole."""
        path, data = self.dir / "log", os.urandom(3 << 20)
        with open(path, "wb", buffering=0) as file:
            file.write(data)
            wait_until(lambda: path.stat().st_blocks > 0, "it is in the kernel's cache alone")
            tar = subprocess.run(["tar", "-cSf", "-", "-C", self.dir, "log"], check=True, stdout=subprocess.PIPE).stdout
            back = subprocess.run(["tar", "-xOf", "-", "log"], check=True, input=tar, stdout=subprocess.PIPE).stdout
            self.assertEqual(back, data)
            os.fsync(file.fileno())
            wait_until(lambda: path.stat().st_blocks >= len(data) // 512, "it is on the device")
            file.write(data)
            os.fsync(file.fileno())
            wait_until(lambda: path.stat().st_blocks >= 2 * len(data) // 512, "more is on the device")
            file.truncate(0)
            self.assertEqual(path.stat().st_blocks, 0)

    def test_fallocate(self):
        fd = os.open(self.dir / "f", os.O_CREAT | os.O_RDWR)
        os.pwrite(fd, b"x" * 100_000, 0)
        fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 10_000, 50_000)
        self.assertEqual(os.pread(fd, 100_000, 0), b"x" * 10_000 + bytes(50_000) + b"x" * 40_000)
        fallocate(fd, ZERO_RANGE, 90_000, 20_000)
        self.assertEqual(os.fstat(fd).st_size, 110_000)
        self.assertEqual(os.pread(fd, 30_000, 80_000), b"x" * 10_000 + bytes(20_000))
        fallocate(fd, KEEP_SIZE, 0, 10 * MIB)
        self.assertEqual(os.fstat(fd).st_size, 110_000)
        self.assertGreaterEqual(os.fstat(fd).st_blocks * 512, 9 * MIB)
        os.ftruncate(fd, 20_000)
        os.ftruncate(fd, 30_000)
        self.assertEqual(os.pread(fd, 15_000, 15_000), bytes(15_000))
        os.close(fd)

    def test_what_is_set_aside_goes_with_a_cut(self):
        """As on other filesystems, also while the data are in the kernel's cache. It stays where a file becomes longer."""
        room = 4 * MIB

        def kib_after(written, size, sync=False, path=False):
            name = self.dir / "f"
            fd = os.open(name, os.O_CREAT | os.O_RDWR | os.O_TRUNC)
            fallocate(fd, KEEP_SIZE, 0, room)
            os.pwrite(fd, b"x" * written, 0)
            if sync:
                os.fsync(fd)
            os.truncate(name, size) if path else os.ftruncate(fd, size)
            os.fsync(fd)
            self.assertEqual(os.pread(fd, room, 0), b"x" * min(written, size) + bytes(max(0, size - written)))
            kib = os.fstat(fd).st_blocks // 2
            os.close(fd)
            return kib

        for sync in (False, True):
            for path in (False, True):
                with self.subTest(sync=sync, path=path):
                    self.assertEqual(kib_after(1_000_000, 1_000_000, sync, path), 980)
                    self.assertEqual(kib_after(1_000_000, 999_999, sync, path), 980)
                    self.assertEqual(kib_after(1_000_000, 500_000, sync, path), 492)
                    self.assertEqual(kib_after(100, 100, sync, path), 4)
                    self.assertEqual(kib_after(1_000_000, 1_000_001, sync, path), 4096)
                    self.assertEqual(kib_after(1_000_000, 2_000_000, sync, path), 4096)
                    self.assertEqual(kib_after(4096, 8192, sync, path), 4096)
                    self.assertEqual(kib_after(0, MIB, sync, path), 4096)
                    self.assertEqual(kib_after(0, 0, sync, path), 0)

    def test_truncate_and_append(self):
        path = self.dir / "f"
        path.write_bytes(b"a" * 5000)
        path.write_bytes(b"b")  # O_TRUNC
        self.assertEqual(path.read_bytes(), b"b")
        with open(path, "ab") as file:
            file.write(b"c" * 4095)
        os.truncate(path, 3)
        os.truncate(path, 10)
        self.assertEqual(path.read_bytes(), b"bcc" + bytes(7))
        self.fails(errno.EFBIG, os.truncate, path, (1 << 63) - 1)

    def test_mmap_and_direct(self):
        path = self.dir / "f"
        fd = os.open(path, os.O_CREAT | os.O_RDWR)
        os.ftruncate(fd, 100_000)
        with mmap.mmap(fd, 100_000) as area:
            area[5000:5005] = b"hello"
            self.assertEqual(os.pread(fd, 5, 5000), b"hello")
            os.pwrite(fd, b"world", 50_000)
            self.assertEqual(area[50_000:50_005], b"world")
            area.flush()
        direct = os.open(path, os.O_RDWR | os.O_DIRECT)
        page = mmap.mmap(-1, 8192)
        self.assertEqual(os.preadv(direct, [page], 4096), 8192)
        self.assertEqual(page[904:909], b"hello")
        page[:] = b"d" * 8192
        self.assertEqual(os.pwritev(direct, [page], 8192), 8192)
        self.assertEqual(os.pread(fd, 8194, 8191), b"\0" + b"d" * 8192 + b"\0")
        os.close(direct)
        os.close(fd)

    def test_times_modes_owners(self):
        path = self.dir / "f"
        path.touch()
        for ns in (0, -1, 1 << 62, 123_456_789, -(10**18) - 1):
            os.utime(path, ns=(ns, ns))
            self.assertEqual((path.stat().st_atime_ns, path.stat().st_mtime_ns), (ns, ns))
        before = path.stat().st_ctime_ns
        time.sleep(0.02)  # so that the time is another one
        path.chmod(0o6751)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o6751)
        self.assertGreater(path.stat().st_ctime_ns, before)
        (self.dir / "d").mkdir()
        parent = (self.dir / "d").stat().st_mtime_ns
        time.sleep(0.02)  # so that the time is another one
        (self.dir / "d/x").touch()
        self.assertGreater((self.dir / "d").stat().st_mtime_ns, parent)
        if IS_ROOT:
            os.chown(path, 7, 8)
            self.assertEqual((path.stat().st_uid, path.stat().st_gid), (7, 8))
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o751, "chown drops suid and sgid")
        os.mkfifo(self.dir / "fifo")
        self.assertTrue(stat.S_ISFIFO((self.dir / "fifo").stat().st_mode))
        old = os.umask(0o027)
        (self.dir / "masked").touch()
        os.umask(old)
        self.assertEqual(stat.S_IMODE((self.dir / "masked").stat().st_mode), 0o640)

    def test_large_directory(self):
        top = self.dir / "d"
        top.mkdir()
        count = self.many
        for i in range(count):
            os.close(os.open(top / f"entry{i}", os.O_CREAT | os.O_WRONLY))
        self.assertEqual(len(set(os.listdir(top))), count)
        self.image.remount()
        seen = []
        with os.scandir(top) as entries:  # removing while reading loses and repeats nothing
            for entry in entries:
                seen.append(entry.name)
                if len(seen) % 3 == 0:
                    os.unlink(entry.path)
        self.assertEqual(sorted(seen), sorted(f"entry{i}" for i in range(count)))
        self.assertEqual(len(os.listdir(top)), count - count // 3)
        shutil.rmtree(top)

    def test_df_tells_the_truth(self):
        before = os.statvfs(self.dir)
        self.assertLessEqual(before.f_blocks * before.f_frsize, 256 * MIB)
        self.assertGreater(before.f_ffree, 1000)
        self.assertEqual(before.f_namemax, 255)
        fill_random(self.dir / "f", 50 * MIB)
        used = (before.f_bfree - os.statvfs(self.dir).f_bfree) * before.f_frsize
        self.assertGreater(used, 49 * MIB)
        self.assertLess(used, 53 * MIB)
        os.unlink(self.dir / "f")
        wait_until(lambda: before.f_bfree - os.statvfs(self.dir).f_bfree < 256, "the room comes back")


if __name__ == "__main__":
    main()
