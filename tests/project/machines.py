#!/usr/bin/env python3
"""Guests of other machines (tests/machines), as far as this can be seen without one: their checks exist, a guest is bounded, and the table is
what was recorded."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/machines"), str(ROOT / "tests/mount")]

import checks
import debian
import guest
import harness
import kernels
import qemu


class Checks(unittest.TestCase):
    def test_each_names_tests_that_there_are(self):
        harness.main = lambda *_: None  # some files of tests call it when they are imported
        for name, *tests in checks.CHECKS:
            for test in tests:
                loader = unittest.TestLoader()
                self.assertGreater(loader.loadTestsFromName(test).countTestCases(), 0, test)
                self.assertEqual(loader.errors, [], name)

    def test_their_names_differ(self):
        names = [name for name, *_ in checks.CHECKS]
        self.assertEqual(len(set(names)), len(names))

    def test_results_of_tests(self):
        class Some(unittest.TestCase):
            def test_good(self):
                pass

            def test_bad(self):
                self.fail("it is wrong")

            def test_absent(self):
                self.skipTest("no such thing")

        def of(*names):
            return guest.result_of(unittest.TestSuite(Some(name) for name in names))
        self.assertEqual(of("test_good"), (guest.PASSED, ""))
        self.assertEqual(of("test_good", "test_absent"), (guest.PASSED, "without no such thing"))
        self.assertEqual(of("test_absent"), (guest.NOT_POSSIBLE, "no such thing"))
        self.assertEqual(of("test_absent", "test_bad", "test_good")[0], guest.FAILED)
        self.assertEqual(of()[0], guest.FAILED)


class Guests(unittest.TestCase):
    """A program in the place of qemu."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name) / "qemu"
        self.addCleanup(qemu.COMMANDS.update, dict(qemu.COMMANDS))
        qemu.COMMANDS["amd64"] = (str(self.program), "no-package", "tty", [], [])

    def boot(self, script, **more):
        self.program.write_text(f"#!/bin/sh\n{script}\n")
        self.program.chmod(0o755)
        return qemu.Guest("amd64", "kernel", "ram-disk", "disk", "tcg", **more)

    def test_lines_come_until_it_ends(self):
        started = self.boot("printf 'one\\r\\ntwo\\nunfini'; sleep 0.2; printf 'shed\\n'")
        self.assertEqual(list(started.lines()), ["one", "two", "unfinished"])
        self.assertEqual(started.end, "")

    def test_one_that_computes_for_ever_is_ended(self):
        started = self.boot("echo up; while :; do :; done", limit=1)
        self.assertEqual(list(started.lines()), ["up"])
        self.assertIn("CPU time", started.end)

    def test_without_its_program_the_package_is_named(self):
        with self.assertRaisesRegex(debian.NotToBeHad, "no-package"):
            qemu.Guest("amd64", "kernel", "ram-disk", "disk", "tcg")


class Recorded(unittest.TestCase):
    def test_the_document_shows_the_results(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "tests/machines/table", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_each_result_is_of_a_machine_that_there_is(self):
        known = {machine.name for machine in kernels.MACHINES}
        for file in (ROOT / "tests/machines/results").glob("*.json"):
            self.assertIn(file.stem, known)


if __name__ == "__main__":
    unittest.main(verbosity=1)
