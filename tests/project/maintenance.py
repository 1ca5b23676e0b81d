#!/usr/bin/env python3
"""Units of systemd are whole and name programs that are installed. Which timed snapshots stay. Alerts go off when they should, and
only then."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from datetime import datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
RULES = PACKAGING / "prometheus/varve.rules.yml"
KINDS = ("scrub", "trim", "snapshot")
NOW = datetime(2026, 11, 29, 6, 30)


class Units(unittest.TestCase):
    def test_systemd_finds_nothing_wrong(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        with tempfile.TemporaryDirectory() as folder:
            for path in [*PACKAGING.glob("varve*@.*"), *PACKAGING.glob("varve-*.service"), *PACKAGING.glob("varve-*.timer")]:
                # What they run is not installed here.
                (Path(folder) / path.name).write_text(re.sub(r"^(Exec\w+=)(/usr/lib/varve/)?varve\S*", r"\1/bin/true", path.read_text(), flags=re.M))
            names = [f"varve-{kind}@mnt-data.{suffix}" for kind in KINDS for suffix in ("service", "timer")]
            names += ["varve@data.service", "varve-sleep.service", "varve-metrics.service", "varve-metrics.timer"]
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True,
                                  env=dict(os.environ, SYSTEMD_UNIT_PATH=f"{folder}:"))
            self.assertEqual((done.returncode, [line for line in done.stderr.splitlines() if "varve" in line]), (0, []), done.stderr)

    def test_each_timer_starts_a_service_of_its_name(self):
        for timer in PACKAGING.glob("varve-*.timer"):
            self.assertTrue(timer.with_suffix(".service").exists(), timer)
            self.assertIn("WantedBy=timers.target", timer.read_text())

    def test_services_of_a_mount_do_nothing_without_it_and_have_no_namespace(self):
        for kind in KINDS:
            text = (PACKAGING / f"varve-{kind}@.service").read_text()
            self.assertIn("ConditionPathIsMountPoint=%f\n", text)
            # systemd.exec(5): each of these gives a service a mount namespace, which would keep mounts alive.
            self.assertNotRegex(text, r"(?m)^(Private|Protect|ReadOnly|ReadWrite|Inaccessible|Bind|Root|TemporaryFileSystem|Dynamic)\w*=")

    def test_the_document_names_all_units_and_alerts(self):
        text = (ROOT / "docs/maintenance.md").read_text()
        for name in [f"varve-{kind}@" for kind in KINDS] + ["varve-sleep"] + re.findall(r"alert: (\w+)", RULES.read_text()):
            self.assertIn(name, text)


class TimedSnapshots(unittest.TestCase):
    """varve-timed-snapshot with a program in place of varve that keeps names in a file. They are listed in the order in which they were made."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.names = Path(folder.name) / "names"
        self.names.touch()
        self.varve = Path(folder.name) / "varve"
        self.varve.write_text(f'''#!/bin/sh
case $2 in
  create) echo "$4" >>{self.names} ;;
  list) sed 's/.*/      "name": "&",/' {self.names} ;;
  delete) shift 3 && printf '%s\\n' "$@" >{self.names}.gone && grep -vxFf {self.names}.gone {self.names} >{self.names}.left
    mv {self.names}.left {self.names} ;;
esac
''')
        date = Path(folder.name) / "date"
        date.write_text(f"#!/bin/sh\necho {NOW:%Y-%m-%d_%H-%M-%S}\n")
        for program in (self.varve, date):
            program.chmod(0o755)
        self.path = f"{folder.name}:{os.environ['PATH']}"

    def make_one(self, **keep):
        environment = dict(os.environ, PATH=self.path, **{name: str(value) for name, value in keep.items()})
        subprocess.run([PACKAGING / "varve-timed-snapshot", "/mnt/data"], check=True, env=environment)
        return self.names.read_text().splitlines()

    def test_the_newest_of_each_span_stays(self):
        hourly = [NOW - timedelta(hours=h) for h in range(1, 24 * 100)]
        self.names.write_text("".join(f"timed-{t:%Y-%m-%d_%H-%M-%S}\n" for t in reversed(hourly)) + "mine\ntimed-not-by-us\n")
        left = self.make_one(KEEP_HOURS=24, KEEP_DAYS=7, KEEP_MONTHS=3)
        self.assertIn("mine", left)
        self.assertIn("timed-not-by-us", left)
        times = sorted((datetime.strptime(name, "timed-%Y-%m-%d_%H-%M-%S") for name in left if re.search(r"-\d\d$", name)), reverse=True)
        self.assertEqual([t.strftime("%d %H") for t in times[:24]], [(NOW - timedelta(hours=h)).strftime("%d %H") for h in range(24)])
        days = list(dict.fromkeys(t.date() for t in times))
        self.assertEqual(days[:7], [(NOW - timedelta(days=d)).date() for d in range(7)])
        self.assertTrue(all(t.hour == 23 for t in times[25:]), times)  # the newest one of its day
        self.assertEqual(len({(t.year, t.month) for t in times}), 3)
        self.assertLessEqual(len(times), 24 + 7 + 3)

    def times_left(self, **keep):
        return sorted((datetime.strptime(name, "timed-%Y-%m-%d_%H-%M-%S") for name in self.make_one(**keep)), reverse=True)

    def test_rules_as_those_of_automatic_snapshots(self):
        made = [NOW - timedelta(minutes=20 * i) for i in range(1, 100)] + [NOW - timedelta(hours=7 * i) for i in range(5, 400)]
        self.names.write_text("".join(f"timed-{t:%Y-%m-%d_%H-%M-%S}\n" for t in sorted(made)))
        times = self.times_left(KEEP="24h:1h,7d:1d,90d:30d")
        wanted = set()
        for spans, hours in ((24, 1), (7, 24), (3, 30 * 24)):
            newest_of = {}
            for t in [NOW, *sorted(made, reverse=True)]:
                newest_of.setdefault(((t.toordinal() + 306) * 24 + t.hour) // hours, t)  # days from March of the year 0 on
            wanted |= set(list(newest_of.values())[:spans])
        self.assertEqual(times, sorted(wanted, reverse=True))
        self.assertGreater(len(times), 24 + 5)

    def test_spans_without_a_snapshot_do_not_count(self):
        """A clock that jumps, or a machine that is off for a year, costs none."""
        before = [NOW - timedelta(days=400, hours=h) for h in range(30)]
        self.names.write_text("".join(f"timed-{t:%Y-%m-%d_%H-%M-%S}\n" for t in reversed(before)))
        self.assertEqual(self.times_left(KEEP="24h:1h"), [NOW, *before[:23]])

    def test_those_that_a_clock_ahead_has_made_go_first(self):
        """Their names lie in the future, yet what was made last is the newest."""
        for keep in ({"KEEP": "24h:1h"}, {"KEEP_DAYS": 0, "KEEP_MONTHS": 0}):
            ahead = [f"timed-2056-01-01_{h:02}-00-00" for h in range(24)]
            before = [f"timed-{NOW - timedelta(hours=h):%Y-%m-%d_%H-%M-%S}" for h in (3, 2, 1)]
            self.names.write_text("\n".join([*ahead, *before]) + "\n")
            self.assertEqual(self.make_one(**keep), [*ahead[4:], *before, f"timed-{NOW:%Y-%m-%d_%H-%M-%S}"], keep)

    def test_a_clock_ahead_for_months_costs_none_of_today(self):
        ahead = [datetime(2056, 1, 1) + timedelta(hours=h) for h in range(24 * 100)]
        self.names.write_text("".join(f"timed-{t:%Y-%m-%d_%H-%M-%S}\n" for t in ahead))
        left = self.make_one()
        self.assertEqual(left[-1], f"timed-{NOW:%Y-%m-%d_%H-%M-%S}")
        self.assertEqual(left[-24:-1], [f"timed-{t:%Y-%m-%d_%H-%M-%S}" for t in ahead[-23:]])

    def test_with_a_clock_that_is_behind_the_new_one_is_the_newest(self):
        """A board without a battery begins in 1970, or with what it was at when it was switched off."""
        before = [NOW + timedelta(days=9000, hours=h) for h in range(30)]
        self.names.write_text("".join(f"timed-{t:%Y-%m-%d_%H-%M-%S}\n" for t in before))
        self.assertEqual(self.times_left(KEEP="24h:1h"), [*reversed(before[-23:]), NOW])

    def test_wrong_rules_make_and_delete_nothing(self):
        before = "".join(f"timed-2020-01-01_{h:02}-00-00\n" for h in range(20))
        self.names.write_text(before)
        for keep in ("24", "24h", "soon:1h", "24h:0", "0:1h", "24h:1h,", ",24h:1h", "24h:1h;7d:1d", "1h:1h\n7d:1d", "$(id):1h", "99999999999h:1h"):
            with self.assertRaises(subprocess.CalledProcessError, msg=keep):
                self.make_one(KEEP=keep)
            self.assertEqual(self.names.read_text(), before, keep)

    def test_the_one_just_made_stays_whatever_is_asked_for(self):
        self.names.write_text("timed-2020-01-01_00-00-00\n")
        left = self.make_one(KEEP_HOURS=0, KEEP_DAYS=0, KEEP_MONTHS=0)
        self.assertEqual(len(left), 1)
        self.assertNotIn("timed-2020", left[0])

    def test_where_no_snapshot_can_be_made_none_is_deleted(self):
        before = "".join(f"timed-2020-01-01_{h:02}-00-00\n" for h in range(20))
        self.names.write_text(before)
        self.varve.write_text(self.varve.read_text().replace("create) ", "create) exit 1; "))
        with self.assertRaises(subprocess.CalledProcessError):
            self.make_one(KEEP_HOURS=1, KEEP_DAYS=1, KEEP_MONTHS=1)
        self.assertEqual(self.names.read_text(), before)


class Alerts(unittest.TestCase):
    def setUp(self):
        if not shutil.which("promtool"):
            self.skipTest("no promtool")

    def test_rules_are_well_formed(self):
        done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def alerts(self, values, end, step="1m"):
        """Those that are firing at the end; values: metric -> how promtool writes a series with one value for each step."""
        names = re.findall(r"alert: (\w+)", RULES.read_text())
        series = "".join(f"      - series: '{name}{{mount=\"/m\"}}'\n        values: '{value}'\n" for name, value in values.items())
        # promtool only compares. Nothing is expected, so it complains of what is firing.
        checks = "".join(f"      - eval_time: {end}\n        alertname: {name}\n        exp_alerts: []\n" for name in names)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write(f"rule_files: [{RULES}]\nevaluation_interval: {step}\ntests:\n  - interval: {step}\n    input_series:\n{series}"
                       f"    alert_rule_test:\n{checks}")
            file.flush()
            done = subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True)
        told = done.stdout + done.stderr
        firing = [name for name in names if re.search(rf"alertname: {name}\b", told)]
        self.assertEqual(bool(firing), done.returncode != 0, told)
        return firing

    WELL = {"varve_up": "1x200", "varve_errors_total": "3x200", "varve_scrub_errors": "0x200", "varve_read_only": "0x200",
            "varve_available_bytes": "50x200", "varve_charged_bytes": "50x200", "varve_device_connected": "1x200", "varve_pinned_segments": "0x200",
            "varve_host_full": "0x200",
            "varve_recoveries_total": "7x200", "varve_bad_places": "2x200", "varve_scrub_finished_timestamp_seconds": "0x200"}

    def test_a_filesystem_that_is_well_gives_none(self):
        self.assertEqual(self.alerts(self.WELL, "2h"), [])
        self.assertEqual(self.alerts({**self.WELL, "varve_read_only": "1x200"}, "2h"), [], "it was mounted read-only")

    def test_each_goes_off(self):
        for name, value, alerts in (("varve_up", "1x90 0x100", ["VarveDown"]), ("varve_errors_total", "0x90 1x100", ["VarveErrors"]),
                                    ("varve_scrub_errors", "2x200", ["VarveDamaged"]), ("varve_read_only", "0x90 1x100", ["VarveReadOnly"]),
                                    ("varve_device_connected", "0x200", ["VarveNotConnected"]),
                                    ("varve_host_full", "1x200", ["VarveHostFull"]),
                                    ("varve_available_bytes", "2x200", ["VarveNearlyFull"]), ("varve_pinned_segments", "1x200", ["VarveBadBlocks"]),
                                    ("varve_bad_places", "3x200", ["VarveMediumFails"]),
                                    ("varve_available_bytes", "0x200", ["VarveNearlyFull", "VarveFull"]),
                                    ("varve_recoveries_total", "7x90 8x100", ["VarveNotUnmounted"])):
            with self.subTest(metric=name, value=value):
                self.assertEqual(self.alerts({**self.WELL, name: value}, "2h"), alerts)

    def test_a_scrub_of_long_ago_and_none_at_all(self):
        # promtool's clock begins at 0, so the last scrub was in its first minute. A later one was begun, and came to no end.
        name = "varve_scrub_finished_timestamp_seconds"
        for values, alert in (("60x240", "VarveScrubLongAgo"), ("60x176 0x64", "VarveScrubLongAgo"), ("0x240", "VarveNeverScrubbed")):
            with self.subTest(values=values):
                self.assertEqual(self.alerts({name: values}, "44d", "6h"), [])
                self.assertEqual(self.alerts({name: values}, "46d", "6h"), [alert])


if __name__ == "__main__":
    unittest.main(verbosity=1)
