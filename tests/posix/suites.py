"""The suites that run.py knows: each takes a Run and returns {name of test: "passed" | "failed" | "skipped"}."""

import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from assertions import git, pjdfstest, sqlite
from harness import BIN, Image


@dataclass
class Run:
    image: Image
    folder: Path | None
    amount: int | None
    only: str
    log: TextIO

    def wants(self, name):
        return re.search(self.only, name) is not None

    def program(self, *places):
        """A built program below --from, or an installed one."""
        for place in places:
            if self.folder and (self.folder / place).exists():
                return str(self.folder / place)
            if shutil.which(place):
                return place
        raise SystemExit(f"not found below {self.folder} (--from): {' or '.join(places)}")

    def call(self, *words, timeout=900, **options):
        """(status, output); a test that hangs has status 124."""
        options.setdefault("cwd", self.image.dir)
        self.log.write(f"=== {' '.join(map(str, words))}\n")
        process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True, **options)
        try:
            output, status = process.communicate(timeout=timeout)[0], process.returncode
        except subprocess.TimeoutExpired:
            end_session(process.pid)
            output, status = process.communicate()[0], 124
        except BaseException:  # this program is being stopped
            end_session(process.pid)
            raise
        self.log.write(f"{output}\n=== status {status}\n")
        self.log.flush()
        return status, output


def session_members(leader):
    """Processes of a session, whatever groups they have made themselves."""
    members = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "stat").read_text().rsplit(")", 1)[1].split()[3] == str(leader):
                members.append(int(entry.name))
        except OSError:
            pass  # it has ended meanwhile
    return members


def end_session(leader, patience=30):
    """What a test has started must not outlive it: it would keep the mount busy. They may clean up first."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, patience)):
        end = time.monotonic() + seconds
        for pid in session_members(leader):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        while set(session_members(leader)) - {leader} and time.monotonic() < end:
            time.sleep(0.1)


def outcome(status):
    return "passed" if status == 0 else "failed"


# --- fsx -------------------------------------------------------------------------------------------------------------------

FSX_MODES = {
    "buffered": [],
    "without mmap": ["-R", "-W"],
    "direct": ["-Z", "-R", "-W", "-r", "4096", "-w", "4096"],
    "direct with small steps": ["-Z", "-R", "-W", "-r", "512", "-w", "512", "-t", "512", "-o", "20000"],
    "large": ["-l", "8388608", "-o", "262144"],
    "fsync and drop": ["-y", "-c", "2000"],  # drops the caches of the whole system, which takes up to a second
    "small": ["-l", "20000", "-o", "3000"],
    "polluted end": ["-e", "1", "-l", "4194304"],
    "only reads and writes": ["-F", "-H", "-z", "-C", "-I", "-J", "-B", "-0", "-E"],
    "libaio": ["-A"],
    "io_uring": ["-U"],
}


def fsx(run):
    program = run.program("ltp/fsx", "testcases/kernel/fs/fsx-linux/fsx-linux")
    results = {}
    for number, (name, options) in enumerate(FSX_MODES.items()):
        if run.wants(name):
            run.log.write(f"mode {name}\n")
            status, output = run.call(program, "-q", "-S", 7 + number, "-N", run.amount or 1_000_000, *options, "-P",
                                      run.image.folder, run.image.dir / f"fsx{number}", timeout=7200)
            unsupported = "not supported" in output and status
            results[name] = "skipped" if unsupported else outcome(status)
    return results


# --- fsstress, followed by fsck ----------------------------------------------------------------------------------------------

def fsstress(run):
    program = run.program("ltp/fsstress", "testcases/kernel/fs/fsstress/fsstress")
    results = {}
    for seed in (1, 2, 3):
        for name, options in {"mixed": [], "names": ["-z", "-f", "creat=4", "-f", "link=4", "-f", "rename=8", "-f",
                                                     "unlink=4", "-f", "mkdir=4", "-f", "rmdir=4", "-f", "rexchange=4",
                                                     "-f", "symlink=2", "-f", "setxattr=2", "-f", "mknod=2"]}.items():
            label = f"{name} {seed}"
            if not run.wants(label):
                continue
            place = run.image.dir / label.replace(" ", "")
            place.mkdir()
            status, _ = run.call(program, "-d", place, "-n", run.amount or 20_000, "-p", 6, "-s", seed, *options,
                                 timeout=3600)
            run.image.umount()
            checked, output = run.call(BIN / "fsck.varve", "-n", "-f", "--data", run.image.path, timeout=900, cwd="/")
            run.image.mount()
            results[label] = outcome(status or checked)
            run.call("rm", "-rf", place)
    return results


# --- fio, dbench, stress-ng ---------------------------------------------------------------------------------------------------

FIO_JOBS = {
    "buffered random": ["--rw=randwrite", "--bsrange=512-128k", "--ioengine=psync"],
    "buffered sequential": ["--rw=write", "--bs=64k", "--ioengine=psync"],
    "direct": ["--rw=randwrite", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=32"],
    "io_uring": ["--rw=randwrite", "--bs=8k", "--direct=1", "--ioengine=io_uring", "--iodepth=32"],
    "mmap": ["--rw=randwrite", "--bs=4k", "--ioengine=mmap"],
    "synchronous": ["--rw=randwrite", "--bs=4k", "--sync=1", "--ioengine=psync", "--io_size=16M"],
    "fsync": ["--rw=randwrite", "--bs=6k", "--fsync=8", "--ioengine=psync", "--io_size=32M"],
    "mixed": ["--rw=randrw", "--bsrange=1k-64k", "--ioengine=psync"],
    "overwritten": ["--rw=randwrite", "--bs=16k", "--loops=3", "--norandommap", "--ioengine=psync"],
}


def fio(run):
    results = {}
    for name, options in FIO_JOBS.items():
        if run.wants(name):
            status, _ = run.call("fio", f"--name={name.replace(' ', '-')}", f"--directory={run.image.dir}", "--size=128M",
                                 "--numjobs=2", "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0",
                                 "--end_fsync=1", "--unlink=1", *options, timeout=1800, cwd=run.image.folder)
            results[name] = outcome(status)
    return results


def dbench(run):
    status, output = run.call("dbench", "-D", run.image.dir, "-t", run.amount or 60, 8, timeout=1800)
    return {"dbench": outcome(status or ("Throughput" not in output))}


# Those that look at other things than files of the place given, or need what no FUSE filesystem has.
STRESS_NG_OTHERS = {"binderfs", "ramfs", "inotify-proc", "procfs", "sysfs", "verity", "bind-mount", "sysinfo", "dev"}


def stress_ng(run):
    _, listing = run.call("stress-ng", "--class", "filesystem?")
    names = re.search(r"class 'filesystem' stressors: (.*)", listing)[1].split()
    results = {}
    for name in names:
        if name in STRESS_NG_OTHERS or not run.wants(name):
            continue
        status, output = run.call("stress-ng", f"--{name}", 2, "--verify", "-t", f"{run.amount or 10}s", "--temp-path",
                                  run.image.dir, "--timestamp", timeout=300)
        skipped = status in (3, 4) or re.search(r"skipped: [1-9]", output) is not None  # not supported here
        results[name] = "skipped" if skipped else outcome(status)
    return results


# --- LTP: tests of files among those of runtest/fs and runtest/syscalls ---------------------------------------------------------

LTP_SYSCALLS = r"""access chdir chmod chown chroot close copy_file_range creat dup fallocate fchdir fchmod fchmodat fchown
fchownat fcntl fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstatat fstatfs fsync ftruncate futimesat
getcwd getdents getxattr io_uring lchown link linkat listxattr llistxattr llseek lremovexattr lseek lstat mkdir mkdirat mknod mknodat
mmap msync name_to_handle_at open openat openat2 open_by_handle_at pread preadv pwrite pwritev posix_fadvise read readahead readdir
readlink readlinkat readv remove removexattr rename renameat renameat2 rmdir sendfile setxattr splice stat statfs statvfs statx
symlink symlinkat sync syncfs sync_file_range truncate umask unlink unlinkat utime utimensat utimes write writev""".split()


# Those that look at /dev, /proc, /sys, pipes, or only at filesystems of their own.
LTP_OTHERS = {"proc01", "read_all_dev", "read_all_proc", "read_all_sys", "quota_remount_test01", "isofs", "fs_fill",
              "binfmt_misc01", "binfmt_misc02", "squashfs01", "fcntl35", "fcntl35_64"}


def ltp_commands(run):
    for listing in ("fs", "syscalls"):
        for line in (run.folder / "runtest" / listing).read_text().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            name, command = line.split(maxsplit=1)
            if name in LTP_OTHERS:
                continue
            family = re.sub(r"\d.*$", "", name)
            if listing == "fs" or family in LTP_SYSCALLS:
                yield name, command


def ltp(run):
    built = {p.name: p for p in (run.folder / "testcases").rglob("*")
             if p.is_file() and os.access(p, os.X_OK) and p.suffix not in (".so", ".o")}
    places = {str(p.parent) for p in built.values()}
    environment = os.environ | {"TMPDIR": str(run.image.dir), "LTPROOT": str(run.folder), "LTP_TIMEOUT_MUL": "5",
                                "LTP_SINGLE_FS_TYPE": "ext4",  # on a loop device in Varve, for those that would try all there are
                                "PATH": os.pathsep.join([*sorted(places), os.environ["PATH"]])}
    results = {}
    for name, command in ltp_commands(run):
        if not run.wants(name):
            continue
        if command.split()[0] not in built:
            results[name] = "skipped"
            continue
        # What a test copies into its own folder it looks for where it was started.
        place = built[f"{name}_child"].parent if f"{name}_child" in built else run.image.dir
        status, output = run.call("bash", "-c", command, timeout=600, env=environment, cwd=place)
        # TFAIL 1, TBROK 2, TWARN 4, TCONF 32: not for this configuration
        results[name] = "passed" if status == 0 else "skipped" if status == 32 else "failed"
    return results


# --- xfstests: the generic tests, with helpers that are only configuration --------------------------------------------------------

def xfstests(run):
    from xfstests import configure, results_of
    configuration = configure(run)
    group = ["-g", "generic/auto"] if not run.only else run.only.split()
    run.call("./check", "-E", configuration.excluded, *group, timeout=6 * 3600, cwd=run.folder, env=configuration.environment)
    return results_of(run.folder)


ALL = {"pjdfstest": pjdfstest, "git": git, "sqlite": sqlite, "fsx": fsx, "fsstress": fsstress, "fio": fio, "dbench": dbench, "stress-ng": stress_ng,
       "ltp": ltp, "xfstests": xfstests}
