#!/usr/bin/env python3
"""The daemon dies (SIGKILL) while databases and git work on it. After the next mount every committed transaction is
there, and the program's own check of integrity passes.

VARVE_CRASH_ROUNDS: how often each is killed (default 2)."""

import sqlite3
import threading

from harness import *

ROUNDS = int(os.environ.get("VARVE_CRASH_ROUNDS", "2"))


def newest_postgres():
    """Folder of the server's programs, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


class Killed(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("2G")
        self.generator = random.Random(SEED)

    def kill_and_mount(self, options="", before_mount=lambda: None):
        self.image.kill()
        before_mount()
        self.image.fsck("--data")  # as the next mount would find it
        self.image.mount(options)


class Sqlite(Killed):
    """Several rows in each transaction, so that half a transaction shows; rolled-back ones in between."""

    def rounds_of(self, journal, synchronous):
        self.image.mount()
        path = self.image.dir / f"{journal}.db"
        committed = 0
        for turn in range(ROUNDS):
            db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            db.execute(f"PRAGMA journal_mode={journal}")
            db.execute(f"PRAGMA synchronous={synchronous}")
            db.execute("PRAGMA wal_autocheckpoint=50")
            db.execute("CREATE TABLE IF NOT EXISTS t(transaction_number INTEGER, row INTEGER, v BLOB)")
            done = [committed]

            def work(db=db, done=done):
                try:
                    while True:
                        number = done[0] + 1
                        db.execute("BEGIN")
                        for row in range(5):
                            db.execute("INSERT INTO t VALUES(?, ?, ?)", (number, row, os.urandom(900)))
                        if number % 7 == 0:
                            db.execute("DELETE FROM t WHERE transaction_number = ? AND row < 4", (number - 3,))
                        db.execute("COMMIT")
                        done[0] = number
                        if number % 10 == 0:
                            db.execute("BEGIN")
                            db.execute("INSERT INTO t VALUES(-1, 0, x'00')")
                            db.execute("ROLLBACK")
                except sqlite3.Error:
                    pass  # the daemon is gone
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            wait_until(lambda: done[0] >= committed + 10, "transactions are made")
            time.sleep(self.generator.uniform(0.1, 2))

            # A connection that is closed later would delete the journal of its successor, by name.
            def end_connection(db=db, thread=thread):
                thread.join(HANG)
                self.assertFalse(thread.is_alive(), "writes go on without a daemon")
                db.close()
            self.kill_and_mount(before_mount=end_connection)
            committed = self.check(path, done[0])
        self.image.check_all()

    def check(self, path, committed):
        promised = sqlite_promise(path, committed) if path.name == "delete.db" else committed
        db = sqlite3.connect(path)
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        last = db.execute("SELECT coalesce(max(transaction_number), 0) FROM t").fetchone()[0]
        self.assertGreaterEqual(last, promised, "committed transactions are missing")
        self.assertLessEqual(last, committed + 1, "more than was ever begun")
        self.assertEqual(db.execute("SELECT count(*) FROM t WHERE transaction_number < 0").fetchone(), (0,))
        for number, rows in db.execute("SELECT transaction_number, count(*) FROM t GROUP BY 1"):
            shortened = (number + 3) % 7 == 0 and number + 3 <= last
            self.assertEqual(rows, 1 if shortened else 5, f"transaction {number} is not whole")
        db.close()
        return last

    def test_write_ahead_log(self):
        self.rounds_of("wal", "full")

    def test_rollback_journal(self):
        self.rounds_of("delete", "extra")

    def test_truncated_and_persistent_journals(self):
        self.rounds_of("truncate", "extra")
        self.image = Image()
        self.image.mkfs("2G")
        self.rounds_of("persist", "extra")


class Git(Killed):
    def git(self, *words, check=True):
        environment = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="a",
                           GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
        return command("git", "-C", self.image.dir / "repo", "-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync", *words,
                       check=check, env=environment)

    @unittest.skipUnless(shutil.which("git"), "no git")
    def test_commits(self):
        self.image.mount()
        repo = self.image.dir / "repo"
        repo.mkdir()
        self.git("init", "-q", "-b", "main")
        commits = []
        for turn in range(ROUNDS):
            stop = threading.Event()
            begun = len(commits)

            def work():
                while not stop.is_set():
                    try:
                        number = len(commits)
                        (repo / f"file{number % 20}").write_bytes(os.urandom(3000) + str(number).encode())
                        (repo / f"dir{number % 3}").mkdir(exist_ok=True)
                        (repo / f"dir{number % 3}" / f"n{number}").write_text(str(number))
                        self.git("add", "-A")
                        self.git("commit", "-q", "-m", str(number))
                        commits.append(self.git("rev-parse", "HEAD").stdout.strip())
                    except (OSError, AssertionError):
                        return  # the daemon is gone
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            wait_until(lambda: len(commits) >= begun + 5, "commits are made")
            time.sleep(self.generator.uniform(0.1, 1.5))
            def end_work(stop=stop, thread=thread):
                stop.set()
                thread.join(HANG)
            self.kill_and_mount(before_mount=end_work)
            for lock in repo.rglob(".git/**/*.lock"):
                lock.unlink()  # as git asks of a user that knows that no other git runs
            fsck = self.git("fsck", "--full", "--strict")
            self.assertNotRegex(fsck.stderr, "error|missing|corrupt")
            history = self.git("rev-list", "HEAD").stdout.split()
            # git renames a reference into its place without an fsync of the directory: the newest may be missing, all
            # before it were followed by an fsync.
            for commit in commits[:-1]:
                self.assertIn(commit, history, "a commit is gone")
            self.git("reset", "-q", "--hard", "HEAD")
            self.git("clean", "-q", "-f", "-d")
            commits = [commit for commit in commits if commit in history]
            self.assertEqual(self.git("status", "--porcelain").stdout, "")
        self.image.check_all()


@unittest.skipUnless(newest_postgres() and (newest_postgres() / "pgbench").exists(), "no PostgreSQL server with pgbench")
class Postgres(Killed):
    """pgbench's own transactions, and a table of numbered ones whose acknowledgements are noted outside."""
    port = "54329"

    def setUp(self):
        super().setUp()
        self.programs = newest_postgres()
        self.user = None
        if IS_ROOT:  # the server refuses to be root's
            if subprocess.run(["id", "postgres"], capture_output=True).returncode:
                self.skipTest("root, and no user postgres")
            self.user = "postgres"
            os.chmod(self.image.folder, 0o755)
        self.data = self.image.dir / "pg"
        self.sockets = new_folder()
        os.chmod(self.sockets, 0o777)
        self.server = None

    def run_as(self, *words, **more):
        prefix = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"] if self.user else []
        return command(*prefix, *words, cwd="/", timeout=300, **more)

    def options(self):
        return "allow_other" if self.user else ""

    def start(self):
        prefix = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"] if self.user else []
        with open(self.sockets / "log", "ab") as log:
            self.server = subprocess.Popen(
                [*prefix, self.programs / "postgres", "-D", self.data, "-p", self.port, "-k", self.sockets, "-c",
                 "listen_addresses=", "-c", "checkpoint_timeout=30s", "-c", "max_wal_size=64MB", "-c", "shared_buffers=16MB"],
                stdout=subprocess.DEVNULL, stderr=log, cwd="/")
        ready = lambda: subprocess.run([self.programs / "pg_isready", "-q", "-h", self.sockets, "-p", self.port]).returncode == 0
        wait_until(lambda: ready() or self.server.poll() is not None, "PostgreSQL is ready")
        if self.server.poll() is not None:
            self.fail("PostgreSQL does not start: " + (self.sockets / "log").read_text()[-2000:])

    def end_server(self, number):
        self.server.send_signal(number)
        self.server.wait(HANG)

    def kill_server(self):
        """Its backends notice that the postmaster is gone; wait for them: they hold files of the dead mount."""
        stop(self.server.pid)  # or one could come that is not in the list, and wait for the others' locks for ever
        children = subprocess.run(["pgrep", "-P", str(self.server.pid)], capture_output=True, text=True).stdout.split()
        self.end_server(signal.SIGKILL)
        kill_all([int(c) for c in children])
        wait_until(lambda: not any(Path(f"/proc/{c}").exists() for c in children), "the backends are gone")

    def psql(self, text, check=True):
        return self.run_as(self.programs / "psql", "-h", self.sockets, "-p", self.port, "-d", "postgres", "-X", "-q", "-A", "-t",
                           "-v", "ON_ERROR_STOP=1", "-c", text, check=check).stdout.strip()

    def pgbench(self, *words, check=True):
        return self.run_as(self.programs / "pgbench", "-h", self.sockets, "-p", self.port, *words, "postgres", check=check)

    def test_pgbench(self):
        self.image.mount(self.options())
        self.data.mkdir()
        if self.user:
            shutil.chown(self.data, self.user, self.user)
        os.chmod(self.data, 0o700)
        self.run_as(self.programs / "initdb", "-D", self.data, "-k", "--auth=trust", "-E", "UTF8", "--no-locale")
        self.start()
        self.addCleanup(lambda: self.server.poll() is None and self.end_server(signal.SIGKILL))
        self.pgbench("-i", "-q", "-s", "1")
        self.psql("CREATE TABLE promised(n integer PRIMARY KEY, a text, b text)")
        promised = 0
        for turn in range(ROUNDS):
            promised = self.load_and_kill(promised)
        self.end_server(signal.SIGINT)
        done = self.run_as(self.programs / "pg_checksums", "--check", "-D", self.data)
        self.assertRegex(done.stdout, r"Bad checksums: +0")
        self.image.check_all()

    def load_and_kill(self, promised):
        state = [promised]
        stop = threading.Event()

        def numbered():
            while not stop.is_set():
                try:
                    self.psql(f"BEGIN; INSERT INTO promised VALUES({state[0] + 1}, 'x', NULL);"
                              f"UPDATE promised SET b = 'y' WHERE n = {state[0] + 1}; COMMIT")
                    state[0] += 1
                except AssertionError:
                    return
        # -n: else it begins by emptying the history, which is to be compared.
        load = threading.Thread(target=lambda: self.pgbench("-n", "-c", "4", "-j", "2", "-T", "600", check=False), daemon=True)
        notes = threading.Thread(target=numbered, daemon=True)
        load.start()
        notes.start()
        wait_until(lambda: state[0] >= promised + 5, "transactions are made")
        time.sleep(self.generator.uniform(0.5, 4))  # at any moment
        self.image.kill()
        stop.set()
        self.kill_server()
        for thread in (load, notes):
            thread.join(HANG)
        self.image.fsck("--data")
        self.image.mount(self.options())
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        self.start()
        self.check(state[0])
        return state[0] if self.psql("SELECT max(n) FROM promised") == str(state[0]) else state[0] + 1

    def check(self, promised):
        count, last, half = self.psql("SELECT count(*), max(n), count(*) FILTER (WHERE b IS NULL) FROM promised").split("|")
        self.assertGreaterEqual(int(last), promised, "committed transactions are missing")
        self.assertLessEqual(int(last), promised + 1)
        self.assertEqual((count, half), (last, "0"), "half a transaction")
        # What pgbench promises: each transaction adds the same delta to an account, a teller, a branch and the history.
        sums = self.psql("SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),"
                         "(SELECT sum(bbalance) FROM pgbench_branches), (SELECT coalesce(sum(delta), 0) FROM pgbench_history)")
        self.assertEqual(len(set(sums.split("|"))), 1, sums)
        self.psql("CREATE EXTENSION IF NOT EXISTS amcheck")
        self.psql("SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = c.relam "
                  "WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence = 'p'")


if __name__ == "__main__":
    main()
