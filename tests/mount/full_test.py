#!/usr/bin/env python3
"""Every operation on a full filesystem: it succeeds or fails with ENOSPC, and what failed left nothing behind."""

import errno
import mmap

from harness import *
from system_calls import *


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
        wait_until(lambda: os.statvfs(self.dir).f_bavail * 4096 > 20 * MIB, "the room comes back")
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
        until_refused(lambda i: fallocate(descriptor, KEEP_SIZE, 200 * MIB + i * MIB, MIB), 100)
        until_refused(lambda i: fallocate(descriptor, 0, 300 * MIB + i * MIB, MIB), 100)
        os.close(descriptor)
        self.image.remount()
        descriptor = os.open(path, os.O_RDWR)
        self.assertEqual(os.pread(descriptor, 15_000, 0), before)
        for i, offset in enumerate(written):
            self.assertEqual(os.pread(descriptor, 4096, offset), bytes([i % 255 + 1]) * 4096)
        os.pwrite(descriptor, b"over" * 1024, 0)  # in place of blocks that are there
        os.fsync(descriptor)
        fallocate(descriptor, PUNCH_HOLE | KEEP_SIZE, 4096, 4096)
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
        if LINUX >= (6, 1):
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


class WritingBack(MountTest):
    """What the kernel collects (writeback, the default) has been promised before it is refused: how much that can be, what
    program hears of it, and what is left."""
    size = "64M"
    # What the kernel may hold back when the first WRITE is refused, and the write under way. Only root can make it less than a
    # hundredth of what it may hold back of all filesystems.
    most_in_vain = 24 * MIB if IS_ROOT else 300 * MIB

    def write_until_refused(self, descriptor, piece, most=400 * MIB):
        """How many bytes were accepted."""
        accepted = 0
        while accepted < most:
            if not succeeds(os.write, descriptor, piece):
                return accepted
            accepted += len(piece)
        self.fail(f"{accepted >> 20} MiB accepted by a filesystem of {self.size}")

    def stored(self, name="file"):
        return (self.dir / name).stat().st_blocks * 512

    def forgotten(self):
        requests = self.image.status()["mount"]["requests"]
        return requests.get("forget", 0) + requests.get("batch_forget", 0)

    def test_a_writer_is_told(self):
        for size in (MIB, 8192, 100_000):
            descriptor = os.open(self.dir / "file", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            accepted = self.write_until_refused(descriptor, b"w" * size)
            succeeds(os.close, descriptor)
            self.assertLess(accepted - self.stored(), self.most_in_vain, f"writes of {size}")
            self.assertGreater(self.stored(), 45 * MIB)
            os.unlink(self.dir / "file")
            wait_until(lambda: os.statvfs(self.dir).f_bavail * 4096 > 45 * MIB, "the room comes back")

    def test_appenders_are_told(self):
        """Each with a descriptor of its own, all to one file."""
        descriptors = [os.open(self.dir / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY) for _ in range(5)]
        accepted = refused = 0
        while refused < len(descriptors) and accepted < 400 * MIB:
            for descriptor in descriptors:
                if succeeds(os.write, descriptor, b"line" * 4096):
                    accepted += 16384
                else:
                    refused += 1
        self.assertGreaterEqual(refused, len(descriptors))  # the last round may bring more
        for descriptor in descriptors:
            self.assertFalse(succeeds(os.fsync, descriptor))
            succeeds(os.close, descriptor)

    def test_size_and_content_agree_after_a_copy(self):
        source = self.image.folder / "source"
        fill_random(source, 150 * MIB, 3, sync=False)
        forgotten = self.forgotten()
        done = command("cp", source, self.dir / "copy", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("No space left", done.stderr)
        if LINUX >= (6, 18):
            wait_until(lambda: self.forgotten() > forgotten, "the kernel forgets what it believed of the copy")
        else:
            self.image.remount()
        size, content = (self.dir / "copy").stat().st_size, (self.dir / "copy").read_bytes()
        self.assertEqual(size, len(content))
        self.image.remount()
        self.assertEqual((self.dir / "copy").stat().st_size, size)
        self.assertEqual((self.dir / "copy").read_bytes(), content)

    def test_no_fsync_succeeds_while_something_is_missing(self):
        first = os.open(self.dir / "file", os.O_CREAT | os.O_RDWR)
        second = os.open(self.dir / "file", os.O_RDWR)
        os.pwrite(first, b"head" * 1024, 0)
        os.fsync(first)
        self.assertFalse(succeeds(os.pwrite, first, b"x" * 100 * MIB, MIB) and succeeds(os.fsync, first))
        for descriptor in (first, second, first, second):
            self.assertFalse(succeeds(os.fsync, descriptor))
            self.assertFalse(succeeds(os.fdatasync, descriptor))
        third = os.open(self.dir / "file", os.O_RDWR)
        self.assertFalse(succeeds(os.fsync, third))
        os.ftruncate(third, 4096)
        for descriptor in (third, first, second):
            succeeds(os.fsync, descriptor)  # what the kernel itself still has to report
            os.fsync(descriptor)
        self.assertEqual(os.pread(second, 8192, 0), b"head" * 1024)
        for descriptor in (first, second, third):
            os.close(descriptor)

    def test_other_files_and_blocks_that_are_there_are_not_harmed(self):
        fill_random(self.dir / "old", 4 * MIB, 1)
        with open(self.dir / "reserved", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 4 * MIB)
        full = os.open(self.dir / "file", os.O_CREAT | os.O_WRONLY)
        self.write_until_refused(full, b"w" * MIB)
        for name in ("old", "reserved"):
            with open(self.dir / name, "r+b", buffering=0) as file:
                generator = random.Random(2)
                for _ in range(4):
                    self.assertEqual(file.write(generator.randbytes(MIB)), MIB)
                    os.fsync(file.fileno())
            self.assertTrue(same_random(self.dir / name, 4 * MIB, 2))
        succeeds(os.close, full)

    def test_a_mapping_is_told_by_msync(self):
        with open(self.dir / "file", "w+b") as file:
            file.truncate(100 * MIB)
            with mmap.mmap(file.fileno(), 100 * MIB) as mapping:
                for offset in range(0, 100 * MIB, MIB):
                    mapping[offset:offset + MIB] = b"m" * MIB
                for _ in range(3):
                    self.assertFalse(succeeds(mapping.flush))
            self.assertFalse(succeeds(os.fsync, file.fileno()))
            file.truncate(0)

    def test_writing_again_makes_up_for_it(self):
        fill_random(self.dir / "ballast", 30 * MIB)
        descriptor = os.open(self.dir / "file", os.O_CREAT | os.O_RDWR)
        self.assertFalse(succeeds(os.pwrite, descriptor, b"x" * 40 * MIB, 0) and succeeds(os.fsync, descriptor))
        self.assertFalse(succeeds(os.fsync, descriptor))
        os.unlink(self.dir / "ballast")
        wait_until(lambda: os.statvfs(self.dir).f_bavail * 4096 > 20 * MIB, "the room comes back")
        self.assertFalse(succeeds(os.fsync, descriptor))  # the kernel does not try again
        os.lseek(descriptor, 0, os.SEEK_SET)
        for _ in range(40):
            if not succeeds(os.write, descriptor, b"y" * MIB):  # it is told of the refusal now
                self.assertEqual(os.write(descriptor, b"y" * MIB), MIB)
        succeeds(os.fsync, descriptor)
        os.fsync(descriptor)
        self.assertEqual(os.pread(descriptor, 40 * MIB, 0), b"y" * 40 * MIB)
        os.close(descriptor)


class WritingThrough(MountTest):
    size = "64M"
    options = "writeback=off"

    def test_nothing_is_accepted_in_vain(self):
        with open(self.dir / "file", "wb", buffering=0) as file:
            accepted = until_refused(lambda _: file.write(b"w" * 65536)) * 65536
            self.assertLess(os.fstat(file.fileno()).st_size - accepted, 65536)
            os.fsync(file.fileno())


if __name__ == "__main__":
    main()
