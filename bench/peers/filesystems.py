"""The filesystems that are compared: how each is made, mounted, unmounted, and where its device counts bytes."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import interruption  # noqa: E402

EXAMPLES = Path("/usr/share/doc/libfuse3-dev/examples")
MIB = 1 << 20


class Missing(Exception):
    """What this filesystem needs is not here."""


def run(*command, **options):
    options.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run([str(c) for c in command], stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}\n{(done.stdout or '')[:500]}")
    return done.stdout or ""


def mounted(directory):
    with open("/proc/self/mounts") as mounts:
        return any(line.split()[1] == str(directory) for line in mounts)


def drop_caches():
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        pass


def write_image(path, size):
    """Every block of it written once: a flush after the first write to a block that the host has never written costs
    twice, and would measure the host."""
    block = os.urandom(MIB)
    with open(path, "wb", buffering=0) as image:
        for _ in range(size // MIB):
            image.write(block)
        os.fsync(image.fileno())


class Filesystem:
    name = ""
    needs_root = False
    on_image = True

    def __init__(self, folder, size, options):
        self.options = options
        self.folder = Path(folder) / self.name
        self.mount_point = self.folder / "mnt"
        self.image = self.folder / "image"
        self.size = size
        self.loop = None
        self.daemon = None
        self.version = ""

    # --- what each kind defines ---
    def check(self):
        """Raises Missing."""

    def make(self):
        raise NotImplementedError

    def mount(self):
        raise NotImplementedError

    def unmount(self):
        raise NotImplementedError

    # --- common ---
    def require(self, *commands):
        for command in commands:
            if not shutil.which(str(command)):
                raise Missing(f"{command} is not installed")
        if self.needs_root and os.geteuid() != 0:
            raise Missing("needs root")

    def prepare(self):
        self.mount_point.mkdir(parents=True)
        if self.on_image:
            write_image(self.image, self.size)

    def fresh(self, on_loop=False):
        """A new, empty, mounted filesystem; on a loop device if its traffic is to be counted there."""
        self.stop()
        with interruption.whole():
            if on_loop or self.needs_root:
                self.wait_until_free()
                self.loop = run("losetup", "--find", "--show", "--direct-io=on", self.image).strip()
            self.make()
        if self.on_image and self.image.stat().st_blocks * 512 < self.size * 0.99:
            print(f"warning: {self.name}'s mkfs has given blocks of the image back to the host")
        self.cold()

    @property
    def device(self):
        return self.loop or self.image

    def cold(self):
        with interruption.whole():
            if mounted(self.mount_point):
                self.unmount()
            drop_caches()
            self.mount()

    def stop(self):
        with interruption.whole():
            if mounted(self.mount_point):
                try:
                    self.unmount()
                except (RuntimeError, subprocess.SubprocessError):
                    subprocess.run(["umount", "-l", self.mount_point])
            if self.daemon and self.daemon.poll() is None:
                self.daemon.kill()
            self.daemon = None
            if self.loop:
                backing = Path("/sys/block", Path(self.loop).name, "loop/backing_file")
                # umount may have detached it with a filesystem of fuseblk, and it may be another program's by now.
                if backing.exists() and backing.read_text().strip() == str(self.image.resolve()):
                    subprocess.run(["losetup", "-d", self.loop])
                self.loop = None

    def wait_until_free(self):
        """Where another mount namespace has a copy of the mount, the old filesystem goes on writing to the image."""
        for _ in range(100):
            attached = run("losetup", "-j", self.image).strip()
            if not attached:
                return
            time.sleep(0.05)
        raise RuntimeError(f"the image is still in use: {attached}")

    def device_bytes_written(self):
        """Counted by the kernel at the loop device."""
        if not self.loop:
            return None
        return int(Path("/sys/block", Path(self.loop).name, "stat").read_text().split()[6]) * 512

    def daemon_pid(self):
        return self.daemon.pid if self.daemon else None

    def peak_memory(self):
        """In bytes, since this mount began; None if there is no daemon."""
        pid = self.daemon_pid()
        return int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024 if pid else None

    def start_daemon(self, *command):
        log = open(self.folder / "log", "a")
        self.daemon = subprocess.Popen([str(c) for c in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        for _ in range(1000):
            if mounted(self.mount_point):
                return
            if self.daemon.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError(f"{self.name} did not mount: see {self.folder / 'log'}")

    def end_daemon(self):
        for _ in range(50):  # a process of the last row may still be closing a file
            done = subprocess.run(["umount" if os.geteuid() == 0 else "fusermount3", *([] if os.geteuid() == 0 else ["-u"]),
                                   str(self.mount_point)], capture_output=True, text=True)
            if done.returncode == 0:
                break
            time.sleep(0.1)
        else:
            raise RuntimeError(done.stderr)
        self.daemon.wait(120)
        self.daemon = None


class Ext4(Filesystem):
    name = "ext4"
    needs_root = True

    def check(self):
        self.require("mkfs.ext4", "losetup")
        self.version = os.uname().release

    def make(self):
        run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", self.device)

    def mount(self):
        run("mount", "-t", "ext4", self.device, self.mount_point)

    def unmount(self):
        run("umount", self.mount_point)


class Fuse2fs(Filesystem):
    name = "fuse2fs"

    def check(self):
        self.require("mkfs.ext4", "fuse2fs")
        found = re.search(r"fuse2fs ([\d.]+)", subprocess.run(["fuse2fs", "-V"], capture_output=True, text=True).stderr)
        self.version = found[1] if found else ""

    def make(self):
        run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", self.device)

    def mount(self):
        self.start_daemon("fuse2fs", "-f", self.device, self.mount_point)

    def unmount(self):
        self.end_daemon()


class Passthrough(Filesystem):
    """libfuse's example over a folder of the host's filesystem: what FUSE itself allows."""
    name = "passthrough_ll"
    on_image = False

    def check(self):
        self.require("cc", "pkg-config")
        if not (EXAMPLES / "passthrough_ll.c").exists():
            raise Missing(f"{EXAMPLES}/passthrough_ll.c is not there (libfuse3-dev)")

    def prepare(self):
        super().prepare()
        self.version = run("pkg-config", "--modversion", "fuse3").strip()
        flags = run("pkg-config", "--cflags", "--libs", "fuse3").split()
        # It hands O_DIRECT on to the host but not aligned buffers, so 4 KiB direct writes fail; without this flag they
        # go through the host's page cache.
        source = (EXAMPLES / "passthrough_ll.c").read_text()
        (self.folder / "source.c").write_text(source.replace("fi->flags & ~O_NOFOLLOW", "fi->flags & ~(O_NOFOLLOW | O_DIRECT)"))
        run("cc", "-O2", "-w", f"-I{EXAMPLES}", self.folder / "source.c", "-o", self.folder / self.name, *flags)

    def fresh(self, on_loop=False):
        if on_loop:
            raise Missing("has no device of its own")
        super().fresh()

    def make(self):
        shutil.rmtree(self.folder / "source", ignore_errors=True)
        (self.folder / "source").mkdir()

    def mount(self):
        # It keeps a descriptor open for every inode the kernel knows.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.start_daemon(self.folder / self.name, "-f", "-o",
                          f"source={self.folder / 'source'},cache=always,writeback,timeout=86400,xattr,default_permissions", self.mount_point)

    def unmount(self):
        self.end_daemon()


class MemoryServer(Filesystem):
    """memory_server.cc: a server that answers at once, so what the kernel and its messages cost. What it holds is gone with the mount, so
    only the kernel's caches are dropped where others are mounted anew."""
    name = "memory"
    on_image = False

    def check(self):
        self.require("c++", "pkg-config")

    def prepare(self):
        super().prepare()
        self.version = run("pkg-config", "--modversion", "fuse3").strip()
        flags = run("pkg-config", "--cflags", "--libs", "fuse3").split()
        run("c++", "-O2", "-std=c++20", Path(__file__).with_name("memory_server.cc"), "-o", self.folder / self.name, *flags)

    def fresh(self, on_loop=False):
        if on_loop:
            raise Missing("has no device of its own")
        super().fresh()

    def cold(self):
        with interruption.whole():
            drop_caches()
            if not mounted(self.mount_point):
                self.mount()

    def make(self):
        pass

    def mount(self):
        self.start_daemon(self.folder / self.name, self.mount_point)

    def unmount(self):
        self.end_daemon()


class Varve(Filesystem):
    name = "varve"

    def tools(self):
        return self.options.varve_bin

    def check(self):
        self.bin = Path(self.tools())
        for tool in ("mkfs.varve", "varve"):
            if not (self.bin / tool).exists():
                raise Missing(f"{self.bin / tool} is not built (cmake --preset release && cmake --build --preset release)")
        self.version = run(self.bin / "varve", "--version").split()[-1]

    def make(self):
        run(self.bin / "mkfs.varve", "-q", "-f", "--no-discard", *self.options.mkfs_options.split(), self.device)

    def mount_options(self):
        return [self.options.mount_options] if self.options.mount_options else []

    def mount(self):
        options = ["-o", ",".join(self.mount_options())] if self.mount_options() else []
        run(self.bin / "varve", "mount", self.device, self.mount_point, *options, stdout=subprocess.DEVNULL)

    def unmount(self):
        run(self.bin / "varve", "umount", self.mount_point)

    def daemon_pid(self):
        return self.status()["mount"]["pid"]

    def status(self):
        return json.loads(run(self.bin / "varve", "status", "--json", self.mount_point))


class Before(Varve):
    """Another build of Varve: what a change does to its speed."""

    name = "before"

    def tools(self):
        return self.options.before_bin or "(no --before-bin)"


class Writethrough(Varve):
    """Varve without the kernel's writeback cache: each write(2) is a message."""

    name = "writethrough"

    def mount_options(self):
        return [*super().mount_options(), "writeback=off"]


ALL = [Ext4, Fuse2fs, Passthrough, MemoryServer, Before, Writethrough, Varve]
USUAL = [kind.name for kind in ALL if kind not in (Writethrough,)]
