#!/usr/bin/env python3
"""Programs that people use, and their own checks of what they have stored."""

import sqlite3
import stat

from harness import *


def everything_in(top):
    """Path.rglob follows symbolic links in some versions of Python, and chokes on one with an impossible target."""
    for folder, folders, files in os.walk(top):
        yield from (Path(folder, name) for name in folders + files)


class Applications(MountTest):
    def test_git_clone(self):
        source = ROOT
        if not shutil.which("git") or command("git", "-C", ROOT, "rev-parse", check=False).returncode:
            source = self.image.folder / "source"
            if not shutil.which("git"):
                self.skipTest("no git")
            command("git", "init", "-q", source)
            shutil.copytree(ROOT / "src", source / "src")
            command("git", "-C", source, "add", "-A")
            command("git", "-C", source, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "-m", "all")
        clone = self.dir / "clone"
        command("git", "clone", "-q", "--no-local", source, clone)
        command("git", "-C", clone, "fsck", "--full", "--strict")
        self.assertEqual(command("git", "-C", clone, "status", "--porcelain").stdout, "")
        for i in range(20):
            (clone / f"new{i}").write_text(str(i) * 1000)
            command("git", "-C", clone, "add", "-A")
            command("git", "-C", clone, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "-m", str(i))
        command("git", "-C", clone, "gc", "-q", "--prune=now")
        self.image.remount()
        command("git", "-C", clone, "fsck", "--full", "--strict")
        self.assertEqual(command("git", "-C", clone, "status", "--porcelain").stdout, "")

    def test_sqlite(self):
        for mode in ("delete", "truncate", "persist", "wal"):
            path = self.dir / f"{mode}.db"
            db = sqlite3.connect(path, isolation_level=None)
            db.execute(f"PRAGMA journal_mode={mode}")
            db.execute("PRAGMA synchronous=FULL")
            db.execute("CREATE TABLE t(i INTEGER PRIMARY KEY, v BLOB)")
            db.execute("CREATE INDEX x ON t(v)")
            generator = random.Random(SEED)
            for i in range(200):
                db.execute("BEGIN")
                for _ in range(5):
                    db.execute("INSERT INTO t(v) VALUES(?)", (generator.randbytes(generator.randrange(2000)),))
                if i % 10 == 9:
                    db.execute("DELETE FROM t WHERE i % 7 = ?", (i % 7,))
                db.execute("ROLLBACK" if i % 5 == 4 else "COMMIT")
            db.execute("VACUUM")
            count = db.execute("SELECT count(*) FROM t").fetchone()
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            db.close()
            self.image.remount()
            db = sqlite3.connect(path)
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            self.assertEqual(db.execute("SELECT count(*) FROM t").fetchone(), count)
            db.close()

    def make_tree(self, top):
        """Everything that tar can carry."""
        top.mkdir()
        (top / "empty").touch()
        (top / "directory/below").mkdir(parents=True)
        fill_random(top / "directory/below/data", 300_001, sync=False)
        os.link(top / "directory/below/data", top / "hard-link")
        os.symlink("directory/below/data", top / "symbolic-link")
        os.symlink("x" * 3000, top / "long-link")
        (top / ("n" * 255)).write_text("long name")
        (top / "näme with blank\nand newline").write_text("odd name")
        with open(top / "sparse", "wb") as file:
            for offset in (0, 5 * MIB, 64 * MIB):
                file.seek(offset)
                file.write(b"island" * 1000)
            file.truncate(100 * MIB)
        os.setxattr(top / "empty", "user.note", b"value")
        os.setxattr(top / "directory", "user.big", os.urandom(3000))
        os.mkfifo(top / "fifo")
        if IS_ROOT:
            os.mknod(top / "device", 0o620 | 0o020000, os.makedev(240, 7))
            os.chown(top / "empty", 12345, 54321)
        os.chmod(top / "hard-link", 0o604)
        os.chmod(top / "directory", 0o1775)
        for number, path in enumerate(sorted(everything_in(top), reverse=True)):
            os.utime(path, ns=(10**18 + number, 10**18 + 7 * number + 1), follow_symlinks=False)

    def listing(self, top):
        """name -> everything that must be the same in a copy"""
        result = {}
        first_name = {}
        for path in sorted(everything_in(top)):
            s = path.lstat()
            name = path.relative_to(top).as_posix()
            content = path.read_bytes() if not path.is_symlink() and path.is_file() else None
            link = os.readlink(path) if path.is_symlink() else None
            xattrs = {n: os.getxattr(path, n, follow_symlinks=False)
                      for n in os.listxattr(path, follow_symlinks=False) if n.startswith("user.")}
            same_as = first_name.setdefault(s.st_ino, name)
            result[name] = (s.st_mode, s.st_nlink, s.st_uid, s.st_gid, s.st_rdev, s.st_mtime_ns,
                            None if stat.S_ISDIR(s.st_mode) else s.st_size, hash(content), link, xattrs, same_as)
        return result

    def test_tar_round_trip(self):
        source, copy = self.dir / "source", self.dir / "copy"
        self.make_tree(source)
        want = self.listing(source)
        archive = self.image.folder / "tree.tar"
        flags = ["--format=posix", "--xattrs", "--xattrs-include=user.*", "--numeric-owner"]
        command("tar", *flags, "--sparse", "-cf", archive, "-C", source, ".")
        self.assertLess(archive.stat().st_size, 20 * MIB, "holes were stored")
        copy.mkdir()
        command("tar", *flags, "-p", "-xf", archive, "-C", copy)
        self.assertEqual(self.listing(copy), want)
        self.assertLess((copy / "sparse").stat().st_blocks * 512, 10 * MIB)
        self.image.remount()
        self.assertEqual(self.listing(source), want)
        self.assertEqual(self.listing(copy), want)
        command("cp", "-a", "--sparse=always", copy, self.dir / "third")
        self.assertEqual(self.listing(self.dir / "third"), want)
        shutil.rmtree(copy)
        shutil.rmtree(self.dir / "third")

    def has_io_uring(self):
        return command("fio", "--name=try", "--ioengine=io_uring", "--rw=write", "--size=4k", f"--directory={self.image.folder}",
                       check=False, cwd=self.image.folder).returncode == 0

    def test_fio_verify(self):
        if not shutil.which("fio"):
            self.skipTest("no fio")
        for name, options in {
            "buffered": ["--rw=randwrite", "--bsrange=512-64k", "--ioengine=psync"],
            "direct": ["--rw=randwrite", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=16"],
            "io_uring": ["--rw=randwrite", "--bsrange=512-32k", "--ioengine=io_uring", "--iodepth=16"],
            "io_uring direct": ["--rw=randwrite", "--bs=4k", "--direct=1", "--ioengine=io_uring", "--iodepth=16",
                                "--registerfiles=1"],
            # fio 3.39 cannot fsync with fixed buffers, on no filesystem.
            "io_uring fixed": ["--rw=randwrite", "--bs=4k", "--direct=1", "--ioengine=io_uring", "--iodepth=16",
                               "--fixedbufs=1", "--end_fsync=0"],
            "mmap": ["--rw=randwrite", "--bs=4k", "--ioengine=mmap"],
            "unaligned": ["--rw=randwrite", "--bs=6k", "--io_size=32M", "--ioengine=psync", "--fsync=50"],
            "trims": ["--rw=randwrite", "--bs=16k", "--ioengine=psync", "--fallocate=keep"],
        }.items():
            if name.startswith("io_uring") and not self.has_io_uring():
                continue
            with self.subTest(name):
                command("fio", f"--name={name.replace(' ', '-')}", f"--directory={self.dir}", "--size=32M", "--io_size=64M",
                        "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", "--end_fsync=1",
                        f"--randseed={SEED}", *options, timeout=300, cwd=self.image.folder)
                sync_filesystem(self.dir)
        self.image.remount()
        command("fio", "--name=buffered", f"--directory={self.dir}", "--size=32M", "--rw=read", "--bs=64k", "--numjobs=2",
                timeout=300)

    def test_make_and_run_a_program(self):
        if not shutil.which("cc"):
            self.skipTest("no compiler")
        (self.dir / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
        command("cc", "-g", "-o", self.dir / "hello", self.dir / "hello.c")
        self.assertEqual(command(self.dir / "hello").stdout, "hello\n")


if __name__ == "__main__":
    main()
