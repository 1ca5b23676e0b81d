#!/usr/bin/env python3
"""varve snapshot: made, listed, renamed, deleted and read, of a mounted filesystem and of an image; after a crash, and with less room."""

from snapshot_tools import *
from system_calls import *

import errno
import mmap
import re
import threading


class SnapshotTest(MountTest):
    size = "256M"

    def names(self, place=None):
        return kept_names(place or self.dir)

    def settle(self):
        wait_until(lambda: not listed(self.dir)["giving_back"], 60, "what deleted snapshots held is given back")

    def tree(self, root=None):
        """Everything that tar and rsync would look at, but access times."""
        found, root = {}, root or self.dir
        for path in sorted(root.rglob("*")):
            about = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            size = None if path.is_dir() else about.st_size
            found[str(path.relative_to(root))] = (about.st_mode, about.st_nlink, size, about.st_mtime_ns, content)
        return found

    def look_at(self, name):
        self.image.mount(f"snapshot={name}")
        try:
            return self.tree()
        finally:
            self.image.umount()

    def fill(self, seed):
        folder = self.dir / f"d{seed}"
        folder.mkdir()
        for i in range(20):
            fill_random(folder / f"f{i}", 100 * KIB + i, seed * 100 + i, sync=False)
        os.link(folder / "f0", folder / "linked")
        os.symlink("f1", folder / "symbolic")
        os.setxattr(folder / "f2", "user.of", str(seed).encode())


class MountedBeside(SnapshotTest):
    """varve mount -o snapshot=NAME while the same filesystem is in use."""

    def setUp(self):
        super().setUp()
        self.place = self.image.folder / "past"
        self.place.mkdir()
        self.fill(1)
        snapshot("create", self.dir, "first")
        self.before = self.tree()

    def tearDown(self):
        subprocess.run(["umount", "-l", self.place], stderr=subprocess.DEVNULL)
        super().tearDown()

    def show(self, name, expect=0):
        options = f"snapshot={name}" if name.endswith(",rw") else f"snapshot={name},ro"
        done = command(BIN / "varve", "mount", self.image.path, self.place, "-o", options, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr

    @unittest.skipUnless(os.geteuid() == 0, "only root makes bind mounts")
    def test_it_is_shown_while_the_filesystem_is_written_to(self):
        self.show("first")
        shutil.rmtree(self.dir / "d1")
        self.fill(2)
        command(BIN / "varve", "checkpoint", self.dir)
        self.assertEqual(self.tree(self.place), self.before)
        with self.assertRaises(OSError) as refused:
            (self.place / "new").touch()
        self.assertEqual(refused.exception.errno, errno.EROFS)
        self.refuses_to_delete("first", self.place)
        self.assertEqual(self.names(), ["first"])
        # The image's name still leads to the whole filesystem, and its unmounting is not mistaken for that of the snapshot.
        self.assertIn("1 snapshot,", command(BIN / "varve", "status", "-s", self.image.path).stdout)
        # And so does the snapshot's place, but for unmounting.
        for words in (["status", "-s"], ["snapshot", "list"], ["metrics"], ["scrub", "--status"], ["label"]):
            self.assertEqual(command(BIN / "varve", *words, self.place).stderr, "")
        self.assertIn("first", snapshot("list", self.place).stdout)
        self.assertIn("not a mount point", command(BIN / "varve", "umount", self.place / "d1", check=False).stderr)
        of_this = rf"(?m)^varve_snapshots\{{.*{re.escape(str(self.image.path))}.*$"
        self.assertEqual(len(re.findall(of_this, command(BIN / "varve", "metrics", "--all").stdout)), 1)
        self.assertEqual(command(BIN / "varve", "umount", self.place).stderr, "")
        self.assertTrue(os.path.ismount(self.dir))
        snapshot("delete", self.dir, "first")

    def mounted_at(self, name):
        return next(one for one in listed(self.dir)["snapshots"] if one["name"] == name).get("mounted_at", [])

    def refuses_to_delete(self, name, place):
        said = snapshot("delete", self.dir, name, expect=1).stderr
        self.assertIn(f"snapshot '{name}' is mounted at {place}: unmount it first", said)

    @unittest.skipUnless(os.geteuid() == 0, "only root makes bind mounts")
    def test_it_is_held_under_any_name(self):
        self.show("first")
        snapshot("rename", self.dir, "first", "second")
        self.assertFalse((self.dir / ".snapshots/first").exists())  # now the kernel knows that the name has gone
        self.refuses_to_delete("second", self.place)
        shutil.rmtree(self.dir / "d1")
        snapshot("create", self.dir, "first")  # another one
        self.assertEqual((self.mounted_at("first"), self.mounted_at("second")), ([], [str(self.place)]))
        self.assertRegex(snapshot("list", self.dir).stdout, rf"(?m) second  \(mounted at {re.escape(str(self.place))}\)$")
        snapshot("delete", self.dir, "first")
        self.refuses_to_delete("second", self.place)
        self.assertEqual(self.tree(self.place), self.before)
        command("umount", self.place)
        self.assertEqual(self.mounted_at("second"), [])
        snapshot("delete", self.dir, "second")

    @unittest.skipUnless(os.geteuid() == 0, "only root makes bind mounts")
    def test_what_others_have_mounted_is_held_as_well(self):
        command("mount", "--bind", self.dir / ".snapshots/first/d1", self.place)
        snapshot("rename", self.dir, "first", "second")
        self.refuses_to_delete("second", self.place)
        copy = self.image.folder / "copy"
        copy.mkdir()
        command("mount", "--bind", self.place, copy)
        try:
            command("umount", self.place)
            self.refuses_to_delete("second", copy)
        finally:
            command("umount", copy)
        snapshot("delete", self.dir, "second")

    @unittest.skipUnless(os.geteuid() == 0, "only root makes bind mounts")
    def test_what_a_dead_daemon_has_left_holds_nothing(self):
        self.show("first")
        self.image.kill()
        self.image.umount()
        self.image.mount()
        self.assertTrue(os.path.ismount(self.dir))
        self.assertIsNotNone(mount_line(self.place))
        self.assertEqual(self.mounted_at("first"), [])
        snapshot("delete", self.dir, "first")

    @unittest.skipUnless(os.geteuid() == 0, "only root makes bind mounts")
    def test_a_mount_that_the_daemon_does_not_see_is_told(self):
        alone = command("unshare", "-m", "--propagation", "private", BIN / "varve", "mount", self.image.path, self.place, "-o", "snapshot=first")
        self.assertIn("another mount namespace, so that the snapshot can be deleted", alone.stderr)
        snapshot("delete", self.dir, "first")

    @unittest.skipUnless(os.geteuid() == 0, "only root makes bind mounts")
    def test_what_stands_in_the_way_is_said(self):
        for name in ("none", ".", "..", "../..", "first/d1", "../d1"):
            self.assertIn(f"there is no snapshot '{name}'", self.show(name, expect=1))
            self.assertFalse(os.path.ismount(self.place))
        self.assertIn("a snapshot is shown read-only: leave out rw", self.show("first,rw", expect=1))
        self.image.remount("snapshots_dir=none")
        self.assertIn("shows no snapshots", self.show("first", expect=1))


class Snapshots(SnapshotTest):
    def test_a_name_leads_to_the_snapshot_that_has_it_now(self):
        kept, file = self.dir / ".snapshots", self.dir / "f"
        for name in ("first", "second"):
            file.write_text(name)
            snapshot("create", self.dir, name)
            self.assertEqual((kept / name / "f").read_text(), name)
        snapshot("rename", self.dir, "first", "old")
        snapshot("rename", self.dir, "second", "first")
        self.assertEqual((kept / "first/f").read_text(), "second")
        self.assertEqual((kept / "old/f").read_text(), "first")
        file.write_text("third")
        snapshot("delete", self.dir, "first")
        self.assertFalse((kept / "first").exists())
        snapshot("create", self.dir, "first")
        self.assertEqual((kept / "first/f").read_text(), "third")

    def test_a_name_is_text(self):
        for name in (b"b\xffd", b"cut \xe2\x82"):
            self.assertIn("UTF-8", snapshot("create", self.dir, os.fsdecode(name), expect=1).stderr)
        snapshot("create", self.dir, "gr\u00fc\u00df")
        self.assertIn("UTF-8", snapshot("rename", self.dir, "gr\u00fc\u00df", os.fsdecode(b"\xfc"), expect=1).stderr)
        self.image.umount()
        self.assertIn("UTF-8", snapshot("create", self.image.path, os.fsdecode(b"b\xffd"), expect=1).stderr)
        self.assertEqual(self.names(self.image.path), ["gr\u00fc\u00df"])

    def test_names_that_are_refused(self):
        snapshot("create", self.dir, "first")
        for place in (self.dir, self.image.path):
            self.assertIn("the name of the snapshot is empty: leave it out", snapshot("create", place, "", expect=1).stderr)
            self.assertIn("1 to 255 bytes", snapshot("rename", place, "first", "", expect=1).stderr)
            for words in (["create", place], ["rename", place, "first"]):
                said = snapshot(*words, "auto-mine", expect=1).stderr
                self.assertIn("'auto-mine': names that begin with 'auto-' are of snapshots that are made by themselves", said)
            self.assertEqual(self.names(place), ["first"])
            if place == self.dir:
                self.image.umount()

    def test_many_without_a_name_in_one_second(self):
        names = [snapshot("create", self.dir).stdout.strip() for _ in range(8)]
        self.assertEqual(self.names(), names)
        self.assertTrue(any(re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d-2", name) for name in names), names)
        self.image.umount()
        names += [snapshot("create", self.image.path).stdout.strip() for _ in range(3)]
        self.assertEqual(self.names(self.image.path), names)

    def test_is_what_was_there_when_it_was_made(self):
        self.fill(1)
        first = self.tree()
        snapshot("create", self.dir, "first")  # nothing has been synced
        shutil.rmtree(self.dir / "d1")
        self.fill(2)
        second = self.tree()
        snapshot("create", self.dir, "second")
        (self.dir / "d2/f3").write_bytes(b"written over")
        os.truncate(self.dir / "d2/f4", 10)
        self.assertEqual(self.names(), ["first", "second"])
        self.assertGreater(listed(self.dir)["held_bytes"], 20 * 100 * KIB)
        self.assertRegex(command(BIN / "varve", "status", "-s", self.dir).stdout, r"(?m)^Kept     2 snapshots, with [\d.]+ MiB that nothing else")
        self.assertIn("varve_snapshots{", command(BIN / "varve", "metrics", self.dir).stdout)
        self.image.check_all()
        self.assertEqual(self.look_at("first"), first)
        self.assertEqual(self.look_at("second"), second)
        self.image.mount("snapshot=second")
        self.assertEqual(os.getxattr(self.dir / "d2/f2", "user.of"), b"2")
        with self.assertRaises(OSError) as refused:
            (self.dir / "new").write_bytes(b"")
        self.assertEqual(refused.exception.errno, errno.EROFS)
        self.assertIn("read-only", snapshot("create", self.dir, "third", expect=1).stderr)
        self.assertIn("shows the snapshot 'second', read-only", command(BIN / "varve", "status", "-s", self.dir).stdout)
        copy = self.image.folder / "copy.tar"
        command("tar", "-C", self.dir, "-cf", copy, ".")
        self.assertGreater(copy.stat().st_size, 20 * 100 * KIB)

    def test_names_change_and_go_and_the_room_comes_back(self):
        fill_random(self.dir / "f", 40 * MIB, 1)
        os.sync()
        free = os.statvfs(self.dir).f_bavail
        snapshot("create", self.dir, "one")
        said = snapshot("create", self.dir).stdout.strip()
        self.assertRegex(said, r"^\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d$")
        snapshot("rename", self.dir, "one", "eins zwei")
        self.assertEqual(self.names(), ["eins zwei", said])
        self.assertIn("already", snapshot("create", self.dir, said, expect=1).stderr)
        fill_random(self.dir / "f", 40 * MIB, 2)
        os.sync()
        command(BIN / "varve", "checkpoint", self.dir)
        self.assertLess(os.statvfs(self.dir).f_bavail * 4096, free * 4096 - 35 * MIB)
        snapshot("delete", self.dir, "eins zwei", said)
        self.settle()
        self.assertEqual(listed(self.dir), {"held_bytes": 0, "automatic_bytes": 0, "giving_back": False, "snapshots": []})
        self.assertIn("No snapshots.", snapshot("list", self.dir).stdout)
        self.assertGreater(os.statvfs(self.dir).f_bavail * 4096, free * 4096 - MIB)
        self.assertTrue(same_random(self.dir / "f", 40 * MIB, 2))
        self.image.check_all()

    def test_many_are_deleted_at_once(self):
        names = [f"s{i}" for i in range(90)]
        for name in names:
            (self.dir / "f").write_text(name)
            snapshot("create", self.dir, name)
        self.assertIn("no snapshot 'none'", snapshot("delete", self.dir, *names[:40], "none", *names[40:80], expect=1).stderr)
        self.assertEqual(kept_names(self.dir), names[80:])
        self.image.kill()
        self.image.mount()
        self.assertEqual(kept_names(self.dir), names[80:])

    def test_of_an_image_and_after_a_crash(self):
        fill_random(self.dir / "f", MIB, 1)
        snapshot("create", self.dir, "kept")
        fill_random(self.dir / "f", MIB, 2)
        os.sync()
        self.image.kill()
        self.image.umount()
        self.assertEqual(self.names(self.image.path), ["kept"])
        snapshot("create", self.image.path, "of the image")
        snapshot("rename", self.image.path, "kept", "before")
        self.image.mount("snapshot=before")
        self.assertTrue(same_random(self.dir / "f", MIB, 1))
        self.image.remount("snapshot=of the image")
        self.assertTrue(same_random(self.dir / "f", MIB, 2))
        self.image.umount()
        before = self.image.path.read_bytes()
        for words in (["delete", "none"], ["delete", "before", "before"], ["rename", "none", "x"], ["rename", "before", "of the image"],
                      ["create", "before"], ["create", "a,b"], ["rename", "before", "a/b"]):
            snapshot(words[0], self.image.path, *words[1:], expect=1)
        self.assertEqual(self.image.path.read_bytes(), before, "a command that failed has written")
        out = self.image.folder / "salvaged"
        command(BIN / "varve", "salvage", "--snapshot", "before", self.image.path, out)
        self.assertTrue(same_random(out / "f", MIB, 1))
        done = command(BIN / "varve", "salvage", "--snapshot", "none", self.image.path, self.image.folder / "x", check=False)
        self.assertIn("there is no snapshot 'none'", done.stderr)
        snapshot("delete", self.image.path, "before")
        self.image.fsck("--data")
        self.assertEqual(self.names(self.image.path), ["of the image"])
        said = command(BIN / "varve", "mount", self.image.path, self.dir, "-o", "snapshot=none", check=False)
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("there is no snapshot 'none'", said.stderr)

    def test_writers_cleaning_and_another_size(self):
        """What a snapshot holds is moved under it by all of them, while somebody writes."""
        fill_random(self.dir / "kept", 30 * MIB, 7)
        os.sync()
        snapshot("create", self.dir, "kept")
        stop = threading.Event()

        def write():
            turn = 0
            while not stop.is_set():
                fill_random(self.dir / f"w{turn % 6}", 3 * MIB, turn)
                turn += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for turn in range(4):
                fill_random(self.dir / "kept", 5 * MIB, turn)
                snapshot("create", self.dir, f"s{turn}")
                command(BIN / "varve", "clean", self.dir, "-s", ("copying", "compacting", "defragmenting", "hole-plugging")[turn])
                command(BIN / "varve", "resize", self.dir, ("200M", "400M", "180M", "256M")[turn], timeout=300)
                if turn:
                    snapshot("delete", self.dir, f"s{turn - 1}")
        finally:
            stop.set()
            writer.join()
        self.settle()
        self.assertEqual(self.names(), ["kept", "s3"])
        self.image.check_all()
        self.image.mount("snapshot=kept")
        self.assertTrue(same_random(self.dir / "kept", 30 * MIB, 7))
        self.assertEqual([path.name for path in self.dir.iterdir()], ["kept"])


class Beside(SnapshotTest):
    """DIR/.snapshots/NAME, in a mount that goes on."""

    def kept(self, *parts):
        return self.dir.joinpath(".snapshots", *parts)

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
        self.assertNotIn(".snapshots", os.listdir(self.dir))
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
        for _ in range(50):
            if same_random(self.kept("s", "f"), 256 * KIB, 1):
                return
            time.sleep(0.1)
        self.fail("the page is still shown")

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
        finally:
            stop.set()
            for reader in readers:
                reader.join()
        self.assertEqual(wrong, [])
        self.assertGreater(rounds[0], 20)
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


class Differences(SnapshotTest):
    """varve diff, of what is mounted and of an image."""

    def diff(self, *words, place=None):
        """{path: (change, from)}; a file may be in it twice, as renamed and as modified."""
        done = command(BIN / "varve", "diff", "--json", place or self.dir, *words)
        found = {}
        for one in json.loads(done.stdout)["changes"]:
            found.setdefault(one["path"], []).append((one["change"], one.get("from")))
        return found

    def change_much(self):
        self.fill(2)
        os.rename(self.dir / "d1/f1", self.dir / "d2/moved")
        os.unlink(self.dir / "d1/f3")
        with open(self.dir / "d1/f4", "r+b") as file:
            file.write(b"written in place")
        (self.dir / "d1/new").write_bytes(b"new")
        os.rename(self.dir / "d1/new", self.dir / "d1/f5")
        os.chmod(self.dir / "d1/f6", 0o600)
        os.setxattr(self.dir / "d1/f7", "user.of", b"other")
        os.unlink(self.dir / "d1/linked")
        os.link(self.dir / "d1/f8", self.dir / "again")
        (self.dir / "d1/f9").read_bytes()
        os.rename(self.dir / "d1", self.dir / "d3")

    expected = {
        "/d2": [("created", None)], "/d3": [("renamed", "/d1")], "/d2/moved": [("renamed", "/d1/f1")], "/d1/f3": [("removed", None)],
        "/d3/f4": [("modified", None)], "/d3/f5": [("replaced", None)], "/d3/f6": [("metadata", None)], "/d3/f7": [("metadata", None)],
        "/d1/linked": [("unlinked", None)], "/again": [("linked", None)], "/d2/linked": [("linked", None)],
        "/d2/symbolic": [("created", None)], **{f"/d2/f{i}": [("created", None)] for i in range(20)}}

    def test_says_what_has_changed(self):
        self.fill(1)
        snapshot("create", self.dir, "first")
        self.assertEqual(self.diff("first"), {})
        self.change_much()
        found = self.diff("first")
        self.assertEqual(found, self.expected)
        self.assertEqual(self.names(), ["first"], "the snapshot of now is still there")
        snapshot("create", self.dir, "second")
        between = self.diff("first", "second")
        self.assertEqual(between, self.expected)
        self.assertEqual(self.diff("second"), {})
        back = self.diff("second", "first")
        self.assertEqual(back["/d1"], [("renamed", "/d3")])
        self.assertEqual(back["/d1/f1"], [("renamed", "/d2/moved")])
        text = command(BIN / "varve", "snapshot", "diff", self.dir, "first").stdout
        self.assertIn("renamed   /d1/ -> /d3/\n", text)
        self.assertIn("metadata  /d3/f6  (mode)\n", text)
        self.assertIn("modified  /d3/f4\n", text)
        self.image.umount()
        image = self.image.path.read_bytes()
        self.assertEqual(self.diff("first", "second", place=self.image.path), between)
        self.assertEqual(self.diff("first", place=self.image.path), between)
        self.assertEqual(self.image.path.read_bytes(), image, "it was written to")

    def test_of_an_image_that_was_not_unmounted(self):
        self.fill(1)
        snapshot("create", self.dir, "first")
        with open(self.dir / "d1/later", "w") as later:
            later.write("in the log only")
            later.flush()
            os.fsync(later.fileno())
        self.image.kill()
        self.image.umount()
        image = self.image.path.read_bytes()
        self.assertEqual(self.diff("first", place=self.image.path), {"/d1/later": [("created", None)]})
        self.assertEqual(self.image.path.read_bytes(), image, "it was written to")

    def test_names_of_all_kinds(self):
        snapshot("create", self.dir, "first")
        names = ["with space", "with\nnewline", "with \u00e4", "back\\slash", "x" * 255]
        for name in names:
            (self.dir / name).touch()
        self.assertEqual(set(self.diff("first")), {"/" + name for name in names})
        text = command(BIN / "varve", "diff", self.dir, "first").stdout
        self.assertEqual(len(text.splitlines()), len(names))
        self.assertIn("created   /with\\x0anewline\n", text)

    def test_names_that_are_no_text(self):
        snapshot("create", self.dir, "first")
        names = [b"\xff\xfe", b"\xfe\xff", b"a\xff", "\ufffd".encode()]
        for name in names:
            (Path(os.fsdecode(os.fsencode(self.dir) + b"/" + name))).touch()
        snapshot("create", self.dir, "second")
        os.rename(os.fsencode(self.dir) + b"/a\xff", os.fsencode(self.dir) + b"/text")

        def told(*words):
            return json.loads(command(BIN / "varve", "diff", "--json", self.dir, *words).stdout)["changes"]

        def bytes_of(one, key="path"):
            return bytes.fromhex(one[key + "_hex"]) if key + "_hex" in one else one[key].encode()
        self.assertEqual({bytes_of(one) for one in told("first", "second")}, {b"/" + name for name in names})
        self.assertEqual([(bytes_of(one), bytes_of(one, "from")) for one in told("second")], [(b"/text", b"/a\xff")])
        self.assertNotIn("path_hex", told("second")[0])

    def test_what_is_wrong_is_said(self):
        snapshot("create", self.dir, "first")
        for words in (["none"], ["first", "none"], ["none", "first"]):
            done = command(BIN / "varve", "diff", self.dir, *words, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("there is no snapshot 'none'", done.stderr)
        self.assertEqual(self.names(), ["first"])
        (self.dir / "later").touch()
        for options in ("ro", "snapshot=first"):
            self.image.remount(options)
            self.assertEqual(self.diff("first", "first"), {})
            if options == "ro":  # as of an image that is not mounted
                self.assertEqual(self.diff("first"), {"/later": [("created", None)]})
                continue
            done = command(BIN / "varve", "diff", self.dir, "first", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("read-only", done.stderr)
            self.assertNotIn("It takes a snapshot", done.stderr)
        self.assertEqual(command(BIN / "varve", "diff", "/proc", "first", check=False).returncode, 1)

    def test_while_all_is_moved(self):
        for i in range(30):
            fill_random(self.dir / f"f{i}", MIB, i, sync=False)
        snapshot("create", self.dir, "first")
        for i in range(0, 30, 5):
            with open(self.dir / f"f{i}", "r+b") as file:
                file.seek(300 * KIB)
                file.write(os.urandom(5000))
        snapshot("create", self.dir, "second")
        expected = {f"/f{i}": [("modified", None)] for i in range(0, 30, 5)}
        stop, wrong, rounds = threading.Event(), [], [0]

        def compare():
            while not stop.is_set():
                found = self.diff("first", "second")
                if found != expected:
                    wrong.append(found)
                rounds[0] += 1

        comparing = threading.Thread(target=compare)
        comparing.start()
        try:
            for turn in range(4):
                for i in range(turn, 30, 4):
                    fill_random(self.dir / f"f{i}", MIB, 100 + turn, sync=False)
                command(BIN / "varve", "clean", self.dir, "-s", ("copying", "compacting", "defragmenting", "copying")[turn], timeout=300)
        finally:
            stop.set()
            comparing.join()
        self.assertEqual(wrong, [])
        self.assertGreater(rounds[0], 2)
        self.image.check_all()


main()
