#!/usr/bin/env python3
"""What snapshots keep, read in DIR/.varve-snapshots while the filesystem is in use."""

from snapshot_tools import *
from system_calls import *

import errno
import mmap
import threading


class Beside(SnapshotTest):
    """DIR/.varve-snapshots/NAME, in a mount that goes on."""

    def kept(self, *parts):
        return self.dir.joinpath(".varve-snapshots", *parts)

    def asked(self, path, request, room):
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return fcntl.ioctl(file, request, bytes(room))
        finally:
            os.close(file)

    def test_flags_are_those_of_then(self):
        get_flags, get_version, get_xflags, set_flags, no_dump = 0x80086601, 0x80087601, 0x801C581F, 0x40086602, 0x40
        file, folder = self.dir / "f", self.dir / "d"
        file.touch()
        folder.mkdir()
        command("chattr", "+d", file, folder)
        snapshot("create", self.dir, "first")
        command("chattr", "-d", file)
        for path in (self.kept("first", "f"), self.kept("first", "d")):
            self.assertEqual(struct.unpack("l", self.asked(path, get_flags, 8))[0], no_dump)
            self.assertTrue(struct.unpack("I24x", self.asked(path, get_xflags, 28))[0] & 0x80)
        self.assertEqual(self.asked(file, get_flags, 8), bytes(8))
        self.assertEqual(self.asked(self.kept("first", "f"), get_version, 8), self.asked(file, get_version, 8))
        self.assertIn("d", command("lsattr", self.kept("first", "f")).stdout.split()[0])
        self.assertEqual(command("lsattr", "-R", self.kept()).stderr, "")
        self.assertEqual(command("lsattr", "-d", self.kept()).stderr, "")
        with self.assertRaises(OSError):
            self.asked(self.kept("first", "f"), set_flags, 8)

    def test_is_what_was_there(self):
        self.fill(1)
        before = self.tree()
        snapshot("create", self.dir, "first")
        shutil.rmtree(self.dir / "d1")
        self.fill(2)
        (self.dir / "later").write_text("later")
        self.assertNotIn(".varve-snapshots", os.listdir(self.dir))
        self.assertEqual(os.listdir(self.kept()), ["first"])
        self.assertEqual(self.tree(self.kept("first")), before)
        self.assertFalse(self.kept("first", "later").exists())
        self.assertFalse(self.kept("none").exists())
        self.assertEqual(os.getxattr(self.kept("first", "d1/f2"), "user.of"), b"1")
        self.assertEqual(os.listxattr(self.kept("first", "d1/f2")), ["user.of"])
        self.assertEqual(os.readlink(self.kept("first", "d1/symbolic")), "f1")
        os.chdir(self.kept("first", "d1"))
        os.chdir("../../first/d1")
        self.assertEqual(os.getcwd(), str(self.kept("first", "d1")))
        os.chdir("/")
        snapshot("rename", self.dir, "first", "other")
        time.sleep(1.2)  # for a second the kernel answers from what it knows
        self.assertEqual(os.listdir(self.kept()), ["other"])
        self.assertEqual(self.tree(self.kept("other")), before)
        self.image.remount()
        self.assertEqual(self.tree(self.kept("other")), before)
        self.image.remount("snapshots_dir=.old")
        self.assertEqual(self.tree(self.dir / ".old/other"), before)
        self.assertFalse(self.kept().exists())
        self.image.remount("snapshots_dir=none")
        self.assertFalse(self.kept().exists())

    def test_leaves_the_name_that_others_use_to_them(self):
        """snapper and others have a folder .snapshots at the top of a tree."""
        source = self.image.folder / "source"
        (source / ".snapshots/1/snapshot").mkdir(parents=True)
        (source / ".snapshots/1/info.xml").write_text("theirs")
        snapshot("create", self.dir, "before")
        command("cp", "-a", f"{source}/.", self.dir)
        self.assertEqual((self.dir / ".snapshots/1/info.xml").read_text(), "theirs")
        self.assertIn(".snapshots", os.listdir(self.dir))
        snapshot("create", self.dir, "ours")
        self.assertEqual(self.kept("ours", ".snapshots/1/info.xml").read_text(), "theirs")
        (self.dir / ".snapshots").rename(self.dir / "moved")
        (self.dir / "moved").rename(self.dir / ".snapshots")
        (self.dir / ".snapshots/2").mkdir()
        log = self.image.folder / "log"
        self.image.remount(f"snapshots_dir=.snapshots,log={log}")
        self.assertEqual(sorted(os.listdir(self.dir / ".snapshots")), ["1", "2"], "what is really there comes first")
        self.assertIn(f"no snapshots are shown: {self.dir}/.snapshots is really there", log.read_text())
        self.assertNotIn("snapshots are shown in", log.read_text())
        if os.geteuid() == 0:
            (self.dir / ".snapshots/ours").mkdir()
            shown = self.image.folder / "shown"
            shown.mkdir()
            refused = varve("mount", self.image.path, shown, "-o", "snapshot=ours", expect=1)
            self.assertIn(f"{self.dir}/.snapshots: a file or folder that is really there has the name", refused.stderr)
        shutil.rmtree(self.dir / ".snapshots")
        self.image.remount(f"snapshots_dir=.snapshots,log={log}")
        self.assertEqual(os.listdir(self.dir / ".snapshots"), ["before", "ours"], "the name of 0.1.0 can be had")
        self.assertFalse(self.kept().exists())
        self.assertEqual(log.read_text().count(f"snapshots are shown in {self.dir}/.snapshots"), 1)

    def test_is_shown_where_that_is_asked_for(self):
        for i in range(300):
            (self.dir / f"file{i}").touch()
        snapshot("create", self.dir, "first")
        files = sorted(os.listdir(self.dir))
        self.image.remount("show_snapshots")
        for _ in range(2):
            self.assertEqual(sorted(os.listdir(self.dir)), [".varve-snapshots", *files])
        self.assertIn(".varve-snapshots", command("ls", "-la", self.dir).stdout)
        self.assertEqual(os.listdir(self.kept("first")), os.listdir(self.kept("first")))
        self.assertNotIn(".varve-snapshots", os.listdir(self.kept("first")))
        self.assertEqual(os.listdir(self.kept()), ["first"])
        self.assertEqual(len(command("find", self.dir, "-name", "file7").stdout.splitlines()), 2)
        self.image.remount("show_snapshots,snapshots_dir=file5")
        self.assertEqual(sorted(os.listdir(self.dir)), files)
        self.image.remount("show_snapshots,snapshots_dir=none")
        self.assertEqual(sorted(os.listdir(self.dir)), files)

    def test_inode_numbers_are_its_own(self):
        self.fill(1)
        snapshot("create", self.dir, "a")
        snapshot("create", self.dir, "b")
        seen = {}
        for root in (self.dir, self.kept("a"), self.kept("b")):
            for folder, _, files in os.walk(root):
                for name in [""] + files:
                    status = os.lstat(os.path.join(folder, name))
                    self.assertEqual(status.st_dev, os.stat(self.dir).st_dev)
                    seen.setdefault(status.st_ino, []).append(os.path.join(folder, name))
        for paths in seen.values():  # the same file or its hard link
            self.assertLessEqual(len(paths), 2, paths)
            if len(paths) == 2:
                self.assertEqual({os.path.basename(path) for path in paths}, {"f0", "linked"})

    @unittest.skipUnless(IS_ROOT, "only root opens handles")
    def test_handles_outlive_a_remount(self):
        self.fill(1)
        snapshot("create", self.dir, "a")
        paths = [self.kept("a", "d1/f1"), self.kept("a", "d1"), self.kept("a"), self.kept()]
        handles = [handle_of(path) for path in paths]
        expected = [path.read_bytes() if path.is_file() else sorted(os.listdir(path)) for path in paths]
        for _ in range(2):
            for handle, content in zip(handles, expected):
                fd = open_handle(self.dir, handle)
                found = os.read(fd, MIB) if isinstance(content, bytes) else sorted(os.listdir(fd))
                os.close(fd)
                self.assertEqual(found, content)
            self.assertEqual(os.listdir(self.dir), ["d1"], "the folder stays hidden")
            self.image.remount()
        snapshot("delete", self.dir, "a")
        for handle in handles[:3]:
            with self.assertRaises(OSError) as caught:
                open_handle(self.dir, handle)
            self.assertEqual(caught.exception.errno, errno.ESTALE)

    def test_programs_that_copy(self):
        self.fill(1)
        tool = self.dir / "d1/tool"
        tool.write_text("#!/bin/sh\necho works\n")
        tool.chmod(0o755)
        command("git", "init", "-q", self.dir / "repository")
        command("git", "-C", self.dir / "repository", "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "one")
        snapshot("create", self.dir, "s")
        before = self.tree()
        shutil.rmtree(self.dir / "d1")
        out = self.image.folder / "out"
        command("cp", "-a", self.kept("s"), out)
        self.assertEqual(self.tree(out), before)
        tar = subprocess.run(["tar", "--format=posix", "-C", self.kept("s"), "-cf", "-", "."], stdout=subprocess.PIPE, check=True).stdout
        (self.image.folder / "untarred").mkdir()
        subprocess.run(["tar", "-C", self.image.folder / "untarred", "-xpf", "-"], input=tar, check=True)
        self.assertEqual(self.tree(self.image.folder / "untarred"), before)
        self.assertEqual(command(self.kept("s", "d1/tool")).stdout, "works\n")
        self.assertEqual(command("find", self.kept("s"), "-name", "f1", "-type", "f").stdout.strip(), str(self.kept("s", "d1/f1")))
        command("git", "-c", "safe.directory=*", "-C", self.kept("s", "repository"), "fsck", "--strict")
        with open(self.kept("s", "d1/f1"), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            self.assertEqual(mapped[:], (out / "d1/f1").read_bytes())
        command("cp", "-a", self.kept("s", "d1"), self.dir / "d1")  # the undo
        self.assertEqual(self.tree(), before)

    @unittest.skipUnless(shutil.which("rsync"), "rsync is not installed")
    def test_rsync(self):
        """A backup by the recipe of docs/snapshots.md, and the next one."""
        copy = self.image.folder / "synced"
        copy.mkdir()
        for turn in (1, 2):
            self.fill(turn)
            snapshot("create", self.dir, "nightly")
            before = self.tree()
            os.unlink(self.dir / f"d{turn}/f3")
            # By itself it takes times of one second for the same.
            done = command("rsync", "-aHAX", "--delete", "--modify-window=-1", "--stats", f"{self.kept('nightly')}/", f"{copy}/")
            copied = self.tree(copy)
            self.assertEqual([name for name in before if copied.get(name) != before[name]], [])
            self.assertEqual(set(copied), set(before))
            self.assertEqual(os.getxattr(copy / f"d{turn}/f2", "user.of"), str(turn).encode())
            snapshot("delete", self.dir, "nightly")
            time.sleep(1.2)  # the kernel knows for a second what a name was
        # Those of the first night were taken for what they are, though another snapshot shows them.
        self.assertIn("Number of regular files transferred: 20\n", done.stdout)
        self.assertFalse((copy / "d1/f3").exists())

    @unittest.skipUnless(os.geteuid() == 0, "only root gives files capabilities")
    def test_capabilities_are_those_of_then(self):
        name, ping = "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
        for file in ("with", "without"):
            (self.dir / file).write_bytes(b"x")
        os.setxattr(self.dir / "with", name, ping)
        snapshot("create", self.dir, "s")
        os.removexattr(self.dir / "with", name)
        self.assertEqual(os.getxattr(self.kept("s", "with"), name), ping)
        with self.assertRaises(OSError) as refused:
            os.getxattr(self.kept("s", "without"), name)
        self.assertEqual(refused.exception.errno, errno.ENODATA)
        command("cp", "-a", self.kept("s", "with"), self.dir / "back")
        self.assertEqual(os.getxattr(self.dir / "back", name), ping)
        with self.assertRaises(OSError) as refused:
            with open(self.kept("s", "with"), "r+b", buffering=0) as file:
                file.write(b"y")
        self.assertEqual(refused.exception.errno, errno.EROFS)

    def test_every_change_is_refused(self):
        self.fill(1)
        snapshot("create", self.dir, "s")
        file, folder = self.kept("s", "d1/f1"), self.kept("s", "d1")

        def written(flags):
            handle = os.open(file, flags)
            try:
                os.write(handle, b"x")
            finally:
                os.close(handle)

        changes = [lambda: written(os.O_WRONLY), lambda: written(os.O_RDWR), lambda: written(os.O_WRONLY | os.O_APPEND),
                   lambda: written(os.O_WRONLY | os.O_TRUNC), lambda: os.truncate(file, 3), lambda: (folder / "new").touch(),
                   lambda: (folder / "new").mkdir(), lambda: os.mkfifo(folder / "new"), lambda: os.symlink("a", folder / "new"),
                   lambda: os.link(file, folder / "new"), lambda: os.rename(file, folder / "new"), lambda: os.unlink(file),
                   lambda: os.rmdir(folder), lambda: os.chmod(file, 0o600), lambda: os.chown(file, 5, 5), lambda: os.utime(file, (1, 1)),
                   lambda: os.setxattr(file, "user.x", b"1"), lambda: os.removexattr(self.kept("s", "d1/f2"), "user.of"),
                   lambda: self.kept("new").mkdir(), lambda: os.rmdir(self.kept("s")), lambda: os.rename(self.kept("s"), self.kept("t")),
                   lambda: os.rename(self.dir / "d1/f1", folder / "new")]
        before = self.tree(self.kept("s"))
        for opens in ("not asked", "asked"):
            for number, change in enumerate(changes):
                with self.subTest(opens=opens, change=number), self.assertRaises(OSError) as refused:
                    change()
                self.assertIn(refused.exception.errno, (errno.EROFS, errno.EXDEV), (opens, number, refused.exception))
            with self.assertRaises(OSError) as refused:
                os.link(file, self.dir / "new")
            self.assertEqual(refused.exception.errno, errno.EXDEV)
            self.image.remount()
        self.assertEqual(self.tree(self.kept("s")), before)
        self.assertTrue((self.dir / "d1/f1").exists())

    def test_what_is_written_to_mapped_pages_does_not_stay(self):
        fill_random(self.dir / "f", 256 * KIB, 1)
        snapshot("create", self.dir, "s")
        handle = os.open(self.kept("s", "f"), os.O_RDWR)  # the first in this mount: the kernel has not been told to ask
        with mmap.mmap(handle, 0) as mapped:
            mapped[:4] = b"abcd"
            with self.assertRaises(OSError):
                mapped.flush()
        os.close(handle)
        wait_until(lambda: same_random(self.kept("s", "f"), 256 * KIB, 1), "the page is shown no more")

    def test_read_while_all_is_moved(self):
        """What a snapshot holds is moved under its readers, and they never see anything else."""
        for i in range(40):
            fill_random(self.dir / f"f{i}", 512 * KIB, i, sync=False)
        snapshot("create", self.dir, "s")
        stop, wrong, rounds = threading.Event(), [], [0]

        def read():
            rng = random.Random(threading.get_ident())
            while not stop.is_set():
                i = rng.randrange(40)
                drop = os.open(self.kept("s", f"f{i}"), os.O_RDONLY)
                os.posix_fadvise(drop, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(drop)
                try:
                    if not same_random(self.kept("s", f"f{i}"), 512 * KIB, i):
                        wrong.append(f"f{i} differs")
                except OSError as error:
                    wrong.append(str(error))
                rounds[0] += 1

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        try:
            for turn in range(3):
                for i in range(0, 40, 2):
                    fill_random(self.dir / f"f{i}", 512 * KIB, 1000 * turn + i + 100, sync=False)
                for strategy in ("copying", "compacting", "hole-plugging"):
                    command(BIN / "varve", "clean", self.dir, "-s", strategy)
                command(BIN / "varve", "resize", self.dir, ("180M", "300M", "256M")[turn], timeout=300)
                wait_until(lambda: rounds[0] > 7 * (turn + 1) or wrong, "it is read meanwhile")
        finally:
            stop.set()
            for reader in readers:
                reader.join()
        self.assertEqual(wrong, [])
        open_file = os.open(self.kept("s", "f1"), os.O_RDONLY)
        snapshot("delete", self.dir, "s")
        self.settle()
        os.posix_fadvise(open_file, 0, 0, os.POSIX_FADV_DONTNEED)
        with self.assertRaises(OSError) as gone:
            os.pread(open_file, 4096, 0)
        self.assertEqual(gone.exception.errno, errno.ESTALE)
        os.close(open_file)
        time.sleep(1.2)  # for a second the kernel answers from what it knows
        self.assertEqual(os.listdir(self.kept()), [])
        self.assertFalse(self.kept("s").exists())
        self.image.check_all()


main()
