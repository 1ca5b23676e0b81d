#!/usr/bin/env python3
"""bench/report, as a user calls it: a small experiment from end to end, one that fails, and one that is interrupted."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("VARVE_BIN", ROOT / "build/release/bin"))
sys.dont_write_bytecode = True

import recording  # noqa: E402
from recording import kernel  # noqa: E402

SMALL = ("--set", "energy:scale=0.02", "--set", "energy:samples=small", "--set", "energy:buffers=0", "--set", "energy:filesystems=ext4", "--set",
         "energy:used=ext4", "--set", "energy:use-seconds=5")


STUBBORN = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import interruption
interruption.end_in_good_order()
try:
    try:
        with interruption.whole():
            os.kill(os.getpid(), signal.SIGTERM)
            print("whole", flush=True)
        print("not ended", flush=True)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        print("given back", flush=True)
        raise RuntimeError("not all of it")
except RuntimeError:
    interruption.end_if_interrupted()
    print("gone on", flush=True)
"""


def backing_of(loop):
    file = Path("/sys/block", loop, "loop/backing_file")
    return file.read_text().strip() if file.exists() else None


def mounts():
    """[(what, where)]"""
    return [line.split()[:2] for line in Path("/proc/self/mounts").read_text().splitlines()]


class Report(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.top = Path(place.name)

    def command(self, *options):
        return [sys.executable, ROOT / "bench/report/report", "--no-build", "--output", self.top, "--varve-bin", BIN, *options]

    def test_a_small_experiment_from_end_to_end(self):
        done = subprocess.run(self.command("--experiments", "energy", *SMALL), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((self.top / "energy.json").read_text())
        text, page = (self.top / "report.md").read_text(), (self.top / "report.html").read_text()
        self.assertGreater(len(result["tables"]), 1)
        for table in result["tables"]:
            self.assertIn(f"### {table['title']}", text)
        self.assertIn("| ext4 |", text)
        self.assertIn("Linux", text)
        self.assertNotIn("Failed", text)
        self.assertIn(result["command"], text)
        if (self.top / "energy.png").exists():  # with matplotlib
            self.assertIn("data:image/png;base64,", page)
        self.assertIn(str(self.top / "report.html"), done.stdout)

    def test_a_failure_has_its_reason(self):
        done = subprocess.run(self.command("--experiments", "energy", "--set", "energy:seed=<x>"), capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        why = "argument --seed: invalid int value: '<x>'"
        self.assertIn(why, done.stderr)
        self.assertIn(why, (self.top / "report.md").read_text())
        self.assertIn("invalid int value: &#x27;&lt;x&gt;&#x27;", (self.top / "report.html").read_text())

    def test_an_interruption_waits_for_what_has_begun_and_is_the_last_one(self):
        done = subprocess.run([sys.executable, "-c", STUBBORN, ROOT / "bench/common"], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.returncode), ("whole\ngiven back\n", 128 + signal.SIGTERM), done.stderr)

    def test_an_interruption_leaves_nothing(self):
        for number, filesystem in ((signal.SIGINT, "varve"), (signal.SIGTERM, "ext4")):
            with self.subTest(number.name):
                self.interrupt(number, filesystem)

    def interrupt(self, number, filesystem):
        log = open(self.top / "log", "w+")
        self.addCleanup(log.close)
        report = subprocess.Popen(self.command("--experiments", "energy", "--set", f"energy:filesystems={filesystem}", "--set", "energy:scale=20"),
                                  stdout=log, stderr=log)
        self.addCleanup(report.kill)
        instance, loop, folder = self.wait_for_work(report, log)
        backing = backing_of(loop)
        report.send_signal(number)
        report.send_signal(number)  # an impatient user
        self.assertEqual(report.wait(300), 128 + number)
        self.assertFalse(instance.exists(), "a tracing instance is left")
        self.assertFalse(Path(backing).exists(), "an image in memory is left")
        self.assertNotIn(folder, [where for _, where in mounts()])
        self.assertFalse(Path(folder).exists(), "the folder of the mount is left")
        self.assertNotEqual(backing_of(loop), backing, "a loop device is left")
        self.assertFalse((self.top / "report.html").exists())
        log.seek(0)
        self.assertIn("interrupted", log.read())

    def wait_for_work(self, report, log):
        """The experiment's tracing instance, loop device and mount point, once it has all three."""
        end = time.monotonic() + 300  # only what hangs takes so long
        while time.monotonic() < end:
            self.assertIsNone(report.poll(), (log.seek(0), log.read())[1])
            children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(report.pid)], capture_output=True, text=True).stdout.split()
            for instance in (kernel.TRACEFS / "instances").glob("varve-*-loop*"):
                pid, loop = re.fullmatch(r"varve-(\d+)-(loop\d+)", instance.name).groups()
                where = [where for what, where in mounts() if what == f"/dev/{loop}"]
                if pid in children and where:
                    return instance, loop, where[0]
            time.sleep(0.05)
        self.fail("it does not begin")


if __name__ == "__main__":
    recording.main()
