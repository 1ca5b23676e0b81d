#!/usr/bin/env python3
"""varve snapshot: made, listed, renamed, deleted and read, of a mounted filesystem and of an image; after a crash, and with less room."""

from harness import *

import errno
import threading


def snapshot(*words, expect=0):
    done = command(BIN / "varve", "snapshot", *words, check=False, timeout=300)
    if done.returncode != expect:
        raise AssertionError(f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
    return done


def listed(place):
    return json.loads(snapshot("list", "--json", place).stdout)


class Snapshots(MountTest):
    size = "256M"

    def names(self, place=None):
        return [one["name"] for one in listed(place or self.dir)["snapshots"]]

    def settle(self):
        wait_until(lambda: not listed(self.dir)["giving_back"], 60, "what deleted snapshots held is given back")

    def tree(self):
        """Everything that tar and rsync would look at, but access times."""
        found = {}
        for path in sorted(self.dir.rglob("*")):
            about = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(self.dir))] = (about.st_mode, about.st_nlink, about.st_size, about.st_mtime_ns, content)
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
        self.assertRegex(command(BIN / "varve", "status", "-s", self.dir).stdout, r"(?m)^Kept     2 snapshots, hold [\d.]+ MiB that nothing else")
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
        self.assertEqual(listed(self.dir), {"held_bytes": 0, "giving_back": False, "snapshots": []})
        self.assertIn("No snapshots.", snapshot("list", self.dir).stdout)
        self.assertGreater(os.statvfs(self.dir).f_bavail * 4096, free * 4096 - MIB)
        self.assertTrue(same_random(self.dir / "f", 40 * MIB, 2))
        self.image.check_all()

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


main()
