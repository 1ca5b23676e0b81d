#!/usr/bin/env python3
"""Id-mapped mounts, as containers with user namespaces have them (Linux 6.12): owners are shifted both ways, and who may do what, and what a
change takes away, goes by the shifted ones."""

import ctypes
import errno
import fcntl
import stat
import struct

from harness import *
from permissions_test import as_user, mode
from system_calls import AT_FDCWD, checked, fallocate, libc, set_flags

OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442  # system calls, on every machine
OPEN_TREE_CLONE, AT_EMPTY_PATH, FROM_EMPTY_PATH, IDMAP = 1, 0x1000, 4, 0x100000
NODUMP, IMMUTABLE = 0x40, 0x10
SHIFT, ANN = 100_000, 1234


def mapping_namespace(shift):
    """A descriptor of a user namespace in which 0 is `shift` outside."""
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            checked(libc.unshare(0x10000000))  # CLONE_NEWUSER
            os.write(ready[1], b"x")
            os.read(go[0], 1)
        finally:
            os._exit(0)
    try:
        os.close(ready[1])
        os.read(ready[0], 1)
        for kind in ("uid", "gid"):
            Path(f"/proc/{child}/{kind}_map").write_text(f"0 {shift} 65536")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    finally:
        os.write(go[1], b"x")
        os.waitpid(child, 0)
        for fd in (ready[0], *go):
            os.close(fd)


def mount_mapped(source, target, namespace):
    tree = checked(libc.syscall(OPEN_TREE, AT_FDCWD, os.fsencode(source), OPEN_TREE_CLONE))
    try:
        wanted = struct.pack("QQQQ", IDMAP, 0, 0, namespace)
        checked(libc.syscall(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, wanted, ctypes.c_size_t(len(wanted))))
        checked(libc.syscall(MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(target), FROM_EMPTY_PATH))
    finally:
        os.close(tree)


class IdMapped(MountTest):
    size = "64M"
    options = "allow_other"

    def setUp(self):
        super().setUp()
        if not IS_ROOT:
            self.skipTest("needs root")
        if "allow_idmap" not in self.image.status()["mount"]["features"]:
            self.skipTest("this kernel maps no ids of FUSE (Linux 6.12)")
        self.image.folder.chmod(0o755)
        self.dir.chmod(0o777)
        try:
            namespace = mapping_namespace(SHIFT)
        except OSError as error:
            self.skipTest(f"no user namespaces: {error}")
        self.mapped = self.image.folder / "mapped"
        self.mapped.mkdir()
        mount_mapped(self.dir, self.mapped, namespace)
        os.close(namespace)
        self.addCleanup(lambda: command("umount", self.mapped, check=False))

    def tearDown(self):
        command("umount", self.mapped, check=False)
        super().tearDown()

    def owner(self, path):
        status = os.lstat(path)
        return status.st_uid, status.st_gid

    def test_owners_are_shifted_both_ways(self):
        (self.dir / "old").touch()
        os.chown(self.dir / "old", ANN, 77)
        self.assertEqual(self.owner(self.mapped / "old"), (SHIFT + ANN, SHIFT + 77))
        os.chown(self.mapped / "old", SHIFT + 5, SHIFT + 6)
        self.assertEqual(self.owner(self.dir / "old"), (5, 6))
        with self.assertRaises(OSError) as refused:
            os.chown(self.mapped / "old", 5, 5)
        self.assertEqual(refused.exception.errno, errno.EOVERFLOW)

    def test_whatever_is_made_belongs_to_the_shifted_one(self):
        makers = {"file": lambda path: path.touch(), "folder": lambda path: path.mkdir(), "link": lambda path: path.symlink_to("x"),
                  "pipe": os.mkfifo}
        for kind, make in makers.items():
            self.assertEqual(as_user(SHIFT + ANN, lambda: make(self.mapped / kind)), 0, kind)
            self.assertEqual(self.owner(self.dir / kind), (ANN, ANN), kind)
            # The original mount goes on as before, and so does one whose owner has no number in the mapped one.
            self.assertEqual(as_user(ANN, lambda: make(self.dir / f"{kind} beside")), 0, kind)
            self.assertEqual(self.owner(self.dir / f"{kind} beside"), (ANN, ANN), kind)
            self.assertEqual(as_user(ANN, lambda: make(self.mapped / f"{kind} not")), errno.EOVERFLOW, kind)

    def test_the_shifted_owner_may_and_others_may_not(self):
        (self.dir / "f").touch()
        os.chown(self.dir / "f", ANN, ANN)
        (self.dir / "f").chmod(0o600)
        for user, expected in ((SHIFT + ANN, 0), (ANN, errno.EACCES)):
            self.assertEqual(as_user(user, lambda: (self.mapped / "f").read_bytes()), expected, user)
            self.assertEqual(as_user(user, lambda: set_flags(self.mapped / "f", NODUMP)), expected, user)
            self.assertEqual(as_user(user, lambda: (self.mapped / "f").chmod(0o600)), expected and errno.EPERM, user)
        self.assertEqual(as_user(SHIFT + ANN, lambda: set_flags(self.mapped / "f", IMMUTABLE)), errno.EPERM)
        (self.dir / "f").chmod(0o644)
        self.assertEqual(as_user(ANN, lambda: set_flags(self.dir / "f", NODUMP)), 0)
        self.assertEqual(as_user(ANN + 1, lambda: set_flags(self.dir / "f", NODUMP)), errno.EPERM)

    def test_privileges_go_with_changes_of_users_and_stay_with_those_of_root(self):
        def allocate(path):
            with open(path, "r+b") as file:
                fallocate(file.fileno(), 0, 0, 4096)

        def write(path):
            with open(path, "r+b", buffering=0) as file:
                file.write(b"x")

        for top, ann in ((self.dir, ANN), (self.mapped, SHIFT + ANN)):
            for change in (allocate, write, lambda path: os.chown(path, -1, os.stat(path).st_gid)):
                for user, left in ((ann, 0o755), (0, 0o6755)):
                    path = top / "f"
                    (self.dir / "f").write_bytes(b"abc")  # root's 0 has no number in the mapped one
                    os.chown(path, ann, ann)
                    path.chmod(0o6755)
                    if user == 0 and change not in (allocate, write):
                        left = 0o755  # of what is executed, chown takes it for root, too
                    self.assertEqual(as_user(user, lambda: change(path)), 0)
                    self.assertEqual(oct(mode(path)), oct(left), (top, change, user))
                    path.unlink()

    def test_root_controls_by_either_mount_and_users_by_none(self):
        for top in (self.dir, self.mapped):
            self.assertEqual(command(BIN / "varve", "checkpoint", top, check=False).returncode, 0)
            for user in (ANN, SHIFT):
                self.assertNotEqual(as_user(user, lambda: fcntl.ioctl(os.open(top, os.O_RDONLY), 0xC0185879, bytearray(24))), 0)  # FITRIM


if __name__ == "__main__":
    main()
