#!/usr/bin/env python3
"""varve snapshot: made, listed, renamed and deleted, of a mounted filesystem and of an image; after a crash, and with less room; mounted beside
the filesystem in use."""

from snapshot_tools import *

import errno
import re
import threading


class Snapshots(SnapshotTest):
    def test_a_name_leads_to_the_snapshot_that_has_it_now(self):
        kept, file = self.dir / ".varve-snapshots", self.dir / "f"
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

        def are_two_of_one_second():
            if any(re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d-2", name) for name in names):
                return True
            making = [subprocess.Popen([BIN / "varve", "snapshot", "create", self.dir], stdout=subprocess.PIPE, text=True) for _ in range(8)]
            made = [tool.communicate(timeout=HANG)[0].strip() for tool in making]
            self.assertEqual(set(self.names()), {*names, *made})
            names[:] = self.names()
            return False
        wait_until(are_two_of_one_second, "two are made in one second")
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

    def test_what_open_files_have_written_belongs_to_it(self):
        """The kernel still holds it back: in pieces, so that it takes many requests, and in a mapping. The process that has the files open starts
        none, as each that ends closes them, and then the kernel writes them back."""
        blocks, rounds, size = 300, 4, 8 * KIB
        script = f"""if True:
            import mmap, os, sys
            files = [open(f"open{{i}}", "w+b") for i in range(8)]
            with open("mapped", "w+b") as file:
                file.truncate({MIB})
                memory = mmap.mmap(file.fileno(), {MIB})
            for made in sys.stdin:
                for file in files:
                    for at in range({blocks}):
                        os.pwrite(file.fileno(), bytes([int(made)]) * 4096, at * {size})
                memory[:] = bytes([int(made)]) * {MIB}
                print("written", flush=True)
                sys.stdin.readline()
                os.pwrite(files[0].fileno(), b"later", 0)
            """
        with subprocess.Popen([sys.executable, "-c", script], cwd=self.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
            for made in range(rounds):
                print(made + 1, file=writer.stdin, flush=True)
                self.assertEqual(writer.stdout.readline(), "written\n")
                snapshot("create", self.dir, f"open{made}")
                print("go on", file=writer.stdin, flush=True)
            writer.stdin.close()
        for made in range(rounds):
            kept, said = self.dir / f".varve-snapshots/open{made}", bytes([made + 1])
            for i in range(8):
                data = (kept / f"open{i}").read_bytes()
                self.assertEqual([at for at in range(blocks) if data[at * size:][:4096] != said * 4096], [], f"open{i} in the snapshot {made}")
            self.assertTrue((kept / "mapped").read_bytes() == said * MIB, f"mapped in the snapshot {made}")

    def test_names_change_and_go_and_the_room_comes_back(self):
        fill_random(self.dir / "f", 40 * MIB, 1)
        sync_filesystem(self.dir)
        free = os.statvfs(self.dir).f_bavail
        snapshot("create", self.dir, "one")
        said = snapshot("create", self.dir).stdout.strip()
        self.assertRegex(said, r"^\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d$")
        snapshot("rename", self.dir, "one", "eins zwei")
        self.assertEqual(self.names(), ["eins zwei", said])
        self.assertIn("already", snapshot("create", self.dir, said, expect=1).stderr)
        fill_random(self.dir / "f", 40 * MIB, 2)
        sync_filesystem(self.dir)
        command(BIN / "varve", "checkpoint", self.dir)
        self.assertLess(os.statvfs(self.dir).f_bavail * 4096, free * 4096 - 35 * MIB)
        snapshot("delete", self.dir, "eins zwei", said)
        self.settle()
        self.assertEqual(listed(self.dir), {"data_bytes": 40 * MIB, "held_bytes": 0, "automatic_bytes": 0, "giving_back": False, "snapshots": []})
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

    def make_as_a_tool(self, name):
        command_of_ioctl = struct.pack("II256s256s1024s", 1, 0, name.encode(), b"", b"")
        folder = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.ioctl(folder, 0xC0005673 | len(command_of_ioctl) << 16, bytearray(command_of_ioctl))
        os.close(folder)

    def test_what_tools_made_for_themselves_goes_with_a_crash(self):
        mine = ["now", "now (varve 17)", "now (varve 17-0123abcd) ", "now (varve -0123abcd)", "now (varve 17-0123abcg)"]
        self.make_as_a_tool("now (varve 17-0123abcd)")
        for name in mine:
            snapshot("create", self.dir, name)
        self.make_as_a_tool("now (varve 4194304-ffffffff)")
        self.image.kill()
        said = self.image.mount().stderr
        wait_until(lambda: kept_names(self.dir) == mine, "they are deleted")
        self.assertIn("the snapshot 'now (varve 17-0123abcd)' is deleted: a tool that was interrupted has left it", said)
        self.settle()
        self.image.check_all()

    def test_names_of_tools_are_for_nobody_else(self):
        snapshot("create", self.dir, "mine")
        for words in (["create", "now (varve 1-00000000)"], ["rename", "mine", "now (varve 1-00000000)"]):
            self.assertIn("names like this are of snapshots that tools make", snapshot(words[0], self.dir, *words[1:], expect=1).stderr)
        left = ["now (varve 1-00000000)", "now (varve 2-00000000)"]
        for name in left:
            self.make_as_a_tool(name)
        self.image.kill()
        self.image.umount()
        self.assertIn("names like this", snapshot("create", self.image.path, "now (varve 3-00000000)", expect=1).stderr)
        snapshot("rename", self.image.path, left[0], "saved")
        snapshot("delete", self.image.path, left[1])
        self.assertEqual(sorted(kept_names(self.image.path)), ["mine", "saved"])
        self.image.mount()
        self.assertEqual(sorted(self.names()), ["mine", "saved"])
        self.image.check_all()

    def test_of_an_image_and_after_a_crash(self):
        fill_random(self.dir / "f", MIB, 1)
        snapshot("create", self.dir, "kept")
        fill_random(self.dir / "f", MIB, 2)
        sync_filesystem(self.dir)
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
        for name in ("old", "[old]", "older", "[older]"):
            snapshot("create", self.image.path, name)
        snapshot("delete", self.image.path, "[old]", "[older]")
        self.assertEqual(self.names(self.image.path), ["of the image", "old", "older"])
        said = command(BIN / "varve", "mount", self.image.path, self.dir, "-o", "snapshot=none", check=False)
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("there is no snapshot 'none'", said.stderr)

    def test_writers_cleaning_and_another_size(self):
        """What a snapshot holds is moved under it by all of them, while somebody writes."""
        fill_random(self.dir / "kept", 30 * MIB, 7)
        sync_filesystem(self.dir)
        snapshot("create", self.dir, "kept")
        stop = threading.Event()

        def write():
            turn = 0
            while not stop.is_set():
                fill_random(self.dir / f"w{turn % 6}", 3 * MIB, turn)
                turn += 1

        writer = Beside(write)
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
            writer.end()
        self.settle()
        self.assertEqual(self.names(), ["kept", "s3"])
        self.image.check_all()
        self.image.mount("snapshot=kept")
        self.assertTrue(same_random(self.dir / "kept", 30 * MIB, 7))
        self.assertEqual([path.name for path in self.dir.iterdir()], ["kept"])


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

    @unittest.skipUnless(os.geteuid() == 0, "only root makes bind mounts")
    def test_what_is_forbidden_there_is_forbidden(self):
        self.show("first,nosuid,nodev,noexec,nosymfollow")
        shown = set(mount_line(self.place).split()[3].split(","))
        self.assertLessEqual({"ro", "nosuid", "nodev", "noexec", "nosymfollow"}, shown)
        command("umount", self.place)
        self.show("first,nosuid,suid")
        self.assertFalse({"nosuid", "noexec", "nosymfollow"} & set(mount_line(self.place).split()[3].split(",")))
        done = command(BIN / "varve", "mount", "-f", self.image.path, self.dir, "-o", "snapshot=first,ro", check=False)
        self.assertIn("leave out -f", done.stderr)

    def mounted_at(self, name):
        return next(one for one in listed(self.dir)["snapshots"] if one["name"] == name).get("mounted_at", [])

    def refuses_to_delete(self, name, place):
        said = snapshot("delete", self.dir, name, expect=1).stderr
        self.assertIn(f"snapshot '{name}' is mounted at {place}: unmount it first", said)

    @unittest.skipUnless(os.geteuid() == 0, "only root makes bind mounts")
    def test_it_is_held_under_any_name(self):
        self.show("first")
        snapshot("rename", self.dir, "first", "second")
        self.assertFalse((self.dir / ".varve-snapshots/first").exists())  # now the kernel knows that the name has gone
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
        command("mount", "--bind", self.dir / ".varve-snapshots/first/d1", self.place)
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


main()
