"""A guest: Debian's User-Mode Linux with a clock of its own (clock.c), whose root is this machine's, read-only."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = "linux.uml"
NEEDED = {PROGRAM: "user-mode-linux", "mkfs.f2fs": "f2fs-tools", "mkfs.nilfs2": "nilfs-tools", "mkfs.btrfs": "btrfs-progs", "mkfs.ext4": "e2fsprogs",
          "losetup": "util-linux", "modprobe": "kmod", "fusermount3": "fuse3", "pgrep": "procps", "cc": "gcc"}
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def missing():
    """Packages that are to be installed first."""
    return sorted({package for program, package in NEEDED.items() if not shutil.which(program, path=PATH)})


class Guests:
    def __init__(self, folder, cpu, memory_mib, seconds):
        self.folder, self.cpu, self.memory, self.seconds = Path(folder).resolve(), cpu, memory_mib, seconds
        self.clock, self.running, self.ended = self.folder / "clock.so", set(), False
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", self.clock, HERE / "clock.c", "-ldl"], check=True)

    def run(self, options):
        """What guest.py says about one part. A guest that says nothing is a failure."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="guest-") as place:
            wanted, result, log = (Path(place) / name for name in ("options.json", "result.json", "log"))
            wanted.write_text(json.dumps(options))
            first = Path(place) / "init"
            first.write_text(f"#!/bin/sh\nexec python3 -B '{HERE}/guest.py' '{wanted}' '{result}'\n")
            first.chmod(0o755)
            with log.open("w") as out:
                ended = self.start(first, place, out)
            said = json.loads(result.read_text()) if result.exists() else {"failed": f"the guest {ended}"}
            return {**said, "log": log.read_text(errors="replace").splitlines()[-100:]} if "failed" in said else said

    def start(self, first, place, out):
        """With a session of its own: an end of this program is no end of half a guest."""
        command = [shutil.which(PROGRAM, path=PATH), f"mem={self.memory}M", f"uml_dir={place}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
                   f"init={first}", "con=null", "con0=null,fd:1"]
        environment = {"PATH": PATH, "GUEST_CPU": str(self.cpu), "LD_PRELOAD": str(self.clock), "HOME": place}
        guest = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, start_new_session=True)
        self.running.add(guest)
        try:
            return f"ended with status {guest.wait(self.seconds)}"
        except subprocess.TimeoutExpired:
            return f"took more than {self.seconds} s"
        finally:
            end(guest)
            self.running.discard(guest)

    def end(self):
        """From another thread: parts that wait for a guest fail, which says nothing about them."""
        self.ended = True
        for guest in list(self.running):
            end(guest)


def end(guest):
    """All processes of a guest are in its session, and belong to one group."""
    if guest.poll() is None:
        os.killpg(guest.pid, 9)
        guest.wait()
