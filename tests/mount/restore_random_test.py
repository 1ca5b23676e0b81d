#!/usr/bin/env python3
"""varve restore between random states of a tree: afterwards everything is what the snapshot has, as far as stat, lsattr, getfattr, contents and
holes show it. A round that fails prints its seed and what was done: with VARVE_TEST_SEED it is the first round, and the same again."""

import array
import ctypes
import fcntl
import hashlib
import stat
import struct

from snapshot_tools import *
from system_calls import *

ROUNDS = int(os.environ.get("VARVE_RESTORE_ROUNDS", "12"))
IMMUTABLE, APPEND, NODUMP, NOATIME = 0x10, 0x20, 0x40, 0x80
FLAGS = [0, 0, IMMUTABLE, APPEND, NODUMP, NOATIME, IMMUTABLE | NODUMP, APPEND | NOATIME]
SIZES = [0, 1, 4095, 4096, 4097, 20487, 100_000]
EDGES = [0, 1, 3073, 4095, 4096, 4097, 28323, 41197, 43700, 65536, 300_000]
KINDS = [stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK]
ACL = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in
                                      [(1, 6, 2**32 - 1), (2, 4, 7), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1), (32, 0, 2**32 - 1)])


def flags_of(fd):
    flags = array.array("L", [0])
    fcntl.ioctl(fd, FS_IOC_GETFLAGS, flags)
    return flags[0] & 0xFFFFFFFF


def blocks_of(path):
    """As the filesystem counts them now: the kernel's own number may be a second old."""
    buffer = ctypes.create_string_buffer(256)
    force_sync, no_follow, blocks = 0x2000, 0x100, 0x400
    checked(libc.statx(AT_FDCWD, os.fsencode(path), force_sync | no_follow, blocks, buffer))
    return struct.unpack_from("Q", buffer, 48)[0]


def pieces_of(fd, size):
    """Where data begins and ends."""
    pieces, at = [], 0
    while at < size:
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            break
        at = os.lseek(fd, begin, os.SEEK_HOLE)
        pieces.append((begin, at))
    return pieces


def facts(path, name, first):
    about = os.lstat(path)
    kind = stat.S_IFMT(about.st_mode)
    found = {"mode": oct(about.st_mode), "owner": (about.st_uid, about.st_gid), "mtime": about.st_mtime_ns, "rdev": about.st_rdev}
    found["xattrs"] = {key: os.getxattr(path, key, follow_symlinks=False) for key in os.listxattr(path, follow_symlinks=False)}
    if kind != stat.S_IFDIR:
        found["links"] = (about.st_nlink, first.setdefault(about.st_ino, name))
        found["size"], found["blocks"] = about.st_size, blocks_of(path)
    if kind == stat.S_IFLNK:
        found["target"] = os.readlink(path)
    if kind in (stat.S_IFREG, stat.S_IFDIR):
        fd = os.open(path, os.O_RDONLY | os.O_NOATIME)
        found["flags"] = flags_of(fd)
        if kind == stat.S_IFREG:
            found["pieces"] = pieces_of(fd, about.st_size)
            found["content"] = hashlib.sha256(os.pread(fd, about.st_size, 0)).hexdigest()
        os.close(fd)
    return found


class Tree:
    """Changes at random, of which some fail, as they should."""

    def __init__(self, top, seed):
        self.top, self.random, self.done = str(top), random.Random(seed), []
        self.of_files = [self.write, self.write, self.write, self.truncate, self.fallocate, self.fallocate, self.fallocate]
        self.of_names = [self.mkdir, self.special, self.symlink, self.link, self.rename, self.exchange, self.unlink, self.rmdir]
        self.of_inodes = [self.chmod, self.chown, self.utime, self.setxattr, self.removexattr, self.acl, self.flags]

    def change(self, times):
        for _ in range(times):
            kind = self.random.choices([self.of_files, self.of_names, self.of_inodes], [4, 3, 3])[0]
            before = len(self.done)
            try:
                self.random.choice(kind)()
            except OSError:
                del self.done[before:]

    def say(self, *words):
        self.done.append(" ".join(str(word).replace(self.top, "") for word in words))

    def path(self):
        return f"{self.top}/{self.random.choice(['', 'd/', 'd/', 'e/', 'd/e/'])}{self.random.choice('abcdefg')}"

    def file(self):
        return os.open(self.path_said(), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)

    def path_said(self):
        self.last = self.path()
        return self.last

    def on_file(self, act):
        fd = self.file()
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                act(fd)
                if self.random.random() < 0.3:
                    os.fsync(fd)
                    self.say("fsync", self.last)
        finally:
            os.close(fd)

    def edge(self):
        return self.random.choice(EDGES) + self.random.choice([0, 0, 1, 4096])

    def write(self):
        size, at = self.random.choice(SIZES), self.edge()
        data = self.random.randbytes(size)

        def act(fd):
            os.pwrite(fd, data, at)
            self.say("write", self.last, at, size)
        self.on_file(act)

    def truncate(self):
        size, again = self.edge(), self.random.random() < 0.3

        def act(fd):
            wanted = os.fstat(fd).st_size if again else size
            os.ftruncate(fd, wanted)
            self.say("truncate", self.last, wanted)
        self.on_file(act)

    def fallocate(self):
        mode, at, length = self.random.choice([0, 1, 1, 3, 3, 0x10, 0x11]), self.edge(), self.random.choice(SIZES[1:] + [100])

        def act(fd):
            fallocate(fd, mode, at, length)
            self.say("fallocate", self.last, hex(mode), at, length)
        self.on_file(act)

    def mkdir(self):
        path = self.random.choice([self.path(), self.top + "/d", self.top + "/e", self.top + "/d/e"])
        os.mkdir(path)
        self.say("mkdir", path)

    def special(self):
        path, kind, device = self.path(), self.random.choice(KINDS), os.makedev(self.random.randrange(1, 5), self.random.randrange(5))
        os.mknod(path, kind | 0o640, device if kind in KINDS[2:] else 0)
        self.say("mknod", path, oct(kind))

    def symlink(self):
        path, target = self.path(), "x" * self.random.choice([1, 59, 60, 300, 4000])
        os.symlink(target, path)
        self.say("symlink", path, len(target))

    def two(self, call, name):
        source, target = self.path(), self.path()
        call(source, target)
        self.say(name, source, target)

    def link(self):
        self.two(lambda source, target: os.link(source, target, follow_symlinks=False), "link")

    def rename(self):
        self.two(os.rename, "rename")

    def exchange(self):
        self.two(lambda source, target: renameat2(source, target, RENAME_EXCHANGE), "exchange")

    def one(self, call, name, *more):
        path = self.path()
        call(path)
        self.say(name, path, *more)

    def unlink(self):
        self.one(os.unlink, "unlink")

    def rmdir(self):
        self.one(os.rmdir, "rmdir")

    def chmod(self):
        mode = self.random.randrange(0o10000)
        self.one(lambda path: None if os.path.islink(path) else os.chmod(path, mode), "chmod", oct(mode))

    def chown(self):
        owner = self.random.choice([0, 7]), self.random.choice([0, 8])
        self.one(lambda path: os.chown(path, *owner, follow_symlinks=False), "chown", owner)

    def utime(self):
        times = self.random.randrange(2 * 10**18), self.random.randrange(2 * 10**18)
        self.one(lambda path: os.utime(path, ns=times, follow_symlinks=False), "utime", times)

    def setxattr(self):
        name, value = self.random.choice(["user.a", "user.b", "trusted.a", "security.a"]), self.random.randbytes(self.random.choice([0, 5, 5000]))
        self.one(lambda path: os.setxattr(path, name, value, follow_symlinks=False), "setxattr", name, len(value))

    def removexattr(self):
        name = self.random.choice(["user.a", "user.b", "trusted.a", "security.a", "system.posix_acl_access", "system.posix_acl_default"])
        self.one(lambda path: os.removexattr(path, name, follow_symlinks=False), "removexattr", name)

    def acl(self):
        name = self.random.choice(["system.posix_acl_access", "system.posix_acl_default"])
        self.one(lambda path: os.setxattr(path, name, ACL, follow_symlinks=False), name)

    def flags(self):
        flags = self.random.choice(FLAGS)
        self.one(lambda path: set_flags(path, flags), "flags", hex(flags))

    def clear(self):
        for path in [self.top, *Path(self.top).rglob("*")]:
            about = os.lstat(path)
            if stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode):
                set_flags(path, 0)
        for name in os.listdir(self.top):
            path = f"{self.top}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


class RestoreRandom(MountTest):
    size = "256M"

    def setUp(self):
        if not IS_ROOT:
            self.skipTest("only root can give files to others")
        super().setUp()

    def state(self):
        first = {}
        names = sorted(str(path.relative_to(self.dir)) for path in self.dir.rglob("*"))
        return {name: facts(self.dir / name, name, first) for name in names}

    def compare(self, what, expected, tree, seed):
        found, wrong = self.state(), []
        for name in sorted({*expected, *found}):
            then, now = expected.get(name), found.get(name)
            if then is None or now is None:
                wrong.append(f"{name}: {'is new' if then is None else 'is missing'}")
            else:
                wrong += [f"{name}: {key}: {then.get(key)} became {now.get(key)}" for key in {*then, *now} if then.get(key) != now.get(key)]
        if wrong:
            self.fail(f"{what}: again with VARVE_TEST_SEED={seed}\n  " + "\n  ".join([*wrong, "", *tree.done]))

    def one_round(self, seed):
        tree = Tree(self.dir, seed)
        states = {}
        for name in ("one", "two"):
            tree.change(tree.random.choice([5, 20, 60]))
            snapshot("create", self.dir, name)
            states[name] = self.state()
            tree.say("snapshot", name)
        if tree.random.random() < 0.5:
            tree.change(20)
        for name in ("one", "two", "one"):
            tree.say("restore", name)
            done = varve("restore", "--delete", self.dir, "--from", name)
            self.compare(f"restored to {name}:\n{done.stdout}", states[name], tree, seed)
        again = varve("restore", "--delete", self.dir, "--from", "one").stdout
        if " 0 B written" not in again:
            self.fail(f"restored once more: again with VARVE_TEST_SEED={seed}\n{again}\n  " + "\n  ".join(tree.done))
        for name in states:
            snapshot("delete", self.dir, name)
        tree.clear()

    def test_random_states(self):
        for i in range(ROUNDS):
            self.one_round(SEED + i)
        self.image.umount()
        self.image.fsck()


main()
