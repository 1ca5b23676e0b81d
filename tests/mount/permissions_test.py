#!/usr/bin/env python3
"""Who may do what, as other users see it: mode bits, sticky and setgid directories, ownership, what changes of owner and
contents take away. Needs root, to become the others."""

import errno
import fcntl
import stat
import struct

from harness import *

ANN, BOB, TEAM = 1234, 1235, 77
FS_IOC32_SETFLAGS, IMMUTABLE = 0x40046602, 0x10
# FUSE refuses a change by the interface that mount(8) would use since util-linux 2.39.
OLD_MOUNT = os.environ | {"LIBMOUNT_FORCE_MOUNT2": "always"}
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)


def as_user(uid, action, groups=()):
    """errno with which the action fails for that user, or 0."""
    pid = os.fork()
    if pid == 0:
        status = 255
        try:
            os.setgroups(list(groups))
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            action()
            status = 0
        except OSError as error:
            status = error.errno
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


class Permissions(MountTest):
    size = "64M"
    options = "allow_other"

    def setUp(self):
        super().setUp()
        self.image.folder.chmod(0o755)
        self.dir.chmod(0o755)
        self.home = self.dir / "home"
        self.home.mkdir()
        self.home.chmod(0o777)

    def made_by(self, uid, path, permissions=0o644):
        path.touch()
        os.chown(path, uid, uid)
        path.chmod(permissions)
        return path

    def test_owner_group_and_others(self):
        """The first class that fits decides, also when a later one would allow more."""
        path = self.made_by(ANN, self.home / "f", 0o046)
        os.chown(path, ANN, TEAM)
        path.chmod(0o046)
        def read():
            os.close(os.open(path, os.O_RDONLY))
        def write():
            os.close(os.open(path, os.O_WRONLY))
        self.assertEqual(as_user(ANN, read, [TEAM]), errno.EACCES)
        self.assertEqual(as_user(BOB, read, [TEAM]), 0)
        self.assertEqual(as_user(BOB, write, [TEAM]), errno.EACCES)
        self.assertEqual(as_user(BOB, write), 0)
        self.assertFalse(os.access(path, os.X_OK), "root may execute only what somebody may")

    def test_directories(self):
        """Write without search permits nothing; search without read lets in a user that knows the name."""
        (self.home / "d").mkdir()
        self.made_by(ANN, self.home / "d/f")
        for bits, look, listing, new in ((0o711, 0, errno.EACCES, errno.EACCES), (0o744, errno.EACCES, 0, errno.EACCES),
                                         (0o722, errno.EACCES, errno.EACCES, errno.EACCES), (0o733, 0, errno.EACCES, 0)):
            (self.home / "d").chmod(bits)
            self.assertEqual(as_user(BOB, lambda: os.stat(self.home / "d/f")), look, oct(bits))
            self.assertEqual(as_user(BOB, lambda: os.listdir(self.home / "d")), listing, oct(bits))
            self.assertEqual(as_user(BOB, lambda: os.mkdir(self.home / "d/new")), new, oct(bits))

    def test_sticky(self):
        """In a sticky directory only the owners of file and directory remove, rename and replace."""
        self.home.chmod(0o1777)
        for other, allowed in ((ANN, 0), (BOB, errno.EPERM)):
            for action in (os.unlink, lambda p: os.rename(p, self.home / "g"), lambda p: os.rename(self.own(other), p)):
                path = self.made_by(ANN, self.home / "f")
                self.assertEqual(as_user(other, lambda: action(path)), allowed)
        os.chown(self.home, BOB, BOB)
        path = self.made_by(ANN, self.home / "f")
        self.assertEqual(as_user(BOB, path.unlink), 0, "the directory is theirs")

    def own(self, uid):
        path = self.home / f"of{uid}"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        return path

    def test_setgid_directory(self):
        """What is made in it belongs to its group, directories hand that on; files lose setgid for a user that is not in it."""
        os.chown(self.home, 0, TEAM)
        self.home.chmod(0o2777)
        for uid, groups, kept in ((ANN, [TEAM], True), (BOB, [], False)):
            file, below = self.home / f"f{uid}", self.home / f"d{uid}"
            def make():
                os.umask(0)
                os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o2775))
                os.mkdir(below, 0o755)
            self.assertEqual(as_user(uid, make, groups), 0)
            self.assertEqual((file.stat().st_uid, file.stat().st_gid, below.stat().st_gid), (uid, TEAM, TEAM))
            self.assertEqual(mode(below), 0o2755)
            self.assertEqual(mode(file), 0o2775 if kept else 0o775)
        self.image.remount(self.options)
        self.assertEqual(mode(self.home / f"d{ANN}"), 0o2755)

    def test_changes_of_owner(self):
        path = self.made_by(ANN, self.home / "f", 0o6755)
        self.assertEqual(as_user(ANN, lambda: os.chown(path, BOB, -1)), errno.EPERM)
        self.assertEqual(as_user(ANN, lambda: os.chown(path, -1, TEAM)), errno.EPERM, "not in that group")
        self.assertEqual(as_user(BOB, lambda: os.chmod(path, 0o777)), errno.EPERM)
        self.assertEqual(as_user(ANN, lambda: os.chown(path, -1, TEAM), [TEAM]), 0)
        self.assertEqual((path.stat().st_gid, mode(path)), (TEAM, 0o755))
        self.assertEqual(as_user(ANN, lambda: os.chmod(path, 0o2755)), 0)
        self.assertEqual(mode(path), 0o755, "setgid for a group that is not the caller's")

    def test_times(self):
        """Anybody who may write may say `now`; only the owner another time."""
        path = self.made_by(ANN, self.home / "f", 0o666)
        self.assertEqual(as_user(BOB, lambda: os.utime(path)), 0)
        self.assertEqual(as_user(BOB, lambda: os.utime(path, (1, 1))), errno.EPERM)
        path.chmod(0o444)
        self.assertEqual(as_user(BOB, lambda: os.utime(path)), errno.EACCES)
        self.assertEqual(as_user(ANN, lambda: os.utime(path, (1, 1))), 0)

    def test_attributes_of_others(self):
        path = self.made_by(ANN, self.home / "f", 0o644)
        os.setxattr(path, "trusted.secret", b"x")
        self.assertEqual(as_user(ANN, lambda: os.getxattr(path, "trusted.secret")), errno.ENODATA)
        self.assertEqual(os.listxattr(path), ["trusted.secret"])
        words = [sys.executable, "-c", "import os, sys; print(os.listxattr(sys.argv[1]))", path]
        reduced = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
        self.assertEqual(command(*reduced, *words).stdout.strip(), "[]", "uid 0 without CAP_SYS_ADMIN")
        self.assertEqual(as_user(ANN, lambda: os.setxattr(path, "trusted.more", b"x")), errno.EPERM)
        self.assertEqual(as_user(BOB, lambda: os.setxattr(path, "user.x", b"x")), errno.EACCES)
        self.assertEqual(as_user(ANN, lambda: os.setxattr(path, "security.capability", CAPABILITY)), errno.EPERM)
        self.assertEqual(as_user(ANN, lambda: os.setxattr(path, "user.x", b"x")), 0)
        self.home.chmod(0o1777)
        self.assertEqual(as_user(BOB, lambda: os.setxattr(self.home, "user.x", b"x")), errno.EPERM, "sticky")
        os.symlink("f", self.home / "link")
        with self.assertRaises(PermissionError):
            os.setxattr(self.home / "link", "user.x", b"x", follow_symlinks=False)

    def test_an_open_file_keeps_its_rights(self):
        path = self.made_by(ANN, self.home / "f", 0o666)
        def write():
            fd = os.open(path, os.O_RDWR)
            os.write(fd, b"before")
            os.chmod(path, 0)
            os.write(fd, b" and after")
            assert os.pread(fd, 20, 0) == b"before and after"
            os.close(fd)
            os.open(path, os.O_RDONLY)
        self.assertEqual(as_user(ANN, write), errno.EACCES)
        self.assertEqual(path.read_bytes(), b"before and after")

    def test_control(self):
        """What costs others something is for administrators: uid 0 of a container, without CAP_SYS_ADMIN or with it only in a
        user namespace of its own, is none."""
        controls = [["fstrim", self.dir], *([BIN / "varve", word, self.dir] for word in ("trim", "checkpoint", "scrub")),
                    [BIN / "varve", "tune", self.dir, "strategy=adaptive"]]
        reduced = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
        limits = [reduced]
        if command("unshare", "-U", "-r", "true", check=False).returncode == 0:
            limits.append(["unshare", "-U", "-r"])
        for words in controls:
            for limit in limits:
                done = command(*limit, *words, check=False)
                self.assertNotEqual(done.returncode, 0, [*limit, *words])
                self.assertRegex(done.stderr, "(?i)not permitted|only for root", [*limit, *words])
            command(*words)
        command(*reduced, BIN / "varve", "status", self.dir)

    def test_flags_by_the_32_bit_number(self):
        """From a 64-bit program: the kernel does not know it there, and so does not look which user asks, or on which mount."""
        path = self.dir / "f"
        path.touch()
        def set_immutable():
            with open(path, "rb") as file:
                fcntl.ioctl(file, FS_IOC32_SETFLAGS, struct.pack("i", IMMUTABLE))
        self.assertEqual(as_user(0, set_immutable), errno.ENOTTY)
        command("mount", "-i", "-o", "remount,ro", self.dir, env=OLD_MOUNT)
        self.assertEqual(as_user(0, set_immutable), errno.ENOTTY)
        command("mount", "-i", "-o", "remount,rw", self.dir, env=OLD_MOUNT)
        without = ["setpriv", "--bounding-set=-linux_immutable", "--inh-caps=-linux_immutable"]
        self.assertNotEqual(command(*without, "chattr", "+i", path, check=False).returncode, 0)
        path.unlink()


if __name__ == "__main__":
    if not IS_ROOT:
        skip("not root")
    main()
