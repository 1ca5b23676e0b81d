#!/usr/bin/env python3
"""The daemon dies (SIGKILL) under load. After the next mount fsck finds nothing and everything acknowledged by fsync is
there. What was acknowledged is noted outside the mount, after the fsync has returned."""

import errno
import fcntl
import hashlib
import sqlite3
import threading

from harness import *

FS_IOC_SHUTDOWN = 0x8004587D
ROUNDS = int(os.environ.get("VARVE_CRASH_ROUNDS", "4"))


class Notes:
    """What workers were promised; each entry is made after the promise."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kept = {}
        self.promises = 0
        self.unsure = set()  # changed since the last promise: may be the old or the new state

    def promise(self, name, value):
        with self.lock:
            self.kept[name] = value
            self.promises += 1
            self.unsure.discard(name)

    def touch(self, name):
        with self.lock:
            self.unsure.add(name)


def worker_of_files(top, notes, number, stop):
    """Creates, overwrites, renames and removes files of its own directory; fsyncs most of them."""
    generator = random.Random(SEED + number)
    own = top / f"worker{number}"
    version = 0
    try:
        own.mkdir(exist_ok=True)
        fsync_directory(top)
        while not stop.is_set():
            version += 1
            name = f"file{generator.randrange(50)}"
            path = own / name
            key = str(path.relative_to(top))
            action = generator.random()
            notes.touch(key)
            if action < 0.1 and path.exists():
                path.unlink()
                fsync_directory(own)
                notes.promise(key, None)
            else:
                data = f"{version} ".encode() + generator.randbytes(generator.randrange(1, 60_000))
                target = path if action < 0.6 else own / f".{name}.new"
                with open(target, "wb", buffering=0) as file:
                    file.write(data)
                    os.fsync(file.fileno())
                if target != path:
                    os.rename(target, path)
                    fsync_directory(own)
                notes.promise(key, hashlib.sha256(data).hexdigest())
    except OSError:
        pass  # the daemon is gone


def worker_of_appends(top, notes, number, stop):
    """Appends numbered lines with O_DSYNC."""
    try:
        fd = os.open(top / f"log{number}", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_DSYNC, 0o644)
        fsync_directory(top)
        line = os.fstat(fd).st_size // 100
        while not stop.is_set():
            os.write(fd, f"{line:099d}\n".encode())
            line += 1
            notes.promise(f"log{number}", line)
    except OSError:
        pass


def worker_of_noise(top, notes, number, stop):
    """Unsynced load: large files come and go."""
    generator = random.Random(SEED + number)
    try:
        while not stop.is_set():
            path = top / f"noise{number}.{generator.randrange(6)}"
            with open(path, "wb") as file:
                for _ in range(generator.randrange(20)):
                    file.write(generator.randbytes(MIB))
            if generator.random() < 0.4:
                path.unlink()
    except OSError:
        pass


class Crash(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("1G")
        self.dir = self.image.dir

    def run_and_kill(self, workers, notes, seconds):
        stop = threading.Event()
        enough = notes.promises + 10  # however slow the machine is
        threads = [threading.Thread(target=w, args=(self.dir, notes, i, stop), daemon=True) for i, w in enumerate(workers)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)  # at any moment
        wait_until(lambda: notes.promises >= enough, "something is promised")
        self.image.kill()
        stop.set()
        for thread in threads:
            thread.join(HANG)
            self.assertFalse(thread.is_alive(), "a caller hangs although the daemon is gone")

    def check_notes(self, notes):
        for key, promised in notes.kept.items():
            path = self.dir / key
            if key.startswith("log"):
                data = path.read_bytes()
                self.assertGreaterEqual(len(data), promised * 100, f"{key}: acknowledged lines are missing")
                for i in range(promised):
                    self.assertEqual(data[i * 100:i * 100 + 100], f"{i:099d}\n".encode(), f"{key} line {i}")
            elif key not in notes.unsure:
                if promised is None:
                    self.assertFalse(path.exists(), f"{key} was removed and is back")
                else:
                    self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), promised, key)

    def test_everything_fsynced_is_there(self):
        notes = Notes()
        generator = random.Random(SEED)
        workers = [worker_of_files, worker_of_files, worker_of_appends, worker_of_appends, worker_of_noise]
        self.image.mount()
        for _ in range(ROUNDS):
            self.run_and_kill(workers, notes, generator.uniform(1, 4))
            self.image.fsck("--data")  # as the next mount would find it
            self.image.mount()
            self.check_notes(notes)
        self.image.check_all()

    def test_kill_right_after_the_mount_and_during_recovery(self):
        notes = Notes()
        self.image.mount()
        self.run_and_kill([worker_of_files, worker_of_appends, worker_of_noise], notes, 3)
        for delay in (0.0, 0.01, 0.03, 0.1, 0.3):
            self.image.clean_up()
            mounting = subprocess.Popen([BIN / "varve", "mount", self.image.path, self.dir], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
            time.sleep(delay)
            # Again and again: the daemon may not have been started, or not yet have split off, at the first look.
            kill_all(processes_of(self.image.path))
            mounting.wait(HANG)
            wait_until(lambda: not kill_all(processes_of(self.image.path)), "killed")
            wait_until(lambda: is_unlocked(self.image.path), "unlocked")
        self.image.clean_up()
        self.image.fsck("--data")
        self.image.mount()
        self.check_notes(notes)
        self.image.check_all()

    def test_sqlite_transactions(self):
        for mode in ("wal", "delete"):
            self.image.mount()
            path = self.dir / f"{mode}.db"
            db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            db.execute(f"PRAGMA journal_mode={mode}")
            db.execute("PRAGMA synchronous=EXTRA")
            db.execute("CREATE TABLE t(i INTEGER PRIMARY KEY, v TEXT)")
            committed = [0]

            def insert():
                try:
                    while True:
                        db.execute("INSERT INTO t VALUES(?, ?)", (committed[0] + 1, "v" * 300))
                        committed[0] += 1
                except sqlite3.Error:
                    pass
            thread = threading.Thread(target=insert, daemon=True)
            thread.start()
            time.sleep(2)  # at any moment
            wait_until(lambda: committed[0] >= 10 or not thread.is_alive(), "transactions are made")
            self.image.kill()
            thread.join(HANG)
            self.image.fsck("--data")
            self.image.mount()
            promised = sqlite_promise(path, committed[0])
            again = sqlite3.connect(path)
            self.assertEqual(again.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            count, last = again.execute("SELECT count(*), max(i) FROM t").fetchone()
            self.assertEqual(count, last)
            self.assertGreaterEqual(last, promised, f"{mode}: committed rows are missing")
            again.close()
            self.image.umount()
        self.image.check_all()

    def test_open_unlinked_files_are_freed(self):
        self.image.mount()
        used = os.statvfs(self.dir).f_bfree
        files = []
        for i in range(20):
            files.append(open(self.dir / f"open{i}", "wb"))
            files[-1].write(os.urandom(2 * MIB))
            files[-1].flush()
            os.fsync(files[-1].fileno())
            os.unlink(self.dir / f"open{i}")
        fsync_directory(self.dir)
        self.image.kill()
        for file in files:
            try:
                file.close()
            except OSError:
                pass
        self.image.fsck("--data")
        self.image.mount()
        self.assertEqual(os.listdir(self.dir), [])
        wait_until(lambda: os.statvfs(self.dir).f_bfree >= used - 256, "the space of open-unlinked files comes back")
        self.image.check_all()

    def test_shutdown_is_as_if_power_had_gone(self):
        """FS_IOC_SHUTDOWN: what was synced is there afterwards, nothing more is written, and what would write is an error."""
        if not IS_ROOT:
            self.skipTest("needs root")
        image = self.image
        image.mkfs("64M")
        image.mount("cleaner=off,commit=30")
        kept, lost = image.dir / "kept", image.dir / "lost"
        kept.write_bytes(b"synced" * 10_000)
        top = os.open(image.dir, os.O_RDONLY)
        os.fsync(top)
        lost.write_bytes(b"not synced" * 10_000)
        os.seteuid(65534)
        try:
            self.assertRaises(PermissionError, fcntl.ioctl, top, FS_IOC_SHUTDOWN, bytearray(4))
        finally:
            os.seteuid(0)
        fcntl.ioctl(top, FS_IOC_SHUTDOWN, bytearray(4))
        before = self.log_and_trees(image)
        unsynced = os.open(lost, os.O_RDWR)
        for call in (lambda: os.mkdir(image.dir / "new"), lambda: os.fsync(top), lambda: os.unlink(kept), lambda: os.fsync(unsynced)):
            with self.assertRaises(OSError) as caught:
                call()
            self.assertEqual(caught.exception.errno, errno.EIO)
        self.assertEqual(kept.read_bytes(), b"synced" * 10_000)
        self.assertIn("FS_IOC_SHUTDOWN", image.status()["read_only_reason"])
        os.close(unsynced)
        os.close(top)
        self.assertEqual(image.umount().stderr, "")  # nobody expects a clean end
        self.assertEqual(self.log_and_trees(image), before)
        image.fsck("--data")
        image.mount()
        self.assertEqual(kept.read_bytes(), b"synced" * 10_000)
        self.assertFalse(lost.exists())
        image.check_all()

    @staticmethod
    def log_and_trees(image):
        """All but the lease, in blocks 1 to 3."""
        with open(image.path, "rb") as file:
            file.seek(4 * 4096)
            return hashlib.sha256(file.read()).hexdigest()

    def test_abort_of_the_connection(self):
        """`umount -f` and an aborted connection end the daemon; nothing acknowledged is lost."""
        if not IS_ROOT:
            self.skipTest("needs root")
        self.image.mount()
        fill_random(self.dir / "f", 3 * MIB, 7)
        fsync_directory(self.dir)
        pid = self.image.daemon()
        command("umount", "-i", "-l", "-f", self.dir)
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the daemon ends")
        self.image.fsck("--data")
        self.image.mount()
        self.assertTrue(same_random(self.dir / "f", 3 * MIB, 7))
        self.image.check_all()


if __name__ == "__main__":
    main()
