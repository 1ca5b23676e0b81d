#!/usr/bin/env python3
"""Many at one time: 50 000 open files, half of them without a name; thousands of readers of one file; removal of a tree beside
listers. VARVE_CROWD sets how many (open files, readers): the nightly run takes more."""

import mmap
import resource
import threading

from harness import *
from system_calls import *

OPEN_FILES = int(os.environ.get("VARVE_CROWD", "6000"))
READERS = min(OPEN_FILES // 4, 10_000)
PER_PROCESS = 5000


def fork(action):
    """A child that runs it and says so with its exit status; a pipe tells when it is ready, another when it is to end."""
    ready_read, ready = os.pipe()
    go, go_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(ready_read)
            os.close(go_write)
            action(lambda: os.write(ready, b"!"), lambda: os.read(go, 1))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(ready)
    os.close(go)
    return pid, ready_read, go_write


def let_go(child):
    pid, ready, go = child
    os.write(go, b"!")  # children that were started later hold its other ends, too: closing would not do
    os.close(go)
    os.close(ready)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class OpenFiles(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("1G")
        self.image.mount()
        self.dir = self.image.dir
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.each = min(PER_PROCESS, hard - 100)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def holder(self, number):
        def hold(ready, wait):
            top = self.dir / f"holder{number}"
            top.mkdir()
            files = []
            for i in range(self.each):
                files.append(os.open(top / f"f{i}", os.O_CREAT | os.O_RDWR))
                os.write(files[-1], f"{number} {i}".encode())
                if i % 2:
                    os.unlink(top / f"f{i}")
            os.fsync(files[0])  # the prefix rule: all that came before is durable with it
            ready()
            wait()
            for i, fd in enumerate(files):
                try:
                    assert os.pread(fd, 100, 0) == f"{number} {i}".encode(), f"{number} {i}"
                    assert os.fstat(fd).st_nlink == (i + 1) % 2
                except OSError:
                    if self.image.is_mounted() and processes_of(self.image.path):
                        raise  # else the daemon was killed
        return hold

    def hold(self):
        children = [fork(self.holder(n)) for n in range(max(1, OPEN_FILES // self.each))]
        for _, ready, _ in children:
            self.assertEqual(os.read(ready, 1), b"!")
        return children

    def check_names(self, holders):
        for number in range(holders):
            names = sorted(os.listdir(self.dir / f"holder{number}"))
            self.assertEqual(names, sorted(f"f{i}" for i in range(0, self.each, 2)))

    def test_are_closed(self):
        children = self.hold()
        self.assertEqual([let_go(child) for child in children], [0] * len(children))
        self.check_names(len(children))
        self.image.check_all()
        self.assert_no_orphans()

    def assert_no_orphans(self):
        self.image.mount()
        used = os.statvfs(self.dir)
        names = sum(len(files) + len(folders) for _, folders, files in os.walk(self.dir))
        self.assertEqual(used.f_files - used.f_ffree, names + 1, "no inode but the root and those with a name")
        self.image.check_all()

    def test_outlive_the_daemon(self):
        children = self.hold()
        self.image.kill()
        self.assertEqual([let_go(child) for child in children], [0] * len(children))
        self.image.fsck("--data")
        self.image.mount()
        self.check_names(len(children))
        self.image.check_all()
        self.assert_no_orphans()


class Readers(MountTest):
    SIZE = 64 * MIB

    def test_of_one_file(self):
        path = self.dir / "one"
        fill_random(path, self.SIZE, seed=7)
        piece = 4096
        with open(path, "rb") as file:
            expected = file.read()
        self.image.remount()
        processes = 8
        def read(number):
            def run(ready, wait):
                failures = []
                start = threading.Barrier(READERS // processes + 1)
                def one(at):
                    fd = os.open(path, os.O_RDONLY | (os.O_DIRECT if at % 2 else 0))
                    try:
                        place = mmap.mmap(-1, piece)
                        start.wait()
                        generator = random.Random(at)
                        for _ in range(4):
                            offset = generator.randrange(self.SIZE // piece) * piece
                            if os.preadv(fd, [place], offset) != piece or place[:] != expected[offset:offset + piece]:
                                failures.append(offset)
                    except BaseException as error:
                        failures.append(error)
                        start.abort()
                    finally:
                        os.close(fd)
                threading.stack_size(128 * KIB)
                threads = [threading.Thread(target=one, args=(number * 100_000 + i,)) for i in range(READERS // processes)]
                for thread in threads:
                    thread.start()
                ready()
                wait()
                start.wait()
                for thread in threads:
                    thread.join()
                assert not failures, failures[:3]
            return run
        children = [fork(read(n)) for n in range(processes)]
        for _, ready, _ in children:
            self.assertEqual(os.read(ready, 1), b"!")
        self.assertEqual([let_go(child) for child in children], [0] * processes)
        peak = next(line for line in Path(f"/proc/{self.image.daemon()}/status").read_text().splitlines() if "VmHWM" in line)
        self.assertLess(int(peak.split()[1]), 400 * 1024, "KiB of memory")


class Removal(MountTest):
    def make_tree(self, top, folders, files):
        for folder in range(folders):
            (top / f"d{folder}").mkdir(parents=True)
            for file in range(files):
                (top / f"d{folder}" / f"a rather long name of a file {file}").touch()

    def lister(self, kept, stop, failures):
        """Lists while names come and go: what stays is seen exactly once, nothing is seen twice."""
        while not stop.is_set():
            try:
                for folder, _, _ in os.walk(self.dir, onerror=lambda error: failures.append(error)
                                            if error.errno not in (2, 20) else None):
                    try:
                        names = os.listdir(folder)
                    except FileNotFoundError:
                        continue
                    if len(names) != len(set(names)):
                        failures.append(f"{folder}: a name twice")
                    if Path(folder) == self.dir / "kept" and not kept <= set(names):
                        failures.append(f"lost: {kept - set(names)}")
            except BaseException as error:
                failures.append(error)

    def test_beside_listers(self):
        kept = {f"kept {i}" for i in range(3000)}
        (self.dir / "kept").mkdir()
        for name in kept:
            (self.dir / "kept" / name).touch()
        stop, failures = threading.Event(), []
        threads = [threading.Thread(target=self.lister, args=(kept, stop, failures), daemon=True) for _ in range(3)]
        finders = [subprocess.Popen(["sh", "-c", f"while [ -d '{self.dir}/kept' ]; do ls -lR '{self.dir}'; sleep 0.1; done"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
                   for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for turn in range(4):
                self.make_tree(self.dir / "tree", 30, 60)
                for i in range(300):  # among those that stay
                    (self.dir / "kept" / f"passing {turn} {i}").touch()
                command("rm", "-rf", self.dir / "tree")
                for i in range(300):
                    (self.dir / "kept" / f"passing {turn} {i}").unlink()
                self.assertFalse((self.dir / "tree").exists())
        finally:
            stop.set()
            for finder in finders:
                end_session(finder)  # with the ls that it runs
            for thread in threads:
                thread.join(HANG)
        self.assertFalse(any(thread.is_alive() for thread in threads), "a listing that does not end")
        self.assertEqual(failures[:3], [])
        self.assertEqual(set(os.listdir(self.dir / "kept")), kept)

    def test_while_a_directory_is_read(self):
        top = self.dir / "read"
        top.mkdir()
        for i in range(2000):
            (top / f"{i}").touch()
        listing = os.scandir(top)
        seen = set()
        for entry in listing:
            self.assertNotIn(entry.name, seen)
            seen.add(entry.name)
            os.unlink(entry.path)
            if len(seen) % 5 == 0:
                (top / f"new {len(seen)}").touch()
        self.assertLessEqual({f"{i}" for i in range(2000)}, seen, "what was there is seen although others go")
        command("rm", "-rf", top)
        self.assertFalse(top.exists())

    def test_places_in_a_directory_that_changes(self):
        # telldir(3) and seekdir(3): from each place the same names follow, less those that are gone.
        top = self.dir / "told"
        top.mkdir()
        for i in range(3000):
            (top / f"{i}").touch()
        stream = DirectoryStream(top)
        places, names = [], []
        while True:
            places.append(stream.place())
            name = stream.next_name()
            if name is None:
                break
            names.append(name)
        self.assertEqual(len(set(names)), 3002)
        generator = random.Random(SEED)
        gone = set()
        for turn in range(300):
            for name in generator.sample(names, 5):
                if name not in gone and not name.startswith("."):
                    (top / name).unlink()
                    gone.add(name)
            (top / f"new {turn}").touch()
            at = generator.randrange(len(names))
            stream.go_to(places[at])
            expected = [name for name in names[at:] if name not in gone][:3]
            found = [stream.next_name() for _ in expected]
            # The C library may hand out from its own buffer what it had read before; no name is missing in between.
            self.assertEqual([name for name in found if name not in gone], expected[:len([n for n in found if n not in gone])])
        stream.close()


main(1800)
