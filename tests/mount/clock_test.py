#!/usr/bin/env python3
"""The daemon's wall clock is set back, and far ahead, under load; files get times from 1901 to 9999. Times are only shown: what
waits for five seconds waits for those of the monotonic clock. Automatic snapshots are as old as they are."""

import threading

from snapshot_tools import *
from system_calls import *

CLOCK = Path(os.environ.get("VARVE_TEST_PRELOAD", ROOT / "build/release/tests/mount/libvarve_shifted_clock.so"))
NOW = int(time.time())
YEAR_SECONDS = 31556952
# What the clock says: hours ago, before 1970, after 2038, after 2106, after 2262 (more ns than 63 bits hold), 9999.
MOMENTS = {"hours ago": NOW - 8 * 3600, "1969": -86400, "the last second before 1970": -1, "2039": 2_177_452_800,
           "2107": 4_323_369_600, "2263": 9_246_000_000, "9999": 253_402_300_799}
STAMPS = [-2_177_452_800, -(1 << 31) - 1, -1, 0, (1 << 31), (1 << 32) + 5, 15_032_385_536, 253_402_300_799, 1 << 45]


COARSE_CLOCK = 5  # CLOCK_REALTIME_COARSE: its tick dates files


def coarse_time():
    return time.clock_gettime_ns(COARSE_CLOCK)


class Times(MountTest):
    def test_of_all_ages_are_kept(self):
        wanted = {}
        for number, seconds in enumerate(STAMPS):
            path = self.dir / f"f{number}"
            path.touch()
            os.utime(path, ns=(seconds * 10**9 + 1, seconds * 10**9 + 999_999_999))
            wanted[path] = (seconds * 10**9 + 1, seconds * 10**9 + 999_999_999)
        for remounted in range(2):
            for path, (atime, mtime) in wanted.items():
                found = path.stat()
                self.assertEqual((found.st_atime_ns, found.st_mtime_ns), (atime, mtime), path)
                path.read_bytes()  # whether its access time is due is reckoned with it
                os.utime(path, ns=(atime, mtime))
            if not remounted:
                self.image.remount()

    def times_of(self, path):
        return path.stat().st_mtime_ns, path.stat().st_ctime_ns

    def test_a_snapshot_has_the_times_that_programs_see(self):
        path = self.dir / "file"
        path.write_bytes(bytes(100_000))
        os.sync()
        before = self.times_of(path)
        wait_until(lambda: coarse_time() > before[0], "a tick of the clock")
        os.truncate(path, 100_000)
        self.assertEqual(self.times_of(path), before)  # as on other filesystems
        varve("snapshot", "create", self.dir, "truncated")
        self.assertEqual(self.times_of(self.dir / ".varve-snapshots/truncated/file"), before)

        # Within one tick the file gets its size and some room, and the daemon hears of the room later.
        with open(path, "r+b") as file:
            for size in range(200_000, 201_000):
                asked = []

                def set_aside():
                    asked.append(coarse_time())
                    fallocate(file.fileno(), KEEP_SIZE, MIB, MIB)

                os.ftruncate(file.fileno(), size)
                tick = path.stat().st_mtime_ns
                os.kill(self.image.daemon(), signal.SIGSTOP)
                thread = threading.Thread(target=set_aside)
                thread.start()
                wait_until(lambda: coarse_time() > tick + 30_000_000, "some ticks of the clock")
                os.kill(self.image.daemon(), signal.SIGCONT)
                thread.join()
                if asked[0] <= tick:
                    break
            else:
                self.fail("a thousand times a tick ended between two calls")
        varve("snapshot", "create", self.dir, "allocated")
        self.assertEqual(self.times_of(self.dir / ".varve-snapshots/allocated/file"), self.times_of(path))
        self.image.remount()
        self.assertEqual(self.times_of(self.dir / ".varve-snapshots/allocated/file"), self.times_of(path))


class SetClock(unittest.TestCase):
    options = ""

    def setUp(self):
        if not CLOCK.exists():
            self.skipTest(f"{CLOCK} is not built")
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("1G")
        self.dir = self.image.dir
        self.said = self.image.folder / "clock"
        self.set_clock(0)
        self.mount(self.options)

    def mount(self, given=""):
        preload = {"LD_PRELOAD": str(CLOCK), "VARVE_TEST_CLOCK": str(self.said)}
        options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS", ""), "verify_asan_link_order=0"]))
        self.image.mount(",".join(filter(None, [given, f"log={self.image.folder}/log"])), env={**os.environ, **preload, "ASAN_OPTIONS": options})

    def set_clock(self, ahead):
        new = self.said.with_suffix(".new")
        new.write_text(f"{ahead}\n")
        new.rename(self.said)


class Jumps(SetClock):
    def write_until(self, stop, failures):
        count = 0
        while not stop.is_set():
            try:
                path = self.dir / f"load{count % 7}"
                with open(path, "wb", buffering=0) as file:
                    file.write(os.urandom(300_000))
                    if count % 3 == 0:
                        os.fsync(file.fileno())
                (self.dir / f"name{count % 11}").touch()
                list(os.scandir(self.dir))
                count += 1
            except OSError as error:
                failures.append(error)
                return

    def test_under_load(self):
        stop, failures = threading.Event(), []
        load = threading.Thread(target=self.write_until, args=(stop, failures), daemon=True)
        load.start()
        try:
            for number, (name, moment) in enumerate(MOMENTS.items()):
                self.set_clock(moment - NOW)
                made = self.dir / f"at{number}"
                made.mkdir()
                self.assertAlmostEqual(made.stat().st_mtime, moment, delta=3600, msg=name)
                self.assertEqual(self.image.status()["mount"].get("read_only", False), False, name)
                command(BIN / "varve", "scrub", self.dir)  # shows when it began
        finally:
            stop.set()
            load.join(HANG)
        self.assertFalse(load.is_alive())
        self.assertEqual(failures, [])
        command(BIN / "varve", "status", self.dir)
        self.image.kill()
        self.image.fsck("--data")
        self.image.mount()
        for number, (name, moment) in enumerate(MOMENTS.items()):
            self.assertAlmostEqual((self.dir / f"at{number}").stat().st_mtime, moment, delta=3600, msg=name)
        self.image.check_all()
        command(BIN / "varve", "dump", "superblock", self.image.path)

    def test_set_back_does_not_hold_up_what_waits_to_be_flushed(self):
        self.set_clock(10 * YEAR_SECONDS)
        before = self.image.status()["log"]["lsn"]
        os.close(os.open(self.dir / "kept", os.O_CREAT | os.O_WRONLY))
        self.set_clock(-10 * YEAR_SECONDS)
        # Not a word to sync it: sealed and flushed five seconds after it was made, by a clock that nobody sets.
        wait_until(lambda: self.image.status()["log"]["durable_lsn"] > before, "it is durable")
        self.image.kill()
        self.image.mount()
        self.assertTrue((self.dir / "kept").exists())
        self.image.check_all()


DAY = 86400


class AutomaticSnapshots(SetClock):
    options = "protect=1h,protect_every=1s"

    def automatic(self):
        return [one["name"] for one in listed(self.dir)["snapshots"] if one["automatic"]]

    def write_on(self, times):
        """Each time another one is made; with it those go that are too old."""
        for _ in range(times):
            before = self.automatic()
            wait_until(lambda: (self.dir / "f").write_text(str(time.monotonic())) and set(self.automatic()) - set(before), "one is made")

    def test_stay_when_the_clock_jumps(self):
        self.write_on(5)
        names = self.automatic()
        for ahead in (10 * DAY, -10 * DAY, 30 * YEAR_SECONDS, 10 * DAY):
            self.set_clock(ahead)
            self.write_on(2)
            self.assertLessEqual(set(names), set(self.automatic()), ahead)
        log = (self.image.folder / "log").read_text()
        self.assertIn("the system's clock was set forward by 10d", log)
        self.assertIn("the system's clock was set back by 20d", log)
        self.image.kill()  # a board's power is cut
        self.mount(self.options)
        self.write_on(2)
        self.assertLessEqual(set(names), set(self.automatic()), "the next mount finds how old they are by the clock as it is set now")
        self.image.check_all()

    def test_of_the_future_count_from_when_they_are_first_seen(self):
        self.image.umount()
        self.set_clock(30 * DAY)
        self.mount(self.options)
        self.write_on(2)
        names = self.automatic()
        self.image.umount()
        self.set_clock(0)
        self.mount("protect=8s,protect_every=1s")
        self.write_on(1)
        self.assertLessEqual(set(names), set(self.automatic()), "they have just been seen")
        wait_until(lambda: self.write_on(1) or not set(names) & set(self.automatic()), "they go as others do")
        self.image.check_all()


main()
