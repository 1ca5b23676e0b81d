"""The rows of the table, and the work that measures them. A group measures rows that share their preparation; it gets
a Bench (one filesystem, scale) and returns {row: value}."""

import json
import os
import re
import sqlite3
import subprocess
import time
from dataclasses import dataclass, field

from filesystems import MIB, drop_caches, run


@dataclass
class Row:
    text: str
    unit: str
    digits: int = 0
    more_is_better: bool = True
    goals: dict = field(default_factory=dict)  # peer -> Varve should reach this multiple of it; "" -> absolute limit


ROWS = {
    "sync4k": Row("dd oflag=sync bs=4k", "MB/s", 1, goals={"ext4": 3}),
    "sync1m": Row("dd oflag=sync bs=1M", "MB/s", goals={"ext4": 1.3}),
    "seqwrite": Row("dd bs=1M conv=fsync", "MB/s", goals={"ext4": 1.2}),
    "seqread": Row("cold sequential read", "MB/s", goals={"ext4": 0.8}),
    "randwrite_sync": Row("fio randwrite 4k fdatasync=1", "iops", goals={"ext4": 1.4}),
    "randwrite_qd32": Row("fio randwrite 4k direct qd32", "iops", goals={"ext4": 0.7}),
    "randwrite_buffered": Row("fio randwrite 4k buffered + final fsync", "iops"),
    "randread_cold": Row("fio randread 4k cold qd1", "iops", goals={"ext4": 0.9}),
    "randread_qd32": Row("fio randread 4k direct qd32", "iops", goals={"ext4": 0.7}),
    "fsmark": Row("fs_mark 4 KiB files, no sync", "files/s", goals={"passthrough_ll": 2}),
    "fsmark_sync": Row("fs_mark 4 KiB files, fsync each", "files/s", goals={"ext4": 2.5}),
    "stat_cold": Row("stat after remount (walk over the files)", "/s", goals={"passthrough_ll": 2}),
    "stat_warm": Row("stat warm (walk x 3)", "/s", goals={"passthrough_ll": 0.95}),
    "rm": Row("rm -rf of them + sync", "files/s", goals={"passthrough_ll": 2}),
    "untar": Row("untar of small files + sync", "files/s", goals={"passthrough_ll": 1.5}),
    "grep": Row("grep -r over the tree, cold", "files/s"),
    "postmark": Row("postmark, 4 transactions a file", "/s", goals={"passthrough_ll": 2}),
    "dbench": Row("dbench 1 client", "MB/s"),
    "sqlite_rollback": Row("SQLite insert per transaction, rollback journal", "/s"),
    "sqlite_wal": Row("SQLite insert per transaction, WAL", "/s"),
    "bytes_append": Row("device bytes per 4 KiB appended with O_SYNC", "bytes", 0, False, {"": 8704}),
    "bytes_overwrite": Row("device bytes per 4 KiB random overwrite + fdatasync", "bytes", 0, False, {"": 8704}),
    "bytes_create": Row("device bytes per new 4 KiB file + fsync", "bytes", 0, False, {"": 8704}),
    "noop": Row("no-op request (statfs), idle machine", "us", 1, False, {"": 20}),
    "noop_hogs": Row("no-op request, a CPU hog per core", "us", 1, False, {"passthrough_ll": 1.5}),
    "fsync_p99": Row("4 KiB write + fsync, p99", "ms", 2, False),
    "fsync_p99_stream": Row("4 KiB write + fsync, p99, another process streams", "ms", 2, False),
    "memory_files": Row("peak memory of the daemon, small files made", "MiB", 0, False),
    "memory_random": Row("peak memory of the daemon, random 4 KiB writes", "MiB", 0, False),
}


class Bench:
    def __init__(self, filesystem, inputs, quick):
        self.fs = filesystem
        self.inputs = inputs
        self.quick = quick
        self.runtime = 3 if quick else 10
        self.detail = {}  # further figures, for --json

    @property
    def dir(self):
        return self.fs.mount_point

    def scaled(self, full, quick):
        return quick if self.quick else full

    def sync(self):
        """What a user would call, and an fsync, because sync(2) does not reach every FUSE filesystem."""
        run("sync", "-f", self.dir)
        fd = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(fd)
        os.close(fd)

    def worker(self, what, path, amount):
        numbers = run(self.inputs.worker, what, path, amount, timeout=600).split()
        return [float(n) for n in numbers]

    def memory(self, row):
        """Of this mount's daemon until now; nothing for a filesystem of the kernel's."""
        peak = self.fs.peak_memory()
        return {} if peak is None else {row: peak / MIB}

    def fill(self, name, size):
        block = os.urandom(MIB)
        path = self.dir / name
        with open(path, "wb", buffering=0) as file:
            for _ in range(size // MIB):
                file.write(block)
            os.fsync(file.fileno())
        return path


def seconds(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start


def sync_dd(b):
    b.fs.fresh()
    result = {}
    for row, size, count in (("sync4k", 4096, b.scaled(1024, 512)), ("sync1m", MIB, b.scaled(256, 64))):
        took = seconds(lambda: run("dd", "if=/dev/zero", f"of={b.dir / row}", f"bs={size}", f"count={count}", "oflag=sync"))
        result[row] = size * count / took / 1e6
    return result


def sequential(b):
    b.fs.fresh()
    count = b.scaled(1024, 256)
    path = b.dir / "file"
    wrote = seconds(lambda: run("dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={count}", "conv=fsync"))
    b.fs.cold()
    read = seconds(lambda: run("dd", f"if={path}", "of=/dev/null", "bs=1M"))
    return {"seqwrite": count * MIB / wrote / 1e6, "seqread": count * MIB / read / 1e6}


def fio(b, path, kind, *options):
    text = run("fio", "--name=job", f"--filename={path}", f"--rw={kind}", "--bs=4k", "--randrepeat=1", "--invalidate=0",
               "--output-format=json", "--fallocate=none", f"--size={path.stat().st_size}", *options)
    job = json.loads(text[text.index("{"):])["jobs"][0]
    if job["error"]:
        raise RuntimeError(f"fio: error {job['error']}")
    return job["read" if "read" in kind else "write"]


def random_io(b):
    b.fs.fresh()
    path = b.fill("file", b.scaled(1024, 256) * MIB)
    timed = ("--time_based", f"--runtime={b.runtime}")
    deep = ("--direct=1", "--ioengine=libaio", "--iodepth=32")
    result = {}
    b.fs.cold()
    result["randread_cold"] = fio(b, path, "randread", "--ioengine=psync", *timed)["iops"]
    result["randread_qd32"] = fio(b, path, "randread", *deep, *timed)["iops"]
    b.fs.cold()
    result["randwrite_sync"] = fio(b, path, "randwrite", "--ioengine=psync", "--fdatasync=1", *timed)["iops"]
    result["randwrite_qd32"] = fio(b, path, "randwrite", *deep, *timed)["iops"]
    b.sync()
    job = fio(b, path, "randwrite", "--ioengine=psync", "--end_fsync=1", f"--io_size={b.scaled(512, 128)}M")
    result["randwrite_buffered"] = job["iops"]
    return result | b.memory("memory_random")


def fs_mark(b, directory, sync, count):
    directory.mkdir()
    text = run("fs_mark", "-k", "-S", 1 if sync else 0, "-n", count, "-s", 4096, "-w", 4096, "-L", 1, "-d",
               directory.name, "-l", b.inputs.folder / "fs_mark.log", cwd=directory.parent)
    found = re.findall(r"^\s*\d+\s+\d+\s+\d+\s+([\d.]+)\s+\d+", text, re.M)
    return float(found[-1])


def small_files(b):
    b.fs.fresh()
    count = b.scaled(10000, 3000)
    result = {"fsmark": fs_mark(b, b.dir / "plain", False, count)}
    b.sync()
    result |= b.memory("memory_files")
    b.fs.cold()
    seen, took = b.worker("walk", b.dir / "plain", 1)
    result["stat_cold"] = seen / took
    seen, took = b.worker("walk", b.dir / "plain", 3)
    result["stat_warm"] = seen / took

    def remove():
        run("rm", "-rf", b.dir / "plain")
        b.sync()
    result["rm"] = count / seconds(remove)
    result["fsmark_sync"] = fs_mark(b, b.dir / "durable", True, b.scaled(2000, 500))
    return result


def tree(b):
    b.fs.fresh()
    count = b.inputs.tree_files

    def untar():
        run("tar", "-xf", b.inputs.tree, "-C", b.dir)
        b.sync()
    result = {"untar": count / seconds(untar)}
    b.fs.cold()

    def grep():
        if subprocess.run(["grep", "-rF", "no such words", b.dir], stdout=subprocess.DEVNULL).returncode != 1:  # it found nothing
            raise RuntimeError("grep could not read everything")
    result["grep"] = count / seconds(grep)
    return result


def postmark(b):
    b.fs.fresh()
    files = b.scaled(5000, 2000)
    script = f"set size 500 10000\nset number {files}\nset transactions {4 * files}\nset location {b.dir}\nrun\nquit\n"
    return {"postmark": 4 * files / seconds(lambda: run("postmark", input=script))}


def dbench(b):
    b.fs.fresh()
    text = run("dbench", "-t", b.runtime, "-D", b.dir, "1", timeout=300)
    return {"dbench": float(re.search(r"Throughput ([\d.]+) MB/sec", text)[1])}


def sqlite(b):
    b.fs.fresh()
    result = {}
    count = b.scaled(3000, 600)
    for mode in ("rollback", "wal"):
        db = sqlite3.connect(b.dir / f"{mode}.db", isolation_level=None)
        db.execute(f"PRAGMA journal_mode={'wal' if mode == 'wal' else 'delete'}")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE t(i INTEGER PRIMARY KEY, v BLOB)")

        def insert():
            for i in range(count):
                db.execute("INSERT INTO t VALUES(?, ?)", (i, b"x" * 100))
        result[f"sqlite_{mode}"] = count / seconds(insert)
        db.close()
    return result


def device_bytes(b):
    result = {}
    count = b.scaled(2000, 500)
    for kind in ("append", "overwrite", "create"):
        b.fs.fresh(on_loop=True)
        path = b.dir / "work"
        if kind == "create":
            path.mkdir()
        else:
            b.fill("work", 64 * MIB if kind == "overwrite" else 0)
        b.sync()
        time.sleep(1)
        before = b.fs.device_bytes_written()
        if before is None:
            return result
        b.worker(kind, path, count)
        result[f"bytes_{kind}"] = (b.fs.device_bytes_written() - before) / count
        b.fs.unmount()  # with what had been put off
        b.detail[f"bytes_{kind}_with_unmount"] = (b.fs.device_bytes_written() - before) / count
    b.fs.stop()
    return result


def noop(b):
    b.fs.fresh()
    result = {"noop": None, "noop_hogs": None}
    for row in result:
        hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
                for _ in range(os.cpu_count() if row == "noop_hogs" else 0)]
        try:
            time.sleep(0.5)
            operations, took, p50, p99 = b.worker("statfs", b.dir, b.runtime / 2)
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
        result[row] = took / operations * 1e6
        b.detail[f"{row}_p50"], b.detail[f"{row}_p99"] = p50, p99
    return result


def fsync_latency(b):
    b.fs.fresh()
    drop_caches()
    idle = b.worker("fsync", b.dir / "idle", b.scaled(2000, 500))
    mib = min(512, b.fs.size // MIB // 4)
    stream = subprocess.Popen([b.inputs.worker, "stream", b.dir / "stream", str(mib)])
    try:
        time.sleep(b.scaled(5, 2))
        loaded = b.worker("fsync", b.dir / "loaded", b.scaled(300, 100))
    finally:
        stream.kill()
        stream.wait()
    b.detail["fsync_p50"], b.detail["fsync_p50_stream"] = idle[2], loaded[2]
    return {"fsync_p99": idle[3] / 1e3, "fsync_p99_stream": loaded[3] / 1e3}


# group -> (rows, commands it needs)
GROUPS = {
    sync_dd: (["sync4k", "sync1m"], []),
    sequential: (["seqwrite", "seqread"], []),
    random_io: (["randwrite_sync", "randwrite_qd32", "randwrite_buffered", "randread_cold", "randread_qd32",
                 "memory_random"], ["fio"]),
    small_files: (["fsmark", "fsmark_sync", "stat_cold", "stat_warm", "rm", "memory_files"], ["fs_mark"]),
    tree: (["untar", "grep"], ["tar", "grep"]),
    postmark: (["postmark"], ["postmark"]),
    dbench: (["dbench"], ["dbench"]),
    sqlite: (["sqlite_rollback", "sqlite_wal"], []),
    device_bytes: (["bytes_append", "bytes_overwrite", "bytes_create"], []),
    noop: (["noop", "noop_hogs"], []),
    fsync_latency: (["fsync_p99", "fsync_p99_stream"], []),
}
assert sorted(row for rows, _ in GROUPS.values() for row in rows) == sorted(ROWS)
