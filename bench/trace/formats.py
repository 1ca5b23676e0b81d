"""Traces of block I/O: the project's own text, and those of others.

An event is (t_ns, op, offset, length, flags, took_ns): op R, W, F or D; flags as in event.h; took_ns None where it is not known."""

import datetime
import re
import shutil
import struct
import tempfile
from collections import defaultdict, deque
from typing import NamedTuple, Optional

SECTOR = 512


class Event(NamedTuple):
    t_ns: int
    op: str
    offset: int
    length: int
    flags: str = ""
    took_ns: Optional[int] = None


class Mark(NamedTuple):
    name: str


class BadTrace(Exception):
    """What is wrong, and where."""


def line_of(item):
    if isinstance(item, Mark):
        return f"#mark {item.name}\n"
    took = "" if item.took_ns is None else f" {item.took_ns}"
    return f"{item.t_ns} {item.op} {item.offset} {item.length} {item.flags or '-'}{took}\n"


def write(items, file):
    if isinstance(items, Stored):
        items.copy_to(file)
    else:
        file.writelines(map(line_of, items))


class Stored:
    """A trace in a file without a name: one of hours need not fit in memory. One loop over it at a time."""

    def __init__(self, items):
        self.file = tempfile.TemporaryFile("w+", prefix="varve-events-")
        write(items, self.file)

    def __iter__(self):
        self.file.seek(0)
        return read(self.file)

    def copy_to(self, file):
        self.file.seek(0)
        shutil.copyfileobj(self.file, file)


def numbered(lines, parse):
    """parse(line) of each, with the line's number in what it complains about; None: no event."""
    for number, line in enumerate(lines, 1):
        try:
            found = parse(line.rstrip("\n"))
        except (ValueError, IndexError, KeyError) as error:
            raise BadTrace(f"line {number}: {error}: {line.strip()[:80]}") from error
        if found is not None:
            yield found


def read(lines):
    """The project's own."""
    def parse(line):
        if line.startswith("#mark "):
            return Mark(line[6:])
        if not line or line.startswith("#"):
            return None
        t, op, offset, length, flags, *took = line.split()
        if op not in ("R", "W", "F", "D") or len(took) > 1:
            raise ValueError("no event")
        return Event(int(t), op, int(offset), int(length), flags.replace("-", ""), int(took[0]) if took else None)
    return numbered(lines, parse)


def kind_of(rwbs):
    """(op, flags) of what the kernel calls RWBS: F for a flush before, an operation, F for a durable one, A, S, M."""
    before = rwbs.startswith("F") and len(rwbs) > 1
    rest = rwbs[1:] if before else rwbs
    op, rest = rest[0], rest[1:]
    flags = "".join(flag for flag, letter in (("f", "F"), ("s", "S"), ("m", "M")) if letter in rest)
    if op == "N" and before:  # as blkparse writes it
        return "F", ""
    if op == "N":  # zeros that the device shall write: it would have to
        return "W", flags + "z"
    if op not in "RWFD":
        raise ValueError(f"no operation: {rwbs}")
    return op, ("p" + flags if before and op == "W" else flags)


class Pairs:
    """Requests that wait for their answer."""
    most = 10000  # that are held behind one without an answer

    def __init__(self):
        self.waiting = defaultdict(deque)
        self.events, self.gone = deque(), 0  # gone: how many were in front of events[0]

    def issued(self, key, event):
        self.waiting[key].append(self.gone + len(self.events))
        self.events.append(event)

    def answered(self, key, t_ns):
        if self.waiting.get(key):
            place = self.waiting[key].popleft() - self.gone
            if place >= 0:
                self.events[place] = self.events[place]._replace(took_ns=max(t_ns - self.events[place].t_ns, 0))

    def ready(self):
        """Takes out what is complete, in the order of issue."""
        while self.events and (isinstance(self.events[0], Mark) or self.events[0].took_ns is not None or len(self.events) > self.most):
            self.gone += 1
            yield self.events.popleft()


BLKPARSE = re.compile(r"\s*(\d+),(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\.(\d{9})\s+(\d+)\s+(\w+)\s+(\w+)(?:\s+(\d+) \+ (\d+))?")


def blkparse(lines):
    """blkparse's default text: issues (D) and completions (C); the summary at its end is passed over."""
    pairs = Pairs()
    for line in lines:
        found = BLKPARSE.match(line)
        if not found or found[8] not in ("D", "C") or not set(found[9]) <= set("RWFDNASMU"):
            continue
        op, flags = kind_of(found[9])
        sector, count = int(found[10] or 0), int(found[11] or 0)
        if op != "F" and count == 0:
            continue  # the answer to a flush that came with a write
        key = op if op == "F" else (op, sector, count)
        t_ns = int(found[5]) * 10**9 + int(found[6])
        if found[8] == "D":
            pairs.issued(key, Event(t_ns, op, 0 if op == "F" else sector * SECTOR, count * SECTOR, flags))
        else:
            pairs.answered(key, t_ns)
    return pairs.events


FIO_OPS = {"read": "R", "write": "W", "trim": "D", "sync": "F", "datasync": "F"}


def fio(lines):
    """fio's iolog, version 2 or 3. A sync without a place is a flush; times of version 2 are those of its waits."""
    lines = iter(lines)
    head = next(lines, "").strip()
    if head not in ("fio version 2 iolog", "fio version 3 iolog"):
        raise BadTrace(f"line 1: no iolog of version 2 or 3: {head[:60]}")
    clock = 0

    def parse(line):
        nonlocal clock
        words = line.split()
        if not words:
            return None
        t_ns = clock
        if head[12] == "3":
            t_ns = int(words.pop(0)) * FIO_TIME
        action = words[1]
        if action in ("add", "open", "close"):
            return None
        if action == "wait":
            clock += int(words[2]) * 1000
            return None
        offset, length = (int(words[2]), int(words[3])) if len(words) > 3 else (0, 0)
        op = FIO_OPS[action]
        return Event(t_ns, op, 0 if op == "F" else offset, 0 if op == "F" else length)
    return numbered(lines, parse)


FIO_TIME = 1000  # ns: fio 3.33 writes microseconds, as a log of a run with a known rate shows (its manual does not say)


def log_writes(file):
    """dm-log-writes: little-endian, an entry in a sector of its own, its data behind. It has no times: events are a microsecond apart."""
    head = file.read(SECTOR)
    if len(head) < 28:
        raise BadTrace("no dm-log-writes: too short")
    magic, version, entries, sector = struct.unpack_from("<QQQI", head)
    if magic != 0x6A736677736872 or version != 1:
        raise BadTrace(f"no dm-log-writes of version 1: magic {magic:#x}, version {version}")
    file.seek(sector)
    for number in range(entries):
        entry = file.read(sector)
        if len(entry) < 32:
            raise BadTrace(f"entry {number} of {entries} is cut off")
        place, count, flags, data = struct.unpack_from("<QQQQ", entry)
        if flags & 8:
            yield Mark(entry[32:32 + data].rstrip(b"\0\n").decode("utf-8", "replace"))
            continue
        # Places and counts are in units of `sector`.
        text = ("p" if flags & 1 else "") + ("f" if flags & 2 else "") + ("m" if flags & 16 else "")
        t_ns = number * 1000
        if flags & 4:
            yield Event(t_ns, "D", place * sector, count * sector, text.replace("p", ""))
            continue
        if count == 0 and flags & 1:
            yield Event(t_ns, "F", 0, 0)
        elif count:
            yield Event(t_ns, "W", place * sector, count * sector, text)
        file.seek(count * sector, 1)


NBDKIT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) connection=(\d+) (?:\.\.\.)?(\w+) id=(\d+)(.*)")
NBDKIT_OPS = {"Read": "R", "Write": "W", "Zero": "W", "Trim": "D", "Flush": "F"}


def nbdkit(lines):
    """The log of nbdkit's filter `log`; answers are paired by connection and id."""
    pairs, first = Pairs(), None
    for number, line in enumerate(lines, 1):
        found = NBDKIT.match(line)
        if not found or found[3] not in NBDKIT_OPS:
            continue
        moment = datetime.datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S.%f")
        first = first or moment
        t_ns = (moment - first) // datetime.timedelta(microseconds=1) * 1000
        key = (found[2], found[4])
        if " return=" in found[5]:
            pairs.answered(key, t_ns)
            continue
        fields = dict(re.findall(r"(\w+)=(\S+)", found[5]))
        op = NBDKIT_OPS[found[3]]
        try:
            offset, length = (0, 0) if op == "F" else (int(fields["offset"], 16), int(fields["count"], 16))
        except KeyError as error:
            raise BadTrace(f"line {number}: no {error.args[0]}: {line.strip()[:80]}") from error
        flags = ("f" if fields.get("fua", "0") != "0" else "") + ("z" if found[3] == "Zero" else "")
        pairs.issued(key, Event(t_ns, op, offset, length, flags))
    return pairs.events


def to_fio(items, file, version=3, name="device"):
    """For fio --read_iolog; a flush becomes a datasync. Version 2 knows no pauses below 100 µs and has none here."""
    file.write(f"fio version {version} iolog\n")
    actions = {"R": "read", "W": "write", "D": "trim", "F": "datasync"}

    def put(t_ns, action, place=""):
        file.write((f"{t_ns // FIO_TIME} " if version == 3 else "") + f"{name} {action}{place}\n")

    last, clock = 0, 0
    put(0, "add")
    put(0, "open")
    for event in items:
        if isinstance(event, Mark):
            continue
        last = max(last, event.t_ns)
        if version == 2 and last - clock >= 100_000:
            put(last, "wait", f" {(last - clock) // 1000} 0")
            clock = last
        if "p" in event.flags:
            put(last, "datasync", " 0 0")
        put(last, actions[event.op], f" {event.offset} {event.length}")
        if "f" in event.flags or "S" in event.flags:
            put(last, "datasync", " 0 0")
    put(last, "close")


def to_mqsim(items, file, device=0):
    """MQSim's ASCII traces: arrival in ns, device, sector, sectors, 0 for a write and 1 for a read. It knows nothing else."""
    for event in items:
        if isinstance(event, Event) and event.op in "RW":
            file.write(f"{event.t_ns} {device} {event.offset // SECTOR} {event.length // SECTOR} {0 if event.op == 'W' else 1}\n")
