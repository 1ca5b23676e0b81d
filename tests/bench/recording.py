"""For tests that record what reaches loop devices: where that cannot be done they are skipped, and say why."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/trace"), str(ROOT / "bench/common"), str(ROOT / "tests/mount")]

import kernel  # noqa: E402
import own_mounts  # noqa: E402


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def main():
    try:
        kernel.make_available()
    except kernel.NoTracing as why:
        skip(why)
    if not Path("/dev/fuse").exists() or not Path("/dev/loop-control").exists():
        skip("no /dev/fuse or no loop devices")
    try:
        own_mounts.enter()
    except OSError as error:
        skip(error.strerror)
    unittest.main()
