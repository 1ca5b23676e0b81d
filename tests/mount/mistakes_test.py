#!/usr/bin/env python3
"""Every mistake of mistakes.py gets its message: what is wrong and what to do, from the program that was called, and loses nothing."""

import hashlib
import re

import mistakes
from harness import *


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.image, cls.live, cls.dead = Image(), Image(), Image()
        folder = cls.image.folder
        for image in (cls.image, cls.live, cls.dead):
            image.mkfs("64M")
        cls.live.mount()
        cls.dead.mount()
        cls.dead.kill()
        names = {"IMG": cls.image.path, "DIR": cls.image.dir, "LIVE": cls.live.path, "AT": cls.live.dir, "DEAD": cls.dead.path, "GONE": cls.dead.dir}
        for name in ("TEXT", "EXT4", "CUT", "HOLE", "NEW", "HOST", "FIFO"):
            names[name] = folder / name
        names["TEXT"].write_text("hello\n")
        names["HOST"].mkdir()
        (names["HOST"] / "file").write_text("x")
        os.mkfifo(names["FIFO"])
        with open(names["EXT4"], "wb") as file:
            file.truncate(64 * MIB)
        command("mkfs.ext4", "-q", "-F", names["EXT4"])
        names["CUT"].write_bytes(cls.image.path.read_bytes()[:32 * MIB])
        with open(names["HOLE"], "wb") as file:
            file.truncate(64 * MIB)
        names["META"] = folder / "META"
        command(BIN / "varve", "image", cls.image.path, names["META"])
        cls.names = names

    @classmethod
    def tearDownClass(cls):
        command(BIN / "varve", "umount", cls.dead.dir)
        for image in (cls.image, cls.live, cls.dead):
            image.check_all()

    def state(self):
        kept = [self.names[name] for name in ("IMG", "TEXT", "EXT4", "CUT", "HOLE")]
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in kept] + [self.names["NEW"].exists()]

    def test_each_is_answered(self):
        self.assertGreaterEqual(len(mistakes.LIST), 100)
        before = self.state()
        for mistake in mistakes.LIST:
            with self.subTest(mistake.command):
                words = [str(self.names.get(word, word)) for word in mistake.command.split()]
                done = command(BIN / words[0], *words[1:], check=False)
                said = done.stdout + done.stderr
                self.assertNotEqual(done.returncode, 0, said)
                self.assertRegex(said, re.compile(mistake.says, re.S))
                self.assertTrue(done.stderr.startswith(words[0]) or words[0] == "fsck.varve" and not done.stderr, f"no program is named: {done.stderr}")
                self.assertNotRegex(said, "failed unexpectedly|terminate called|[Ii]nvalid argument$")
        self.assertEqual(before, self.state())

    def test_the_document_is_made_of_the_list(self):
        self.assertEqual((ROOT / "docs/troubleshooting.md").read_text(), mistakes.document(),
                         "python3 tests/mount/mistakes.py > docs/troubleshooting.md")


if __name__ == "__main__":
    main()
