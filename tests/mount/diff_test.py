#!/usr/bin/env python3
"""varve diff: what has changed between two snapshots, or since one."""

from snapshot_tools import *

import threading


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
        self.assertIn("created   /with ä\n", text)
        done = command(BIN / "varve", "restore", "--delete", self.dir, "--from", "first").stdout
        self.assertIn("removed   /with ä\n", done)

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

        comparing = Beside(compare)
        try:
            for turn in range(4):
                for i in range(turn, 30, 4):
                    fill_random(self.dir / f"f{i}", MIB, 100 + turn, sync=False)
                command(BIN / "varve", "clean", self.dir, "-s", ("copying", "compacting", "defragmenting", "copying")[turn], timeout=300)
                wait_until(lambda: rounds[0] > turn or not comparing.is_alive(), "it is compared meanwhile")
        finally:
            stop.set()
            comparing.end()
        self.assertEqual(wrong, [])
        self.image.check_all()


main()
