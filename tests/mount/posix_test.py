#!/usr/bin/env python3
"""What the big POSIX suites leave out or need a setting for: copies, chattr, handles, access times, limits,
mappings beside reads and writes."""

import ctypes
import errno
import fcntl
import mmap
import resource
import stat
import struct
import threading

from harness import *
from system_calls import *

FS_IOC_GETFSLABEL, FS_IOC_SETFSLABEL = 0x81009431, 0x41009432
FS_IOC_FIEMAP, FITRIM, FS_IOC_GETVERSION = 0xC020660B, 0xC0185879, 0x80087601
IMMUTABLE, APPEND, NODUMP, NOATIME = 0x10, 0x20, 0x40, 0x80
AT_EMPTY_PATH = 0x1000
STATX_BTIME = 0x800


def birth_time(path):
    buffer = ctypes.create_string_buffer(256)
    checked(libc.statx(AT_FDCWD, os.fsencode(path), 0, STATX_BTIME, buffer))
    if not struct.unpack_from("I", buffer, 0)[0] & STATX_BTIME:
        return None
    seconds, nanoseconds = struct.unpack_from("qI", buffer, 0x50)
    return seconds * 10**9 + nanoseconds


class Posix(MountTest):
    size = "256M"

    def fails(self, number, call, *arguments):
        with self.assertRaises(OSError) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.errno, number, f"{call} {arguments}: {caught.exception}")

    # --- copy_file_range ---

    def test_copy_file_range(self):
        source, target = self.dir / "source", self.dir / "target"
        data = random.Random(SEED).randbytes(5 * MIB + 12345)
        source.write_bytes(data)  # still in the kernel's cache
        target.write_bytes(b"t" * 100_000)
        with open(source, "rb") as a, open(target, "r+b") as b:
            done = 0
            while done < 4 * MIB:
                done += os.copy_file_range(a.fileno(), b.fileno(), 4 * MIB - done, 777 + done, 4321 + done)
            want = b"t" * 4321 + data[777:777 + 4 * MIB]
            self.assertEqual(target.read_bytes(), want)
            self.assertEqual(os.copy_file_range(a.fileno(), b.fileno(), 100, len(data), 0), 0)
            self.assertEqual(os.copy_file_range(a.fileno(), b.fileno(), 100, len(data) - 10, 0), 10)
        with open(source, "r+b") as a:  # within one file
            self.assertEqual(os.copy_file_range(a.fileno(), a.fileno(), 100_000, 0, MIB + 1), 100_000)
            self.fails(errno.EINVAL, os.copy_file_range, a.fileno(), a.fileno(), 1000, 0, 500)
        self.assertEqual(source.read_bytes(), data[:MIB + 1] + data[:100_000] + data[MIB + 100_001:])
        self.image.remount()
        self.assertEqual(target.read_bytes(), data[len(data) - 10:] + want[10:])
        requests = self.image.status()["mount"]["requests"]
        with open(source, "rb") as a, open(target, "r+b") as b:
            os.copy_file_range(a.fileno(), b.fileno(), 1000)
        after = self.image.status()["mount"]["requests"]
        self.assertGreater(sum(after.get(n, 0) for n in ("copy_file_range", "copy_file_range_64")),
                           sum(requests.get(n, 0) for n in ("copy_file_range", "copy_file_range_64")))

    def test_copy_file_range_without_room(self):
        source = self.dir / "source"
        fill_random(source, 20 * MIB)
        def copy_on():
            with open(source, "rb") as a:
                for i in range(40):
                    with open(self.dir / f"t{i}", "wb") as b:
                        done = 0
                        while done < 20 * MIB:
                            done += os.copy_file_range(a.fileno(), b.fileno(), 20 * MIB - done, done, done)
        self.fails(errno.ENOSPC, copy_on)
        self.assertTrue(same_random(self.dir / "t0", 20 * MIB))

    # --- chattr ---

    def test_immutable(self):
        if not IS_ROOT:
            self.skipTest("not root")
        path = self.dir / "f"
        path.write_bytes(b"before")  # dirty in the kernel's cache
        with open(path, "r+b", buffering=0) as opened:
            set_flags(path, IMMUTABLE)
            self.assertEqual(get_flags(path), IMMUTABLE)
            self.fails(errno.EPERM, opened.write, b"x")
        self.fails(errno.EPERM, path.unlink)
        self.fails(errno.EPERM, path.chmod, 0o600)
        self.fails(errno.EPERM, os.truncate, path, 0)
        self.fails(errno.EPERM, path.write_bytes, b"x")  # O_TRUNC
        self.fails(errno.EPERM, os.link, path, self.dir / "g")
        self.fails(errno.EPERM, os.rename, path, self.dir / "g")
        self.fails(errno.EPERM, os.utime, path)
        self.fails(errno.EPERM, os.setxattr, path, "user.x", b"y")
        def append():
            with open(path, "ab", buffering=0) as file:
                file.write(b"x")
        self.fails(errno.EPERM, append)
        self.fails(errno.ENODATA, os.getxattr, path, "security.capability")
        self.image.remount()
        self.assertEqual(path.read_bytes(), b"before")
        for how in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND):
            self.fails(errno.EPERM, os.open, path, how)  # asked for since the filesystem knows of such files
        self.fails(errno.EPERM, path.unlink)
        set_flags(path, 0)
        append()
        self.assertEqual(path.read_bytes(), b"beforex")
        capability = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
        os.setxattr(path, "security.capability", capability)
        set_flags(path, IMMUTABLE)
        self.assertEqual(os.getxattr(path, "security.capability"), capability)  # asks for its size first
        set_flags(path, 0)
        (self.dir / "d").mkdir()
        set_flags(self.dir / "d", IMMUTABLE)
        self.fails(errno.EPERM, (self.dir / "d/x").touch)
        self.fails(errno.EPERM, (self.dir / "d").rmdir)
        set_flags(self.dir / "d", 0)

    def test_append_only(self):
        if not IS_ROOT:
            self.skipTest("not root")
        path = self.dir / "log"
        path.write_bytes(b"line\n")
        set_flags(path, APPEND)
        for _ in range(300):
            with open(path, "ab") as file:
                file.write(b"0123456789" * 100)
        self.fails(errno.EPERM, os.truncate, path, 0)
        self.fails(errno.EPERM, path.unlink)
        self.fails(errno.EPERM, os.rename, path, self.dir / "other")
        self.fails(errno.EPERM, path.chmod, 0o600)
        self.fails(errno.EPERM, os.utime, path, (1, 1))
        os.utime(path)
        self.image.remount()
        self.assertEqual(path.read_bytes(), b"line\n" + b"0123456789" * 30_000)
        for how in (os.O_WRONLY, os.O_RDWR):
            self.fails(errno.EPERM, os.open, path, how)
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
        set_flags(path, 0)

    def test_times_of_protected_files(self):
        """`touch -m` is refused. What the kernel has dated before the flag came, and what is appended later, keeps its time."""
        if not IS_ROOT:
            self.skipTest("not root")
        for flag in (IMMUTABLE, APPEND):
            path, folder = self.dir / f"f{flag}", self.dir / f"d{flag}"
            folder.mkdir()
            path.touch()
            with open(path, "ab", buffering=0) as opened:
                opened.write(b"x")  # dirty, and so is its time
                set_flags(path, flag)
                if flag == APPEND:
                    time.sleep(0.02)  # so that the time is another one
                    opened.write(b"y")
            set_flags(folder, flag)
            time.sleep(0.02)  # so that the time is another one
            before = [p.stat().st_mtime_ns for p in (path, folder)]
            for how in (["-m"], ["-m", "-d", "2001-02-03"]):
                for p in (path, folder):
                    self.assertNotEqual(command("touch", *how, p, check=False).returncode, 0, f"{how} {p}")
            self.assertEqual([p.stat().st_mtime_ns for p in (path, folder)], before)
            self.image.remount()
            self.assertEqual([p.stat().st_mtime_ns for p in (path, folder)], before)
            for p in (path, folder):
                set_flags(p, 0)
                command("touch", "-m", p)

    def test_a_directory_hands_its_flags_down(self):
        top = self.dir / "d"
        top.mkdir()
        set_flags(top, NODUMP | NOATIME)
        (top / "f").touch()
        (top / "below").mkdir()
        (top / "below/g").touch()
        os.symlink("f", top / "link")
        if LINUX >= (6, 1):
            fd = os.open(top, os.O_TMPFILE | os.O_RDWR, 0o600)
            self.assertEqual(struct.unpack("l", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8)))[0], NODUMP | NOATIME)
            os.close(fd)
        for name in ("f", "below", "below/g"):
            self.assertEqual(get_flags(top / name), NODUMP | NOATIME, name)
        set_flags(top / "f", NODUMP)
        set_flags(top, 0)
        (top / "later").touch()
        self.image.remount()
        self.assertEqual([get_flags(top / name) for name in ("f", "below/g", "later")], [NODUMP, NODUMP | NOATIME, 0])

    def test_flags_of_others(self):
        if not IS_ROOT:
            self.skipTest("not root")
        path = self.dir / "f"
        path.touch(0o644)
        os.chown(path, 1234, 1234)
        self.image.folder.chmod(0o755)
        self.dir.chmod(0o777)
        for word, status in (("+d", 0), ("+i", 1), ("+a", 1)):
            done = subprocess.run(["chattr", word, path], user=1234, group=1234, capture_output=True)
            self.assertEqual(done.returncode, status, f"{word}: {done.stderr}")
        done = subprocess.run(["chattr", "+A", path], user=1235, group=1235, capture_output=True)
        self.assertEqual(done.returncode, 1)

    # --- identity ---

    def test_handles(self):
        if not IS_ROOT:
            self.skipTest("not root")
        (self.dir / "d/e").mkdir(parents=True)
        (self.dir / "d/e/f").write_text("content")
        (self.dir / "gone").write_text("gone")
        handles = [handle_of(self.dir / p) for p in ("d/e/f", "d/e", "gone")]
        for _ in range(2):
            fd = open_handle(self.dir, handles[0])
            self.assertEqual(os.read(fd, 100), b"content")
            os.close(fd)
            fd = open_handle(self.dir, handles[1])
            self.assertEqual(os.listdir(fd), ["f"])
            os.close(fd)
            self.image.remount()
        os.unlink(self.dir / "gone")
        self.fails(errno.ESTALE, open_handle, self.dir, handles[2])
        wrong = bytearray(handles[0].raw)
        wrong[16] ^= 1  # the generation
        self.fails(errno.ESTALE, open_handle, self.dir, ctypes.create_string_buffer(bytes(wrong)))

    def test_label_generation_and_birth(self):
        self.image.umount()
        self.image.mkfs("256M", "-L", "sediment")
        before = time.time_ns()
        self.image.mount()
        fd = os.open(self.dir, os.O_RDONLY)
        self.assertEqual(fcntl.ioctl(fd, FS_IOC_GETFSLABEL, bytes(256)).rstrip(b"\0"), b"sediment")
        fcntl.ioctl(fd, FS_IOC_SETFSLABEL, b"varved clay".ljust(256, b"\0"))
        self.assertEqual(fcntl.ioctl(fd, FS_IOC_GETFSLABEL, bytes(256)).rstrip(b"\0"), b"varved clay")
        self.fails(errno.EINVAL, fcntl.ioctl, fd, FS_IOC_SETFSLABEL, b"x" * 64 + bytes(192))
        self.assertEqual(command(BIN / "varve", "label", self.image.path).stdout, "varved clay\n")
        with self.assertRaises(OSError) as caught:
            fcntl.ioctl(fd, FS_IOC_FIEMAP, bytes(32))
        self.assertIn(caught.exception.errno, (errno.EOPNOTSUPP, errno.ENOTTY), "the kernel does not let it through")
        os.close(fd)
        path = self.dir / "f"
        path.touch()
        born = birth_time(path)
        if born is None:
            self.skipTest("this kernel does not pass birth times on")
        self.assertTrue(before - 10**9 < born <= time.time_ns())
        os.utime(path, ns=(0, 0))
        path.chmod(0o600)
        self.image.remount()
        self.assertEqual(birth_time(path), born)

    def test_the_generation_is_an_int(self):
        """Its command says long, and lsattr -v has room for an int."""
        fd = os.open(self.dir, os.O_RDONLY)
        answer = fcntl.ioctl(fd, FS_IOC_GETVERSION, b"\xff" * 8)
        os.close(fd)
        self.assertEqual(answer[4:], b"\xff" * 4)

    def test_trim(self):
        """FITRIM on an image makes holes where nothing is; says how much; checks its range; is not for everybody."""
        if not IS_ROOT:
            self.skipTest("not root")
        fill_random(self.dir / "gone", 60 * MIB, 1)
        fill_random(self.dir / "kept", 20 * MIB, 2)
        unlink_and_wait(self.dir / "gone")
        command(BIN / "varve", "checkpoint", self.dir)
        fd = os.open(self.dir, os.O_RDONLY)
        trimmed = struct.unpack("QQQ", fcntl.ioctl(fd, FITRIM, struct.pack("QQQ", 0, 2**64 - 1, 0)))[1]
        self.assertGreater(trimmed, 50 * MIB)
        self.assertLess(self.image.path.stat().st_blocks * 512, 60 * MIB)
        for wrong in ((2**62, MIB, 0), (256 * MIB, 256 * MIB, 0), (0, 4095, 0), (0, 2**64 - 1, 2**40)):
            self.fails(errno.EINVAL, fcntl.ioctl, fd, FITRIM, struct.pack("QQQ", *wrong))
        os.close(fd)
        self.assertTrue(same_random(self.dir / "kept", 20 * MIB, 2))
        self.image.folder.chmod(0o755)
        self.image.remount("allow_other")
        self.assertNotEqual(subprocess.run(["fstrim", self.dir], user=1234, capture_output=True).returncode, 0)

    # --- times ---

    def test_reads_with_noatime_leave_no_trace(self):
        path = self.dir / "f"
        path.write_bytes(b"x" * 2 * MIB)
        sync_filesystem(self.dir)
        self.image.remount("strictatime")

        def changes(flags, size):
            before = path.stat().st_atime_ns
            time.sleep(0.02)  # so that the time is another one
            fd = os.open(path, os.O_RDONLY | os.O_DIRECT | flags)  # no cache between it and the daemon
            os.preadv(fd, [mmap.mmap(-1, size)], 0)
            os.close(fd)
            return path.stat().st_atime_ns != before

        for size in (4096, MIB):  # the second is read as a stream
            self.assertTrue(changes(0, size), size)
            self.assertFalse(changes(os.O_NOATIME, size), size)

    def test_access_times(self):
        path = self.dir / "f"
        def read_again(options):
            self.image.remount(options)  # what the kernel has cached is not read here
            time.sleep(0.01)  # so that the time is another one
            before = path.stat().st_atime_ns
            path.read_bytes()
            return path.stat().st_atime_ns != before
        path.write_bytes(b"x" * 10_000)
        self.assertTrue(read_again("relatime"), "first read after a change")
        self.assertFalse(read_again("relatime"))
        self.assertTrue(read_again("strictatime"))
        self.assertFalse(read_again("noatime"))
        os.utime(path, ns=(10**18, time.time_ns()))
        self.assertFalse(read_again("noatime"))
        self.assertTrue(read_again(""))
        set_flags(path, NOATIME)
        self.assertFalse(read_again("strictatime"))

    def test_times_are_in_order(self):
        """Set by the kernel or by the daemon: what happens later is not older."""
        last = 0
        elsewhere = self.image.folder / "elsewhere"
        elsewhere.touch()
        for i in range(100):
            (self.dir / f"made{i}").touch()
            elsewhere.stat()  # a stamp that was looked at is followed by a finer one, which raises the kernel's clock
            elsewhere.write_text(str(i))
            (self.dir / f"written{i}").write_text("x")
            times = [(self.dir / f"{kind}{i}").stat().st_mtime_ns for kind in ("made", "written")]
            self.assertLessEqual(last, times[0])
            self.assertLessEqual(times[0], times[1])
            last = times[1]

    def test_times_far_away(self):
        path = self.dir / "f"
        path.touch()
        wanted = [-1, -(10**9) - 1, -2**31 * 10**9 - 7, 2**31 * 10**9 + 999_999_999, 2**32 * 10**9 + 1, 7_258_118_400 * 10**9 + 5]
        for ns in wanted:
            os.utime(path, ns=(ns, ns + 1))
            self.image.remount()
            self.assertEqual((path.stat().st_atime_ns, path.stat().st_mtime_ns), (ns, ns + 1))

    # --- limits ---

    def test_size_limits(self):
        path = self.dir / "f"
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            fd = os.open(path, os.O_CREAT | os.O_RDWR)
            assert os.pwrite(fd, b"x" * 50_000, 80_000) == 20_000
            for call in (lambda: os.pwrite(fd, b"x", 100_000), lambda: os.ftruncate(fd, 100_001),
                         lambda: os.posix_fallocate(fd, 0, 100_001)):
                try:
                    call()
                    os._exit(1)
                except OSError as error:
                    if error.errno != errno.EFBIG:
                        os._exit(2)
        pid = os.fork()
        if pid == 0:
            try:
                limited()
            except BaseException:
                os._exit(3)
            os._exit(0)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(path.stat().st_size, 100_000)
        self.fails(errno.EFBIG, os.truncate, path, 1 << 62)
        fd = os.open(path, os.O_RDWR)
        self.fails(errno.EFBIG, os.posix_fallocate, fd, 1 << 60, 4096)
        os.close(fd)

    def test_many_links(self):
        path = self.dir / "f"
        path.touch()
        (self.dir / "d").mkdir()
        for i in range(66_000):
            os.link(path, self.dir / "d" / str(i))
        self.image.remount()
        self.assertEqual(path.stat().st_nlink, 66_001)

    def test_deep_paths(self):
        fd = os.open(self.dir, os.O_RDONLY)
        depth = 0
        for depth in range(300):  # deeper than one path can name
            os.mkdir("d" * 50, dir_fd=fd)
            below = os.open("d" * 50, os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = below
        os.close(fd)
        path = "/".join(["d" * 50] * 79)
        old = os.open(".", os.O_RDONLY)
        os.chdir(self.dir)
        try:
            long = path + "/" + "f" * (4094 - len(path))
            self.assertEqual(len(long), 4095)
            Path(long).write_text("deep")
            self.assertEqual(Path(long).read_text(), "deep")
            self.fails(errno.ENAMETOOLONG, os.stat, long + "f")
        finally:
            os.fchdir(old)
            os.close(old)

    def test_whiteout(self):
        if not IS_ROOT:
            self.skipTest("not root")
        (self.dir / "a").write_text("a")
        (self.dir / "b").write_text("b")
        renameat2(self.dir / "a", self.dir / "b", RENAME_WHITEOUT)
        self.image.remount()
        self.assertEqual((self.dir / "b").read_text(), "a")
        left = (self.dir / "a").stat()
        self.assertTrue(stat.S_ISCHR(left.st_mode))
        self.assertEqual(left.st_rdev, 0)

    # --- privileges ---

    def test_writing_takes_privileges_away(self):
        if not IS_ROOT:
            self.skipTest("not root")
        path = self.dir / "f"
        capability = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
        self.image.folder.chmod(0o755)
        for action in ("printf x >> {}", "truncate -s 3 {}", "chown 1:1 {}"):
            path.write_bytes(b"content")
            path.chmod(0o6777)
            os.setxattr(path, "security.capability", capability)
            command("sh", "-c", action.format(path))
            self.fails(errno.ENODATA, os.getxattr, path, "security.capability")
        path.chmod(0o6777)
        self.assertEqual(subprocess.run(["sh", "-c", f"printf x >> {path}"], user=1234, group=1234).returncode, 0)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o777)
        self.image.remount()
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o777)

    def test_allocating_and_copying_take_privileges_away(self):
        if not IS_ROOT:
            self.skipTest("not root")
        self.image.folder.chmod(0o755)
        path = self.dir / "f"
        def copy(fd):
            os.copy_file_range(fd, fd, 4096, 0, 8192)
        def change(user, action):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    os.setgroups([])
                    os.setresgid(user, user, user)
                    os.setresuid(user, user, user)
                    action(os.open(path, os.O_RDWR))
                    status = 0
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
        actions = [lambda fd, mode=mode: fallocate(fd, mode, 4096, 4096)
                   for mode in (0, KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE)]
        for number, action in enumerate([*actions, copy, lambda fd: os.pwrite(fd, b"x", 0)]):
            for user, before, after in ((1234, 0o6777, 0o777), (1234, 0o6666, 0o666), (0, 0o6777, 0o6777)):
                path.unlink(missing_ok=True)
                fill_random(path, 20_000)
                path.chmod(before)
                change(user, action)
                self.assertEqual(oct(stat.S_IMODE(path.stat().st_mode)), oct(after), f"action {number} of {user}")
                fd = os.open(path, os.O_RDONLY)
                os.fsync(fd)
                os.close(fd)
        self.image.remount()
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o6777)

    # --- data ---

    def test_holes_while_dirty(self):
        fd = os.open(self.dir / "f", os.O_CREAT | os.O_RDWR)
        os.ftruncate(fd, 100 * MIB)
        generator = random.Random(SEED)
        written = set()
        for _ in range(60):
            page = generator.randrange(100 * MIB // PAGE)
            written.add(page)
            os.pwrite(fd, b"d" * 4096, page * PAGE)
            if generator.randrange(3) == 0:
                os.fsync(fd)
            at, found = 0, set()
            while True:
                try:
                    at = os.lseek(fd, at, os.SEEK_DATA)
                except OSError as error:
                    self.assertEqual(error.errno, errno.ENXIO)
                    break
                end = os.lseek(fd, at, os.SEEK_HOLE)
                found.update(range(at // PAGE, -(-end // PAGE)))
                at = end
            self.assertLessEqual(written, found)
        self.assertEqual(found, written)
        os.close(fd)

    def test_mapped_direct_and_buffered_agree(self):
        size = 2 * MIB
        path = self.dir / "f"
        path.write_bytes(bytes(size))
        want = bytearray(size)
        fd, direct = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR | os.O_DIRECT)
        shared = mmap.mmap(fd, size)
        private = mmap.mmap(fd, size, mmap.MAP_PRIVATE)
        private[0:4096] = b"p" * 4096
        pages = mmap.mmap(-1, 65536)
        generator = random.Random(SEED)
        for _ in range(400):
            at = generator.randrange(size // 4096 - 16) * 4096
            length = generator.randrange(1, 17) * 4096
            data = generator.randbytes(length)
            match generator.randrange(3):
                case 0:
                    os.pwrite(fd, data, at)
                case 1:
                    shared[at:at + length] = data
                case 2:
                    pages[:length] = data
                    self.assertEqual(os.pwritev(direct, [memoryview(pages)[:length]], at), length)
            want[at:at + length] = data
            at = generator.randrange(size // 4096 - 16) * 4096
            match generator.randrange(3):
                case 0:
                    self.assertEqual(os.pread(fd, 65536, at), want[at:at + 65536])
                case 1:
                    self.assertEqual(shared[at:at + 65536], want[at:at + 65536])
                case 2:
                    self.assertEqual(os.preadv(direct, [pages], at), 65536)
                    self.assertEqual(pages[:], want[at:at + 65536])
        self.assertEqual(private[0:4096], b"p" * 4096)
        private.close()
        shared.close()
        os.close(fd)
        os.close(direct)
        self.image.remount()
        self.assertEqual(path.read_bytes(), want)

    # --- races ---

    def together(self, *works, seconds=3):
        """Runs all of them again and again for a while; what POSIX lets them fail with is theirs to catch."""
        end = time.monotonic() + seconds
        failures = []
        def loop(work):
            try:
                while time.monotonic() < end:
                    work()
            except BaseException:
                failures.append(traceback.format_exc())
        threads = [threading.Thread(target=loop, args=(w,)) for w in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)
        self.assertFalse(failures, failures[:1])

    def test_rename_against_rmdir_and_link_against_unlink(self):
        a, b, f = self.dir / "a", self.dir / "b", self.dir / "f"
        allowed = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)
        def trying(call, *arguments):
            def work():
                try:
                    call(*arguments)
                except OSError as error:
                    if error.errno not in allowed:
                        raise
            return work
        self.together(trying(os.mkdir, a), trying(os.rename, a, b), trying(os.rmdir, b), trying(os.mkdir, b / "x"),
                      trying(os.rmdir, b / "x"), trying(f.touch), trying(os.link, f, self.dir / "g"),
                      trying(os.unlink, f), trying(os.unlink, self.dir / "g"), trying(os.rename, f, a / "f"))
        shutil.rmtree(a, ignore_errors=True)
        shutil.rmtree(b, ignore_errors=True)
        for name in os.listdir(self.dir):
            self.assertGreater((self.dir / name).stat().st_nlink, 0)

    def test_truncate_against_write_and_mapping(self):
        path = self.dir / "f"
        path.write_bytes(b"a" * MIB)
        fd = os.open(path, os.O_RDWR)
        area = mmap.mmap(fd, MIB)
        generator = random.Random(SEED)
        def write():
            os.pwrite(fd, b"a" * generator.randrange(1, 70_000), generator.randrange(MIB))
        def shorten():
            os.ftruncate(fd, MIB + generator.randrange(MIB))  # never below the mapping: that is SIGBUS
        def store():
            at = generator.randrange(MIB - 1)
            area[at] = ord("a")
        def look():
            self.assertFalse(os.pread(fd, 100_000, generator.randrange(2 * MIB)).strip(b"a\0"))
            at = generator.randrange(MIB - 5000)
            self.assertFalse(area[at:at + 5000].strip(b"a\0"))
        self.together(write, shorten, store, look, look)
        area.close()
        os.close(fd)

    def test_modes_survive_concurrent_writing(self):
        """chmod while data and times of the same file are written back: what was set last is there in the end."""
        paths = [self.dir / f"f{i}" for i in range(8)]
        for path in paths:
            path.touch()
        for round in range(100):
            for number, path in enumerate(paths):
                fd = os.open(path, os.O_WRONLY)
                os.write(fd, b"x" * 5000)
                os.fchmod(fd, 0o600 + (round + number) % 64)
                os.utime(path, ns=(round, round))
                if round % 10 == 0:
                    os.fsync(fd)
                os.close(fd)
            if round % 33 == 0:
                self.image.remount()
            for number, path in enumerate(paths):
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600 + (round + number) % 64)
                self.assertEqual(path.stat().st_mtime_ns, round)


if __name__ == "__main__":
    main()
