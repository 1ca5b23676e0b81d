#!/usr/bin/env python3
"""A modelled device that is shown as a file: what the kernel may ask of one does it no harm."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("VARVE_BIN", ROOT / "build/release/bin"))
MIB = 1 << 20
SIZE = 64 * MIB


class Modelled(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name) / "device"
        self.folder.mkdir()

    def show(self, model):
        server = subprocess.Popen([BIN / "bench_device", "--model", model, "--size", str(SIZE), "--speed", "0", self.folder])
        self.addCleanup(server.wait)
        self.addCleanup(subprocess.run, ["fusermount3", "-u", self.folder], stderr=subprocess.DEVNULL)
        for _ in range(15_000):  # only what hangs takes so long
            if (self.folder / "device").exists():
                return server
            self.assertIsNone(server.poll(), "it has ended")
            time.sleep(0.02)
        self.fail("it is not there")

    def discard(self, offset, length):
        return subprocess.run(["fallocate", "--punch-hole", "--offset", str(offset), "--length", str(length), self.folder / "device"],
                              capture_output=True, text=True)

    def test_a_discard_behind_the_end(self):
        for model in ("sd-cheap", "ssd-page", "ssd-hybrid"):
            with self.subTest(model):
                server = self.show(model)
                done = self.discard(SIZE - MIB, 1 << 40)
                self.assertEqual(done.returncode, 0, done.stderr)
                done = self.discard(1 << 40, MIB)
                self.assertEqual(done.returncode, 0, done.stderr)
                counters = json.loads((self.folder / "counters").read_text())
                self.assertEqual(counters["discard"]["bytes"], MIB)
                subprocess.run(["fusermount3", "-u", self.folder], check=True)
                self.assertEqual(server.wait(300), 0)

    def test_disks_rotate_and_cards_do_not(self):
        for model, rotates in (("microdrive", True), ("hdd-desktop", True), ("smr-dm", True), ("sd-cheap", False)):
            with self.subTest(model):
                server = self.show(model)
                self.assertIs(json.loads((self.folder / "counters").read_text())["rotational"], rotates)
                subprocess.run(["fusermount3", "-u", self.folder], check=True)
                self.assertEqual(server.wait(300), 0)


if __name__ == "__main__":
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("needs /dev/fuse")
        sys.exit(77)
    unittest.main()
