"""Images, mounts and daemons for the end-to-end tests. A test file begins with `from harness import *` and ends with
`main()`. Tests skip (exit 77) where /dev/fuse or the tools are missing, and never leave a mount or a daemon behind.

Environment: VARVE_BIN (folder of the tools), VARVE_TEST_DIR (where images go; default /var/tmp),
VARVE_MOUNT_OPTIONS (added to every mount), VARVE_TEST_SEED."""

import atexit
import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
from pathlib import Path

import own_mounts

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("VARVE_BIN", ROOT / "build/release/bin")).resolve()
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PAGE = os.sysconf("SC_PAGE_SIZE")  # the kernel hands over what is written through its cache in whole ones
IS_ROOT = os.geteuid() == 0
LINUX = tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())  # (6, 12)
HANG = int(os.environ.get("VARVE_TEST_HANG", "300"))  # seconds: only what hangs takes so long, however busy the machine is
SEED = int(os.environ.get("VARVE_TEST_SEED", random.SystemRandom().randrange(1 << 32)))

_mounts = []
_folders = []


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def command(*words, timeout=HANG, check=True, **options):
    """Runs it; returns the CompletedProcess with text output. Fails with the output when `check`."""
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if options["stdin"] is None:
        del options["stdin"]
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=timeout, **options)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout[-2000:]}"
                             f"{done.stderr[-2000:]}")
    return done


def mount_line(directory):
    """The last line of /proc/self/mounts for a mount point, or None; works on dead mounts, too."""
    found = None
    with open("/proc/self/mounts", errors="replace") as mounts:
        for line in mounts:
            if line.split()[1].replace("\\040", " ") == str(directory):
                found = line
    return found


def processes_of(image):
    """Daemons that serve an image."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if os.fsencode(str(image)) in words and words[0].endswith(b"varve"):
                    if "State:\tZ" not in (entry / "status").read_text():
                        found.append(int(entry.name))
            except (OSError, ProcessLookupError):
                pass
    return found


def is_unlocked(image):
    """No process holds the image: also no thread of a killed one that still ends its last write."""
    with open(image, "r+b") as file:
        try:
            if stat.S_ISBLK(os.fstat(file.fileno()).st_mode):
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            else:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def link_target(link):
    try:
        return os.readlink(link)
    except OSError:
        return ""  # closed, or ended, meanwhile


def holders(directory):
    """What keeps a mount busy: processes with something open, mapped or current there, and other mount namespaces."""
    found, own = [], os.readlink("/proc/self/ns/mnt")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            links = [entry / "cwd", entry / "root", *(entry / "fd").iterdir(), *(entry / "map_files").iterdir()]
            places = {link_target(link) for link in links}
            held = [p for p in places if p == str(directory) or p.startswith(f"{directory}/")]
            elsewhere = os.readlink(entry / "ns/mnt") != own and f" {directory} " in (entry / "mountinfo").read_text()
            if held or elsewhere:
                name = (entry / "comm").read_text().strip()
                found.append(f"{entry.name} ({name}): {', '.join(held) or 'in another mount namespace'}")
        except OSError:
            pass  # it has ended meanwhile
    return "; ".join(found)


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return pids


def wait_until(condition, what):
    end = time.monotonic() + HANG
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {HANG} s: {what}")
        time.sleep(0.02)


def stop(pid):
    """Until SIGCONT. The signal only asks for it: other threads go on until the one that gets it has run."""
    def is_stopped(task):
        try:
            return (task / "stat").read_text().rpartition(")")[2].split()[0] in "TZX"  # one that has ended stands still, too
        except (FileNotFoundError, ProcessLookupError):
            return True  # that thread has ended
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(map(is_stopped, Path(f"/proc/{pid}/task").iterdir())), f"{pid} stands still")


def is_in_session(file, leader):
    """`file`: stat, in /proc. One that has ended, and that nobody has waited for, holds nothing any more."""
    try:
        state, _, _, session = file.read_text().rpartition(")")[2].split()[:4]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return session == str(leader) and state not in "ZX"


def end_session(leader):
    """Ends a process that was started with start_new_session, and all that it has started. Each may hold files until it has really ended."""
    os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()
    wait_until(lambda: not any(is_in_session(file, leader.pid) for file in Path("/proc").glob("[0-9]*/stat")), "the session has ended")


class Beside(threading.Thread):
    """Work that goes on beside the test. If it fails, end() does."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.error = work, None
        self.start()

    def run(self):
        try:
            self.work()
        except BaseException as error:
            self.error = error

    def end(self):
        self.join()
        if self.error:
            raise self.error


def wait_until_interruptible(tool):
    """It stops for Ctrl-C from then on, and does not just die."""
    def catches():
        status = Path(f"/proc/{tool.pid}/status").read_text()
        return int(status.split("SigCgt:")[1].split()[0], 16) >> (signal.SIGINT - 1) & 1

    wait_until(lambda: tool.poll() is not None or catches(), "the tool can be interrupted")


def sqlite_promise(database, committed):
    """What must be there of so many transactions; before the database is opened again. After removing its journal SQLite
    syncs the folder, but takes one that cannot be opened (the daemon has died in between) for synced. It calls the
    newest transaction committed although the journal may still be there, which rolls it back."""
    return committed - (1 if Path(f"{database}-journal").exists() else 0)


class Image:
    """An image file, or a device, and the place where it gets mounted."""

    def __init__(self, path=None, folder=None):
        self.folder = Path(folder) if folder else new_folder()
        self.path = Path(path) if path else self.folder / "disk.img"
        self.dir = self.folder / "mnt"
        self.dir.mkdir(exist_ok=True)
        _mounts.append(self)

    def mkfs(self, size="1G", *options):
        sized = ["--size", size] if size and not self.path.exists() else []
        return command(BIN / "mkfs.varve", "-q", "-f", *sized, *options, self.path)

    def mount(self, options="", check=True, **more):
        words = [o for o in (options, os.environ.get("VARVE_MOUNT_OPTIONS", "")) if o]
        given = ["-o", ",".join(words)] if words else []
        return command(BIN / "varve", "mount", self.path, self.dir, *given, check=check, **more)

    def umount(self, **more):
        try:
            return command(BIN / "varve", "umount", self.dir, **more)
        except AssertionError as failure:
            raise AssertionError(f"{failure}\nheld by: {holders(self.dir) or 'nobody that /proc shows'}") from failure

    def remount(self, options=""):
        self.umount()
        self.mount(options)

    def is_mounted(self):
        return mount_line(self.dir) is not None

    def daemon(self):
        pids = processes_of(self.path)
        assert len(pids) == 1, f"expected one daemon of {self.path}, found {pids}"
        return pids[0]

    def kill(self):
        """As a crash of the daemon: nothing more gets written. The dead mount stays."""
        pid = self.daemon()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not processes_of(self.path), "the killed daemon is gone")
        wait_until(lambda: is_unlocked(self.path), "the killed daemon's threads are gone")

    def status(self):
        return json.loads(command(BIN / "varve", "status", "--json", self.dir).stdout)

    def findings(self):
        """Of varve doctor, whatever it thinks of them."""
        return json.loads(command(BIN / "varve", "doctor", "--json", self.dir, check=False).stdout)

    def fsck(self, *options, expect=(0,)):
        done = command(BIN / "fsck.varve", "-n", "-f", *options, self.path, check=False, timeout=600)
        if done.returncode not in expect:
            raise AssertionError(f"fsck.varve: status {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}")
        return done

    def check_all(self):
        """Unmounts if mounted; the image must be clean and every block of it readable."""
        if self.is_mounted():
            self.umount()
        self.fsck("--data")

    def clean_up(self):
        for pid in processes_of(self.path):
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(pid, signal.SIGKILL)
        while mount_line(self.dir):
            unmount = ["umount", "-l"] if IS_ROOT else ["fusermount3", "-u", "-z"]
            if subprocess.run([*unmount, self.dir], capture_output=True).returncode:
                break


def new_folder():
    folder = Path(tempfile.mkdtemp(prefix="varve-test.", dir=os.environ.get("VARVE_TEST_DIR", "/var/tmp")))
    _folders.append(folder)
    return folder


def clean_up_all():
    for image in _mounts:
        image.clean_up()
    for folder in _folders:
        if not any(mount_line(i.dir) for i in _mounts if i.folder == folder):
            subprocess.run(["rm", "-rf", folder])
    _mounts.clear()
    _folders.clear()


def _too_long(_signal, _frame):
    print("The test takes too long; where it is:", flush=True)
    traceback.print_stack(_frame)
    for image in _mounts:
        for pid in processes_of(image.path):
            with contextlib.suppress(OSError):  # it ends
                for task in Path(f"/proc/{pid}/task").iterdir():
                    print(f"daemon {pid} thread {task.name}: {(task / 'wchan').read_text()}")
    clean_up_all()
    os._exit(1)


class MountTest(unittest.TestCase):
    """Each test gets a fresh 1 GiB filesystem, mounted, and after it an unmount and a full check."""
    size = "1G"
    options = ""

    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs(self.size)
        self.image.mount(self.options)
        self.dir = self.image.dir

    def tearDown(self):
        if self._outcome_is_good():
            self.image.check_all()

    def _outcome_is_good(self):
        outcome = self._outcome
        if hasattr(outcome, "success"):
            return outcome.success
        return not any(error for _, error in getattr(outcome, "errors", []))


def fill_random(path, size, seed=0, sync=True):
    """Writes `size` reproducible bytes; returns nothing that has to be kept: see same_random."""
    generator = random.Random(seed)
    with open(path, "wb", buffering=0) as file:
        while size:
            piece = generator.randbytes(min(size, MIB))
            file.write(piece)
            size -= len(piece)
        if sync:
            os.fsync(file.fileno())


def drop_cached(path):
    """The kernel keeps nothing of the file's data: it is read from the daemon again."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def sync_filesystem(path, check=True):
    """All of this filesystem. sync(2) would wait for those of other tests as well, and tells of no error."""
    command("sync", "-f", path, check=check)


def unlink_and_wait(path):
    """The kernel tells the daemon afterwards that it has forgotten the file, and then its room is free."""
    about, top = path.stat(), path.parent
    before = os.statvfs(top).f_bfree
    path.unlink()
    wait_until(lambda: (os.statvfs(top).f_bfree - before) * 4096 > about.st_blocks * 512 * 9 // 10, "the room of the file comes back")


def fsync_directory(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def same_random(path, size, seed=0):
    generator = random.Random(seed)
    with open(path, "rb", buffering=0) as file:
        while size:
            piece = generator.randbytes(min(size, MIB))
            if file.read(len(piece)) != piece:
                return False
            size -= len(piece)
        return file.read(1) == b""


def main(timeout=900):
    for tool in ("mkfs.varve", "fsck.varve", "varve"):
        if not (BIN / tool).exists():
            skip(f"{BIN / tool} is not built")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        skip("no usable /dev/fuse")
    if not IS_ROOT and not shutil.which("fusermount3"):
        skip("not root, and no fusermount3")
    if IS_ROOT and not own_mounts.can_mount():
        skip("root here may not mount (no CAP_SYS_ADMIN)")
    if IS_ROOT:
        try:
            own_mounts.enter()
        except OSError as error:
            skip(error.strerror)
    atexit.register(clean_up_all)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(timeout)
    print(f"VARVE_TEST_SEED={SEED}")
    unittest.main(verbosity=2)
