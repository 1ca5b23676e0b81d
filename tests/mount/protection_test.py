#!/usr/bin/env python3
"""Automatic snapshots (mount option protect=): made while something is written, read in .varve-snapshots, kept, switched off, and in nobody's way."""

from snapshot_tools import *

import errno


class ProtectionTest(MountTest):
    size = "256M"
    protecting = "protect=10m,protect_every=1s"

    def automatic(self):
        return [one for one in listed(self.dir)["snapshots"] if one["automatic"]]

    def names(self, place=None):
        return kept_names(place or self.dir)

    def settle(self):
        wait_until(lambda: not listed(self.dir)["giving_back"], "what deleted snapshots held is given back")

    steps = 0

    def step(self, write):
        """Writes something, and waits until a state that has it can be gone back to: one that has the name made after it."""
        write()
        self.steps += 1
        marker = f".step{self.steps}"
        (self.dir / marker).touch()
        wait_until(lambda: any((self.dir / ".varve-snapshots" / one["name"] / marker).exists() for one in self.automatic()), "it is protected")


class Protection(ProtectionTest):
    def test_takes_back_what_was_written_over_and_removed(self):
        self.image.umount()
        self.image.mount(self.protecting)
        letter = self.dir / "letter"
        self.step(lambda: letter.write_text("first"))
        self.step(lambda: letter.write_text("second"))
        self.step(lambda: letter.unlink())
        found = []
        for one in self.automatic():
            self.assertRegex(one["name"], r"^auto-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(\.\d+)?$")
            path = self.dir / ".varve-snapshots" / one["name"] / "letter"
            found.append(path.read_text() if path.exists() else None)
        self.assertIn("first", found)
        self.assertIn("second", found)
        self.assertLess(found.index("first"), found.index("second"))
        self.assertIsNone(found[-1])
        shutil.copy2(self.dir / ".varve-snapshots" / self.automatic()[found.index("second")]["name"] / "letter", letter)
        self.assertEqual(letter.read_text(), "second")
        self.assertNotIn("\nKept", command(BIN / "varve", "status", "-s", self.dir).stdout)
        self.assertIn("No snapshots but automatic ones.", command(BIN / "varve", "snapshot", "list", self.dir).stdout)
        # An idle filesystem makes no more of them.
        self.step(lambda: (self.dir / "last").write_text("x"))

        def makes_no_more():
            names = self.automatic()
            time.sleep(3)  # what should not come would have come
            return self.automatic() == names
        wait_until(makes_no_more, "what is due is made, and nothing else")
        self.image.check_all()

    def test_are_listed_kept_compared_sent_and_deleted(self):
        self.image.umount()
        self.image.mount(self.protecting)
        fill_random(self.dir / "f", MIB, 1)
        self.step(lambda: fill_random(self.dir / "f", MIB, 2))
        self.step(lambda: fill_random(self.dir / "f", MIB, 3))
        text = snapshot("list", self.dir).stdout
        self.assertRegex(text, r"No snapshots but automatic ones\.\nAutomatic ones: \d+, from ")
        self.assertIn("auto-", snapshot("list", "--auto", self.dir).stdout)
        self.assertRegex(command(BIN / "varve", "status", "-s", self.dir).stdout, r"(?m)^Protects the last 10m, every 1s: \d+ automatic snapshots, with")
        self.assertIn("varve_automatic_snapshots{", command(BIN / "varve", "metrics", self.dir).stdout)
        self.assertIn("protect=10m\nprotect_every=1s\n", command(BIN / "varve", "tune", self.dir).stdout)
        shown = [(one["name"], self.dir / ".varve-snapshots" / one["name"] / "f") for one in self.automatic()]
        name = next(name for name, file in shown if file.exists() and same_random(file, MIB, 2))
        self.assertRegex(command(BIN / "varve", "diff", self.dir, name).stdout, r"modified +/f|replaced +/f")
        self.assertGreater(len(subprocess.run([BIN / "varve", "send", self.dir, name], check=True, stdout=subprocess.PIPE, timeout=120).stdout), MIB)
        said = snapshot("keep", self.dir, name.removeprefix("auto-"), "good").stdout
        self.assertRegex(said, r"^good is as of \d{4}-")
        now = snapshot("keep", self.dir, "0s").stdout.strip()
        self.assertRegex(now, r"^\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d$")
        self.assertIn("no automatic snapshot is as old as", snapshot("keep", self.dir, "1d", expect=1).stderr)
        self.assertIn("there is no automatic snapshot 'yesterday', and it is no time", snapshot("keep", self.dir, "yesterday", expect=1).stderr)
        oldest = self.automatic()[0]["name"]
        snapshot("delete", self.dir, oldest)
        self.assertNotIn(oldest, self.names())
        command(BIN / "varve", "tune", self.dir, "protect=off")
        wait_until(lambda: not self.automatic(), "automatic snapshots go")
        self.assertEqual(self.names(), ["good", now])
        self.settle()
        self.assertTrue(same_random(self.dir / ".varve-snapshots/good/f", MIB, 2))
        self.assertTrue(same_random(self.dir / ".varve-snapshots" / now / "f", MIB, 3))
        (self.dir / "more").write_text("x")
        time.sleep(2.5)  # what should not come would have come
        self.assertEqual(self.automatic(), [])
        self.image.check_all()

    def test_rules_of_retention_thin_what_is_older(self):
        self.image.umount()
        self.image.mount("noatime,protect=3s,2h:1h,protect_every=1s,commit=7")
        self.assertIn("protect=3s,2h:1h\nprotect_every=1s\n", command(BIN / "varve", "tune", self.dir).stdout)
        self.step(lambda: (self.dir / "f").write_text("first"))
        first = self.automatic()[0]["name"]
        for number in range(8):
            self.step(lambda: (self.dir / "f").write_text(str(number)))
        names = [one["name"] for one in self.automatic()]
        self.assertEqual(names[0], first, "the state with which the two hours begin")
        self.assertLess(len(names), 8, "of those that are older than three seconds one stays")
        status = self.image.status()["protection"]
        self.assertEqual(status["protect"], "3s,2h:1h")
        self.assertEqual([rule["spacing_seconds"] for rule in status["rules"]], [0, 3600])
        self.assertEqual(status["given_up"], 0)
        self.assertRegex(command(BIN / "varve", "status", "-s", self.dir).stdout,
                         r"(?m)^Protects all of the last 3s, every 1s; one for each 1h up to 2h: \d+ automatic snapshots \(\d+ and \d+\), the oldest")
        self.assertRegex(command(BIN / "varve", "doctor", self.dir).stdout, r"protect=3s,2h:1h: \d+ automatic snapshots")
        said = varve("tune", self.dir, "protect=1h,2h", expect=1).stderr
        self.assertIn("protect=1h,2h: '2h': only the first rule goes without a spacing, as in 1h,24h:1h,30d:1d", said)
        command(BIN / "varve", "tune", self.dir, "protect=1h,24h:1h,30d:1d")
        self.assertIn("protect=1h,1d:1h,30d:1d\n", command(BIN / "varve", "tune", self.dir).stdout)
        self.image.check_all()

    def test_switched_on_at_run_time_it_begins_with_the_present(self):
        (self.dir / "f").write_text("before")
        command(BIN / "varve", "tune", self.dir, "protect=1h", "protect_every=1s")
        wait_until(self.automatic, "the first one is there")
        self.assertEqual((self.dir / ".varve-snapshots" / self.automatic()[0]["name"] / "f").read_text(), "before")
        self.image.umount()
        kept = [one["name"] for one in listed(self.image.path)["snapshots"]]
        self.assertTrue(kept)
        self.assertIn("Automatic ones: ", snapshot("list", self.image.path).stdout)
        snapshot("keep", self.image.path, kept[0], "mine")  # a tool takes the others for somebody's
        self.assertEqual({one["name"] for one in listed(self.image.path)["snapshots"]}, {"mine", *kept[1:]})
        self.image.mount()  # without: for an hour they stay
        self.assertEqual(set(self.names()), {"mine", *kept[1:]})

    def test_after_a_crash_they_are_there(self):
        self.image.umount()
        self.image.mount(self.protecting)
        self.step(lambda: (self.dir / "f").write_text("one"))
        self.step(lambda: (self.dir / "f").write_text("two"))
        names = [one["name"] for one in self.automatic()]
        self.image.kill()
        self.image.mount(self.protecting)
        self.assertTrue(set(names) <= set(self.names()))
        self.assertIn("one", [(self.dir / ".varve-snapshots" / name / "f").read_text() for name in names
                              if (self.dir / ".varve-snapshots" / name / "f").exists()])
        self.image.check_all()

    def test_one_that_is_kept_is_charged_with_its_nodes(self):
        self.image.umount()
        self.image.mount(self.protecting)
        for i in range(5000):
            (self.dir / f"f{i}").touch()
        self.step(lambda: (self.dir / "last").touch())
        name = self.automatic()[-1]["name"]
        snapshot("keep", self.dir, name, "mine")
        before = os.statvfs(self.dir).f_bavail
        self.image.remount()
        self.assertLess(abs(os.statvfs(self.dir).f_bavail - before), 64, "a mount counts what is charged, and finds the same")

    def test_a_full_filesystem_refuses_nothing_for_them(self):
        self.image.umount()
        self.image.mount(self.protecting)
        free = os.statvfs(self.dir).f_bavail * 4096
        size = free * 9 // 10 // MIB
        fill_random(self.dir / "f", size * MIB, 1)
        for turn in range(3):  # each overwrites all of it
            with open(self.dir / "f", "r+b") as file:
                for _ in range(size):
                    file.write(os.urandom(MIB))
                os.fsync(file.fileno())
        after = os.statvfs(self.dir).f_bavail * 4096
        self.assertGreater(after, free - size * MIB - 4 * MIB, "what they hold counts as free")
        self.image.check_all()


class Read(ProtectionTest):
    """One of them is read by a tool, which needs it to its end."""
    protecting = "protect=1h,protect_every=1s"
    bytes = 90 * MIB  # more than a third of what is free

    def setUp(self):
        super().setUp()
        self.image.remount(self.protecting)
        self.step(lambda: fill_random(self.dir / "f", self.bytes, 1))
        self.name = self.automatic()[-1]["name"]

    def overwrite(self, size, turns):
        for turn in range(turns):
            fill_random(self.dir / "g", size, turn)
            varve("checkpoint", self.dir)

    def test_it_stays_while_what_it_has_is_restored(self):
        self.step(lambda: (self.dir / "f").unlink())
        varve("restore", self.dir / "f", "--from", self.name)
        self.assertTrue(same_random(self.dir / "f", self.bytes, 1))
        self.image.check_all()

    def test_where_it_does_not_fit_the_same_command_goes_on_later(self):
        self.step(lambda: (self.dir / "f").unlink())
        with subprocess.Popen([BIN / "varve", "send", self.dir, self.name], stdout=subprocess.PIPE) as sending:
            sending.stdout.read(MIB)
            free = os.statvfs(self.dir).f_bavail * 4096
            fill_random(self.dir / "g", free - self.bytes * 2 // 3, 2)
            said = varve("restore", self.dir / "f", "--from", self.name, expect=1).stderr
            self.assertIn("No space left on device", said)
            self.assertIn(f"'{self.name}' stays for an hour", said)
            sending.kill()
        varve("checkpoint", self.dir)
        self.assertIn(self.name, self.names())
        (self.dir / "g").unlink()
        varve("restore", self.dir / "f", "--from", self.name)
        self.assertTrue(same_random(self.dir / "f", self.bytes, 1))
        varve("checkpoint", self.dir)
        self.image.check_all()

    def test_it_stays_while_it_is_sent_and_goes_when_that_was_killed(self):
        with subprocess.Popen([BIN / "varve", "send", self.dir, self.name], stdout=subprocess.PIPE) as sending:
            sending.stdout.read(MIB)
            (self.dir / "f").unlink()
            free = os.statvfs(self.dir).f_bavail * 4096
            self.overwrite(free // 2, 3)
            self.assertIn(self.name, self.names(), "it is held, and the rest of the room is for others")
            sending.kill()
        wait_until(lambda: (self.overwrite(free // 2, 1), self.name not in self.names())[1], "nobody needs it")
        self.image.check_all()


@unittest.skipUnless(os.geteuid() == 0, "only root makes bind mounts")
class Mounted(ProtectionTest):
    """One of them is mounted by itself, beside the filesystem."""
    protecting = "protect=2s,protect_every=1s"

    def setUp(self):
        super().setUp()
        self.log = self.image.folder / "log"
        self.image.remount(f"{self.protecting},log={self.log}")
        self.place = self.image.folder / "past"
        self.place.mkdir()
        self.step(lambda: fill_random(self.dir / "f", 4 * MIB, 1))
        self.name = self.automatic()[-1]["name"]
        varve("mount", self.image.path, self.place, "-o", f"snapshot={self.name}")

    def tearDown(self):
        subprocess.run(["umount", "-l", self.place], stderr=subprocess.DEVNULL)
        super().tearDown()

    def wait_until_they_go(self, *others):
        """Something is written until all those that are there have gone, and these."""
        old = {one["name"] for one in self.automatic()} - {self.name} | set(others)

        def are_gone():
            (self.dir / "g").write_text(str(time.monotonic()))
            return not old & set(self.names())
        wait_until(are_gone, "those that are too old go")

    def test_it_does_not_go_for_its_age(self):
        self.wait_until_they_go()
        self.wait_until_they_go()
        self.assertIn(self.name, self.names())
        self.assertTrue(same_random(self.place / "f", 4 * MIB, 1))
        self.assertIn("mounted at", snapshot("list", "--auto", self.dir).stdout)
        self.assertIn("is mounted at", snapshot("delete", self.dir, self.name, expect=1).stderr)
        command("umount", self.place)
        self.wait_until_they_go(self.name)

    def test_it_stays_when_the_others_are_given_up(self):
        self.step(lambda: (self.dir / "f").write_text("later"))
        varve("tune", self.dir, "protect=off")
        wait_until(lambda: self.names() == [self.name], "the others go")
        self.assertTrue(same_random(self.place / "f", 4 * MIB, 1))
        command("umount", self.place)
        (self.dir / "more").write_text("x")
        varve("checkpoint", self.dir)
        wait_until(lambda: not self.names(), "it goes, too")

    def test_its_room_is_not_refused_to_anybody(self):
        (self.dir / "f").unlink()
        free = os.statvfs(self.dir).f_bavail * 4096
        for turn in range(2):
            fill_random(self.dir / "g", free * 95 // 100, turn)
        self.assertNotIn(self.name, self.names())
        with self.assertRaises(OSError) as gone:
            os.listdir(self.place)
        self.assertEqual(gone.exception.errno, errno.ESTALE)
        self.assertIn(f"'{self.name}' was mounted, and is given up", self.log.read_text())


main()
