#!/usr/bin/env python3
"""Compiles the prober that is ready for libblkid against the little that it uses of libblkid, and has it look at an image.
Argument: the build folder."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MKFS = Path(sys.argv[1]) / "bin/mkfs.varve"
UUID = "01234567-89ab-cdef-0123-456789abcdef"


class Recognition(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.image, self.probe = Path(place.name) / "a.img", Path(place.name) / "probe"
        stub = ROOT / "tests/project/libblkid"
        subprocess.run(["cc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-I", stub,
                        ROOT / "packaging/recognition/varve.c", stub / "probe.c", "-o", self.probe], check=True)
        subprocess.run([MKFS, "-q", "--size", "64M", "-L", "photos", "-U", UUID, self.image], check=True)

    def said(self):
        done = subprocess.run([self.probe, self.image], capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()

    def test_tells_what_the_superblock_does(self):
        self.assertEqual(self.said(), (0, ["version 1", f"uuid {UUID.replace('-', '')}", "label photos", "blocks of 4096",
                                           f"size {64 << 20}"]))

    def test_believes_no_damaged_one(self):
        for at in (0, 60, 4000):
            data = bytearray(self.image.read_bytes())
            data[at] ^= 1
            self.image.write_bytes(data)
            self.assertEqual(self.said(), (1, []), at)
            data[at] ^= 1
            self.image.write_bytes(data)


if __name__ == "__main__":
    if not MKFS.exists() or not shutil.which("cc"):
        print("skipped: mkfs.varve is not built, or there is no C compiler")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=1)
