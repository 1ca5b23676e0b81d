#!/usr/bin/env python3
"""Every operation on a full filesystem: it succeeds or fails with ENOSPC, and what failed left nothing behind."""

import ctypes
import errno

from harness import *

LIBC = ctypes.CDLL(None, use_errno=True)
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE = 1, 2, 16


def fallocate(descriptor, mode, offset, length):
    if LIBC.fallocate(descriptor, mode, ctypes.c_long(offset), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def succeeds(call, *arguments, **more):
    """Whether it did; anything but ENOSPC is an error of the test."""
    try:
        call(*arguments, **more)
        return True
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False


def until_refused(make, limit=200_000):
    """Calls make(0), make(1), … until one fails with ENOSPC; how many succeeded."""
    for i in range(limit):
        if not succeeds(make, i):
            return i
    raise AssertionError("never full")


class Full(MountTest):
    size = "64M"

    def setUp(self):
        super().setUp()
        self.work = self.dir / "work"
        self.work.mkdir()
        for name in ("data", "attributes", "moved", "removed", "sparse"):
            (self.work / name).write_bytes(name.encode() * 3000)
        os.setxattr(self.work / "attributes", "user.old", b"o" * 100)
        (self.work / "empty").mkdir()
        (self.work / "other").mkdir()
        self.fill()

    def fill(self):
        ballast = self.dir / "ballast"
        ballast.mkdir()

        def block(i, size):
            with open(ballast / f"{size}-{i}", "wb", buffering=0) as file:
                os.posix_fallocate(file.fileno(), 0, size)

        until_refused(lambda i: block(i, MIB))
        until_refused(lambda i: block(i, 4096))
        until_refused(lambda i: os.close(os.open(ballast / f"n{i}", os.O_CREAT | os.O_WRONLY)))
        until_refused(lambda i: os.mkdir(ballast / f"d{i}"))

    def room_comes_back(self):
        shutil.rmtree(self.dir / "ballast")
        wait_until(lambda: os.statvfs(self.dir).f_bavail * 4096 > 20 * MIB, 30, "the room comes back")
        fill_random(self.dir / "again", 10 * MIB, 5)
        self.assertTrue(same_random(self.dir / "again", 10 * MIB, 5))

    def test_names(self):
        """New ones of every kind: as many as were made are there, and no more, also after a remount."""
        makers = {
            "file": lambda path: os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
            "folder": os.mkdir,
            "symlink": lambda path: os.symlink("t" * 2000, path),
            "link": lambda path: os.link(self.work / "data", path),
            "fifo": os.mkfifo,
        }
        expected = {"data", "attributes", "moved", "removed", "sparse", "empty", "other"}
        for kind, make in makers.items():
            made = 0
            for i in range(5000):
                name = f"{kind}-{i}-" + "x" * 200
                if not succeeds(make, self.work / name):
                    break
                expected.add(name)
                made += 1
            else:
                self.fail(f"{made} of {kind} made on a full filesystem, and still there is room")
        links = (self.work / "data").stat().st_nlink
        self.assertEqual(links, 1 + sum(name.startswith("link-") for name in expected))
        self.assertEqual(set(os.listdir(self.work)), expected)
        self.image.remount()
        self.assertEqual(set(os.listdir(self.work)), expected)
        self.assertEqual((self.work / "data").stat().st_nlink, links)
        self.room_comes_back()

    def test_renames(self):
        """Under one name or the other, never both, never neither; over an existing file, and across folders."""
        name = self.work / "moved"
        for i in range(300):
            to = (self.work, self.work / "other")[i % 2] / (f"renamed-{i}-" + "y" * (i % 200))
            if succeeds(os.rename, name, to):
                self.assertFalse(name.exists())
                name = to
            else:
                self.assertFalse(to.exists())
            self.assertEqual(name.read_bytes(), b"moved" * 3000)
        if succeeds(os.rename, name, self.work / "removed"):
            self.assertEqual((self.work / "removed").read_bytes(), b"moved" * 3000)
        self.image.remount()
        copies = [path for path in self.work.rglob("*") if path.is_file() and path.read_bytes()[:5] == b"moved"]
        self.assertEqual(len(copies), 1)
        self.room_comes_back()

    def test_attributes(self):
        """What could be set is there with its value, the others as they were."""
        path = self.work / "attributes"
        values = {"user.old": b"o" * 100}
        for i in range(2000):
            name, value = f"user.new{i}", bytes([65 + i % 26]) * (37 * i % 3000)
            if not succeeds(os.setxattr, path, name, value):
                break
            values[name] = value
        else:
            self.fail("attributes without end on a full filesystem")
        if succeeds(os.setxattr, path, "user.old", b"p" * 100):
            values["user.old"] = b"p" * 100
        for now in range(2):
            self.assertEqual({name: os.getxattr(path, name) for name in os.listxattr(path)}, values)
            if now == 0:
                self.image.remount()
        os.chmod(path, 0o640)
        os.utime(path, (1, 2))
        for name in values:
            os.removexattr(path, name)
        self.assertEqual(os.listxattr(path), [])
        self.room_comes_back()

    def test_contents(self):
        """Appends, holes filled and rooms reserved fail as a whole or not at all, and fsync tells; the rest of the
        file, and overwriting, is not harmed."""
        path = self.work / "sparse"
        os.truncate(path, 100 * MIB)  # needs no room
        before = path.read_bytes()[:15_000]
        descriptor = os.open(path, os.O_RDWR)
        written = []

        def put(i):
            offset = 50 * MIB + i * 3 * 4096
            os.pwrite(descriptor, bytes([i % 255 + 1]) * 4096, offset)
            os.fsync(descriptor)
            written.append(offset)

        until_refused(put, 5000)
        until_refused(lambda i: fallocate(descriptor, FALLOC_KEEP_SIZE, 200 * MIB + i * MIB, MIB), 100)
        until_refused(lambda i: fallocate(descriptor, 0, 300 * MIB + i * MIB, MIB), 100)
        os.close(descriptor)
        self.image.remount()
        descriptor = os.open(path, os.O_RDWR)
        self.assertEqual(os.pread(descriptor, 15_000, 0), before)
        for i, offset in enumerate(written):
            self.assertEqual(os.pread(descriptor, 4096, offset), bytes([i % 255 + 1]) * 4096)
        os.pwrite(descriptor, b"over" * 1024, 0)  # in place of blocks that are there
        os.fsync(descriptor)
        fallocate(descriptor, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 4096, 4096)
        os.ftruncate(descriptor, 8192)
        os.fsync(descriptor)
        self.assertEqual(os.pread(descriptor, 9000, 0), b"over" * 1024 + bytes(4096))
        os.close(descriptor)
        self.room_comes_back()

    def test_unnamed_files_and_replacing(self):
        """O_TMPFILE, exchange, unlinking what is open: nothing is left of what failed or was dropped."""
        def unnamed(_):
            held.append(os.open(self.work, os.O_TMPFILE | os.O_RDWR))
        held = []
        until_refused(unnamed, 1000)
        for descriptor in held:
            os.close(descriptor)
        open_file = open(self.work / "removed", "rb")
        os.unlink(self.work / "removed")
        self.assertEqual(open_file.read(7), b"removed")
        open_file.close()
        os.rmdir(self.work / "empty")
        self.image.remount()
        self.assertEqual(set(os.listdir(self.work)), {"data", "attributes", "moved", "sparse", "other"})
        self.room_comes_back()


if __name__ == "__main__":
    main()
