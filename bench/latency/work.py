"""Operations whose latency is measured, each kind in processes of its own."""

import mmap
import os
import random
import signal
import time
from array import array

BLOCK, MIB = 4096, 1 << 20
WRITTEN = 16 * MIB  # the file of each process that writes


class Span:
    """How long a process works: `least` seconds, and up to `most` as long as an operation has fewer than `wanted` samples. A percentile
    needs some, whatever an operation takes."""

    def __init__(self, least, most, wanted):
        now = time.monotonic()
        self.least, self.least_end, self.most_end, self.wanted = least, now + least, now + most, wanted
        self.took = {}  # {operation: its latencies, in ns}

    def keep(self, operation, ns):
        self.took.setdefault(operation, array("Q")).append(ns)

    def is_over(self):
        now = time.monotonic()
        if now < self.least_end:
            return False
        return now >= self.most_end or (bool(self.took) and min(map(len, self.took.values())) >= self.wanted)

    def turns(self):
        turn = 0
        while not self.is_over():
            yield turn
            turn += 1


def write_fsync(folder, number, span, seed):
    """4 KiB somewhere in a file that has been written before, made durable."""
    draw = random.Random(seed)
    fd = os.open(folder / f"written{number}", os.O_RDWR | os.O_CREAT)
    for at in range(0, WRITTEN, MIB):
        os.pwrite(fd, draw.randbytes(MIB), at)
    os.fsync(fd)
    block = draw.randbytes(BLOCK)
    for _ in span.turns():
        at = draw.randrange(WRITTEN // BLOCK) * BLOCK
        begin = time.perf_counter_ns()
        os.pwrite(fd, block, at)
        os.fsync(fd)
        span.keep("4 KiB write + fsync", time.perf_counter_ns() - begin)
    os.close(fd)


def random_read(folder, number, span, seed):
    draw = random.Random(seed)
    fd = os.open(folder / "big", os.O_RDONLY | os.O_DIRECT)
    blocks = os.fstat(fd).st_size // BLOCK
    room = mmap.mmap(-1, BLOCK)
    for _ in span.turns():
        at = draw.randrange(blocks) * BLOCK
        begin = time.perf_counter_ns()
        os.preadv(fd, [room], at)
        span.keep("4 KiB random read", time.perf_counter_ns() - begin)
    os.close(fd)


def names(folder, number, span, seed):
    """Empty files are made, looked at, renamed, removed: a thousand at a time in one folder, fewer where that would take too long."""
    draw = random.Random(seed)
    own = folder / f"names{number}"
    own.mkdir(exist_ok=True)
    clock = time.perf_counter_ns
    for turn in span.turns():
        made, end = 0, time.monotonic() + span.least / 4
        while made < 1000 and time.monotonic() < end:
            path = f"{own}/f{turn}-{made}"
            begin = clock()
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            span.keep("create", clock() - begin)
            os.close(fd)
            made += 1
        for i in draw.sample(range(made), made):
            begin = clock()
            os.stat(f"{own}/f{turn}-{i}")
            span.keep("stat", clock() - begin)
        for i in draw.sample(range(made), made):
            begin = clock()
            os.rename(f"{own}/f{turn}-{i}", f"{own}/g{turn}-{i}")
            span.keep("rename", clock() - begin)
        for i in draw.sample(range(made), made):
            begin = clock()
            os.unlink(f"{own}/g{turn}-{i}")
            span.keep("unlink", clock() - begin)


WORK = {"write": write_fsync, "read": random_read, "names": names}


def in_process(work, folder, number, spans, seed, file):
    """Forks: the child does the work, writes its latencies to `file`, or why it cannot, and ends."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        span = Span(*spans)
        WORK[work](folder, number, span, seed)
        with open(file, "wb") as out:
            for operation, values in span.took.items():
                out.write(f"{operation}\n{len(values)}\n".encode())
                values.tofile(out)
        status = 0
    except OSError as why:
        file.write_text(str(why))
    finally:
        os._exit(status)


def latencies(work, folder, depth, spans, seed, scratch):
    """{operation: its latencies, sorted, in ns}, of `depth` processes at once. `spans`: what Span takes."""
    files = [scratch / f"latencies{number}" for number in range(depth)]
    children = []
    try:
        for number, file in enumerate(files):
            children.append(in_process(work, folder, number, spans, seed + number, file))
        failed = []
        for file in files:
            if os.waitpid(children[0], 0)[1]:
                failed.append(file.read_text() if file.exists() else "a process failed")
            children.pop(0)
    finally:  # whatever has come in between
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if failed:
        raise RuntimeError(f"{work}: {failed[0]}")
    out = {}
    for file in files:
        with open(file, "rb") as text:
            while operation := text.readline().decode().strip():
                values = array("Q")
                values.fromfile(text, int(text.readline()))
                out.setdefault(operation, array("Q")).extend(values)
        file.unlink()
    return {operation: sorted(values) for operation, values in out.items()}
