#!/usr/bin/env python3
"""System calls with values at the edges of what there is: sizes, offsets, times, owners, names, attributes. After each kill -9 the filesystem is as it
was when it had been synced."""

import stat

from harness import *
from system_calls import *

ROUNDS = int(os.environ.get("VARVE_EXTREME_ROUNDS", "60"))
MOST = 1 << 52  # bytes: one more than a file may have
EDGES = [0, 1, 4095, 4096, 4097, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, MOST - 8193, MOST - 8192,
         MOST - 4097, MOST - 4096, MOST - 4095, MOST - 2, MOST - 1, MOST, (1 << 63) - 1]
TIMES = [0, 1, -1, -(1 << 31), (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 34) - 1, 1 << 34, -(1 << 40), 1 << 40]
OWNERS = [0, 1, 65534, 1 << 31, (1 << 32) - 2, -1]
NAMES = ["a", "b", "c" * 255, "d.e", "éé", "f\n g", "d1", "d2"]



class Caller:
    """Calls at random; most of them fail, as they should."""

    def __init__(self, top, seed):
        self.top, self.random = str(top), random.Random(seed)
        self.calls = [self.write, self.write, self.fallocate, self.truncate, self.truncate, self.times, self.owner, self.mode, self.attribute,
                      self.symlink, self.special, self.mkdir, lambda: os.removexattr(self.path(), "user.a"),
                      lambda: os.link(self.path(), self.path(), follow_symlinks=False), lambda: os.rename(self.path(), self.path()),
                      lambda: os.unlink(self.path()), lambda: os.rmdir(self.path())]

    def one(self):
        try:
            self.random.choice(self.calls)()
            return True
        except (OSError, ValueError, OverflowError):
            return False

    def path(self):
        return f"{self.top}/{self.random.choice(['', '', 'd1/', 'd2/', 'd1/d2/'])}{self.random.choice(NAMES)}"

    def edge(self):
        return max(0, min(self.random.choice(EDGES) + self.random.choice([0, 0, 0, 1, -1, 4096, -4096]), (1 << 63) - 1))

    def write(self):
        fd = os.open(self.path(), os.O_RDWR | os.O_CREAT | self.random.choice([0, 0, os.O_TRUNC]), self.random.randrange(0o10000))
        try:
            size = self.random.choice([1, 100, 4096, 5000, 70000])
            os.pwrite(fd, self.random.randbytes(size), min(self.edge(), MOST - 1 - size))  # beyond it the kernel knows no bound
        finally:
            os.close(fd)

    def fallocate(self):
        fd = os.open(self.path(), os.O_RDWR)
        try:
            mode = self.random.choice([0, 1, 3, 0x10, 0x11, 8, 0x20, 0x40])
            fallocate(fd, mode, self.edge(), self.random.choice([1, 4096, 8192, 1 << 16, self.edge()]))
        finally:
            os.close(fd)

    def truncate(self):
        path, size = self.path(), self.edge()
        if os.stat(path).st_size != size:
            os.truncate(path, size)

    def times(self):
        chosen = [self.random.choice(TIMES) * 10**9 + self.random.choice([0, 1, 999_999_999]) for _ in range(2)]
        os.utime(self.path(), ns=tuple(chosen), follow_symlinks=False)

    def owner(self):
        os.chown(self.path(), self.random.choice(OWNERS), self.random.choice(OWNERS), follow_symlinks=False)

    def mode(self):
        os.chmod(self.path(), self.random.randrange(0o10000))

    def attribute(self):
        size = self.random.choice([0, 1, 255, 256, 4000, 16384, 65535, 65536])
        os.setxattr(self.path(), "user." + self.random.choice(["a", "b" * 250, "é"]), self.random.randbytes(size), follow_symlinks=False)

    def symlink(self):
        os.symlink("x" * self.random.choice([1, 59, 60, 255, 4094, 4095]), self.path())

    def special(self):
        kind = self.random.choice([stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
        os.mknod(self.path(), kind | 0o666, os.makedev(self.random.choice([0, 255, 4095]), self.random.choice([0, 255, 1048575])))

    def mkdir(self):
        os.mkdir(self.path(), self.random.randrange(0o2000))


def data_of(path):
    """Where there is data, and what: no more than the first of it."""
    found, at = [], 0
    with open(path, "rb", buffering=0) as file:
        while len(found) < 100:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            except OSError:
                return found
            data = os.pread(file.fileno(), min(end - at, 1 << 20), at)
            if any(data):  # what has been set aside is a hole to some
                found.append((at, data))
            at = end
    return found


def state(top):
    found = {}
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            about = os.lstat(path)
            xattrs = {key: os.getxattr(path, key, follow_symlinks=False) for key in os.listxattr(path, follow_symlinks=False)}
            found[path] = ((about.st_mtime, about.st_ctime),
                           (about.st_ino, about.st_mode, about.st_uid, about.st_gid, about.st_nlink, about.st_rdev, about.st_size, xattrs,
                            os.readlink(path) if stat.S_ISLNK(about.st_mode) else None, data_of(path) if stat.S_ISREG(about.st_mode) else None))
    return found


class Extremes(MountTest):
    def test_what_was_synced_is_there_after_a_kill(self):
        image = Image()
        image.mkfs("256M")
        image.mount()
        caller = Caller(image.dir, SEED)
        for folder in ("d1", "d2", "d1/d2"):
            (image.dir / folder).mkdir()
        done = 0
        for number in range(ROUNDS):
            began = time.time() - 0.1  # the kernel's time of files goes in steps
            done += sum(caller.one() for _ in range(caller.random.choice([3, 30, 150])))
            if caller.random.random() < 0.3:
                command(BIN / "varve", "checkpoint", image.dir)
            sync_filesystem(image.dir)
            fsync_directory(image.dir)
            before, ended = state(image.dir), time.time()
            fsync_directory(image.dir)
            image.kill()
            image.mount()
            after = state(image.dir)
            self.assertEqual(sorted(before), sorted(after), f"round {number}")
            for path, (times, rest) in before.items():
                self.assertEqual(str(rest)[:2000], str(after[path][1])[:2000], f"round {number}: {path}")
                for was, is_now in zip(times, after[path][0]):  # of fallocate() the kernel and the daemon each take their own
                    if was != is_now:
                        self.assertTrue(began <= min(was, is_now) and max(was, is_now) <= ended, f"round {number}: {path}: {was}, {is_now}")
        self.assertGreater(done, ROUNDS)
        image.umount()
        image.check_all()


if __name__ == "__main__":
    main()
