#!/usr/bin/env python3
"""POSIX ACLs by setfacl and getfacl: who may do what, and what is inherited."""

import stat

from harness import *


def acl_of(path):
    """getfacl's entries, without the names."""
    lines = command("getfacl", "-cpn", path).stdout.split("\n")
    return {line.split("\t")[0] for line in lines if line}


def as_user(uid, *words, groups=()):
    """Exit status of a command of another user."""
    done = subprocess.run([str(w) for w in words], user=uid, group=uid, extra_groups=groups, capture_output=True)
    return done.returncode


class Acls(MountTest):
    size = "128M"
    options = "allow_other"

    def setUp(self):
        super().setUp()
        self.image.folder.chmod(0o755)

    def test_set_and_get(self):
        path = self.dir / "f"
        path.touch(0o640)
        path.chmod(0o640)
        command("setfacl", "-m", "u:1234:rwx,g:4321:r", path)
        want = {"user::rw-", "user:1234:rwx", "group::r--", "group:4321:r--", "mask::rwx", "other::---"}
        self.assertEqual(acl_of(path), want)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o670)
        path.chmod(0o600)
        self.assertIn("mask::---", acl_of(path))
        self.image.remount(self.options)
        self.assertIn("user:1234:rwx", {line.split(" ")[0] for line in acl_of(path)})
        command("setfacl", "-b", path)
        self.assertEqual(acl_of(path), {"user::rw-", "group::---", "other::---"})
        self.assertEqual(os.listxattr(path), [])

    def test_inheritance(self):
        top = self.dir / "d"
        top.mkdir(0o755)
        command("setfacl", "-d", "-m", "u:1234:rwx,g::rx,o::-", top)
        old = os.umask(0o077)  # a default ACL replaces it
        (top / "file").touch(0o666)
        (top / "below").mkdir(0o777)
        os.mkfifo(top / "below/fifo", 0o666)
        os.symlink("target", top / "link")
        unnamed = os.open(top, os.O_TMPFILE | os.O_RDWR, 0o666) if LINUX >= (6, 1) else None
        (self.dir / "outside").touch(0o666)
        os.umask(old)
        self.assertEqual(stat.S_IMODE((self.dir / "outside").stat().st_mode), 0o600)
        if unnamed is not None:
            self.assertEqual(stat.S_IMODE(os.fstat(unnamed).st_mode), 0o660)
            os.close(unnamed)
        for _ in range(2):
            self.assertEqual(acl_of(top / "file"), {"user::rw-", "user:1234:rwx\t#effective:rw-".split("\t")[0],
                                                    "group::r-x", "mask::rw-", "other::---"})
            below = acl_of(top / "below")
            self.assertLessEqual({"user:1234:rwx", "default:user:1234:rwx", "default:mask::rwx", "mask::rwx"}, below)
            self.assertEqual(stat.S_IMODE((top / "below/fifo").stat().st_mode), 0o660)
            self.image.remount(self.options)
        command("setfacl", "-k", top)
        command("setfacl", "-k", top)  # nothing left to remove
        (top / "later").touch(0o644)
        self.assertNotIn("mask::r--", acl_of(top / "later"))

    def test_who_may(self):
        if not IS_ROOT:
            self.skipTest("not root")
        path = self.dir / "f"
        path.write_text("text")
        path.chmod(0o600)
        self.assertNotEqual(as_user(1234, "cat", path), 0)
        command("setfacl", "-m", "u:1234:r", path)
        self.assertEqual(as_user(1234, "cat", path), 0)
        self.assertNotEqual(as_user(1235, "cat", path), 0)
        self.assertNotEqual(as_user(1234, "dd", "if=/dev/zero", f"of={path}", "count=1"), 0)
        command("setfacl", "-m", "g:77:rw", path)
        self.assertEqual(as_user(1235, "cat", path, groups=[77]), 0)
        command("setfacl", "-m", "m::-", path)
        self.assertNotEqual(as_user(1234, "cat", path), 0)
        self.assertNotEqual(as_user(1234, "setfacl", "-m", "u:1234:rwx", path), 0, "only the owner may")

    def test_setgid_and_acls(self):
        if not IS_ROOT:
            self.skipTest("not root")
        path = self.dir / "f"
        path.touch()
        os.chown(path, 1234, 55)
        path.chmod(0o2775)
        self.assertEqual(as_user(1234, "setfacl", "-m", "u:9:r", path), 0)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o775, "not in the file's group: setgid goes")
        path.chmod(0o2775)
        command("setfacl", "-m", "u:9:rx", path)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o2775)
        (self.dir / "d").mkdir()
        os.chown(self.dir / "d", 1234, 55)
        (self.dir / "d").chmod(0o2775)
        self.assertEqual(as_user(1234, "setfacl", "-d", "-m", "u:9:r", self.dir / "d"), 0)
        self.assertEqual(stat.S_IMODE((self.dir / "d").stat().st_mode), 0o2775, "a default ACL is none of its own mode")

    def test_copies_keep_acls(self):
        source = self.dir / "s"
        source.mkdir()
        (source / "f").write_text("x")
        command("setfacl", "-m", "u:7:r", source / "f")
        command("setfacl", "-d", "-m", "g:8:rw", source)
        command("cp", "-a", source, self.dir / "t")
        self.assertEqual(acl_of(self.dir / "t"), acl_of(source))
        self.assertEqual(acl_of(self.dir / "t/f"), acl_of(source / "f"))


if __name__ == "__main__":
    if not shutil.which("setfacl"):
        skip("no setfacl")
    main()
