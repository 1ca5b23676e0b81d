"""FAT by a program, mtools, on the loop device: with any kernel. Whole files are written and read; mtools cannot change one in place, so that
figure 7.3 has no FAT."""

import os
import shutil
import tempfile
from pathlib import Path

import formats
import meters
import samples
import stage
import stand

NAME = "fat"
ENVIRONMENT = {**os.environ, "MTOOLS_SKIP_CHECK": "1", "MTOOLSRC": "/dev/null"}


class Fat(stage.Filesystem):
    """It is mounted while the device is held open: then the kernel keeps what was read and written of it."""
    held = None

    def mkfs(self):
        return ["mkfs.vfat", "-F", "32"]

    def mount(self):
        self.held = os.open(self.device.loop, os.O_RDWR)

    def unmount(self):
        if self.held is not None:
            self.sync()
            os.close(self.held)
            self.held = None

    def sync(self):
        os.fsync(self.held)


class Stand(stand.Stand):
    def filesystem(self):
        for program in ("mkfs.vfat", "mcopy"):
            if not shutil.which(program):
                raise stand.Missing(f"{NAME}: {program} is not installed (packaging/apt-install bench)")
        return Fat(NAME, self.folder, False)

    def sync(self):
        self.fs.sync()

    def close(self, keep):
        try:
            if self.fs:
                self.fs.unmount()
        finally:
            super().close(keep)

    def copy(self, sources, target):
        stage.run("mcopy", "-Q", "-n", "-i", self.image.loop, *sources, target, env=ENVIRONMENT)


def without_reads(events):
    """While files are made: mtools reads whole cylinders into its buffer before it writes there, which no FAT in a kernel does."""
    creating = False
    for event in events:
        if isinstance(event, formats.Mark):
            creating = event.name in samples.CREATES
        elif creating and event.op == "R":
            continue
        yield event


class Run(samples.Run):
    """Files are made elsewhere and copied; in their order, and each with a sync of its own where writes wait."""

    def __init__(self, options, name, sample, writes):
        super().__init__(options, name, sample, "cached")
        self.each = writes != "cached"
        self.place = Stand(name, samples.SIZE, options.varve_bin, rotational=True)

    def trace(self):
        with tempfile.TemporaryDirectory(prefix="varve-fat-", dir=self.memory()) as folder:
            with meters.Readings(meters.all_meters()) as self.readings, self.place:
                self.end()
                names = []
                for part, mib, sizes in self.parts:
                    made = self.writer.create(Path(folder), part, mib, sizes)
                    names += [file.name for file in made]
                    self.begin(f"create {part}")
                    self.write(made)
                    self.end()
                    for file in made:
                        file.unlink()
                self.begin(samples.READS[0])
                self.place.copy([f"::/{name}" for name in names], folder)
                self.end()
        return list(without_reads(self.place.events)), self.readings.phases

    @staticmethod
    def memory():
        return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    def write(self, files):
        for some in ([file] for file in files) if self.each else [files]:
            self.place.copy(some, "::/")
            if self.each:
                self.place.sync()
