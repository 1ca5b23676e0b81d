#!/usr/bin/env python3
"""Each way of asking that a write be durable before the call returns: the daemon is killed right after, and what was written
is there, at its length, with the names that lead to it."""

import ctypes
import mmap

from harness import *
from system_calls import *

IO_SETUP, IO_GETEVENTS, IO_SUBMIT = {"x86_64": (206, 208, 209), "aarch64": (0, 4, 2)}.get(os.uname().machine, (None, None, None))
BEFORE, AFTER = b"before" * 2000, b"and after" * 3000


def writes_with(flags):
    """One write through a descriptor opened with these flags."""
    def write(path):
        fd = os.open(path, os.O_WRONLY | flags)
        assert os.write(fd, AFTER) == len(AFTER)
    return write


def writes_and(action):
    """A write, then the action on its descriptor."""
    def write(path):
        fd = os.open(path, os.O_RDWR)
        assert os.write(fd, AFTER) == len(AFTER)
        action(fd)
    return write


def flagged_write(flags):
    def write(path):
        fd = os.open(path, os.O_WRONLY)
        assert os.pwritev(fd, [AFTER], 0, flags) == len(AFTER)
    return write


def direct_write(path):
    """O_DIRECT as far as whole blocks go, the rest through the cache and fsync."""
    whole = len(AFTER) // 4096 * 4096
    fd = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
    pages = mmap.mmap(-1, whole)
    pages[:] = AFTER[:whole]
    assert os.pwritev(fd, [pages], 0) == whole
    writes_with_tail = os.open(path, os.O_RDWR | os.O_SYNC)
    assert os.pwrite(writes_with_tail, AFTER[whole:], whole) == len(AFTER) - whole


def asynchronous_write(open_flags, flags):
    """By the kernel's own asynchronous I/O, within the file: it syncs nothing after that, but hands the wish on."""
    def write(path):
        whole = len(AFTER) // 4096 * 4096
        fd = os.open(path, os.O_RDWR | os.O_DIRECT | open_flags)
        os.ftruncate(fd, len(AFTER))
        os.fsync(fd)
        pages = mmap.mmap(-1, whole)
        pages[:] = AFTER[:whole]
        tail = os.open(path, os.O_RDWR | os.O_SYNC)
        assert os.pwrite(tail, AFTER[whole:], whole) == len(AFTER) - whole
        context = ctypes.c_ulong(0)
        assert libc.syscall(IO_SETUP, 8, ctypes.byref(context)) == 0
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        # data, key, rw_flags, opcode PWRITE, priority, descriptor, buffer, bytes, offset, reserved, flags, eventfd
        block = ctypes.create_string_buffer(struct.pack("<QIiHhIQQqQII", 1, 0, flags, 1, 0, fd, address, whole, 0, 0, 0, 0))
        blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
        assert libc.syscall(IO_SUBMIT, context, ctypes.c_long(1), blocks) == 1
        events = ctypes.create_string_buffer(32)
        assert libc.syscall(IO_GETEVENTS, context, ctypes.c_long(1), ctypes.c_long(1), events, None) == 1
        assert struct.unpack("<QQqq", events.raw)[2] == whole
    return write


def mapped_write(path):
    fd = os.open(path, os.O_RDWR)
    os.ftruncate(fd, len(AFTER))
    area = mmap.mmap(fd, len(AFTER))
    area[:] = AFTER
    area.flush()  # msync(MS_SYNC)


def whole_filesystem(fd):
    """sync(2) and syncfs(2) reach the filesystem only where the kernel sends them on: on devices (docs/posix.md). On an image
    they hand the data over, and any fsync makes all that durable: here one of the directory."""
    assert libc.syncfs(fd) == 0
    top = os.open(Path(f"/proc/self/fd/{fd}").resolve().parent, os.O_RDONLY)
    os.fsync(top)
    os.close(top)


WAYS = {
    "O_SYNC": writes_with(os.O_SYNC),
    "O_DSYNC": writes_with(os.O_DSYNC),
    "O_APPEND|O_DSYNC on an emptied file": writes_with(os.O_TRUNC | os.O_APPEND | os.O_DSYNC),
    "RWF_DSYNC": flagged_write(os.RWF_DSYNC),
    "RWF_SYNC": flagged_write(os.RWF_SYNC),
    "fsync": writes_and(os.fsync),
    "fdatasync": writes_and(os.fdatasync),
    "O_DIRECT|O_DSYNC": direct_write,
    "msync": mapped_write,
    **({"asynchronous, O_DIRECT|O_DSYNC": asynchronous_write(os.O_DSYNC, 0), "asynchronous, O_DIRECT|O_SYNC": asynchronous_write(os.O_SYNC, 0),
        "asynchronous, O_DIRECT, RWF_DSYNC": asynchronous_write(0, os.RWF_DSYNC)} if IO_SETUP is not None else {}),
    "syncfs and fsync": writes_and(whole_filesystem),
}


class Durability(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("128M")
        self.dir = self.image.dir

    def killed_after(self, action, options=""):
        """Does it in a child, which keeps its descriptors open: no close may help. Kills the daemon, mounts again."""
        self.image.mount(options)
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                action()
                os.write(tell, b"1")
                signal.pause()
            finally:
                os._exit(1)
        os.close(tell)
        done = os.read(ready, 1)
        os.close(ready)
        self.image.kill()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.assertEqual(done, b"1", "the action failed")
        self.image.mount()

    def test_contents(self):
        for number, (name, write) in enumerate(WAYS.items()):
            with self.subTest(name):
                path = self.dir / f"f{number}"
                def action():
                    path.write_bytes(BEFORE)
                    write(path)
                self.killed_after(action)
                self.assertEqual(path.read_bytes(), AFTER)
            self.image.check_all()

    def test_names_and_attributes(self):
        """fsync of a directory, and of a file for what happened before: the log keeps the order of all changes."""
        def action():
            (self.dir / "d").mkdir()
            (self.dir / "d/old").write_bytes(BEFORE)
            os.rename(self.dir / "d/old", self.dir / "d/new")
            os.symlink("new", self.dir / "d/link")
            os.link(self.dir / "d/new", self.dir / "hard")
            os.setxattr(self.dir / "hard", "user.x", b"value")
            os.chmod(self.dir / "hard", 0o4711)
            os.utime(self.dir / "hard", ns=(5, 7))
            (self.dir / "gone").touch()
            (self.dir / "gone").unlink()
            fd = os.open(self.dir, os.O_RDONLY)
            os.fsync(fd)
        self.killed_after(action)
        self.assertEqual(sorted(os.listdir(self.dir)), ["d", "hard"])
        self.assertEqual(sorted(os.listdir(self.dir / "d")), ["link", "new"])
        self.assertEqual(os.getxattr(self.dir / "d/link", "user.x"), b"value")
        entry = (self.dir / "hard").stat()
        self.assertEqual((entry.st_nlink, entry.st_mode & 0o7777, entry.st_atime_ns, entry.st_mtime_ns), (2, 0o4711, 5, 7))
        self.image.check_all()

    def make_some(self):
        """What the tests below change, in a mount of its own."""
        self.image.mount()
        for name in ("old", "whole"):
            (self.dir / name).write_bytes(BEFORE)
        (self.dir / "gone").write_bytes(AFTER)
        (self.dir / "empty").mkdir()
        self.image.umount()

    def each_is_durable(self, changes, options):
        """Without any fsync. Each alone: the next one would make it durable, too."""
        self.make_some()
        for name, (change, is_there) in changes.items():
            with self.subTest(name):
                self.killed_after(change, options)
                self.assertTrue(is_there())
            self.image.umount()
        self.image.check_all()

    def test_dirsync(self):
        """Names are."""
        changes = {
            "mkdir": (lambda: (self.dir / "d").mkdir(), lambda: (self.dir / "d").is_dir()),
            "create": (lambda: (self.dir / "f").touch(), lambda: (self.dir / "f").exists()),
            "symlink": (lambda: os.symlink("f", self.dir / "s"), lambda: os.readlink(self.dir / "s") == "f"),
            "link": (lambda: os.link(self.dir / "old", self.dir / "l"), lambda: (self.dir / "l").stat().st_nlink == 2),
            "rename": (lambda: os.rename(self.dir / "old", self.dir / "new"), lambda: not (self.dir / "old").exists()),
            "unlink": (lambda: (self.dir / "gone").unlink(), lambda: not (self.dir / "gone").exists()),
            "rmdir": (lambda: (self.dir / "empty").rmdir(), lambda: not (self.dir / "empty").exists()),
        }
        self.each_is_durable(changes, "dirsync")

    def test_sync(self):
        """So is everything with sync, but times that somebody sets."""
        path, copy = self.dir / "whole", self.dir / "gone"
        def copy_all():
            with open(path, "rb") as source, open(copy, "r+b") as target:
                os.ftruncate(target.fileno(), 0)
                os.copy_file_range(source.fileno(), target.fileno(), len(BEFORE))
        def append():
            with open(path, "ab", buffering=0) as file:
                file.write(AFTER)
        changes = {
            "write": (append, lambda: path.read_bytes() == BEFORE + AFTER),
            "truncate": (lambda: os.truncate(path, len(BEFORE)), lambda: path.stat().st_size == len(BEFORE)),
            "chmod": (lambda: path.chmod(0o4711), lambda: path.stat().st_mode & 0o7777 == 0o4711),
            "setxattr": (lambda: os.setxattr(path, "user.x", b"v"), lambda: os.listxattr(path) == ["user.x"]),
            "removexattr": (lambda: os.removexattr(path, "user.x"), lambda: os.listxattr(path) == []),
            "chattr": (lambda: command("chattr", "+d", path), lambda: "d" in command("lsattr", path).stdout.split()[0]),
            "copy": (copy_all, lambda: copy.read_bytes() == BEFORE),
            "fallocate": (lambda: self.lengthened(copy), lambda: copy.stat().st_size == MIB),
            "mkdir": (lambda: (self.dir / "d").mkdir(), lambda: (self.dir / "d").is_dir()),
        }
        self.each_is_durable(changes, "sync")

    def lengthened(self, path):
        fd = os.open(path, os.O_WRONLY)
        os.posix_fallocate(fd, 0, MIB)


class Sync(unittest.TestCase):
    """Where sync(2) and syncfs(2) come to Varve, as docs/posix.md says for each kernel: the kernel's request is counted."""

    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("128M")

    def comes(self, image, call):
        def count():
            return image.status()["mount"]["requests"].get("syncfs", 0)
        before = count()
        fd = os.open(image.dir / "f", os.O_CREAT | os.O_WRONLY)
        os.write(fd, BEFORE)
        call(fd)
        os.close(fd)
        return count() > before

    def look(self, image):
        return [self.comes(image, lambda fd: os.sync()), self.comes(image, libc.syncfs)]

    def test_of_an_image(self):
        self.image.mount()
        self.assertEqual(self.look(self.image), [False, False], f"Linux {LINUX}: the documents are wrong")

    def test_of_a_device(self):
        done = command("losetup", "-f", "--show", self.image.path, check=False)
        if not IS_ROOT or done.returncode != 0:
            self.skipTest("needs root and a loop device")
        loop = done.stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "-d", loop])
        self.addCleanup(clean_up_all)
        device = Image(loop, self.image.folder)
        device.mount()
        self.assertEqual(self.look(device), [LINUX >= (6, 18)] * 2, f"Linux {LINUX}: the documents are wrong")
        device.umount()


if __name__ == "__main__":
    main()
