#!/usr/bin/env python3
"""Counts the FUSE requests that system calls cost: most of what a user waits for. The numbers are the minimum that the
kernel's protocol allows with what has been negotiated (docs/design.md)."""

from collections import Counter

from harness import *

# Come at the kernel's leisure, and nobody waits for them.
UNCOUNTED = {"forget", "batch_forget", "interrupt"}


class Requests(MountTest):
    size = "256M"

    def setUp(self):
        super().setUp()
        # Apart from the root, which `varve status` opens: a changed directory costs the next caller a getattr.
        self.work = self.dir / "work"
        self.work.mkdir()

    def served(self):
        return Counter(self.image.status()["mount"]["requests"])

    def during(self, action):
        """What the action asked for, without what the asking itself asks for."""
        os.stat(self.work)
        first = self.served()
        second = self.served()
        action()
        third = self.served()
        asking = second - first
        found = third - second - asking
        return {name: n for name, n in found.items() if name not in UNCOUNTED}

    def at_most(self, limit, action, what, tries=1):
        for _ in range(tries):
            found = self.during(action)
            if sum(found.values()) <= limit:
                break  # else the kernel has just heard, as once a second, that files were written, and asks again
        self.assertLessEqual(sum(found.values()), limit, f"{what}: {found}")
        return found

    def test_a_new_file(self):
        (self.work / "warm").write_text("x")
        (self.work / "warm").read_text()  # now the kernel knows that OPEN and RELEASE are not needed
        wanted = self.work / "file"

        def write():
            fd = os.open(wanted, os.O_CREAT | os.O_WRONLY)
            for _ in range(4):
                os.write(fd, b"x" * 4096)
            os.close(fd)
        # lookup, create, getxattr (security.capability, once an inode), write, setattr (times, by the kernel's cache)
        found = self.at_most(5, write, "create, four writes, close")
        self.assertEqual(found.get("write", 0), 1, found)
        self.assertNotIn("flush", found)
        self.assertNotIn("release", found)

    def test_nothing_for_a_listing_that_the_kernel_keeps(self):
        top = self.work / "many"
        top.mkdir()
        for count in range(3000):
            (top / f"{count:07}").touch()
        for _ in range(3):
            os.listdir(top)
            found = self.during(lambda: os.listdir(top))
            self.assertNotIn("readdir", found)
            self.assertNotIn("readdirplus", found)
            with os.scandir(top) as listing:  # names come and go meanwhile
                next(listing)
                (top / "0000000").unlink()
                self.assertIn(len(list(listing)), (2998, 2999))
            with os.scandir(top) as listing:
                next(listing)
                (top / "0000000").touch()
                self.assertIn(len(list(listing)), (2998, 2999))

    def test_nothing_for_what_is_cached(self):
        top = self.work / "d"
        top.mkdir()
        for i in range(20):
            (top / f"f{i}").write_bytes(b"x" * 10_000)
        os.symlink("f0", top / "link")

        def use():
            for i in range(20):
                fd = os.open(top / f"f{i}", os.O_RDONLY)
                os.read(fd, 20_000)
                os.close(fd)
            os.readlink(top / "link")
            list(os.scandir(top))
            self.assertFalse((top / "absent").exists())

        def look():
            for i in range(20):
                os.stat(top / f"f{i}")
        use()
        use()
        self.at_most(0, use, "open, read, close, readlink, readdir, a name that is not there", 3)
        # close(2) makes the kernel forget st_blocks when it caches writes: one getattr a file, then nothing.
        self.at_most(20, look, "the first stat after close")
        self.at_most(0, look, "stat", 3)

    def test_cold_stat(self):
        top = self.work / "d"
        top.mkdir()
        for i in range(100):
            (top / f"f{i:03d}").touch()
        self.image.remount()
        os.stat(top)
        self.at_most(1, lambda: os.stat(top / "f050"), "stat of a name")

        def walk():
            for entry in os.scandir(top):
                entry.stat()
        found = self.at_most(6, walk, "ls -l of a hundred names")
        self.assertLessEqual(found.get("lookup", 0) + found.get("getattr", 0), 2, found)

    def test_overwrite_and_fsync(self):
        path = self.work / "f"
        path.write_bytes(b"x" * 100_000)
        fd = os.open(path, os.O_RDWR)
        os.pwrite(fd, b"y" * 4096, 0)
        os.fsync(fd)

        def durable():
            os.pwrite(fd, b"z" * 4096, 8192)
            os.fsync(fd)
        found = self.at_most(3, durable, "write, fsync", 3)  # write, setattr (times), fsync
        self.assertEqual(found.get("fsync"), 1, found)
        fdatasync = self.at_most(3, lambda: (os.pwrite(fd, b"w" * 4096, 4096), os.fdatasync(fd)), "write, fdatasync", 3)
        self.assertEqual(fdatasync.get("write"), 1, fdatasync)
        os.close(fd)

    def test_names(self):
        (self.work / "a").touch()
        (self.work / "d").mkdir()
        self.at_most(2, lambda: os.mkdir(self.work / "new"), "mkdir: lookup, mkdir")
        self.at_most(3, lambda: os.rename(self.work / "a", self.work / "b"), "rename: lookup, rename, setattr (ctime)")
        self.at_most(3, lambda: os.link(self.work / "b", self.work / "c"), "link: lookup, link, setattr (ctime)")
        self.at_most(2, lambda: os.unlink(self.work / "b"), "unlink: unlink, setattr (ctime)")
        self.at_most(2, lambda: os.symlink("x", self.work / "s"), "symlink: lookup, symlink")
        self.at_most(1, lambda: os.rmdir(self.work / "new"), "rmdir")
        self.at_most(1, lambda: os.chmod(self.work / "c", 0o600), "chmod: setattr")

    def test_large_transfers(self):
        path = self.work / "f"
        with open(path, "wb", buffering=0) as file:
            file.write(b"x" * 4 * MIB)
            found = self.during(lambda: os.fsync(file.fileno()))
        self.assertLessEqual(found.get("write", 0), 5, "1 MiB a request")
        self.image.remount()
        os.stat(path)
        found = self.during(lambda: path.read_bytes())
        self.assertLessEqual(found.get("read", 0), 4 * MIB // (128 * KIB) + 2, found)


if __name__ == "__main__":
    main()
