"""Files of the samples Standard and Coarse (figure 7.1): made, changed in place and read on a filesystem that is traced."""

import os
import random
from pathlib import Path

import meters
import stand

KIB, MIB = 1 << 10, 1 << 20
SIZE = 512 * MIB  # of the device
# (name, MiB, sizes)
PARTS = [("small", 5, (1 * KIB, 10 * KIB)), ("medium", 20, (50 * KIB, 500 * KIB)), ("large", 75, (1 * MIB, 10 * MIB))]
UPDATES = [("medium", 1, (10 * KIB, 50 * KIB)), ("small", 0.25, (1 * KIB, 5 * KIB))]  # in this order, as published
# {sample: (parts, updates)}
SAMPLES = {"standard": (PARTS, UPDATES), "coarse": (PARTS[1:], [])}
CREATES = ["create small", "create medium", "create large"]
CHANGES = ["update small", "update medium"]
READS = ["read all", "look up all", "read all, names known"]
# How files are written.
WRITES = {"cached": "through the page cache, and what is left in it is synced at the end of each part",
          "synced": "each write waits until it is on the device (O_SYNC)",
          "uncached": "as synced, and the kernel's caches are emptied before each update"}


def drop_caches():
    Path("/proc/sys/vm/drop_caches").write_text("3")


class Writer:
    """Writes as one of WRITES says. The same seed draws the same files by lot."""

    def __init__(self, writes, seed, scale):
        self.writes, self.scale = writes, scale
        self.random = random.Random(seed)
        self.data = self.random.randbytes(10 * MIB)

    def open(self, name, mode):
        sync = 0 if self.writes == "cached" else os.O_SYNC
        return open(name, mode, buffering=0, opener=lambda path, flags: os.open(path, flags | sync, 0o644))

    def lengths(self, mib, sizes):
        left = int(mib * MIB * self.scale)
        while left > 0:
            length = min(left, self.random.randint(*sizes))
            yield length
            left -= length

    def put(self, file, length):
        left = memoryview(self.data)[:length]
        while left:
            left = left[file.write(left):]

    def create(self, top, part, mib, sizes):
        names = []
        for number, length in enumerate(self.lengths(mib, sizes)):
            names.append(top / f"{part}{number}")
            with self.open(names[-1], "wb") as file:
                self.put(file, length)
        return names

    def update(self, names, mib, sizes):
        """Until so much has been written. Most files are smaller than a change may be."""
        left = int(mib * MIB * self.scale)
        while left > 0:
            name = self.random.choice(names)
            if self.writes == "uncached":
                drop_caches()
            with self.open(name, "r+b") as file:
                whole = os.fstat(file.fileno()).st_size
                length = min(left, self.random.randint(*sizes), whole)
                file.seek(self.random.randint(0, whole - length))
                self.put(file, length)
            left -= length


class Run:
    """A sample on a filesystem. Each part begins after a new mount and ends when everything is on the device, as in the thesis."""

    def __init__(self, options, name, sample, writes):
        self.parts, self.updates = SAMPLES[sample]
        self.writer = Writer(writes, options.seed, options.scale)
        self.place = stand.Stand(name, SIZE, options.varve_bin, rotational=True)

    def begin(self, phase):
        self.place.mark(phase)
        self.readings.begin(phase)

    def end(self):
        """Everything is on the device; what comes next finds nothing in memory."""
        self.place.sync()
        self.place.fs.unmount()
        self.readings.end()
        self.place.mark("mount")
        drop_caches()
        self.place.fs.mount()

    def trace(self):
        """(events, {phase: what the machine took})."""
        with meters.Readings(meters.all_meters()) as self.readings, self.place:
            self.end()
            files = []
            for part, mib, sizes in self.parts:
                self.begin(f"create {part}")
                files += self.writer.create(self.place.top, part, mib, sizes)
                self.end()
            for part, mib, sizes in self.updates:
                self.begin(f"update {part}")
                self.writer.update(files, mib, sizes)
                self.end()
            self.read(files)
            self.end()
        return self.place.events, self.readings.phases

    def read(self, files):
        """Once with the looking up of names among the reading, and once after it, as if directories were in memory."""
        everything, names, known = READS
        self.begin(everything)
        for file in files:
            file.read_bytes()
        self.end()
        self.begin(names)
        for file in files:
            file.stat()
        self.begin(known)
        for file in files:
            file.read_bytes()
