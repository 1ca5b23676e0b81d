"""What the kernel sends to a block device, through its tracepoints (tracefs; root)."""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import interruption
from formats import SECTOR, BadTrace, Event, Mark, Pairs, Stored, kind_of

TRACEFS = Path("/sys/kernel/tracing")
EVENTS = ("block_rq_issue", "block_rq_complete")
END = "varve-trace-end"
LINE = re.compile(r" (\d+)\.(\d{6}): (block_rq_issue|block_rq_complete|tracing_mark_write): (.*)")
ISSUE = re.compile(r"\d+,\d+ (\w+) (\d+) \(.*?\) (\d+) \+ (\d+)")
COMPLETE = re.compile(r"\d+,\d+ (\w+) \(.*?\) (\d+) \+ (\d+)")


class NoTracing(Exception):
    """The kernel, or the machine's administrator, does not let us."""


def make_available():
    if os.geteuid() != 0:
        raise NoTracing("tracing block devices needs root")
    if not (TRACEFS / "instances").exists():
        done = subprocess.run(["mount", "-t", "tracefs", "nodev", TRACEFS], capture_output=True, text=True)
        if done.returncode:
            raise NoTracing(f"tracefs cannot be mounted: {done.stderr.strip()}")
    if not (TRACEFS / "events/block/block_rq_issue").exists():
        raise NoTracing("this kernel has no block tracepoints")


class Recorder:
    """Records one device between start() and stop(), in a tracing instance of its own. mark() begins a phase."""

    def __init__(self, device, buffer_kib=32768):
        make_available()
        number = os.stat(device).st_rdev
        self.filter = f"dev == {os.major(number) << 20 | os.minor(number)}"
        self.buffer_kib = buffer_kib
        self.instance = TRACEFS / "instances" / f"varve-{os.getpid()}-{Path(device).name}"
        self.reader = None

    def put(self, name, value):
        (self.instance / name).write_text(str(value))

    def start(self):
        try:
            with interruption.whole():  # otherwise it could come when the reader runs and has no name here yet
                self.begin()
        except BaseException:
            self.remove()
            raise

    def begin(self):
        self.instance.mkdir()
        self.put("trace_clock", "mono")
        self.put("buffer_size_kb", self.buffer_kib)
        self.put("buffer_percent", 0)
        for event in EVENTS:
            self.put(f"events/block/{event}/filter", self.filter)
            self.put(f"events/block/{event}/enable", 1)
        where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.text = tempfile.TemporaryFile(dir=where, prefix="varve-trace-")
        self.reader = subprocess.Popen(["cat", self.instance / "trace_pipe"], stdout=self.text)

    def mark(self, name):
        self.put("trace_marker", f"mark {name}\n")

    def stop(self):
        """The events, in the order of their issue, with marks between them."""
        try:
            for event in EVENTS:
                self.put(f"events/block/{event}/enable", 0)
            self.put("trace_marker", END + "\n")
            self.wait_for_end()
        finally:
            self.remove()
        self.text.seek(0)
        with open(self.text.fileno(), "r", errors="replace", closefd=True) as text:
            return Stored(events_of(text))

    def wait_for_end(self):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            size = os.fstat(self.text.fileno()).st_size
            if END.encode() in os.pread(self.text.fileno(), 4096, max(size - 4096, 0)):
                return
            if self.reader.poll() is not None:
                break
            time.sleep(0.02)
        raise NoTracing("the kernel's trace does not end")

    def remove(self):
        if self.reader:
            self.reader.kill()
            self.reader.wait()
            self.reader = None
        if not self.instance.exists():
            return
        for event in EVENTS:
            self.put(f"events/block/{event}/enable", 0)
        self.instance.rmdir()


def parse(lines):
    """Text of trace_pipe. Times begin with the first event."""
    return list(events_of(lines))


def events_of(lines):
    """The same, one after the other."""
    pairs, first = Pairs(), None
    for number, line in enumerate(lines, 1):
        if "[LOST " in line and "EVENTS]" in line:
            raise BadTrace(f"line {number}: the kernel's buffer was too small: {line.strip()}")
        found = LINE.search(line)
        if not found:
            continue
        t_ns = int(found[1]) * 10**9 + int(found[2]) * 1000
        first = t_ns if first is None else first
        if found[3] == "tracing_mark_write":
            if found[4].startswith("mark "):
                pairs.events.append(Mark(found[4][5:]))
        elif found[3] == "block_rq_issue":
            rwbs, length, sector, _ = ISSUE.match(found[4]).groups()
            op, flags = kind_of(rwbs)
            event = Event(t_ns - first, op, 0 if op == "F" else int(sector) * SECTOR, int(length), flags)
            pairs.issued(op if op == "F" else (op, int(sector)), event)
        else:
            rwbs, sector, _ = COMPLETE.match(found[4]).groups()
            op, _ = kind_of(rwbs)
            pairs.answered(op if op == "F" else (op, int(sector)), t_ns - first)
        yield from pairs.ready()
    yield from pairs.events
