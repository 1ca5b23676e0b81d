#!/usr/bin/env python3
"""The runner of tests: what has a stamp, what is repeated, and what a killed run leaves behind."""

import subprocess
import sys
import tempfile
import textwrap
import unittest
from dataclasses import dataclass
from pathlib import Path

RUNNER = Path(__file__).resolve().parents[1] / "runner"
sys.path.append(str(RUNNER))

import commands
import main
import run
import stamps
import suites
from stages import Build, Machines, Settings, Stage
from stamps import FAILED, PASSED, SKIPPED


@dataclass
class Tried(Stage):
    """Parts that end as they are told, and note that they were tried."""
    results: dict = None   # part -> (key, result)
    tried: list = None
    error: Exception = None

    def parts(self, settings):
        return [(part, key) for part, (key, _) in self.results.items()]

    def run_parts(self, parts, settings, on_end, say):
        if self.error:
            raise self.error
        for part in parts:
            self.tried.append(part)
            if self.results[part][1]:
                on_end(part, self.results[part][1], 1.0)


class Folder(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        self.stamps = stamps.Stamps(self.folder)
        self.said = []

    def run_stages(self, *stages, **settings):
        whole = run.Run(stages, Settings(**settings), self.said.append)
        whole.stamps = self.stamps
        for course in whole.courses:
            course.stamps = self.stamps
        return whole.run()


class Resuming(Folder):
    def stage(self, **results):
        return Tried("some", "some tests", results=results, tried=[])

    def test_what_has_passed_is_left_out_and_what_failed_is_repeated(self):
        stage = self.stage(a=("1", PASSED), b=("1", FAILED), c=("1", PASSED), d=("1", SKIPPED))
        self.assertFalse(self.run_stages(stage))
        stage.tried.clear()
        stage.results.update(b=("1", PASSED), c=("2", PASSED))
        self.assertTrue(self.run_stages(stage, resume=True))
        self.assertEqual(stage.tried, ["b", "c", "d"])

    def test_without_resume_all_is_repeated(self):
        stage = self.stage(a=("1", PASSED), b=("1", PASSED))
        self.run_stages(stage)
        self.run_stages(stage)
        self.assertEqual(stage.tried, ["a", "b", "a", "b"])

    def test_a_part_that_says_nothing_has_failed(self):
        stage = self.stage(a=("1", None), b=("1", PASSED))
        self.assertFalse(self.run_stages(stage))
        self.assertEqual(self.stamps.read("some", "a").result, FAILED)

    def test_a_part_that_is_gone_is_forgotten(self):
        self.run_stages(self.stage(a=("1", FAILED), b=("1", PASSED)))
        self.assertTrue(self.run_stages(self.stage(b=("1", PASSED))))
        self.assertEqual(self.stamps.names("some"), ["b"])

    def test_a_stage_that_breaks_fails_and_the_others_go_on(self):
        broken, good = self.stage(a=("1", PASSED)), Tried("good", "", results={"a": ("1", PASSED)}, tried=[], needs=("some",))
        broken.error = ValueError("no such preset")
        self.assertFalse(self.run_stages(broken, good))
        self.assertEqual(good.tried, ["a"])

    def test_the_table_knows_also_stages_that_were_not_run(self):
        stage = self.stage(a=("1", PASSED), b=("1", FAILED))
        self.run_stages(stage)
        text = run.table([stage, Tried("other", "others", results={}, tried=[])], Settings(), self.stamps)
        self.assertRegex(text, r"\| some \| some tests \| 1 \|  \| 1 \| 2 s \|")
        self.assertIn("| other | others | | | | | not run | |", text)

    def test_it_says_how_long_a_stage_takes(self):
        stage = self.stage(a=("1", PASSED), b=("1", PASSED))
        self.run_stages(stage)
        self.stamps.write("some", "", "", PASSED, 600)
        self.run_stages(stage)
        self.assertTrue(any("about 10 min, from last time" in line for line in self.said), self.said)


class Stamped(Folder):
    def test_a_stamp_of_another_form_counts_for_nothing(self):
        place = self.stamps.place("some", "a/b")
        place.parent.mkdir(parents=True)
        for text in ("", "{}", '{"key": "1"', "[1]"):
            place.write_text(text)
            self.assertIsNone(self.stamps.read("some", "a/b"))

    def test_names_and_contents_of_files_count(self):
        (self.folder / "a").write_text("1")
        first = stamps.digest_of(self.folder)
        (self.folder / "a").write_text("22")
        second = stamps.digest_of(self.folder)
        (self.folder / "a").rename(self.folder / "b")
        self.assertEqual(len({first, second, stamps.digest_of(self.folder)}), 3)


class CTest(unittest.TestCase):
    def test_ends_of_tests_are_read(self):
        for line, expected in (("  1/108 Test   #3: log_test .......................   Passed    3.21 sec", ("log_test", "Passed", "3.21")),
                               (" 12/108 Test #103: a_b_1of4 ...***Failed   12.00 sec", ("a_b_1of4", "***Failed", "12.00")),
                               ("12/108 Test #4: x ......***Skipped   0.10 sec", ("x", "***Skipped", "0.10")),
                               ("12/108 Test #4: x ......***Exception: SegFault  0.10 sec", ("x", "***Exception: SegFault", "0.10")),
                               ("12/108 Test #4: x ......***Timeout 1500.10 sec", ("x", "***Timeout", "1500.10"))):
            self.assertEqual(suites.END.match(line).groups(), expected, line)
        self.assertIsNone(suites.END.match("      Start 12: log_test"))


class Stages(unittest.TestCase):
    def test_each_needs_only_what_comes_before_it(self):
        for stages in (main.usual_stages(), main.nightly_stages()):
            known = set()
            for stage in stages:
                self.assertLessEqual(set(stage.needs), known, stage.name)
                known.add(stage.name)
            self.assertEqual(len(known), len(stages))

    def test_a_stage_that_is_named_brings_its_builds(self):
        stages = main.chosen(main.nightly_stages(), ["threads"])
        self.assertEqual([s.name for s in stages if not isinstance(s, Build)], ["threads"])
        self.assertIn("threaded", [s.name for s in stages])
        with self.assertRaises(SystemExit):
            main.chosen(main.nightly_stages(), ["nothing"])


class Guests(Folder):
    def test_a_machine_that_cannot_be_had_is_skipped_and_says_why(self):
        class Here(Machines):
            def log(_, suffix=""):
                return self.folder / f"machines{suffix}.log"
        results = {}
        Here("machines", "guests").run_parts(["armhf-6.12"], Settings(), lambda part, result, _: results.update({part: result}), self.said.append)
        self.assertEqual(results, {"armhf-6.12": SKIPPED})
        self.assertIn("CMake refuses", self.said[0])

    def test_each_machine_that_is_not_refused_is_a_part(self):
        parts = dict(Machines("machines", "guests").parts(Settings()))
        self.assertIn("6.12", parts)
        self.assertNotIn("armhf-6.12", parts)
        self.assertIn("units-s390x", parts)


class Killed(Folder):
    SCRIPT = """
        import sys
        sys.path.append({runner!r})
        from pathlib import Path
        import commands
        commands.LOGS = Path({folder!r})
        commands.RUNNING = commands.LOGS / "running"
        commands.end_leftovers()
        if sys.argv[1:] == ["again"]: sys.exit()
        commands.run(["sh", "-c", "echo $$; sleep 1000 & wait"], on_line=lambda line: print(line, flush=True))
        """

    def test_what_a_killed_run_has_left_is_ended_by_the_next_one(self):
        script = textwrap.dedent(self.SCRIPT.format(runner=str(RUNNER), folder=str(self.folder)))
        first = subprocess.Popen([sys.executable, "-B", "-c", script], stdout=subprocess.PIPE, text=True)
        group = int(first.stdout.readline())
        first.kill()
        first.wait()
        first.stdout.close()
        self.assertTrue(commands._members(group), "they outlive it")
        subprocess.run([sys.executable, "-B", "-c", script, "again"], check=True, stdout=subprocess.DEVNULL, timeout=60)
        self.assertEqual([pid for pid in commands._members(group) if Path(f"/proc/{pid}/cmdline").read_bytes()], [])

    def test_a_number_that_another_process_has_by_now_stays_alone(self):
        other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        (self.folder / "running").write_text(f"{commands._boot()} {other.pid} 1\nanother-boot {other.pid} {commands._state(other.pid)[1]}\n")
        script = textwrap.dedent(self.SCRIPT.format(runner=str(RUNNER), folder=str(self.folder)))
        subprocess.run([sys.executable, "-B", "-c", script, "again"], check=True, timeout=60)
        self.assertIsNone(other.poll())


if __name__ == "__main__":
    unittest.main(verbosity=1)
