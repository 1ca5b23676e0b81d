#!/usr/bin/env python3
"""bench/rivals without a guest: what is kept and run again, the tables, how rivals are made, and the clock of guests."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "bench/rivals"), str(ROOT / "bench/common")]

import parts  # noqa: E402
import rivals  # noqa: E402
import tables  # noqa: E402

AN_HOUR = r"""
#include <signal.h>
#include <stdio.h>
#include <time.h>
static void rings(int number) { (void)number; }
int main(void) {
  sigset_t alarm, none;
  sigemptyset(&none);
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  sigprocmask(SIG_BLOCK, &alarm, NULL);
  signal(SIGALRM, rings);
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, NULL, &timer);
  struct timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  const struct itimerspec hour = {{0, 0}, {3600, 0}};
  timer_settime(timer, 0, &hour, NULL);
  sigsuspend(&none);
  clock_gettime(CLOCK_MONOTONIC, &after);
  printf("%ld\n", (long)(after.tv_sec - before.tv_sec));
  return 0;
}
"""


def figures(seconds, operations=1000, kib=4, wait=0.5):
    return {"operations": operations, "device_seconds": seconds, "bytes_programmed": 1024 * kib * operations, "erases": 0,
            "waits": {"fsync": [wait / 2, wait]}}


def run_with(**others):
    return SimpleNamespace(**{"seed": 1, "dirty": 128, "cpu": 0.1, "models": ["sd-cheap"], "workloads": ["log"], "filesystems": ["f2fs", "varve"],
                              **others})


class Parts(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.store = parts.Store(Path(place.name))

    def test_only_what_is_missing_or_has_failed_is_run(self):
        run = run_with()
        first, second = parts.wanted(run)
        self.assertFalse(self.store.has(first, run))
        self.store.keep(first, run, {"rows": {"log": figures(1)}})
        self.store.keep(second, run, {"failed": "the guest ended"})
        self.assertTrue(self.store.has(first, run))
        self.assertFalse(self.store.has(second, run))

    def test_other_options_and_seeds_are_run(self):
        run = run_with()
        part = parts.wanted(run)[0]
        self.store.keep(part, run, {"rows": {}})
        for other in (run_with(dirty=64), run_with(seed=2), run_with(cpu=1)):
            self.assertFalse(self.store.has(part, other))

    def test_results_say_why_something_is_missing(self):
        run = run_with()
        first, second = parts.wanted(run)
        self.store.keep(first, run, {"rows": {"log": figures(1)}})
        results, left_out = self.store.results([first, second], run)
        self.assertEqual(list(results["sd-cheap"]["log"]), ["f2fs"])
        self.assertEqual(left_out, ["sd-cheap.log.varve: not run"])


class Tables(unittest.TestCase):
    def test_the_best_rival_is_named(self):
        by = {"ext4": figures(8), "f2fs": figures(2), "varve": figures(4)}
        self.assertEqual(tables.against(by, list(by), tables.VALUES["device_seconds"]), "0.50 (f2fs)")
        self.assertEqual(tables.against(by, ["ext4", "varve"], tables.VALUES["device_seconds"]), "2.00 (ext4)")

    def test_an_operation_counts_however_many_were_done(self):
        by = {"ext4": figures(8, operations=10), "varve": figures(4)}
        self.assertEqual(tables.against(by, list(by), tables.VALUES["device_seconds"]), "200 (ext4)")

    def test_without_a_rival_nobody_is_ahead(self):
        self.assertIsNone(tables.against({"varve": figures(4)}, ["ext4", "varve"], tables.VALUES["device_seconds"]))

    def test_a_table_has_a_column_for_each_filesystem(self):
        results = {"sd-cheap": {"log": {"varve": figures(4, wait=3)}}}
        by_title = {title: rows for title, _, rows, _ in tables.of(results, ["ext4", "varve"])}
        self.assertEqual(by_title["sd-cheap: device time of an operation, ms"], [["log", None, 4]])
        self.assertEqual(by_title["sd-cheap: longest wait, s"], [["log", None, 3]])
        self.assertNotIn("sd-cheap: erases for 1000 operations", by_title)


class Rivals(unittest.TestCase):
    def made(self, name, model="sd-cheap"):
        with tempfile.TemporaryDirectory() as folder:
            return rivals.filesystem(name, folder, model, None)

    def test_f2fs_discards_only_where_it_is_to(self):
        self.assertEqual(self.made("f2fs").mkfs()[-2:], ["-t", "0"])
        self.assertIn("nodiscard", self.made("f2fs").mount_words())
        self.assertEqual(self.made("f2fs+discard").mount_words(), ["discard"])

    def test_sections_are_units_of_the_card(self):
        self.assertEqual(self.made("f2fs-card").mkfs()[-2:], ["-s", "2"])
        self.assertEqual(self.made("f2fs-card", "usb-stick").mkfs()[-2:], ["-s", "4"])
        self.assertEqual(self.made("f2fs-card", "ssd-page").mkfs()[-2:], ["-s", "1"])


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Clock(unittest.TestCase):
    def test_an_idle_hour_is_skipped(self):
        with tempfile.TemporaryDirectory() as folder:
            clock, source, program = (f"{folder}/{name}" for name in ("clock.so", "hour.c", "hour"))
            Path(source).write_text(AN_HOUR)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", clock, ROOT / "bench/rivals/clock.c", "-ldl"], check=True)
            subprocess.run(["cc", "-o", program, source, "-lrt"], check=True)
            done = subprocess.run([program], env={"LD_PRELOAD": clock}, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.stdout, "3600\n", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
