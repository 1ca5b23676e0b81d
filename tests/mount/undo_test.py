#!/usr/bin/env python3
"""Undo by time: restore and diff from a time, varve versions, varve undelete."""

from snapshot_tools import *


class UndoTest(MountTest):
    size = "64M"

    def made(self, name):
        return next(one["made"] for one in listed(self.dir)["snapshots"] if one["name"] == name)

    def take(self, name):
        """In a second of its own."""
        snapshot("create", self.dir, name)
        wait_until(lambda: time.time() >= self.made(name) + 1, "its second is over")
        return self.made(name)

    def versions(self, path):
        return json.loads(varve("versions", "--json", path).stdout)["versions"]

    def gone(self, path):
        return json.loads(varve("undelete", "--json", path).stdout)["gone"]


class ByTime(UndoTest):
    def local(self, seconds):
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))

    def test_the_last_one_by_then_is_meant(self):
        path = self.dir / "f"
        path.write_text("one")
        one = self.take("one")
        path.write_text("two")
        two = self.take("two")
        path.write_text("three")
        said = varve("restore", path, "--from", self.local(one))
        self.assertEqual(path.read_text(), "one")
        self.assertIn(f"'one', made {self.local(one)}", said.stderr)
        self.assertEqual(varve("restore", path, "--from", "two").stderr, "")
        varve("restore", path, "--from", self.local(two))
        self.assertEqual(path.read_text(), "two")
        path.write_text("four")
        said = varve("restore", path, "--from", "1s")
        self.assertIn("'two', made", said.stderr)
        self.assertEqual(path.read_text(), "two")
        self.assertIn("modified  /f", varve("diff", self.dir, self.local(one)).stdout)
        self.assertEqual(json.loads(varve("snapshot", "show", "--json", self.dir, self.local(one)).stdout)["name"], "one")
        self.assertIn("Name       two", varve("snapshot", "show", self.dir, "1s").stdout)
        by_name, by_time = [subprocess.run([BIN / "varve", "send", self.dir, after, "--from", before], capture_output=True, check=True)
                            for after, before in (("two", "one"), ("1s", self.local(one)))]
        self.assertEqual(by_time.stdout, by_name.stdout)
        self.assertIn(b"'two', made", by_time.stderr)
        self.assertEqual(json.loads(varve("diff", "--json", self.dir, "1s").stdout)["before"], "two")
        between = varve("diff", "--json", self.dir, self.local(one), self.local(two))
        self.assertEqual([json.loads(between.stdout)[key] for key in ("before", "after")], ["one", "two"])

    def test_where_none_is_as_old_the_oldest_is_named(self):
        for words in (["restore", self.dir, "--from", "10m"], ["diff", self.dir, "10m"]):
            self.assertIn("there is no snapshot '10m', and no other", varve(*words, expect=1).stderr)
        one = self.take("one")
        for words in (["restore", self.dir, "--from", "10m"], ["diff", self.dir, "10m"]):
            said = varve(*words, expect=1).stderr
            self.assertIn("no snapshot is as old as", said)
            self.assertIn(f"the oldest is 'one' of {self.local(one)}", said)
        self.assertIn("there is no snapshot 'nine', and it is no time, as 14:30 or 10m", varve("diff", self.dir, "nine", expect=1).stderr)

    def test_an_image_that_nobody_has_mounted(self):
        (self.dir / "f").write_text("one")
        one = self.take("one")
        (self.dir / "f").write_text("two")
        self.image.umount()
        self.assertIn("modified  /f", varve("diff", self.image.path, self.local(one)).stdout)


class Versions(UndoTest):
    def test_each_state_is_there_once(self):
        folder = self.dir / "d"
        folder.mkdir()
        path = folder / "Größe"
        self.take("before")
        path.write_text("one")
        self.take("one")
        self.take("same")
        path.write_text("longer")
        self.take("two")
        path.unlink()
        self.take("gone")
        path.write_text("now")
        found = self.versions(path)
        self.assertEqual([[one["name"] for one in version["snapshots"]] for version in found], [[], ["gone"], ["two"], ["one", "same"]])
        self.assertEqual([version["exists"] for version in found], [True, False, True, True])
        self.assertEqual([version["now"] for version in found], [True, False, False, False])
        self.assertEqual([Path(version["path"]).read_text() for version in found if version["exists"]], ["now", "longer", "one"])
        self.assertEqual([version["size"] for version in found if version["exists"]], [3, 6, 3])
        lines = varve("versions", path).stdout.splitlines()
        self.assertEqual(len(lines), 5)
        self.assertTrue(lines[1].endswith(f"/d/{path.name}"), lines)
        self.assertIn("(not there)", lines[2])

    def test_what_is_as_in_the_last_snapshot_is_one_state(self):
        path = self.dir / "f"
        path.write_text("one")
        self.take("one")
        found = self.versions(path)
        self.assertEqual([(version["now"], len(version["snapshots"])) for version in found], [(True, 1)])
        self.assertEqual(found[0]["path"], str(path))
        self.assertIn("it is not there, and no snapshot has it", varve("versions", self.dir / "none", expect=1).stderr)

    def test_where_no_snapshots_are_shown(self):
        self.image.remount("snapshots_dir=none")
        self.assertIn("this mount shows no snapshots", varve("versions", self.dir / "f", expect=1).stderr)


class Undelete(UndoTest):
    def fill(self):
        self.folder = self.dir / "d"
        (self.folder / "sub").mkdir(parents=True)
        for name in ("early", "late", "stays", "sub/in"):
            (self.folder / name).write_text(name)
        self.take("one")
        (self.folder / "early").unlink()
        shutil.rmtree(self.folder / "sub")
        self.take("two")
        (self.folder / "late").write_text("later")
        self.take("three")
        (self.folder / "late").unlink()

    def test_newest_first(self):
        self.fill()
        found = self.gone(self.folder)
        self.assertEqual([(one["name"], one["snapshot"]) for one in found][0], ("late", "three"))
        self.assertEqual(sorted((one["name"], one["snapshot"], one["directory"]) for one in found[1:]),
                         [("early", "one", False), ("sub", "one", True)])
        lines = varve("undelete", self.folder).stdout.splitlines()
        self.assertTrue(lines[1].endswith(" late"), lines)
        self.assertTrue(any(line.endswith(" sub/") for line in lines), lines)

    def test_what_is_named_comes_back_from_the_newest(self):
        self.fill()
        self.assertIn("created   /d/late", varve("undelete", "-n", self.folder, "late").stdout)
        self.assertFalse((self.folder / "late").exists())
        varve("undelete", self.folder, "late", "sub")
        self.assertEqual((self.folder / "late").read_text(), "later")
        self.assertEqual((self.folder / "sub/in").read_text(), "sub/in")
        self.assertFalse((self.folder / "early").exists())
        self.assertEqual([one["name"] for one in self.gone(self.folder)], ["early"])

    def test_nothing_is_written_over(self):
        self.fill()
        (self.folder / "late").write_text("mine")
        said = varve("undelete", self.folder, "late", "none", "early", expect=1)
        self.assertIn("/d/late: it is there: move it away first", said.stderr)
        self.assertIn("/d/none: no snapshot has it", said.stderr)
        self.assertEqual((self.folder / "late").read_text(), "mine")
        self.assertEqual((self.folder / "early").read_text(), "early")

    def test_names_stay_in_the_directory(self):
        self.fill()
        (self.dir / "beside").write_text("one")
        self.take("four")
        (self.dir / "beside").unlink()
        for name in ("../beside", self.dir / "beside", ""):
            self.assertIn(f"a name in {self.folder} is meant, or a path below it", varve("undelete", self.folder, name, expect=1).stderr)
        self.assertEqual(os.listdir(self.dir), ["d"])
        varve("undelete", self.folder, "sub/in")
        self.assertEqual(os.listdir(self.folder / "sub"), ["in"])

    def test_nothing_above_is_written_over(self):
        folder = self.dir / "d"
        makers = {"a file": lambda: folder.write_text("mine"), "a symbolic link": lambda: os.symlink("none", folder),
                  "a FIFO": lambda: os.mkfifo(folder)}
        (folder / "sub").mkdir(parents=True)
        for name in ("f", "sub/g"):
            (folder / name).write_text(name)
        self.take("one")
        shutil.rmtree(folder)
        for kind, make in makers.items():
            make()
            before = folder.lstat()
            for words in (["f"], ["sub/g"], ["-n", "f"]):
                said = varve("undelete", folder, *words, expect=1)
                self.assertIn(f"/d: {kind} has the place of this directory: move it away first", said.stderr)
                self.assertEqual(said.stdout, "")
            self.assertEqual(folder.lstat(), before, kind)
            folder.unlink()
        varve("undelete", folder, "f", "sub/g")
        self.assertEqual((folder / "sub/g").read_text(), "sub/g")

    def test_a_link_where_a_directory_was(self):
        folder, target = self.dir / "d", self.dir / "target"
        folder.mkdir()
        target.mkdir()
        (folder / "f").write_text("one")
        (target / "g").write_text("one")
        self.take("one")
        shutil.rmtree(folder)
        (target / "g").unlink()
        os.symlink(target, folder)
        self.assertEqual([one["name"] for one in self.gone(folder)], ["f"])
        self.assertIn("/d: a symbolic link has the place", varve("undelete", folder, "f", expect=1).stderr)
        self.assertEqual([version["exists"] for version in self.versions(folder / "f")], [False, True])
        folder.unlink()
        varve("undelete", folder, "f")
        self.assertEqual(os.listdir(folder), ["f"])

    def test_a_link_to_a_directory_is_followed(self):
        (self.dir / "d").mkdir()
        (self.dir / "d/f").write_text("one")
        os.symlink("d", self.dir / "link")
        self.take("one")
        (self.dir / "d/f").unlink()
        outside = self.image.folder / "outside"
        os.symlink(self.dir / "d", outside)
        for path in (self.dir / "link", outside):
            self.assertEqual([one["name"] for one in self.gone(path)], ["f"])
            varve("undelete", path, "f")
            (self.dir / "d/f").unlink()
        self.assertTrue(self.versions(outside))

    def test_programs_are_told_of_each_name(self):
        self.fill()
        (self.folder / "late").write_text("mine")
        told = json.loads(varve("undelete", "--json", self.folder, "late", "early", expect=1).stdout)["undeleted"]
        self.assertEqual([one["name"] for one in told], ["late", "early"])
        self.assertIn("/d/late: it is there", told[0]["error"])
        self.assertEqual((told[1]["snapshot"], told[1]["changes"]), ("one", [{"change": "created", "path": "/d/early"}]))
        self.assertNotIn("error", told[1])

    def test_a_directory_that_has_gone(self):
        self.fill()
        shutil.rmtree(self.folder)
        self.assertEqual({one["name"] for one in self.gone(self.folder)}, {"stays", "late", "early", "sub"})
        varve("undelete", self.folder, "stays")
        self.assertEqual(os.listdir(self.folder), ["stays"])
        self.assertIn("Nothing has gone from", varve("undelete", self.dir).stdout)


class Unseen(UndoTest):
    """Where it cannot be seen what has gone, nobody is told that nothing has."""

    def fill(self):
        folder = self.dir / "d"
        folder.mkdir()
        for name in ("f", "stays"):
            (folder / name).write_text("one")
        self.take("one")
        (folder / "f").unlink()
        return folder

    def refused(self, *words, **more):
        said = varve(*words, expect=1, **more)
        self.assertNotIn("Nothing has gone", said.stdout)
        return said.stderr

    def test_a_name_that_was_never_there(self):
        folder = self.fill()
        (folder / "file").touch()
        self.assertIn("/d/none: it is not there, and no snapshot has it", self.refused("undelete", folder / "none"))
        self.assertIn("/d/file: it is no directory, and no snapshot has one there", self.refused("undelete", folder / "file"))
        (self.dir / "new").mkdir()
        self.assertIn("Nothing has gone from", varve("undelete", self.dir / "new").stdout)

    def test_a_folder_of_that_name_is_really_there(self):
        folder = self.fill()
        self.image.remount("snapshots_dir=none")
        (self.dir / ".varve-snapshots/one").mkdir(parents=True)
        self.image.remount()
        for words in (["undelete", folder], ["undelete", folder, "f"], ["versions", folder / "f"]):
            self.assertIn("has the name of the folder of snapshots, so that these cannot be seen", self.refused(*words))
        self.image.remount("snapshots_dir=.other")
        self.assertEqual([one["name"] for one in self.gone(folder)], ["f"])

    def test_a_mount_of_a_snapshot(self):
        folder = self.fill()
        self.image.umount()
        self.image.mount("snapshot=one")
        for words in (["undelete", folder], ["versions", folder / "f"]):
            self.assertIn("this mount shows no snapshots: it is one itself", self.refused(*words))

    def test_in_a_snapshot(self):
        self.fill()
        shown = self.dir / ".varve-snapshots/one/d"
        for words in (["undelete", shown], ["undelete", shown, "f"], ["versions", shown / "f"], ["restore", shown / "f", "--from", "one"]):
            self.assertIn("it is in a snapshot, which never changes", self.refused(*words))

    @unittest.skipUnless(IS_ROOT, "only root has others look")
    def test_what_one_may_not_look_into(self):
        folder = self.fill()
        self.image.remount("allow_other")
        self.image.folder.chmod(0o755)
        as_nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        folder.chmod(0o700)
        said = self.refused("undelete", folder, **as_nobody)
        self.assertIn("Permission denied", said)
        self.assertIn("Permission denied", self.refused("versions", folder / "stays", **as_nobody))
        self.take("two")
        folder.chmod(0o755)
        said = varve("undelete", "--json", folder, expect=1, **as_nobody)
        self.assertEqual([one["name"] for one in json.loads(said.stdout)["gone"]], ["f"])
        self.assertEqual([one["snapshot"] for one in json.loads(said.stdout)["unseen"]], ["two"])
        self.assertIn("cannot be looked at in the snapshot 'two': ", said.stderr)
        said = varve("versions", "--json", folder / "stays", expect=1, **as_nobody)
        self.assertEqual([one["snapshot"] for one in json.loads(said.stdout)["unseen"]], ["two"])


@unittest.skipUnless(IS_ROOT, "only root makes bind mounts")
class PartMounts(UndoTest):
    """A bind mount of a part stands for what the kernel says that it shows, whatever its name is."""

    def setUp(self):
        super().setUp()
        self.bound = []
        (self.dir / "sub/deep").mkdir(parents=True)
        for name in ("f", "gone", "sub/f", "sub/x", "sub/deep/f"):
            (self.dir / name).write_text(f"then {name}")
        self.take("one")
        for name in ("f", "sub/f", "sub/deep/f"):
            (self.dir / name).write_text(f"now {name}")
        for name in ("gone", "sub/x"):
            (self.dir / name).unlink()
        (self.dir / "new").write_text("new")

    def bind(self, name, what=None):
        """Beside the mount. A name as long as that of the mount is the one that was taken for it."""
        place = self.dir.parent / name
        place.mkdir(exist_ok=True)
        command("mount", "--bind", what or self.dir / "sub", place)
        self.bound.append(place)
        return place

    def tearDown(self):
        for place in self.bound:
            command("umount", "-l", place, check=False)
        super().tearDown()

    def names(self):
        return ("q" * len(self.dir.name), "b", "a much longer name than the mount has")

    def all_now(self):
        return {str(path.relative_to(self.dir)): path.read_text() for path in self.dir.rglob("*") if path.is_file()}

    def test_restore(self):
        for name in self.names():
            place = self.bind(name)
            (self.dir / "sub/f").write_text("changed")
            (self.dir / "sub/new").write_text("changed")
            said = varve("restore", place / "f", "--from", "one")
            self.assertIn("modified  /sub/f\n", said.stdout)
            self.assertEqual((place / "f").read_text(), "then sub/f")
            self.assertEqual((self.dir / "f").read_text(), "now f")
            varve("restore", "--delete", place, "--from", "one")
            self.assertEqual(self.all_now(), {"f": "now f", "new": "new", "sub/f": "then sub/f", "sub/x": "then sub/x",
                                              "sub/deep/f": "then sub/deep/f"})

    def test_what_has_gone(self):
        for name in self.names():
            place = self.bind(name)
            self.assertEqual([one["name"] for one in self.gone(place)], ["x"])
            self.assertEqual([(one["now"], one["exists"]) for one in self.versions(place / "f")], [(True, True), (False, True)])
            varve("undelete", place, "x")
            self.assertEqual((self.dir / "sub/x").read_text(), "then sub/x")
            (self.dir / "sub/x").unlink()

    def test_a_part_within_the_tree(self):
        (self.dir / "inner").mkdir()
        command("mount", "--bind", self.dir / "sub/deep", self.dir / "inner")
        try:
            varve("restore", self.dir / "inner/f", "--from", "one")
        finally:
            command("umount", self.dir / "inner")
        self.assertEqual((self.dir / "sub/deep/f").read_text(), "then sub/deep/f")

    def test_a_mount_of_a_snapshot(self):
        place = self.dir.parent / "shown"
        place.mkdir()
        varve("mount", self.image.path, place, "-o", "snapshot=one")
        try:
            for words in (["restore", place / "f", "--from", "one"], ["undelete", place], ["versions", place / "f"]):
                self.assertIn(f"it is in a snapshot, which never changes: name the path in the filesystem itself, below {self.dir}",
                              varve(*words, expect=1).stderr)
        finally:
            command("umount", place)

    def test_only_a_part_is_left(self):
        before = self.all_now()
        for name in self.names():
            place = self.bind(name)
            command("umount", self.dir)
            try:
                for words in (["restore", place / "f", "--from", "one"], ["restore", "--delete", place, "--from", "one"],
                              ["undelete", place], ["undelete", place, "x"], ["versions", place / "f"]):
                    said = varve(*words, expect=1)
                    self.assertIn("only a part of its filesystem is mounted here", said.stderr)
                    self.assertEqual(said.stdout, "")
            finally:
                command("umount", place)
            wait_until(lambda: not processes_of(self.image.path), "the daemon has ended")
            self.image.mount()
            self.assertEqual(self.all_now(), before)

    def test_a_directory_that_has_been_removed(self):
        (self.dir / "lost").mkdir()
        place = self.bind("lost", self.dir / "lost")
        (self.dir / "lost").rmdir()
        said = varve("restore", place, "--from", "one", expect=1)
        self.assertIn("has been removed from its filesystem", said.stderr)


main()
