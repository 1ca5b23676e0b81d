#!/usr/bin/env python3
"""Traces of block I/O: what comes in from other tools, and what goes out to them. The files in golden/ are what they must become."""

import io
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GOLDEN = HERE / "golden"
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "bench/trace"), str(ROOT / "bench/common")]

import formats  # noqa: E402
import kernel  # noqa: E402
from formats import BadTrace, Event, Mark  # noqa: E402

INTERRUPTED = """
import os, signal, subprocess, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
import interruption, kernel

def interrupted(command, **options):
    reader = begin(["sleep", "600"], **options)
    print(reader.pid, flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    return reader

begin, subprocess.Popen = subprocess.Popen, interrupted
interruption.end_in_good_order()
kernel.TRACEFS = Path(sys.argv[1])
kernel.make_available = lambda: None
kernel.Recorder.put = lambda self, name, value: None
kernel.Recorder("/dev/null").start()
"""


def text_of(items):
    out = io.StringIO()
    formats.write(items, out)
    return out.getvalue()


def golden(name):
    return (GOLDEN / name).read_text()


class Imports(unittest.TestCase):
    def check(self, name, parse):
        self.assertEqual(text_of(parse(golden(f"{name}.txt").splitlines(True))), golden(f"{name}.trace"))

    def test_blkparse(self):
        self.check("blkparse", formats.blkparse)

    def test_tracefs(self):
        self.check("tracefs", kernel.parse)

    def test_fio_version_2(self):
        self.check("fio2", formats.fio)

    def test_fio_version_3(self):
        self.check("fio3", formats.fio)

    def test_nbdkit(self):
        self.check("nbdkit", formats.nbdkit)

    def test_our_own(self):
        self.assertEqual(text_of(formats.read(golden("tracefs.trace").splitlines(True))), golden("tracefs.trace"))

    def test_log_writes(self):
        sector = 4096

        def entry(place, count, flags, mark=b""):
            return struct.pack("<QQQQ", place, count, flags, len(mark)).ljust(32, b"\0") + mark.ljust(sector - 32, b"\0")

        log = struct.pack("<QQQI", 0x6A736677736872, 1, 5, sector).ljust(sector, b"\0")
        log += entry(16, 2, 2 | 16) + b"a" * 2 * sector  # durable, metadata
        log += entry(0, 0, 1)                            # a flush
        log += entry(0, 0, 8, b"mounted")
        log += entry(256, 1024, 4)                       # discarded: no data follow
        log += entry(32, 1, 1) + b"b" * sector
        found = list(formats.log_writes(io.BytesIO(log)))
        self.assertEqual(found, [Event(0, "W", 16 * sector, 2 * sector, "fm"), Event(1000, "F", 0, 0), Mark("mounted"),
                                 Event(3000, "D", 256 * sector, 1024 * sector), Event(4000, "W", 32 * sector, sector, "p")])

    def test_what_is_cut_off_is_named(self):
        log = struct.pack("<QQQI", 0x6A736677736872, 1, 2, 512).ljust(512, b"\0") + struct.pack("<QQQQ", 0, 0, 1, 0).ljust(512, b"\0")
        with self.assertRaisesRegex(BadTrace, "entry 1 of 2"):
            list(formats.log_writes(io.BytesIO(log)))

    def test_what_is_wrong_is_named(self):
        for parse, text, why in ((formats.read, "1 W 0 4096 -\n2 X 0 0 -\n", "line 2"), (formats.fio, "iolog\n", "line 1"),
                                 (formats.fio, "fio version 3 iolog\nx y z\n", "line 1"),
                                 (formats.nbdkit, "2020-08-06 02:07:23.080907 connection=1 Read id=1 count=0x200 ...\n", "line 1: no offset")):
            with self.assertRaisesRegex(BadTrace, why):
                list(parse(text.splitlines(True)))
        with self.assertRaisesRegex(BadTrace, "too short"):
            list(formats.log_writes(io.BytesIO(b"")))

    def test_a_stored_trace_is_the_same(self):
        items = formats.Stored(formats.read(golden("tracefs.trace").splitlines(True)))
        self.assertEqual(text_of(items), golden("tracefs.trace"))
        self.assertEqual(text_of(list(items)), golden("tracefs.trace"))

    def test_an_answer_that_never_comes_holds_up_little(self):
        pairs = formats.Pairs()
        pairs.most = 3
        out = []
        for t in range(10):
            pairs.issued(t, Event(t, "W", t, 1))
            if t > 0:
                pairs.answered(t, t + 1)
            out += pairs.ready()
        pairs.answered(0, 20)
        out += pairs.events
        self.assertEqual([event.t_ns for event in out], list(range(10)))
        self.assertEqual([event.took_ns for event in out], [None] + [1] * 9)

    def test_events_that_the_kernel_lost_are_an_error(self):
        with self.assertRaisesRegex(BadTrace, "buffer"):
            kernel.parse(["CPU:1 [LOST 17 EVENTS]\n"])


class Recording(unittest.TestCase):
    def test_an_interruption_while_it_begins_leaves_no_reader(self):
        with tempfile.TemporaryDirectory() as top:
            (Path(top) / "instances").mkdir()
            done = subprocess.run([sys.executable, "-c", INTERRUPTED, top, *sys.path[:2]], capture_output=True, text=True)
            self.assertEqual(done.returncode, 128 + signal.SIGINT, done.stderr)
            self.assertFalse(os.path.exists(f"/proc/{int(done.stdout)}"), "the reader goes on")
            self.assertEqual(os.listdir(Path(top) / "instances"), [])


class Exports(unittest.TestCase):
    def check(self, put, name):
        out = io.StringIO()
        put(formats.read(golden("blkparse.trace").splitlines(True)), out)
        self.assertEqual(out.getvalue(), golden(name))

    def test_fio(self):
        self.check(formats.to_fio, "fio-v3.out")
        self.check(lambda items, out: formats.to_fio(items, out, 2), "fio-v2.out")

    def test_mqsim(self):
        self.check(formats.to_mqsim, "mqsim.out")

    def test_what_went_out_comes_in_again(self):
        items = list(formats.read(golden("blkparse.trace").splitlines(True)))
        out = io.StringIO()
        formats.to_fio([e._replace(flags="", took_ns=None) for e in items], out)
        back = list(formats.fio(out.getvalue().splitlines(True)))
        self.assertEqual([e._replace(flags="", took_ns=None) for e in items], back)


if __name__ == "__main__":
    unittest.main()
