#!/usr/bin/env python3
"""Each experiment still runs, small and short, and gives tables with numbers in them. What it measures is not asked."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("VARVE_BIN", ROOT / "build/release/bin"))
sys.dont_write_bytecode = True

import recording  # noqa: E402
from recording import kernel  # noqa: E402

SHORT = {
    "energy/energy": ["--scale", "0.02", "--samples", "small,worn", "--buffers", "0,16", "--filesystems", "ext4,varve,none",
                      "--used", "ext4,varve", "--use-seconds", "3"],
    "flash/flash": ["--workloads", "zipf,tpcc,none", "--filesystems", "varve@sfs-m,varve:strategy=copying;placement=none,varve:strategy=none,ext4",
                    "--size", "96", "--swept", "zipf", "--utilisations", "0.5", "--exponents", "0.8", "--other-seeds", ""],
    "latency/operations": ["--filesystems", "varve,ext4", "--size", "256", "--seconds", "0.05", "--most-seconds", "0.3", "--depths", "1,2"],
    "latency/latency": ["--distributions", "uniform", "--size", "128", "--seconds", "1"],
    "cleaning/published": ["--quick"],
    "devices/devices": ["--models", "sd-cheap", "--workloads", "sync4k", "--filesystems", "ext4,varve", "--size", "256", "--scale", "0.02"],
    "aging/aging": ["--filesystems", "varve@ssd-page,varve:strategy=none,ext4", "--git-filesystems", "varve:strategy=none,ext4", "--size", "64",
                    "--folders", "4", "--rounds", "2", "--every", "1", "--pulls", "4", "--most-pulls", "4", "--pulls-every", "2",
                    "--other-seeds", ""],
}


class Smoke(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.top = Path(place.name)

    def call(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_recorded_trace_goes_through_a_model(self):
        for name in ("ext4", "varve"):
            trace = self.top / f"{name}.trace"
            self.call(sys.executable, ROOT / "bench/trace/trace", "record", "--fs", name, "--size", "96", "--varve-bin", BIN, "-o", trace, "--",
                      "dd", "if=/dev/zero", "of=file", "bs=64k", "count=16", "oflag=sync", "status=none")
            (got,) = json.loads(self.call(BIN / "bench_replay", trace, "--model", "hdd-laptop", "--size", "96"))
            run = next(phase for phase in got["phases"] if phase["phase"] == "run")
            self.assertGreaterEqual(run["write"]["bytes"], 16 * 65536)
            self.assertGreater(run["modelled_joules"], 0)

    def test_a_command_that_cannot_be_run_leaves_no_recorder(self):
        image = self.top / "image"
        image.write_bytes(bytes(1 << 20))
        loop = self.call("losetup", "--find", "--show", image).strip()
        self.addCleanup(self.call, "losetup", "-d", loop)
        recorder = subprocess.Popen([sys.executable, ROOT / "bench/trace/trace", "record", "--device", loop, "--", self.top / "none"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertIn("No such file", recorder.communicate()[1])
        self.assertFalse((kernel.TRACEFS / "instances" / f"varve-{recorder.pid}-{Path(loop).name}").exists())

    def test_experiments(self):
        for name, options in SHORT.items():
            with self.subTest(name):
                file = self.top / f"{name.replace('/', '-')}.json"
                self.call(sys.executable, ROOT / "bench" / name, "--varve-bin", BIN, "--json", file, *options)
                result = json.loads(file.read_text())
                self.assertGreater(len(result["tables"]), 0)
                if "strategy=none" in " ".join(options):  # one that fails is named, and loses nothing else
                    self.assertTrue(any("strategy=none" in why for why in result["left_out"]), result["left_out"])
                    self.assertTrue(any("ext4" in row for table in result["tables"] for row in table["rows"]))
                for table in result["tables"]:
                    for row in table["rows"]:
                        self.assertEqual(len(row), len(table["columns"]), table["title"])

    def test_the_report_holds_what_there_is(self):
        table = {"title": "T & T", "columns": ["a", "b"], "rows": [["x", 1.5]], "note": ""}
        result = {"command": "c", "seconds": 1, "left_out": ["why <not>"], "tables": [table]}
        (self.top / "energy.json").write_text(json.dumps(result))
        machine = {"kernel": "6.66", "cpu": "C", "cpus": 3, "memory_gib": 4, "load": 0.5, "versions": {"varve": "9.9"}}
        (self.top / "flash.json").write_text(json.dumps({**result, "machine": machine, "date": "2001-02-03"}))
        self.call(sys.executable, ROOT / "bench/report/report", "--only-write", "--output", self.top, "--experiments", "energy,flash")
        page = (self.top / "report.html").read_text()
        self.assertIn("T &amp; T", page)
        self.assertIn("why &lt;not&gt;", page)
        text = (self.top / "report.md").read_text()
        self.assertIn("| x | 1.50 |", text)
        self.assertIn("energy: machine not known.", text)
        self.assertIn("flash: 3 × C, 4 GiB, Linux 6.66. varve: 9.9.", text, "not what this machine has")
        self.assertIn("1 s, 2001-02-03, load 0.5", text)


if __name__ == "__main__":
    recording.main()
