"""What is done on each device. A workload gets a Run and says how many operations it has done; parts of it that are counted apart
are yielded one after the other as (row, operations)."""

import os
import random
import sqlite3
import sys
import time
from array import array
from bisect import bisect_left
from itertools import accumulate
from pathlib import Path

from experiment import percentile
from stage import Missing

MIB, BLOCK = 1 << 20, 4096
IDLE = 60  # seconds, which the device's speed does not shorten: the filesystem's clock is the machine's


class Zipf:
    """Numbers below `count`, the first ones most often, spread over all places."""

    def __init__(self, count, seed, exponent=1.0):
        self.random = random.Random(seed)
        self.sums = array("d", accumulate((i + 1) ** -exponent for i in range(count)))
        self.places = list(range(count))
        self.random.shuffle(self.places)

    def next(self):
        return self.places[bisect_left(self.sums, self.random.random() * self.sums[-1])]


class Run:
    def __init__(self, filesystem, device, size, options):
        self.fs, self.device, self.size, self.scale, self.seed = filesystem, device, size, options.scale, options.seed
        self.budget = options.budget / self.device.speed if self.device.speed else float("inf")
        self.top = filesystem.directory
        self.waits = {}  # seconds of the device that each call has taken, by its name

    def count(self, number):
        return max(int(number * self.scale), 10)

    def some(self, most):
        """0, 1, … below `most`, as long as there is time."""
        end = time.monotonic() + self.budget
        for number in range(most):
            yield number
            if time.monotonic() > end:
                return

    def timed(self, call, *arguments):
        begin = time.monotonic()
        result = call(*arguments)
        self.waits.setdefault(call.__name__, array("d")).append((time.monotonic() - begin) * (self.device.speed or 1))
        return result

    def take_waits(self):
        """{call: (seconds that one in a thousand exceeds, the longest)} since the last time."""
        waits, self.waits = self.waits, {}
        ordered = {call: sorted(seconds) for call, seconds in waits.items()}
        return {call: (percentile(seconds, 0.999), seconds[-1]) for call, seconds in ordered.items()}

    def sync(self):
        fd = os.open(self.top, os.O_RDONLY)
        os.system(f"sync -f '{self.top}'")
        os.fsync(fd)
        os.close(fd)

    def filled(self, name, size):
        """A file of that size, written in a row and synced."""
        fd = os.open(self.top / name, os.O_RDWR | os.O_CREAT, 0o644)
        data = random.Random(self.seed).randbytes(MIB)
        for at in range(0, size, MIB):
            os.pwrite(fd, data[:min(MIB, size - at)], at)
        os.fsync(fd)
        return fd


def sync4k(run):
    """4 KiB somewhere in a file of 64 MiB, fdatasync."""
    fd = run.filled("file", 64 * MIB)
    yield None
    chosen, data, done = random.Random(run.seed), os.urandom(BLOCK), 0
    for _ in run.some(run.count(1000)):
        os.pwrite(fd, data, chosen.randrange(64 * MIB // BLOCK) * BLOCK)
        run.timed(os.fdatasync, fd)
        done += 1
    os.close(fd)
    yield "4 KiB + fdatasync", done


def sqlite(run):
    """One row a transaction, both journals."""
    for journal, row in (("wal", "SQLite, WAL"), ("delete", "SQLite, rollback journal")):
        base = sqlite3.connect(run.top / f"{journal}.db", isolation_level=None)
        base.execute(f"pragma journal_mode={journal}")
        base.execute("pragma synchronous=full")
        base.execute("create table t (key integer primary key, who text, what text)")
        run.sync()
        yield None
        chosen, done = random.Random(run.seed), 0
        for _ in run.some(run.count(400)):
            done += 1
            run.timed(base.execute, "insert or replace into t values (?, ?, ?)",
                      (chosen.randrange(20000), "x" * chosen.randrange(10, 60), "y" * chosen.randrange(50, 300)))
        base.close()
        yield row, done


def untar(run):
    """Many small files, a few larger ones, then sync."""
    yield None
    sizes, count = random.Random(run.seed), run.count(2000)
    data = sizes.randbytes(MIB)
    for number in range(count):
        if number % 50 == 0:
            folder = run.top / f"tree{number // 50}"
            folder.mkdir()
        with open(folder / f"file{number}", "wb", buffering=0) as file:
            run.timed(file.write, data[:min(int(sizes.lognormvariate(8.5, 1.3)), MIB)])
    run.timed(run.sync)
    yield "untar + sync", count


def postmark(run):
    """Small files that are made, read, appended to and removed; nothing is synced but the end."""
    chosen, count = random.Random(run.seed), run.count(10000)
    data = chosen.randbytes(16384)
    names = []

    def make():
        name = run.top / f"mail{chosen.randrange(1 << 40)}"
        with open(name, "wb", buffering=0) as file:
            run.timed(file.write, data[:chosen.randrange(500, 9800)])
        names.append(name)

    for _ in range(500):
        make()
    run.sync()
    yield None
    for _ in range(count):
        if chosen.random() < 0.5:
            make()
        else:
            place = chosen.randrange(len(names))
            names[place], names[-1] = names[-1], names[place]
            os.unlink(names.pop())
        name = names[chosen.randrange(len(names))]
        if chosen.random() < 0.5:
            name.read_bytes()
        else:
            with open(name, "ab", buffering=0) as file:
                run.timed(file.write, data[:chosen.randrange(500, 4000)])
    run.sync()
    yield "postmark", count


def log_lines(run):
    """A line of 100 bytes and fsync."""
    fd = os.open(run.top / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.fsync(fd)
    yield None
    done = 0
    for number in run.some(run.count(500)):
        os.write(fd, b"%099d\n" % number)
        run.timed(os.fsync, fd)
        done += 1
    os.close(fd)
    yield "log line + fsync", done


def plain_log(run):
    """Lines of 100 bytes that nobody waits for, and a sync at the end."""
    fd = os.open(run.top / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    yield None
    count = run.count(20000)
    for number in range(count):
        os.write(fd, b"%099d\n" % number)
    os.close(fd)
    run.timed(run.sync)
    yield "log line", count


def desktop(run):
    """Documents that are saved anew, a browser's cache, a log, a small database."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "flash"))
    from loads import Desktop  # which itself needs this file
    with Desktop(run.top, run.size, run.seed, random.Random(run.seed).randbytes(MIB)) as load:
        load.prepare()
        run.sync()
        yield None
        written = load.write(int(run.size * 0.2 * run.scale))
    run.timed(run.sync)
    yield "a day at a desk", written // BLOCK


def aged(run):
    """Three times small files are made until the device is 70 % full, and every other one is removed; then others are made."""
    sizes, names = random.Random(run.seed), []
    data = sizes.randbytes(MIB)
    for turn in range(3):
        held = sum(length for _, length in names)
        folder = run.top / f"old{turn}"
        folder.mkdir()
        while held < 0.7 * run.size:
            name, length = folder / f"file{len(names)}", min(int(sizes.lognormvariate(10, 1.5)), MIB)
            name.write_bytes(data[:length])
            names.append((name, length))
            held += length
        sizes.shuffle(names)
        for name, _ in names[1::2]:
            name.unlink()
        names = names[::2]
    run.sync()
    for work in (untar, sync4k):
        for part in work(run):
            yield part and (f"{part[0]}, aged", part[1])


def read_all(run, name, size):
    fd = os.open(run.top / name, os.O_RDONLY)
    for at in range(0, size, MIB):
        os.pread(fd, MIB, at)
    os.close(fd)


def stream(run):
    """One file, written and read in a row."""
    size = max(int(run.size * 0.2 * run.scale) // MIB, 16) * MIB
    yield None
    os.close(run.filled("stream", size))
    yield "write in a row", size // BLOCK
    run.fs.remount()
    yield None
    read_all(run, "stream", size)
    yield "cold read in a row", size // BLOCK


def scattered(run):
    """One file, written over here and there as often as it has blocks, and read in a row: at once, and after an idle minute."""
    size = max(int(run.size * 0.2 * run.scale) // MIB, 16) * MIB
    fd = run.filled("file", size)
    chosen, data = random.Random(run.seed), random.Random(run.seed).randbytes(BLOCK)
    for _ in run.some(size // BLOCK):
        os.pwrite(fd, data, chosen.randrange(size // BLOCK) * BLOCK)
    os.fsync(fd)
    os.close(fd)
    run.fs.remount()
    yield None
    part = min(size, 32 * MIB)
    read_all(run, "file", part)
    yield "cold read of a scattered file", part // BLOCK
    if not run.device.speed:
        return  # then there is no idle time
    run.sync()
    time.sleep(IDLE)
    yield "an idle minute after it", size // BLOCK
    run.fs.remount()
    yield None
    read_all(run, "file", size)
    yield "cold read after an idle minute", size // BLOCK


def overwrites(run, share, text, next_block, lot=None, times=1.2):
    """Blocks of one file that fills so much of the device are written over: what was free at first is used up in the first third. After each
    `lot` of them comes an fdatasync; without one there is an fsync at the end. `times`: how many times as many blocks as the device has."""
    size = int(run.size * share) // MIB * MIB
    room = os.statvfs(run.top)
    if size > room.f_bavail * room.f_frsize:
        raise Missing(f"{share:.0%} of the device are more than this filesystem has room for")
    fd = run.filled("file", size)
    yield None
    total = run.count(times * run.size / BLOCK / (lot or 1))
    data = random.Random(run.seed).randbytes(BLOCK)
    for when, most in (("early", total // 3), ("late", total - total // 3)):
        done = 0
        for _ in run.some(most):
            for _ in range(lot or 1):
                run.timed(os.pwrite, fd, data, next_block() * BLOCK)
            if lot:
                run.timed(os.fdatasync, fd)
            done += lot or 1
        if not lot:
            run.timed(os.fsync, fd)
        yield f"{text}, {when}", done
    os.close(fd)
    run.fs.remount()
    yield None
    part = min(size, 64 * MIB)
    read_all(run, "file", part)
    yield f"cold read after {text}", part // BLOCK


def zipf(share, lot=None):
    def work(run):
        chosen = Zipf(int(run.size * share) // MIB * MIB // BLOCK, run.seed)
        yield from overwrites(run, share, f"Zipf, {share:.0%} full", chosen.next, lot)
    return work


def uniform(share, lot=None, times=1.2):
    def work(run):
        chosen, blocks = random.Random(run.seed), int(run.size * share) // MIB * MIB // BLOCK
        text = f"uniform{' + fdatasync' if lot == 1 else ''}, {share:.0%} full"
        yield from overwrites(run, share, text, lambda: chosen.randrange(blocks), lot, times)
    return work


WORKLOADS = {
    "sync4k": sync4k,
    "sqlite": sqlite,
    "untar": untar,
    "postmark": postmark,
    "log": log_lines,
    "plainlog": plain_log,
    "stream": stream,
    "scattered": scattered,
    "desktop": desktop,
    "aged": aged,
    **{f"zipf{share}": zipf(share / 100) for share in (80, 85, 90, 95)},
    **{f"uniform{share}": uniform(share / 100) for share in (80, 85, 90, 95)},
    "uniform85sync": uniform(0.85, lot=1, times=0.02),
}
QUICK = ["sync4k", "sqlite", "untar", "postmark", "log", "stream", "zipf80", "uniform85"]
