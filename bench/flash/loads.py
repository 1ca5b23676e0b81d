"""What is written on the filesystems whose traces go through the flash mappings."""

import functools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCH / "devices"), str(BENCH / "common")]

import room  # noqa: E402
from stage import Missing, run  # noqa: E402
from workloads import Zipf  # noqa: E402

BLOCK, MIB = 4096, 1 << 20


def fill(top, used, total, data):
    """Files that are never changed, so that `used` of what df counts is taken; they lie around what changes."""
    number = 0
    while (missing := room.missing(top, used, total)) >= MIB:
        with open(top / f"still{number}", "wb") as file:
            for _ in range(min(missing // MIB, 32)):
                file.write(data)
        run("sync", "-f", top)  # btrfs counts what is taken when it commits
        number += 1


class Load:
    """prepare() makes what write(amount) changes, and that returns about how many bytes a program has written in place, or would have. The
    files are closed at the end, also of a device that has become full."""
    end = float("inf")  # time.monotonic(): the work may not take longer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def prepare(self):
        pass

    def go_on(self):
        if time.monotonic() > self.end:
            raise RuntimeError("it takes too long")


class Blocks(Load):
    """Blocks of one file are written over, in random places; every `together` of them are synced."""
    share = 0.4  # of the device

    def __init__(self, top, size, seed, data):
        self.count = int(size * self.share) // MIB * MIB // BLOCK
        self.random, self.data = random.Random(seed), data
        self.fd = os.open(top / "blocks", os.O_RDWR | os.O_CREAT, 0o644)
        self.together = max(size // (64 * BLOCK), 64)

    def prepare(self):
        for at in range(0, self.count * BLOCK, MIB):
            os.pwrite(self.fd, self.data, at)
        os.fsync(self.fd)

    def place(self):
        return self.random.randrange(self.count)

    def write(self, amount):
        for number in range(amount // BLOCK):
            os.pwrite(self.fd, self.data[:BLOCK], self.place() * BLOCK)
            if number % self.together == self.together - 1:
                os.fdatasync(self.fd)
                self.go_on()
        os.fdatasync(self.fd)
        return amount // BLOCK * BLOCK

    def close(self):
        os.close(self.fd)


class ZipfBlocks(Blocks):
    def __init__(self, top, size, seed, data, exponent=1.0):
        super().__init__(top, size, seed, data)
        self.place = Zipf(self.count, seed, exponent).next




class Tpcc(Load):
    """Transactions like TPC-C's on SQLite (WAL, synced at each commit), a warehouse scaled to the device. Mix 45/43/4/4/4, with its
    non-uniform choice of items and customers."""
    transaction = 24 * BLOCK  # what one is taken to write: it dirties some 12 pages, in the log and in their place

    def __init__(self, top, size, seed, data):
        self.random = random.Random(seed)
        self.base = sqlite3.connect(top / "tpcc.db", isolation_level=None)
        self.base.executescript("pragma journal_mode=wal; pragma synchronous=full; pragma cache_size=-4096;")
        self.items = max(int(size * 0.25 / 600), 1000)  # of 400 bytes with their share of the rest
        self.customers = self.items * 3 // 10
        self.delivered = [0] * 10

    def prepare(self):
        base = self.base
        base.executescript("create table stock(i integer primary key, quantity int, ytd int, data text);"
                           "create table customer(c integer primary key, balance real, data text);"
                           "create table district(d integer primary key, next int, ytd real);"
                           "create table orders(d int, o int, c int, lines int, carrier int, primary key(d, o)) without rowid;"
                           "create table line(d int, o int, n int, i int, quantity int, info text, primary key(d, o, n)) without rowid;"
                           "create table history(c int, amount real, data text); begin;")
        base.executemany("insert into stock values(?,50,0,?)", ((i, "s" * 300) for i in range(self.items)))
        base.executemany("insert into customer values(?,0,?)", ((c, "c" * 560) for c in range(self.customers)))
        base.executemany("insert into district values(?,0,0)", ((d,) for d in range(10)))
        base.execute("commit")

    def skewed(self, a, count):
        return ((self.random.randrange(a + 1) | self.random.randrange(count)) + 17) % count

    def new_order(self, d):
        base, items = self.base, self.random.randint(5, 15)
        (number,) = base.execute("select next from district where d=?", (d,)).fetchone()
        base.execute("update district set next=next+1 where d=?", (d,))
        base.execute("insert into orders values(?,?,?,?,null)", (d, number, self.skewed(1023, self.customers), items))
        for n in range(items):
            i = self.skewed(8191, self.items)
            base.execute("update stock set quantity=case when quantity>15 then quantity-5 else quantity+86 end, ytd=ytd+5 where i=?", (i,))
            base.execute("insert into line values(?,?,?,?,5,?)", (d, number, n, i, "l" * 24))

    def payment(self, d):
        c = self.skewed(1023, self.customers)
        self.base.execute("update district set ytd=ytd+1 where d=?", (d,))
        self.base.execute("update customer set balance=balance-1 where c=?", (c,))
        self.base.execute("insert into history values(?,1,?)", (c, "h" * 24))

    def delivery(self, _):
        for d in range(10):
            done = self.base.execute("update orders set carrier=1 where d=? and o=?", (d, self.delivered[d])).rowcount
            self.delivered[d] += done

    def look(self, d):
        self.base.execute("select sum(quantity) from line where d=? and o > (select next-20 from district where d=?)", (d, d)).fetchone()

    def write(self, amount):
        """Transactions, as many as make about so many bytes."""
        count = max(amount // self.transaction, 50)
        for _ in range(count):
            self.go_on()
            chance, d = self.random.random(), self.random.randrange(10)
            self.base.execute("begin")
            (self.new_order if chance < 0.45 else self.payment if chance < 0.88 else self.delivery if chance < 0.92 else self.look)(d)
            self.base.execute("commit")
        return count * self.transaction

    def close(self):
        self.base.close()


def postgres_programs():
    """Folder of the newest server's programs. Raises Missing."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    initdb = found[-1] if found else shutil.which("initdb")
    folder = Path(initdb).resolve().parent if initdb else None
    if not folder or not (folder / "pgbench").exists():
        raise Missing("pgbench: PostgreSQL is not installed (packaging/apt-install bench)")
    if os.geteuid() == 0 and subprocess.run(["id", "postgres"], capture_output=True).returncode:
        raise Missing("pgbench: PostgreSQL does not run as root, and there is no user postgres")
    return folder


class Pgbench(Load):
    """Transactions like TPC-B's on PostgreSQL, by its own pgbench: four clients, each commit synced."""
    transaction = 10 * BLOCK  # three pages of 8 KiB in place, and in the log more of them than not
    port = "54331"

    def __init__(self, top, size, seed, data):
        self.programs, self.seed, self.server, self.size = postgres_programs(), seed, None, size
        self.prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.geteuid() == 0 else []
        self.sockets = Path(tempfile.mkdtemp(prefix="varve-pg-"))
        self.base = top / "pg"
        self.base.mkdir(mode=0o700)
        if self.prefix:
            top.parent.chmod(0o755)
            for folder in (self.base, self.sockets):
                shutil.chown(folder, "postgres", "postgres")

    def call(self, program, *words):
        return run(*self.prefix, self.programs / program, *words, cwd="/")

    def pgbench(self, *words):
        return self.call("pgbench", "-h", self.sockets, "-p", self.port, *words, "postgres")

    def prepare(self):
        self.call("initdb", "-D", self.base, "--auth=trust", "--no-locale", "--no-sync", "--wal-segsize=1")
        settings = ["listen_addresses=", f"max_wal_size={max(self.size // (32 * MIB), 8)}MB", "min_wal_size=2MB", "shared_buffers=16MB"]
        self.server = subprocess.Popen([*self.prefix, self.programs / "postgres", "-D", self.base, "-p", self.port, "-k", self.sockets,
                                        *(word for one in settings for word in ("-c", one))],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        end = time.monotonic() + 120
        while subprocess.run([self.programs / "pg_isready", "-q", "-h", self.sockets, "-p", self.port]).returncode:
            if self.server.poll() is not None or time.monotonic() > end:
                raise RuntimeError("PostgreSQL does not start")
            time.sleep(0.1)
        self.pgbench("-i", "-q", "-s", str(max(int(self.size * 0.25 / (16 * MIB)), 1)))  # of 16 MiB with their index

    def write(self, amount):
        clients = 4
        each = max(amount // self.transaction // clients, 25)
        self.pgbench("-n", f"--random-seed={self.seed}", "-M", "prepared", "-c", clients, "-j", 2, "-t", each)
        return each * clients * self.transaction

    def close(self):
        if self.server:
            self.server.send_signal(signal.SIGINT)  # a fast shutdown
            try:
                self.server.wait(60)
            except subprocess.TimeoutExpired:
                self.server.send_signal(signal.SIGQUIT)
                self.server.wait(60)
        shutil.rmtree(self.sockets, ignore_errors=True)


class Desktop(Load):
    """Documents that are saved anew, a browser's cache, a log, a small database, now and then a large file."""

    def __init__(self, top, size, seed, data):
        self.random, self.data, self.top = random.Random(seed), data, top / "home"
        self.room, self.held = int(size * 0.4), 0
        self.files, self.number = [], 0
        self.top.mkdir()
        self.base = sqlite3.connect(top / "places.db", isolation_level=None)
        self.base.executescript("pragma journal_mode=delete; create table t(k integer primary key, v text);")
        self.log = os.open(top / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def prepare(self):
        while self.held < self.room * 0.9:
            self.make()

    def length(self):
        return min(int(self.random.lognormvariate(9.5, 1.8)), 8 * MIB) + 1

    def make(self):
        self.number += 1
        name, length = self.top / f"f{self.number}", self.length()
        with open(name, "wb") as file:
            for at in range(0, length, MIB):
                file.write(self.data[:min(MIB, length - at)])
        self.files.append((name, length))
        self.held += length
        return length

    def drop(self):
        place = self.random.randrange(len(self.files))
        self.files[place], self.files[-1] = self.files[-1], self.files[place]
        name, length = self.files.pop()
        name.unlink()
        self.held -= length

    def save(self):
        """As editors do: a new file, synced, takes the name of the old one."""
        name, length = self.random.choice(self.files)
        with open(self.top / "new", "wb") as file:
            for at in range(0, length, MIB):
                file.write(self.data[:min(MIB, length - at)])
            os.fsync(file.fileno())
        os.rename(self.top / "new", name)
        return length

    def write(self, amount):
        done = 0
        while done < amount:
            self.go_on()
            chance = self.random.random()
            if chance < 0.6:
                while self.held > self.room:
                    self.drop()
                done += self.make()
            elif chance < 0.75:
                done += self.save()
            elif chance < 0.9:
                os.write(self.log, b"x" * 200)
                done += 200
            else:
                self.base.execute("insert or replace into t values(?,?)", (self.random.randrange(5000), "v" * 200))
                done += BLOCK
        return done

    def close(self):
        self.base.close()
        os.close(self.log)


WORKLOADS = {"zipf": ZipfBlocks, "uniform": Blocks, "tpcc": Tpcc, "pgbench": Pgbench, "desktop": Desktop}


def workload(name):
    """One of WORKLOADS, or zipf with another exponent, as zipf0.8."""
    if name.startswith("zipf") and name != "zipf":
        return functools.partial(ZipfBlocks, exponent=float(name[4:]))
    if name not in WORKLOADS:
        raise Missing(f"{name}: known are {', '.join(WORKLOADS)}")
    return WORKLOADS[name]
