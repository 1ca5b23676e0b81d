#!/usr/bin/env python3
"""The daemon in a memory group of its own: where the limit is enough it goes on, where it is not the kernel kills it under load.
And a daemon that stands still for a while (SIGSTOP), as on a suspended machine. What was synced is there, fsck finds nothing.
And that memory= bounds all that the daemon takes, whatever it does."""

import hashlib
import re
import resource
import threading

from harness import *

STOP_SECONDS = float(os.environ.get("VARVE_STOP_SECONDS", "7"))  # more than what waits to be flushed waits for


class Group:
    """A memory group below that of this process; cgroup v1 or v2."""

    def __init__(self, limit):
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        v1 = next((path for _, names, path in lines if "memory" in names.split(",")), None)
        v2 = next((path for number, _, path in lines if number == "0"), "/")
        top = Path("/sys/fs/cgroup/memory" if v1 is not None else "/sys/fs/cgroup")
        own = top / (v1 if v1 is not None else v2).lstrip("/")
        self.path = (own if own.exists() else top) / f"varve-test-{os.getpid()}-{limit}"
        self.path.mkdir()
        self.events = self.path / ("memory.oom_control" if v1 is not None else "memory.events")
        self.file = self.path / ("memory.limit_in_bytes" if v1 is not None else "memory.max")
        try:
            self.limit(limit)
        except OSError:
            self.remove()
            raise

    def limit(self, limit):
        self.file.write_text(str(limit))

    def add(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid))

    def oom_kills(self):
        return int(re.search(r"(?m)^oom_kill (\d+)$", self.events.read_text())[1])

    def remove(self):
        wait_until(lambda: not (self.path / "cgroup.procs").read_text(), "the group is empty")
        self.path.rmdir()


def kept_files(top, kept, stop):
    """Files that were synced, by name; ends with the daemon."""
    number = 0
    while not stop.is_set():
        data = random.Random(number).randbytes(20_000 + 7919 * (number % 40))
        try:
            with open(top / f"f{number % 200}.new", "wb", buffering=0) as file:
                file.write(data)
                os.fsync(file.fileno())
            kept.pop(f"f{number % 200}", None)  # either, until the directory is synced
            os.rename(top / f"f{number % 200}.new", top / f"f{number % 200}")
            fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError:
            return
        kept[f"f{number % 200}"] = hashlib.sha256(data).hexdigest()
        number += 1


def noise(top, stop, number):
    """What fills memory: many names, long files, reads of both; nothing of it is synced."""
    turn = 0
    while not stop.is_set():
        turn += 1
        folder = top / f"noise{number}.{turn % 3}"
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(exist_ok=True)
            for i in range(3000):
                os.close(os.open(folder / f"a name that is not short {i}", os.O_CREAT | os.O_WRONLY))
                if stop.is_set():
                    return
            with open(folder / "long", "wb", buffering=0) as file:
                for _ in range(40):
                    file.write(os.urandom(MIB))
            list(os.scandir(folder))
        except OSError:
            if not processes_of(top.parent / "disk.img"):
                return


class Loaded(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("1G")
        self.image.mount()
        self.dir = self.image.dir
        self.stop = threading.Event()
        self.kept = {}

    def start(self):
        self.threads = [threading.Thread(target=kept_files, args=(self.dir, self.kept, self.stop), daemon=True)]
        self.threads += [threading.Thread(target=noise, args=(self.dir, self.stop, n), daemon=True) for n in range(3)]
        for thread in self.threads:
            thread.start()
        wait_until(lambda: len(self.kept) > 10 or not processes_of(self.image.path), "something is synced")

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(HANG)
            self.assertFalse(thread.is_alive(), "a caller hangs")

    def check(self):
        for name, sum_ in self.kept.items():
            self.assertEqual(hashlib.sha256((self.dir / name).read_bytes()).hexdigest(), sum_, name)
        self.image.check_all()


def skip_if_sanitized(test):
    program = (BIN / "varve").read_bytes()
    if b"__asan_init" in program or b"__tsan_init" in program:
        test.skipTest("built with a sanitizer, which takes memory of its own")


class Logged(unittest.TestCase):
    def setUp(self):
        skip_if_sanitized(self)
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("1G")
        self.dir, self.log = self.image.dir, self.image.folder / "log"


class NoMore(Logged):
    """The daemon may not have one more byte: it ends by itself, and the log has all that was written, synced or not."""

    def setUp(self):
        super().setUp()
        self.image.mount(f"log={self.log}")

    def forbid_more(self):
        pid = self.image.daemon()
        size = int(re.search(r"VmData:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024
        resource.prlimit(pid, resource.RLIMIT_DATA, (size + MIB, size + MIB))

    def write_until_it_ends(self):
        """Number of files that were written; nothing of them is synced."""
        device = os.stat(self.dir).st_dev
        for number in range(200_000):
            try:
                with open(self.dir / f"a name that is not short {number}", "wb", buffering=0) as file:
                    if os.fstat(file.fileno()).st_dev != device:
                        return number  # it has gone, and this is what lies below
                    file.write(b"%d" % number)
            except OSError:
                return number
        self.fail("it goes on")

    def test_it_ends_with_everything_in_the_log(self):
        self.forbid_more()
        written = self.write_until_it_ends()
        wait_until(lambda: not processes_of(self.image.path), "the daemon ends")
        self.assertIn("out of memory", self.log.read_text())
        self.assertGreater(written, 100)
        self.image.mount()
        for number in range(written):
            self.assertEqual((self.dir / f"a name that is not short {number}").read_bytes(), b"%d" % number)
        self.image.check_all()


class Bound(unittest.TestCase):
    """The most that the kernel has ever counted for the daemon (VmHWM) stays below memory=."""
    NAMES = int(os.environ.get("VARVE_MEMORY_NAMES", "40000"))

    def setUp(self):
        skip_if_sanitized(self)
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("1536M")
        self.dir = self.image.dir

    def most(self):
        return int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.image.daemon()}/status").read_text())[1]) * 1024

    def at_once(self, work, *numbers):
        threads = [threading.Thread(target=work, args=(self.dir, n)) for n in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def make_names(self, top, number):
        for i in range(number, self.NAMES, 4):
            os.close(os.open(f"{top}/d{i % 20}/file number {i}", os.O_CREAT | os.O_WRONLY))

    def write_long(self, top, number):
        command("dd", "if=/dev/zero", f"of={top}/long{number}", "bs=1M", "count=120")

    def read_long(self, top, number):
        command("dd", f"if={top}/long{number}", "of=/dev/null", "bs=1M", "iflag=nocache")

    def write_here_and_there(self, top, number):
        places = random.Random(number)
        with open(f"{top}/long{number}", "r+b", buffering=0) as file:
            for _ in range(30_000):
                file.seek(places.randrange(120 * 256) * 4096)
                file.write(b"x" * 4096)
            os.fsync(file.fileno())

    def remove_names(self, top, number):
        for i in range(number, 20, 4):
            shutil.rmtree(top / f"d{i}")

    def go_on(self):
        for i in range(20):
            (self.dir / f"d{i}").mkdir()
        steps = [
            ("creating files", lambda: self.at_once(self.make_names, 0, 1, 2, 3)),
            ("listing", lambda: command("ls", "-lR", self.dir)),
            ("streams", lambda: self.at_once(self.write_long, 0, 1, 2)),
            ("reading", lambda: self.at_once(self.read_long, 0, 1, 2)),
            ("random writes", lambda: self.at_once(self.write_here_and_there, 0, 1, 2)),
            ("cleaning", lambda: command(BIN / "varve", "clean", "-s", "compacting", self.dir)),
            ("removing", lambda: self.at_once(self.remove_names, 0, 1, 2, 3)),
            ("random writes again", lambda: self.at_once(self.write_here_and_there, 0, 1, 2)),
        ]
        for what, step in steps:
            step()
            yield what
        self.image.kill()
        command("umount", "-l", self.dir)
        self.image.mount(self.options)
        yield "replaying"

    def check_bound(self, mib, threads):
        self.options = f"memory={mib}M" + (f",threads={threads}" if threads else "")
        self.image.mount(self.options)
        for what in self.go_on():
            self.assertLessEqual(self.most(), mib * MIB, f"{self.options}: {what}")
        self.image.check_all()

    def test_the_least(self):
        refused = self.image.mount("memory=1M,threads=1", check=False)
        self.assertNotEqual(refused.returncode, 0)
        least = int(re.search(r"at least (\d+)M", refused.stdout + (refused.stderr or ""))[1])
        self.check_bound(least, 1)

    def test_a_small_one(self):
        self.check_bound(48, 2)

    def test_the_check(self):
        self.image.mount()
        for i in range(20):
            (self.dir / f"d{i}").mkdir()
        self.at_once(self.make_names, 0, 1, 2, 3)
        self.image.umount()
        refused = command(BIN / "fsck.varve", "-f", "-n", "--memory", "1M", self.image.path, check=False)
        least = int(re.search(r"takes up to (\d+) MiB", refused.stderr)[1])
        checking = subprocess.Popen([BIN / "fsck.varve", "-f", "-n", "--data", "--memory", f"{least}M", self.image.path],
                                    stdout=subprocess.DEVNULL)
        most = 0
        while checking.poll() is None:
            try:
                most = max(most, int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{checking.pid}/status").read_text())[1]))
            except (TypeError, OSError):
                pass  # it is ending
            time.sleep(0.001)
        self.assertEqual(checking.returncode, 0)
        self.assertGreater(most, 0)
        self.assertLessEqual(most * 1024, least * MIB)

    def test_the_default(self):
        self.options = ""
        self.image.mount()
        for what in self.go_on():
            self.assertLessEqual(self.most(), 256 * MIB, what)
        self.image.check_all()


class MemoryGroup(Loaded):
    def setUp(self):
        skip_if_sanitized(self)
        super().setUp()

    def group(self, limit):
        try:
            group = Group(limit)
        except OSError as error:
            self.skipTest(f"no memory group is to be had: {error}")
        self.addCleanup(group.remove)
        self.addCleanup(clean_up_all)
        return group

    def test_that_is_enough(self):
        self.group(420 * MIB).add(self.image.daemon())
        self.start()
        time.sleep(15)  # what may take too much comes with time only
        self.end()
        self.assertTrue(processes_of(self.image.path), "it lives")
        self.check()

    def test_that_is_not(self):
        kills = 0
        limits = (96, 64, 40, 24)
        for limit in limits:
            group = self.group(limit * MIB)
            group.add(self.image.daemon())
            self.stop.clear()
            self.start()
            end = time.monotonic() + (20 if kills or limit > limits[-1] else HANG)
            while processes_of(self.image.path) and time.monotonic() < end:
                time.sleep(0.1)
            self.end()
            if not processes_of(self.image.path) or self.image.umount(check=False).returncode:  # also while it ends
                self.assertGreater(group.oom_kills(), 0, "it has ended, and nobody has killed it")
                kills += 1
                wait_until(lambda: is_unlocked(self.image.path), "the killed daemon's threads are gone")
                self.image.fsck("--data")
            self.image.mount()
            for name, sum_ in self.kept.items():
                self.assertEqual(hashlib.sha256((self.dir / name).read_bytes()).hexdigest(), sum_, f"{name}, {limit} MiB")
        self.assertGreater(kills, 0, "no limit was low enough")
        self.check()


class DefaultBound(Logged):
    """Without memory= the bound is half of what the daemon's group may take, at the mount and later."""

    FILES = 20_000
    group = MemoryGroup.group

    def limit(self):
        return self.image.status()["memory"]["memory_limit_bytes"]

    def doctor(self):
        return [f"{f['grade']}: {f['text']}" for f in self.image.findings() if f["subject"] == "memory"]

    def mount_in(self, group, options):
        command("sh", "-c", 'echo $$ > "$1"; shift; exec "$@"', "sh", group.path / "cgroup.procs",
                BIN / "varve", "mount", "-o", f"log={self.log}{options}", self.image.path, self.dir)

    def make_files(self, count):
        for i in range(count):
            if i % 1000 == 0:
                (self.dir / f"d{i}").mkdir(exist_ok=True)
            with open(self.dir / f"d{i - i % 1000}" / f"file number {i}", "wb", buffering=0) as file:
                file.write(b"x" * 500)

    def test_thirty_thousand_files_in_64_MiB(self):
        group = self.group(64 * MIB)
        self.mount_in(group, "")
        self.assertEqual(self.limit(), 32 * MIB)
        self.assertRegex(self.log.read_text(), "the bound is 32 MiB, since the control group may take 64 MiB")
        self.make_files(30_000)
        os.sync()
        self.assertEqual(group.oom_kills(), 0)
        self.assertEqual(len(list((self.dir / "d29000").iterdir())), 1000)
        self.assertEqual([said for said in self.doctor() if said.startswith("unsafe")], [])
        self.image.check_all()

    def resident(self):
        return int(re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.image.daemon()}/status").read_text())[1]) * 1024

    def use_memory(self, files=FILES):
        """Names, blocks of files and messages: all that has a share."""
        self.make_files(files)
        command("dd", "if=/dev/zero", f"of={self.dir}/long", "bs=1M", "count=200", "conv=fsync")
        command("dd", f"if={self.dir}/long", "of=/dev/null", "bs=1M", "iflag=nocache")
        command("ls", "-lR", self.dir)

    def wait_for(self, group, mib, bound):
        group.limit(mib * MIB)
        wait_until(lambda: self.limit() == bound * MIB, f"a limit of {mib} MiB is followed")

    def test_a_limit_that_changes(self):
        group = self.group(480 * MIB)
        self.mount_in(group, "")
        self.assertEqual(self.limit(), 240 * MIB)
        self.use_memory(3 * self.FILES)
        before = self.resident()
        for mib in (240, 128):  # not at once: the kernel may refuse what the daemon cannot follow at once
            self.wait_for(group, mib, mib // 2)
            line = f"the bound is {mib // 2} MiB from now on, since the control group may take {mib} MiB"
            wait_until(lambda: line in self.log.read_text(), "the log says so")
        wait_until(lambda: self.resident() <= before - 20 * MIB, "what was too much is given back")
        self.use_memory()
        self.assertEqual(group.oom_kills(), 0)
        self.assertEqual([said for said in self.doctor() if said.startswith("unsafe")], [])
        self.image.check_all()

    def test_a_limit_that_changes_while_files_are_used(self):
        group = self.group(480 * MIB)
        self.mount_in(group, "")
        used, stop = [], threading.Event()

        def use():
            while not stop.is_set():
                self.use_memory(self.FILES // 4)
                used.append(True)

        users = Beside(use)
        self.addCleanup(stop.set)
        for mib, bound in ((240, 120), (1024, 256), (300, 150)):
            before = len(used)
            self.wait_for(group, mib, bound)
            wait_until(lambda: len(used) > before + 1 or not users.is_alive(), "files are used with that bound, too")
        stop.set()
        users.end()
        self.assertEqual(group.oom_kills(), 0)
        self.assertEqual([said for said in self.doctor() if said.startswith("unsafe")], [])
        self.image.check_all()

    def test_a_group_that_comes_later(self):
        self.image.mount()
        self.group(128 * MIB).add(self.image.daemon())
        wait_until(lambda: self.limit() == 64 * MIB, "the limit of the other group is followed")
        self.image.umount()

    def test_doctor_looks_at_the_daemons_group(self):
        group = self.group(64 * MIB)
        self.mount_in(group, ",memory=200M")
        self.assertIn("may be killed", self.log.read_text())
        self.assertRegex("\n".join(self.doctor()), "unsafe: the daemon takes up to 200.0 MiB, but its control group has 64.0 MiB")
        group.limit(96 * MIB)
        wait_until(lambda: "may take 96 MiB" in self.log.read_text(), "the log says that this is too little, too")
        self.assertEqual(self.limit(), 200 * MIB)


class StandingStill(Loaded):
    def test_under_load(self):
        self.start()
        pid = self.image.daemon()
        for _ in range(2):
            stop(pid)
            time.sleep(STOP_SECONDS)
            os.kill(pid, signal.SIGCONT)
            self.kept.clear()
            wait_until(lambda: len(self.kept) > 10, "it goes on")
        self.end()
        self.assertEqual(self.image.daemon(), pid)
        self.check()


main()
