#!/usr/bin/env python3
"""varve restore: a file or a tree is what the snapshot has, and only what differs is written; varve snapshot show."""

from snapshot_tools import *

from system_calls import get_flags, set_flags

IMMUTABLE, APPEND = 0x10, 0x20


def flags_of(path):
    return get_flags(path) & (IMMUTABLE | APPEND)


class RestoreTest(MountTest):
    size = "256M"

    def setUp(self):
        if not IS_ROOT:
            self.skipTest("only root can give files to others")
        super().setUp()
        os.umask(0o022)

    def restore(self, path, *words, name="one", expect=0):
        return varve("restore", path, "--from", name, *words, expect=expect)

    def written(self, said):
        return said.stdout.splitlines()[-1].split(", ")[1]

    def tree(self, root):
        found, first = {}, {}
        for path in [root, *sorted(root.rglob("*"))]:
            about = os.lstat(path)
            name = str(path.relative_to(root))
            xattrs = {key: os.getxattr(path, key, follow_symlinks=False) for key in os.listxattr(path, follow_symlinks=False)}
            content = path.read_bytes() if stat.S_ISREG(about.st_mode) else os.readlink(path) if path.is_symlink() else None
            blocks = about.st_blocks if stat.S_ISREG(about.st_mode) else None
            found[name] = (about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, xattrs, content, blocks, about.st_rdev,
                           first.setdefault(about.st_ino, name) if not path.is_dir() else None)
        return found

    def names(self):
        return kept_names(self.dir)


class LittleRoom(RestoreTest):
    size = "64M"

    def test_what_is_written_over_holds_no_room(self):
        path = self.dir / "r"
        fill_random(path, 20 * MIB, 1)
        varve("snapshot", "create", self.dir, "one")
        for name in ("one", "one"):
            with open(path, "r+b") as file:
                file.write(os.urandom(20 * MIB))
                os.fsync(file.fileno())
            self.restore(path, name=name)
            self.assertTrue(same_random(path, 20 * MIB, 1))
        self.assertEqual(self.names(), ["one"])


class Restore(RestoreTest):
    def fill(self):
        tree = self.dir / "t"
        (tree / "d/e").mkdir(parents=True)
        for i in range(10):
            fill_random(tree / f"d/f{i}", 100 * KIB + i, i, sync=False)
        os.link(tree / "d/f0", tree / "d/e/l0")
        os.link(tree / "d/f1", tree / "l1")
        os.link(tree / "d/f2", self.dir / "outside")
        os.symlink("nowhere", tree / "s")
        os.mkfifo(tree / "p")
        os.setxattr(tree / "d/f3", "user.of", b"1")
        os.chown(tree / "d/f4", 5, 6)
        os.chmod(tree / "d/f4", 0o4711)
        with open(tree / "sparse", "wb") as file:
            file.write(b"begin")
            os.posix_fallocate(file.fileno(), MIB, 64 * KIB)
            os.pwrite(file.fileno(), b"end", 20 * MIB)
        os.utime(tree / "d/e", ns=(1, 2))
        return tree

    def change(self, tree):
        with open(tree / "d/f0", "r+b") as file:
            file.seek(20 * KIB)
            file.write(b"in the middle")
        os.unlink(tree / "d/e/l0")
        os.unlink(tree / "d/f1")
        os.truncate(tree / "d/f2", 5)
        os.setxattr(tree / "d/f3", "user.of", b"2")
        os.chmod(tree / "d/f4", 0o600)
        (tree / "d/new").write_text("replaced")
        os.rename(tree / "d/new", tree / "d/f5")
        os.rename(tree / "d/f6", tree / "d/moved")
        os.unlink(tree / "s")
        (tree / "s").mkdir()
        (tree / "s/in").write_text("in the way")
        shutil.rmtree(tree / "d/e")
        (tree / "d/e").write_text("a file now")
        with open(tree / "sparse", "r+b") as file:
            os.pwrite(file.fileno(), b"x" * MIB, 10 * MIB)
            os.truncate(file.fileno(), 15 * MIB)
        os.chmod(tree, 0o700)
        (tree / "later").mkdir()
        (tree / "later/f").write_text("later")

    def test_one_file_is_changed_in_place_where_it_differs(self):
        path = self.dir / "f"
        fill_random(path, 10 * MIB, 1)
        os.utime(path, ns=(3, 4))
        varve("snapshot", "create", self.dir, "one")
        ino = path.stat().st_ino
        with open(path, "r+b") as file:
            file.seek(5 * MIB)
            file.write(b"x" * 8 * KIB)
        with open(path, "rb") as reader:
            before = path.stat().st_mtime_ns
            self.assertIn("modified  /f\n1 change to make", self.restore(path, "-n").stdout)
            self.assertEqual(path.stat().st_mtime_ns, before)
            said = self.restore(path)
            self.assertEqual(self.written(said), "8.0 KiB written")
            self.assertTrue(same_random(path, 10 * MIB, 1))
            self.assertEqual((path.stat().st_ino, path.stat().st_mtime_ns), (ino, 4))
            reader.seek(5 * MIB)
            self.assertNotEqual(reader.read(9), b"x" * 9)
        self.assertEqual(self.restore(path).stdout, "0 changes, 0 B written\n")
        self.assertEqual(json.loads(varve("snapshot", "list", "--json", self.dir).stdout)["snapshots"][-1]["name"], "one")

    def test_what_has_gone_comes_back(self):
        path = self.dir / "a/b/f"
        path.parent.mkdir(parents=True)
        os.chmod(self.dir / "a", 0o711)
        fill_random(path, 100 * KIB, 1)
        (self.dir / "a/other").touch()
        varve("snapshot", "create", self.dir, "one")
        shutil.rmtree(self.dir / "a")
        self.restore(path, "-n")
        self.assertFalse((self.dir / "a").exists())
        self.restore(path)
        self.assertTrue(same_random(path, 100 * KIB, 1))
        self.assertEqual(stat.S_IMODE((self.dir / "a").stat().st_mode), 0o711)
        self.assertFalse((self.dir / "a/other").exists())

    def test_a_tree(self):
        tree = self.fill()
        set_flags(tree / "d/f7", IMMUTABLE)
        varve("snapshot", "create", self.dir, "one")
        one = self.tree(tree)
        set_flags(tree / "d/f7", 0)
        self.change(tree)
        (tree / "d/f7").write_text("changed")
        varve("snapshot", "create", self.dir, "two")
        said = self.restore(tree, expect=1)
        self.assertIn("/t/s: a directory has the place of a file: --delete removes it", said.stderr)
        self.assertEqual((tree / "later/f").read_text(), "later")
        self.assertEqual((tree / "s/in").read_text(), "in the way")
        would = self.restore(tree, "--delete", "-n").stdout.splitlines()
        did = self.restore(tree, "--delete").stdout.splitlines()
        self.assertEqual(would[:-1], did[:-1])
        self.assertIn("removed   /t/later/", did)
        self.assertEqual(self.tree(tree), one)
        self.assertEqual((self.dir / "outside").stat().st_ino, (tree / "d/f2").stat().st_ino)
        with self.assertRaises(PermissionError):
            (tree / "d/f7").write_text("is immutable again")
        set_flags(tree / "d/f7", 0)
        self.restore(tree, "--delete", name="two")  # and back
        varve("restore", self.dir, "--from", "one", "--delete")
        self.assertEqual(self.tree(tree), one)
        set_flags(tree / "d/f7", 0)

    def test_a_second_run_completes_an_interrupted_one(self):
        tree = self.fill()
        for i in range(300):
            fill_random(tree / f"many{i}", 20 * KIB, i, sync=False)
        varve("snapshot", "create", self.dir, "one")
        one = self.tree(tree)
        self.change(tree)
        for i in range(300):
            (tree / f"many{i}").write_text("other") if i % 2 else (tree / f"many{i}").unlink()
        for turn in range(3):
            running = subprocess.Popen([BIN / "varve", "restore", tree, "--from", "one", "--delete"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            time.sleep(0.1)  # at any moment
            if turn == 0:
                self.image.kill()
                running.communicate(timeout=HANG)
                self.image.mount()
            else:
                running.send_signal(signal.SIGINT if turn == 1 else signal.SIGKILL)
                running.communicate(timeout=HANG)
            wait_until(lambda: self.names() == ["one"], "the snapshot of what was there has gone")
        self.restore(tree, "--delete")
        self.assertEqual(self.tree(tree), one)

    def test_what_was_made_anew_is_not_made_again(self):
        tree = self.fill()
        fill_random(tree / "large", 20 * MIB, 1)
        os.link(tree / "large", tree / "linked")
        varve("snapshot", "create", self.dir, "one")
        one = self.tree(tree)
        shutil.rmtree(tree)
        self.restore(self.dir)
        self.assertEqual(self.tree(tree), one)
        again = varve("restore", self.dir, "--from", "one").stdout
        self.assertNotIn("large", again)
        self.assertNotIn("linked", again)
        for name in "sp":
            self.assertNotIn(f"/t/{name}\n", again)
        self.assertIn(" 0 B written", again)
        self.assertEqual(self.tree(tree), one)

    def test_a_name_below_a_directory_that_was_renamed_is_a_link_again(self):
        tree = self.fill()
        varve("snapshot", "create", self.dir, "one")
        one = self.tree(tree)
        os.rename(tree / "d", tree / "away")
        said = self.restore(tree, "--delete").stdout
        self.assertIn("linked    /t/d/f1\n", said)
        self.assertRegex(said, "linked    /t/d/(f0|e/l0)\n")  # whichever came second
        self.assertEqual(self.tree(tree), one)

    def test_what_does_not_fit_leaves_nothing_behind(self):
        room = os.statvfs(self.dir).f_bavail * 4096
        half = room // MIB // 2
        fill_random(self.dir / "f", half * MIB, 1)
        varve("snapshot", "create", self.dir, "one")
        (self.dir / "f").unlink()
        fill_random(self.dir / "other", half * MIB // 2, 2)
        sync_filesystem(self.dir)
        before = os.statvfs(self.dir).f_bavail
        self.assertIn("No space", varve("restore", self.dir, "--from", "one", expect=1).stderr)
        self.assertEqual(os.listdir(self.dir), ["other"])
        sync_filesystem(self.dir, check=False)  # it tells once more that there was no room
        wait_until(lambda: os.statvfs(self.dir).f_bavail * 4096 > before * 4096 - 4 * MIB, "its room has come back")

    def fill_up(self):
        for unit in (MIB, 4096):
            with self.assertRaises(OSError), open(self.dir / "filler", "ab", buffering=0) as filler:
                while True:
                    filler.write(bytes(unit))

    def test_a_full_filesystem_is_compared_as_it_is(self):
        """There is no room for a snapshot of the moment before."""
        (self.dir / "t").mkdir()
        for i in range(20):
            fill_random(self.dir / f"t/f{i}", 16 * MIB if i == 3 else 100 * KIB, i, sync=False)
        varve("snapshot", "create", self.dir, "one")
        one = self.tree(self.dir / "t")
        (self.dir / "t/f3").unlink()  # more than cleaning could still find room for
        with open(self.dir / "t/f5", "r+b") as file:
            file.write(b"written over")
        os.truncate(self.dir / "t/f6", 10)
        (self.dir / "t/f7").rename(self.dir / "t/other")
        (self.dir / "t/f8").chmod(0o600)
        with_room = varve("restore", "-n", "--delete", self.dir / "t", "--from", "one")
        self.assertEqual(len(with_room.stdout.splitlines()), 7, with_room.stdout)
        self.assertEqual(with_room.stderr, "")
        self.fill_up()
        self.assertIn("no space", varve("snapshot", "create", self.dir, "now", expect=1).stderr.lower())
        command(BIN / "varve", "clean", self.dir)
        self.fill_up()
        would = varve("restore", "-n", "--delete", self.dir / "t", "--from", "one")
        self.assertIn("no space to keep the state of this moment", would.stderr)
        self.assertEqual(would.stdout, with_room.stdout)
        changes = varve("diff", self.dir, "one")
        self.assertIn("no space to keep the state of this moment", changes.stderr)
        self.assertEqual(len([line for line in changes.stdout.splitlines() if " /t/" in line]), 5, changes.stdout)
        # The blocks that were written over, and the file, need new room.
        refused = varve("restore", "--delete", self.dir / "t", "--from", "one", expect=1).stderr
        self.assertIn(f"varve snapshot list {self.dir}), and give the same command again", refused)
        os.truncate(self.dir / "filler", 0)
        varve("restore", "--delete", self.dir / "t", "--from", "one")
        self.assertEqual(self.tree(self.dir / "t"), one)

    def test_a_name_outside_of_the_tree_is_no_reason_to_do_it_again(self):
        tree = self.dir / "d"
        tree.mkdir()
        for name in "fg":
            (tree / name).write_text("same")
            os.utime(tree / name, ns=(1, 2))
            os.link(tree / name, self.dir / f"out{name}")
        varve("snapshot", "create", self.dir, "one")
        (tree / "f").unlink()
        self.assertIn("created   /d/f\n", self.restore(tree).stdout)
        self.assertNotIn("/d/f\n", self.restore(tree).stdout)
        # But two files that were two must not be one, though each has as many names as then.
        for name in "fg":
            (tree / name).unlink()
        (tree / "f").write_text("same")
        os.link(tree / "f", tree / "g")
        os.utime(tree / "f", ns=(1, 2))
        self.restore(tree)
        self.assertNotEqual((tree / "f").stat().st_ino, (tree / "g").stat().st_ino)
        self.assertEqual((tree / "f").read_text() + (tree / "g").read_text(), "samesame")
        self.assertNotRegex(self.restore(tree).stdout, "/d/[fg]\n")

    def test_somebodys_file_with_the_name_that_is_needed(self):
        path = self.dir / "f"
        path.write_text("one")
        beside = self.dir / f".varve-restore-{path.stat().st_ino}"
        os.link(path, self.dir / "g")
        varve("snapshot", "create", self.dir, "one")
        path.unlink()
        (self.dir / "g").unlink()
        beside.write_text("mine")
        said = self.restore(path, expect=1).stderr
        self.assertIn(f"/{beside.name}: a file has this name, which is needed for a moment: move it away, or remove it", said)
        self.assertEqual(beside.read_text(), "mine")
        os.chmod(beside, 0o1600)  # as an interrupted restore leaves it
        self.restore(path)
        self.assertEqual(sorted(os.listdir(self.dir)), ["f"])
        other = self.dir / ".varve-restore-link"
        other.write_text("mine")
        self.assertIn(f"/{other.name}: a file has this name", self.restore(self.dir, expect=1).stderr)
        self.assertEqual(other.read_text(), "mine")
        other.unlink()
        os.link(path, other)
        self.restore(self.dir)
        self.assertEqual(sorted(os.listdir(self.dir)), ["f", "g"])
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o644)

    def test_a_link_where_a_directory_was(self):
        (self.dir / "d/sub").mkdir(parents=True)
        (self.dir / "d/sub/f").write_text("one")
        (self.dir / "real").mkdir()
        (self.dir / "real/g").write_text("one")
        os.symlink("real", self.dir / "link")
        varve("snapshot", "create", self.dir, "one")
        (self.dir / "real/g").write_text("two")
        self.restore(self.dir / "link/g")  # as it was then
        self.assertEqual((self.dir / "real/g").read_text(), "one")
        os.rename(self.dir / "d", self.dir / "e")
        os.symlink("e", self.dir / "d")
        self.assertIn("/d/none: the snapshot does not have it", self.restore(self.dir / "d/none", expect=1).stderr)
        self.assertTrue((self.dir / "d").is_symlink())
        self.assertIn("/d: a symbolic link has the place of this directory: move it away first",
                      self.restore(self.dir / "d/sub/f", expect=1).stderr)
        self.assertTrue((self.dir / "d").is_symlink())

    def test_what_was_not_asked_for_replaces_nothing(self):
        (self.dir / "d").mkdir()
        (self.dir / "d/f").write_text("one")
        varve("snapshot", "create", self.dir, "one")
        shutil.rmtree(self.dir / "d")
        (self.dir / "d").write_text("mine")
        self.assertIn("/d: a file has the place of this directory: move it away first", self.restore(self.dir / "d/f", expect=1).stderr)
        self.assertEqual((self.dir / "d").read_text(), "mine")
        self.assertIn("replaced  /d/\n", self.restore(self.dir / "d").stdout)
        self.assertEqual((self.dir / "d/f").read_text(), "one")

    def test_damage_is_named(self):
        """Of the snapshot alone, in a file, for restore and for send."""
        (self.dir / "d").mkdir()
        data = os.urandom(256 * KIB)
        for name in ("d/f", "d/g"):
            (self.dir / name).write_bytes(data if name == "d/f" else data[::-1])
        varve("snapshot", "create", self.dir, "one")
        for name in ("d/f", "d/g"):
            (self.dir / name).write_text("two")
        self.image.umount()
        image = bytearray(self.image.path.read_bytes())
        at = image.index(data[40960:45056])
        self.assertEqual(image.find(data[40960:45056], at + 1), -1)
        with open(self.image.path, "r+b") as file:
            file.seek(at + 77)
            file.write(bytes([image[at + 77] ^ 1]))
        self.image.mount()
        self.assertIn("replaced", self.restore(self.dir / "d/g", "-n").stdout.replace("modified", "replaced"))
        for words in (["restore", self.dir / "d", "--from", "one"], ["send", self.dir, "one"]):
            said = command(BIN / "varve", *words, check=False).stderr
            self.assertRegex(said, r"The snapshot 'one' is damaged: /d/f cannot be read\. `varve scrub /\S*` finds all")
        varve("snapshot", "delete", self.dir, "one")

    def test_what_is_asked_for_must_be_there(self):
        (self.dir / "f").touch()
        varve("snapshot", "create", self.dir, "one")
        self.assertIn("there is no snapshot 'none'", self.restore(self.dir / "f", name="none", expect=1).stderr)
        self.assertIn("/g: the snapshot does not have it", self.restore(self.dir / "g", expect=1).stderr)
        self.assertIn("/f/x: the snapshot does not have it", self.restore(self.dir / "f/x", expect=1).stderr)
        self.assertTrue((self.dir / "f").is_file())
        self.restore("/proc/self", expect=1)

    def test_show(self):
        varve("snapshot", "create", self.dir, "one")
        self.assertRegex(varve("snapshot", "show", self.dir, "one").stdout, r"Name +one\nMade +\d{4}-\d\d-\d\d [\d:]+\nCheckpoint +\d+\n")
        self.assertEqual(json.loads(varve("snapshot", "show", "--json", self.dir, "one").stdout)["name"], "one")
        self.assertIn("there is no snapshot 'two'", varve("snapshot", "show", self.dir, "two", expect=1).stderr)


class Locked(RestoreTest):
    """What is immutable, or can only be appended to, is restored like anything else, and has the flags that the snapshot has."""

    def setUp(self):
        super().setUp()
        self.folder = self.dir / "d"
        self.folder.mkdir()

    def unlocked(self):
        for path in self.dir.rglob("*"):
            if path.is_dir() or path.is_file():
                set_flags(path, 0)

    def test_a_name_that_is_missing_in_such_a_folder(self):
        for flags in (IMMUTABLE, APPEND):
            for name in ("d/f", "d/linked", "z"):
                (self.dir / name).unlink(missing_ok=True)
            (self.folder / "f").write_text("x")
            os.link(self.folder / "f", self.folder / "linked")
            (self.folder / "p").unlink(missing_ok=True)
            os.mkfifo(self.folder / "p")
            (self.dir / "z").write_text("z")
            varve("snapshot", "create", self.dir, f"one{flags}")
            for name in ("f", "linked", "p"):
                (self.folder / name).unlink()
            (self.dir / "z").write_text("changed")
            set_flags(self.folder, flags)
            self.restore(self.dir, "--delete", name=f"one{flags}")
            self.assertEqual([(self.dir / name).read_text() for name in ("d/f", "d/linked", "z")], ["x", "x", "z"])
            self.assertTrue((self.folder / "p").is_fifo())
            self.assertEqual((self.folder / "f").stat().st_nlink, 2)
            self.assertEqual(flags_of(self.folder), 0)

    def test_what_is_no_file_goes_from_such_a_folder(self):
        varve("snapshot", "create", self.dir, "one")
        os.mkfifo(self.folder / "p")
        os.mknod(self.folder / "c", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.mknod(self.folder / "s", stat.S_IFSOCK | 0o600)
        os.symlink("nowhere", self.folder / "l")
        set_flags(self.folder, IMMUTABLE)
        self.restore(self.dir, "--delete")
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(flags_of(self.folder), 0)

    def test_a_file_with_several_names_keeps_its_flags(self):
        changes = {
            "another": lambda: os.rename(self.folder / "h", self.folder / "k"),
            "one more": lambda: os.link(self.folder / "g", self.folder / "n"),
            "first gone": lambda: os.unlink(self.folder / "g"),
            "last gone": lambda: os.unlink(self.folder / "h"),
            "both gone": lambda: (os.unlink(self.folder / "g"), os.unlink(self.folder / "h")),
            "folder too": lambda: shutil.rmtree(self.folder),
        }
        (self.folder / "g").write_text("x")
        os.link(self.folder / "g", self.folder / "h")
        for flags in (IMMUTABLE, APPEND):
            for locked_now in (False, True):
                for what, change in changes.items():
                    with self.subTest(what, flags=flags, locked_now=locked_now):
                        set_flags(self.folder / "g", flags)
                        varve("snapshot", "create", self.dir, "one")
                        self.unlocked()
                        change()
                        if locked_now and self.folder.exists():
                            for path in [*self.folder.iterdir(), self.folder]:
                                set_flags(path, flags)
                        self.restore(self.dir, "--delete")
                        self.assertEqual([flags_of(self.folder / name) for name in "gh"], [flags, flags])
                        self.assertEqual(flags_of(self.folder), 0)
                        self.assertEqual((self.folder / "g").stat().st_ino, (self.folder / "h").stat().st_ino)
                        self.assertEqual(sorted(os.listdir(self.folder)), ["g", "h"])
                        varve("snapshot", "delete", self.dir, "one")
                        self.unlocked()

    def test_a_name_outside_of_the_tree_keeps_the_flags(self):
        varve("snapshot", "create", self.dir, "one")
        (self.dir / "out").write_text("new")
        os.link(self.dir / "out", self.folder / "new")
        set_flags(self.dir / "out", IMMUTABLE)
        self.restore(self.folder, "--delete")
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(flags_of(self.dir / "out"), IMMUTABLE)
        set_flags(self.dir / "out", 0)


class NotRestored(RestoreTest):
    """What cannot be restored is named, and the rest goes on."""

    def test_a_program_that_runs(self):
        (self.dir / "d").mkdir()
        for name in ("a", "d/run", "z"):
            shutil.copy("/bin/sleep", self.dir / name)
        varve("snapshot", "create", self.dir, "one")
        one = self.tree(self.dir)
        for name in ("a", "d/run", "z"):
            with open(self.dir / name, "ab") as program:
                program.write(b"longer now")
        set_flags(self.dir / "d/run", IMMUTABLE)
        running = subprocess.Popen([self.dir / "d/run", "1000"])
        try:
            said = self.restore(self.dir, expect=1)
        finally:
            running.kill()
            running.wait(timeout=HANG)
        self.assertIn("/d/run: opening: Text file busy (it is a program that runs: end that, and give the same command again)\n", said.stderr)
        self.assertIn("1 place not restored; all else is as the snapshot has it", said.stderr)
        self.assertEqual(said.stdout.splitlines()[:-1], ["modified  /a", "modified  /z"])
        self.assertEqual(flags_of(self.dir / "d/run"), IMMUTABLE)
        self.restore(self.dir)
        self.assertEqual(self.tree(self.dir), one)

    def test_programs_are_told_of_it(self):
        for name in ("f", "kept", "run", "was file"):
            shutil.copy("/bin/sleep", self.dir / name)
        (self.dir / "proc").mkdir()
        (self.dir / "proc/f").touch()
        varve("snapshot", "create", self.dir, "one")
        for name in ("f", "run"):
            with open(self.dir / name, "ab") as program:
                program.write(b"longer now")
        (self.dir / "was file").unlink()
        (self.dir / "was file").mkdir()
        (self.dir / "proc/f").write_text("changed")
        running = subprocess.Popen([self.dir / "run", "1000"])
        command("mount", "-t", "tmpfs", "none", self.dir / "proc")
        try:
            whole = self.restore(self.dir, "--json", expect=1)
            alone = self.restore(self.dir / "run", "--json", expect=1)
        finally:
            command("umount", self.dir / "proc")
            running.kill()
            running.wait(timeout=HANG)
        told = json.loads(whole.stdout)
        self.assertEqual(told["changes"], [{"change": "modified", "path": "/f"}])
        errors = {one["path"]: one["error"] for one in told["not_restored"]}
        self.assertEqual(sorted(errors), ["/proc", "/run", "/was file"])
        self.assertIn("Text file busy", errors["/run"])
        self.assertIn("something else is mounted there", errors["/proc"])
        self.assertIn("3 places not restored", told["error"])
        told = json.loads(alone.stdout)
        self.assertEqual([one["path"] for one in told["not_restored"]], ["/run"])
        self.assertIn("Text file busy", told["error"])
        (self.dir / "was file").rmdir()
        told = json.loads(self.restore(self.dir, "--json").stdout)
        self.assertEqual(told["not_restored"], [])
        self.assertNotIn("error", told)

    def test_a_file_is_named_as_it_is_to_be(self):
        """Not by the name that it has while it is made."""
        (self.dir / "d").mkdir()
        for name in ("d/other's", "d/program"):
            (self.dir / name).write_text("one")
        os.chown(self.dir / "d/other's", 5, 6)
        os.mknod(self.dir / "d/dev", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        varve("snapshot", "create", self.dir, "one")
        for name in ("d/other's", "d/dev"):
            (self.dir / name).unlink()
        without = ["setpriv", "--bounding-set=-chown,-mknod", "--inh-caps=-chown,-mknod", BIN / "varve"]
        for words in (["restore", self.dir, "--from", "one"], ["restore", self.dir / "d/dev", "--from", "one"],
                      ["undelete", self.dir / "d", "dev", "other's"]):
            said = command(*without, *words, check=False)
            self.assertEqual(said.returncode, 1)
            self.assertIn("/d/dev: making it: Operation not permitted", said.stderr)
            self.assertNotIn(".varve-restore", said.stderr)
        self.assertIn("/d/other's: setting the owner: Operation not permitted", said.stderr)
        self.assertEqual(os.listdir(self.dir / "d"), ["program"])
        self.restore(self.dir)
        self.assertEqual(sorted(os.listdir(self.dir / "d")), ["dev", "other's", "program"])

    def test_each_directory_that_has_the_place_of_a_file_is_named(self):
        for name in "abc":
            (self.dir / name).write_text(name)
        varve("snapshot", "create", self.dir, "one")
        for name in "abc":
            (self.dir / name).unlink()
            (self.dir / name).mkdir()
        (self.dir / "c").rmdir()
        said = self.restore(self.dir, expect=1).stderr
        for name in "ab":
            self.assertIn(f"/{name}: a directory has the place of a file", said)
        self.assertIn("2 places not restored", said)
        self.assertEqual((self.dir / "c").read_text(), "c")

    def test_a_file_that_is_damaged_in_the_snapshot(self):
        data = {name: os.urandom(256 * KIB) for name in "abc"}
        for name in "abc":
            (self.dir / name).write_bytes(data[name])
        varve("snapshot", "create", self.dir, "one")
        for name in "abc":
            (self.dir / name).write_text("two")
        self.image.umount()
        image = bytearray(self.image.path.read_bytes())
        at = image.index(data["b"][40960:45056])
        with open(self.image.path, "r+b") as file:
            file.seek(at + 77)
            file.write(bytes([image[at + 77] ^ 1]))
        self.image.mount()
        said = self.restore(self.dir, expect=1).stderr
        self.assertRegex(said, r"The snapshot 'one' is damaged: /b cannot be read")
        self.assertIn("1 place not restored", said)
        self.assertEqual([(self.dir / name).read_bytes() == data[name] for name in "abc"], [True, False, True])
        varve("snapshot", "delete", self.dir, "one")


class OtherMounts(RestoreTest):
    """Below the directory is what the filesystem does not have."""

    def mount(self, at, what=None):
        command("mount", *(["--bind", what] if what else ["-t", "tmpfs", "none"]), at)
        self.addCleanup(command, "umount", at, check=False)

    def test_the_folder_of_snapshots(self):
        self.image.remount("show_snapshots")
        (self.dir / "f").write_text("one")
        varve("snapshot", "create", self.dir, "one")
        (self.dir / "f").write_text("two")
        (self.dir / "new").mkdir()
        self.assertIn(".varve-snapshots", os.listdir(self.dir))
        self.assertNotIn(".varve-snapshots", self.restore(self.dir, "--delete", "-n").stdout)
        self.assertEqual(self.restore(self.dir, "--delete").stdout.splitlines()[:-1], ["modified  /f", "removed   /new/"])
        self.assertEqual((self.dir / ".varve-snapshots/one/f").read_text(), "one")

    def test_what_is_mounted_stays(self):
        for name in ("a", "proc", "z"):
            (self.dir / name).mkdir()
            (self.dir / name / "f").write_text("one")
        for name in ("file", "was file"):
            (self.dir / name).write_text("one")
        varve("snapshot", "create", self.dir, "one")
        for name in ("a/f", "z/f", "proc/f", "file"):
            (self.dir / name).write_text("two")
        (self.dir / "was file").unlink()
        for name in ("was file/in it", "new/in it", "other/more"):
            (self.dir / name).mkdir(parents=True)
            (self.dir / name / "f").write_text("new")
        for name in ("proc", "was file/in it", "new/in it", "other"):
            self.mount(self.dir / name)
            (self.dir / name / "mine").write_text("mine")
        self.mount(self.dir / "file", "/etc/passwd")
        would = self.restore(self.dir, "--delete", "-n", expect=1)
        self.assertIn("modified  /z/f\n", would.stdout)
        self.assertNotIn("/proc", would.stdout)
        self.assertEqual((self.dir / "z/f").read_text(), "two")
        said = self.restore(self.dir, "--delete", expect=1)
        for name in ("/file", "/proc", "/other", "/new/in it", "/was file/in it"):
            self.assertIn(f"\n  {name}\n", said.stderr)
        self.assertIn("not restored, since something else is mounted there:\n", said.stderr)
        self.assertEqual([(self.dir / name / "f").read_text() for name in "az"], ["one", "one"])
        for name in ("proc", "was file/in it", "new/in it", "other"):
            self.assertEqual(os.listdir(self.dir / name), ["mine"])
            command("umount", self.dir / name)
        command("umount", self.dir / "file")
        self.assertEqual((self.dir / "file").read_text(), "two")
        self.restore(self.dir, "--delete")
        self.assertEqual(sorted(os.listdir(self.dir)), ["a", "file", "proc", "was file", "z"])
        for name in ("a/f", "proc/f", "file", "z/f", "was file"):
            self.assertEqual((self.dir / name).read_text(), "one", name)


main()
