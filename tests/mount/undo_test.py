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
        self.assertIn(f"from 'one', made {self.local(one)}", said.stderr)
        self.assertEqual(varve("restore", path, "--from", "two").stderr, "")
        varve("restore", path, "--from", self.local(two))
        self.assertEqual(path.read_text(), "two")
        path.write_text("four")
        said = varve("restore", path, "--from", "1s")
        self.assertIn("from 'two'", said.stderr)
        self.assertEqual(path.read_text(), "two")
        self.assertIn("modified  /f", varve("diff", self.dir, self.local(one)).stdout)
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


main()
