"""A loop device on an image, a filesystem on it, and a recorder of what reaches it."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "common"), str(HERE.parent / "devices")]

import formats  # noqa: E402
import interruption  # noqa: E402
import kernel  # noqa: E402
import stage  # noqa: E402
from stage import MIB, Missing, run  # noqa: E402

# What keeps one filesystem from being traced, and need not concern the others.
FAILURES = (Missing, kernel.NoTracing, formats.BadTrace, OSError, RuntimeError, subprocess.SubprocessError)


class LoopImage:
    """An image that has nothing in it yet, in memory where there is room: what is counted is what reaches the loop device."""

    def __init__(self, folder, size, rotational=False):
        self.speed = 0
        memory = Path("/dev/shm")
        roomy = memory.is_dir() and shutil.disk_usage(memory).free > 4 * size and size <= 4096 * MIB
        self.folder = Path(tempfile.mkdtemp(prefix="varve-image-", dir=memory if roomy else folder))
        image = self.folder / "image"
        with open(image, "wb") as file:
            file.truncate(size)
        self.loop = None
        try:
            self.loop = run("losetup", "--find", "--show", *([] if roomy else ["--direct-io=on"]), image).strip()
            queue = Path("/sys/block", Path(self.loop).name, "queue")
            (queue / "rotational").write_text("1" if rotational else "0")
            (queue / "scheduler").write_text("mq-deadline" if rotational and "mq-deadline" in (queue / "scheduler").read_text() else "none")
        except BaseException:
            self.end()
            raise

    def end(self):
        try:
            if self.loop:
                run("losetup", "-d", self.loop)
                self.loop = None
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


class ModelImage(stage.Device):
    """A modelled device that takes its time, so that a filesystem which measures its device finds that one."""
    speed = 20  # times as fast as the real one: faster than that, the machine's own times hide it
    SPEEDS = {"sfs-l": 200}  # a write out of turn takes two seconds there, which nothing hides

    def __init__(self, folder, size, model, varve_bin, whole=None):
        super().__init__(Path(varve_bin) / "bench_device", folder, model, whole or size,
                         self.SPEEDS.get(model, self.speed), size if whole else None)

    def end(self):
        try:
            super().end()
        except subprocess.TimeoutExpired:  # a mount namespace of others has a copy of its mount
            self.process.kill()
            self.process.wait()


class Ext2(stage.Filesystem):
    def mkfs(self):
        return [f"mkfs.{self.name}", "-q", "-F", "-b", "4096", "-m", "0", "-E", "nodiscard,lazy_itable_init=0"]


class Vfat(stage.Filesystem):
    def mkfs(self):
        return ["mkfs.vfat", "-F", "32"]


class Xfs(stage.Xfs):
    def mkfs(self):
        small = ["--unsupported"] if Path(self.device.loop).exists() and device_size(self.device.loop) < 300 * MIB else []
        return [*super().mkfs(), *small]


class Btrfs(stage.Btrfs):
    """One copy of metadata, as on flash; devices up to 1 GiB get blocks of both kinds in the same groups, as mkfs.btrfs(8) advises: else
    most of them is full before it is."""
    extra = ()

    def mkfs(self):
        mixed = ["--mixed", "-d", "single"] if device_size(self.device.loop) <= 1024 * MIB else []
        return [*super().mkfs(), "-m", "single", *mixed]

    def mount(self):
        run("mount", "-t", "btrfs", *stage.Btrfs.options(self), *[word for o in self.extra for word in ("-o", o)], self.device.loop,
            self.directory)


class BtrfsNoCow(Btrfs):
    extra = ("nodatacow",)


class Fuse2fs(stage.Ext4):
    def mount(self):
        run("fuse2fs", self.device.loop, self.directory)


def device_size(loop):
    return int(Path("/sys/block", Path(loop).name, "size").read_text()) * 512


def knows_filesystem(name):
    return any(line.split()[-1] == name for line in Path("/proc/filesystems").read_text().splitlines() if line.strip())


# name: (class, type for mount, its mkfs)
PEERS = {
    "ext2": (Ext2, "ext2", "mkfs.ext2"),
    "ext3": (Ext2, "ext3", "mkfs.ext3"),
    "ext4": (stage.Ext4, "ext4", "mkfs.ext4"),
    "xfs": (Xfs, "xfs", "mkfs.xfs"),
    "btrfs": (Btrfs, "btrfs", "mkfs.btrfs"),
    "btrfs-nodatacow": (BtrfsNoCow, "btrfs", "mkfs.btrfs"),
    "vfat": (Vfat, "vfat", "mkfs.vfat"),
    "fuse2fs": (Fuse2fs, "ext4", "fuse2fs"),
}


def filesystem(name, folder, varve_bin):
    """`name`: one of PEERS, or varve with options of its mount, as varve:strategy=copying;placement=none. Raises Missing."""
    kind, _, options = name.partition(":")
    if kind == "varve":
        if not (Path(varve_bin) / "mkfs.varve").exists():
            raise Missing(f"{varve_bin}/mkfs.varve is not built")
        return stage.Varve("varve", folder, False, varve_bin, re.split("[,;]", options) if options else [], [])
    if kind not in PEERS or options:
        raise Missing(f"{name}: known are {', '.join(PEERS)}, varve, varve:OPTIONS")
    peer, mount_type, program = PEERS[kind]
    if not shutil.which(program):
        raise Missing(f"{name}: {program} is not installed (packaging/apt-install bench)")
    if kind != "fuse2fs" and not knows_filesystem(mount_type):
        raise Missing(f"{name}: this kernel does not know {mount_type}")
    return peer(mount_type, folder, False)


class Stand:
    """with Stand(...) as stand: the filesystem is made and mounted at stand.top, and everything since before mkfs is recorded.
    Afterwards stand.events has it. A name with @MODEL at its end means a modelled device of bench_device and not an image in memory; with
    `whole`, the beginning of one that has so many bytes."""

    def __init__(self, name, size, varve_bin, rotational=False, folder="/var/tmp", whole=None):
        name, _, self.model = name.partition("@")
        self.name, self.size, self.varve_bin, self.rotational, self.parent = name, size, varve_bin, rotational, folder
        self.events, self.whole = None, whole
        self.folder = self.image = self.recorder = self.fs = None

    def __enter__(self):
        try:
            with interruption.whole():
                self.begin()
        except BaseException:
            self.close(False)
            raise
        return self

    def begin(self):
        self.folder = Path(tempfile.mkdtemp(prefix="varve-stand-", dir=self.parent))
        self.fs = self.filesystem()
        self.image = ModelImage(self.folder, self.size, self.model, self.varve_bin, self.whole) if self.model else \
            LoopImage(self.folder, self.size, self.rotational)
        self.recorder = kernel.Recorder(self.image.loop)
        self.recorder.start()
        self.mark("mkfs")
        self.fs.make(self.image)
        self.fs.mount()
        self.top = self.fs.directory

    def __exit__(self, kind, *_):
        self.close(kind is None)

    def filesystem(self):
        return filesystem(self.name, self.folder, self.varve_bin)

    def mark(self, name):
        self.recorder.mark(name)

    def sync(self):
        handle = os.open(self.top, os.O_RDONLY)
        try:
            run("sync", "-f", self.top)
            os.fsync(handle)
        finally:
            os.close(handle)

    def remount(self):
        """What was written is on the device, and nothing is in memory."""
        self.fs.remount()

    def close(self, keep):
        with interruption.whole(), contextlib.ExitStack() as stack:  # the last one first, and each of them whatever the others do
            if self.folder:
                stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            if self.image:
                stack.callback(self.image.end)
            if self.recorder and self.recorder.reader:
                stack.callback(self.stop_recorder, keep)
            if self.fs and stage.is_mounted(self.fs.directory):
                stack.callback(self.fs.unmount)

    def stop_recorder(self, keep):
        if keep:
            self.events = self.recorder.stop()
        else:
            self.recorder.remove()
