#!/usr/bin/env python3
"""packaging/varve-sleep: programs that are at work on a mount are frozen while its daemon still answers, also where both are in one
control group, and go on afterwards."""

from harness import *

LOAD = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for i in range(1 << 40):
    os.pwrite(fd, i.to_bytes(8, "little"), 0)
    os.fsync(fd)
    open(sys.argv[1] + ".new", "w").close()
    os.unlink(sys.argv[1] + ".new")
"""


def control_groups():
    """A folder of control groups of version 2, or nothing."""
    done = command("findmnt", "-no", "TARGET", "-t", "cgroup2", check=False)
    return Path(done.stdout.splitlines()[0]) if done.returncode == 0 and done.stdout else None


class Sleep(MountTest):
    size = "128M"
    programs = ()

    def setUp(self):
        super().setUp()
        self.top = control_groups()
        if not IS_ROOT or not self.top or not os.access(self.top, os.W_OK):
            self.skipTest("needs root, and control groups of version 2")
        self.another = Image()  # nobody uses it
        self.another.mkfs("64M")
        self.another.mount()
        self.group = self.top / f"varve-test.{os.getpid()}"
        self.state = self.image.folder / "run"
        self.group.mkdir()
        self.addCleanup(self.take_away_groups)

    def tearDown(self):
        self.call("after")
        for program in self.programs:
            program.kill()
            program.wait()
        super().tearDown()

    def take_away_groups(self):
        for group in (self.group / "other", self.group):
            if group.exists():
                for process in (group / "cgroup.procs").read_text().split():
                    (self.top / "cgroup.procs").write_text(process)
                group.rmdir()

    def call(self, word):
        environment = dict(os.environ, VARVE_CGROUPS=str(self.top), VARVE_RUN=str(self.state), VARVE_ONLY=f"/{self.group.name}")
        return command(ROOT / "packaging/varve-sleep", word, check=False, env=environment)

    def start(self, group, *words):
        return subprocess.Popen([sys.executable, "-c", *words], preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())), cwd="/")

    def work(self, count):
        self.programs = [self.start(self.group, LOAD, str(self.image.dir / f"f{i}")) for i in range(count)]
        wait_until(lambda: all((self.image.dir / f"f{i}").exists() for i in range(count)), "the programs work")

    def group_of(self, process):
        return Path(f"/proc/{process}/cgroup").read_text().split("0::/")[1].strip()

    def is_frozen(self, group):
        return "frozen 1" in (group / "cgroup.events").read_text()

    def test_programs_beside_their_daemon_in_one_group(self):
        daemon = self.image.daemon()
        (self.group / "cgroup.procs").write_text(str(daemon))
        self.work(4)
        for _ in range(3):
            done = self.call("before")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(self.is_frozen(self.group))
            self.assertEqual(self.group_of(daemon), "varve-awake")
            before = [(self.image.dir / f"f{i}").read_bytes() for i in range(4)]  # the daemon answers
            self.assertEqual(self.call("after").returncode, 0)
            self.assertFalse(self.is_frozen(self.group))
            self.assertEqual(self.group_of(daemon), self.group.name)
            wait_until(lambda: all((self.image.dir / f"f{i}").read_bytes() != before[i] for i in range(4)), "the programs go on")
        self.assertFalse((self.top / "varve-awake").exists())
        self.assertFalse(self.state.exists())

    def test_others_are_left_alone(self):
        other = self.group / "other"
        other.mkdir()
        idle = self.start(other, "import sys; sys.stdin.read()")
        self.programs = [idle]
        (self.group / "cgroup.procs").write_text(str(self.image.daemon()))
        self.assertEqual(self.call("before").returncode, 0)
        self.assertFalse(self.is_frozen(other))
        self.assertFalse(self.is_frozen(self.group))
        self.assertEqual(self.group_of(self.image.daemon()), self.group.name)

    def test_waking_up_without_having_slept(self):
        self.assertEqual(self.call("after").returncode, 0)
        self.assertEqual(self.call("").returncode, 2)


if __name__ == "__main__":
    main()
