#!/usr/bin/env python3
"""What bench/energy does with traces, and with filesystems that fail."""

import contextlib
import io
import json
import runpy
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "bench" / part) for part in ("common", "energy", "trace")]

import cleaning  # noqa: E402
import disks  # noqa: E402
import fat  # noqa: E402
import kernel  # noqa: E402
import meters  # noqa: E402
import samples  # noqa: E402
import use  # noqa: E402
from formats import BadTrace, Event, Mark  # noqa: E402


def replayed(phases):
    kind = {"requests": 1, "bytes": 4096}
    figures = dict.fromkeys(("seconds", "busy_seconds", "modelled_joules", "seeks", "bytes_programmed", "bytes_copied", "erases", "spin_ups"), 1)
    return {"phases": [{"phase": phase, **figures, **dict.fromkeys(("read", "write", "flush", "discard"), kind)} for phase in phases]}


class Traces(unittest.TestCase):
    def test_use_begins_with_its_first_phase(self):
        events = [Mark("mkfs"), Event(5, "W", 0, 4096), Mark("in the background"), Event(100, "R", 0, 4096), Event(130, "W", 8, 4096), Mark("end")]
        self.assertEqual(use.from_first_phase(events), [Mark("in the background"), Event(0, "R", 0, 4096), Event(30, "W", 8, 4096), Mark("end")])

    def test_what_mtools_reads_before_it_writes_is_left_out(self):
        read, write = Event(1, "R", 0, 4096), Event(2, "W", 0, 4096)
        events = [Mark("mount"), read, Mark("create small"), read, write, Mark("mount"), read, Mark("read all"), read]
        self.assertEqual(list(fat.without_reads(events)), events[:3] + events[4:])

    def test_a_worn_sample_has_updates_within_its_files(self):
        with tempfile.TemporaryDirectory() as folder:
            before, after = Path(folder, "a"), Path(folder, "b")
            before.write_text("create 0 3000\ncreate 7 100000\nupdate 7 10 20\n")
            cleaning.wear(before, after, 1)
            lines = [line.split() for line in after.read_text().splitlines()]
        self.assertEqual(lines[:3], [line.split() for line in ("create 0 3000", "create 7 100000", "update 7 10 20")])
        for word, file, offset, length in lines[3:]:
            self.assertEqual(word, "update")
            self.assertLessEqual(int(offset) + int(length), {"0": 3000, "7": 100000}[file])
        self.assertGreaterEqual(sum(int(line[3]) for line in lines[3:]), 9 * 1.25 * (1 << 20))


class Ranks(unittest.TestCase):
    def test_what_is_equal_everywhere_has_no_order(self):
        first, second = {"a": 1, "b": 1.0001, "c": 2, "varve:x": 0.5}, {"a": 2, "b": 2.0001, "c": 9, "varve:x": 5}
        self.assertEqual(disks.rank_row("n", {"one": first, "two": second}), ["n", 1.0, "a", "a = b < c"])
        self.assertEqual(disks.rank_row("n", {"one": first, "two": {**second, "c": 1}})[2:], ["a, c", "not the same everywhere"])


class Failures(unittest.TestCase):
    """Filesystems are made up here: nothing is mounted or traced."""

    def energy(self, file, *options):
        def trace(run):
            if run.place.name == "bad":
                raise BadTrace("the buffer was too small")
            return [], {phase: {"seconds": 1, "cpu_seconds": 2, "joules": {}} for phase in [*samples.CREATES, *samples.CHANGES, *samples.READS]}

        def costs(_, events, cases=disks.CASES):
            return {case: replayed([*samples.CREATES, *samples.CHANGES, *samples.READS]) for case in cases}

        arguments = ["energy", "--json", str(file), "--filesystems", "good,bad,fine", "--writes", "cached", "--use-seconds", "0", *options]
        with contextlib.ExitStack() as stack:
            for patch in (mock.patch.object(sys, "argv", arguments), mock.patch.object(samples.Run, "trace", trace),
                          mock.patch.object(disks, "costs", costs), mock.patch.object(kernel, "make_available"),
                          mock.patch.object(meters, "found", return_value=[]),
                          mock.patch.object(cleaning, "run", side_effect=RuntimeError("bench_published: it failed")),
                          contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())):
                stack.enter_context(patch)
            runpy.run_path(str(ROOT / "bench/energy/energy"), run_name="__main__")

    def test_one_that_fails_takes_nothing_along(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "energy.json")
            self.energy(file, "--files", "standard")
            result = json.loads(file.read_text())
        self.assertEqual(set(result["data"]["filesystems"]["standard, cached"]["microdrive"]), {"good", "fine"})
        self.assertEqual(result["left_out"], ["bad (standard, cached): the buffer was too small", "cleaning: bench_published: it failed"])
        measured = next(table for table in result["tables"] if table["title"].startswith("Measured"))
        self.assertEqual(measured["rows"][0][:4], ["standard, cached", "good", 3, 6])
        self.assertIn("no meter", measured["note"])


if __name__ == "__main__":
    unittest.main()
