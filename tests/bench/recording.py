"""For tests that record what reaches loop devices: where that cannot be done they are skipped, and say why."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/trace"))

import kernel  # noqa: E402


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
    unittest.main()
