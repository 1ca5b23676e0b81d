"""A modelled device, the loop device on it, and the filesystems that take turns there."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import interruption  # noqa: E402

MIB = 1 << 20


class Missing(Exception):
    """What this filesystem needs is not here."""


def run(*command, **options):
    with interruption.whole():  # most of these mount or make something
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[:500]}")
    return done.stdout


def is_mounted(directory):
    with open("/proc/self/mounts") as mounts:
        return any(line.split()[1] == str(directory) for line in mounts)


def let_go(directory):
    """Closes what an interruption has left open in this process."""
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if Path(os.readlink(entry)).is_relative_to(directory):
                os.close(int(entry.name))


def unmount(directory, *command):
    """A process that has just ended may still be closing its files."""
    for attempt in range(100):
        if not is_mounted(directory):
            return
        try:
            run(*(command or ("umount",)), directory)
        except RuntimeError:
            if attempt == 9:
                let_go(directory)
            if attempt == 99:
                run("umount", "-l", directory)  # it goes with the last one that uses it
                raise
            time.sleep(0.1)


class SmallMachine:
    """Bounds what the kernel keeps unwritten, as a machine with little memory does; gives back what was set before."""
    FOLDER = Path("/proc/sys/vm")

    def __init__(self, dirty_mib):
        self.wanted = {"dirty_bytes": dirty_mib * MIB, "dirty_background_bytes": dirty_mib * MIB // 2} if dirty_mib else {}
        self.before = {}

    def __enter__(self):
        for name in ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes"):
            self.before[name] = (self.FOLDER / name).read_text()
        for name, value in self.wanted.items():
            (self.FOLDER / name).write_text(str(value))

    def __exit__(self, *_):
        for name, value in self.before.items():
            if value.strip() != "0":
                (self.FOLDER / name).write_text(value)


class Device:
    """A process that shows the device as a file, and a loop device on that file, or on its first `part` bytes."""

    def __init__(self, program, folder, model, size, speed, part=None):
        self.speed, self.part = speed, part
        self.folder = Path(folder) / "device"
        self.folder.mkdir()
        self.log = open(Path(folder) / "device.log", "w")
        self.process = self.loop = None
        try:
            with interruption.whole():
                self.begin([program, "--model", model, "--size", str(size), "--speed", str(speed), self.folder])
        except BaseException:
            self.end()
            raise

    def begin(self, command):
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        for _ in range(200):
            if is_mounted(self.folder):
                break
            if self.process.poll() is not None:
                raise RuntimeError(f"{command[0]}: {Path(self.log.name).read_text()}")
            time.sleep(0.02)
        limit = ["--sizelimit", self.part] if self.part else []
        self.loop = run("losetup", "--find", "--show", "--direct-io=on", *limit, self.folder / "device").strip()
        queue = Path("/sys/block", Path(self.loop).name, "queue")
        (queue / "rotational").write_text("1" if self.counters()["rotational"] else "0")

    def counters(self):
        return json.loads((self.folder / "counters").read_text())

    def end(self):
        with interruption.whole():
            try:
                self.detach()
            finally:
                unmount(self.folder)
                if self.process:
                    self.process.wait(30)
                self.log.close()

    def detach(self):
        if not self.loop:
            return
        run("losetup", "-d", self.loop)
        for _ in range(100):  # the kernel lets go of it a moment later
            if not Path("/sys/block", Path(self.loop).name, "loop/backing_file").exists():
                return
            time.sleep(0.05)


class Filesystem:
    def __init__(self, name, folder, discard):
        self.name, self.discard = name, discard
        self.directory = Path(folder) / "mount"
        self.directory.mkdir(exist_ok=True)
        self.device = None

    def make(self, device):
        self.device = device
        run(*self.mkfs(), device.loop)

    def mount(self):
        run("mount", "-t", self.name, *self.options(), self.device.loop, self.directory)

    def options(self):
        return ["-o", "discard"] if self.discard else []

    def unmount(self):
        unmount(self.directory)

    def remount(self):
        self.unmount()
        Path("/proc/sys/vm/drop_caches").write_text("3")
        self.mount()


class Ext4(Filesystem):
    def mkfs(self):
        return ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", ("discard" if self.discard else "nodiscard") + ",lazy_itable_init=0"]


class Xfs(Filesystem):
    def mkfs(self):
        return ["mkfs.xfs", "-q", "-f", *([] if self.discard else ["-K"])]


class Btrfs(Filesystem):
    def mkfs(self):
        return ["mkfs.btrfs", "-q", "-f", *([] if self.discard else ["-K"])]

    def options(self):
        return ["-o", "discard=sync" if self.discard else "nodiscard"]


class Varve(Filesystem):
    def __init__(self, name, folder, discard, bin_folder, mount_options, mkfs_options):
        super().__init__(name, folder, discard)
        self.bin, self.mount_options, self.mkfs_options = Path(bin_folder), mount_options, mkfs_options

    def mkfs(self):
        return [self.bin / "mkfs.varve", "-q", "-f", *self.mkfs_options, *([] if self.discard else ["--no-discard"])]

    def mount(self):
        options = self.mount_options + (["discard"] if self.discard else [])
        run(self.bin / "varve", "mount", self.device.loop, self.directory, *(["-o", ",".join(options)] if options else []))

    def unmount(self):
        unmount(self.directory, self.bin / "varve", "umount")

    def status(self):
        return json.loads(run(self.bin / "varve", "status", "--json", self.directory))


KINDS = {"ext4": Ext4, "xfs": Xfs, "btrfs": Btrfs}


def filesystem(name, folder, options):
    """`name` as ext4, ext4+discard, varve, varve+discard, …"""
    kind, _, discard = name.partition("+")
    if discard not in ("", "discard"):
        raise Missing(f"{name}: only +discard can be added")
    if kind == "varve":
        return Varve(kind, folder, bool(discard), options.varve_bin, options.mount_options, options.mkfs_options)
    if kind not in KINDS:
        raise Missing(f"{name}: known are {', '.join(KINDS)}, varve")
    if not shutil.which(f"mkfs.{kind}"):
        raise Missing(f"mkfs.{kind} is not installed")
    return KINDS[kind](kind, folder, bool(discard))
