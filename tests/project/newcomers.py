#!/usr/bin/env python3
"""What ./quickstart and packaging/apt-install ask of a machine, and in which order, with programs in place of apt-get and cmake that only
write down how they were called."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534


class Checkout(unittest.TestCase):
    """A folder with copies of scripts, and with programs that write their names and arguments into a log."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.top.chmod(0o755)
        (self.top / "packaging").mkdir()
        (self.top / "bin").mkdir()
        self.log = self.top / "log"
        self.log.touch(0o666)
        self.log.chmod(0o666)

    def take(self, script):
        shutil.copy2(ROOT / script, self.top / script)

    def stub(self, path, body=""):
        program = self.top / path
        program.write_text(f'#!/bin/bash\necho "{program.name} $*" >>{self.log}\n{body}\n')
        program.chmod(0o755)

    def called(self):
        return self.log.read_text().splitlines()

    def run_script(self, *words, **more):
        environment = dict(os.environ, PATH=f"{self.top}/bin:{os.environ['PATH']}", **more.pop("variables", {}))
        return subprocess.run([self.top / words[0], *words[1:]], capture_output=True, text=True, env=environment, cwd=self.top, **more)


class Quickstart(Checkout):
    def setUp(self):
        super().setUp()
        self.take("quickstart")
        self.stub("packaging/apt-install")
        self.stub("bin/cmake", "[[ $1 != --build ]]")  # it ends there: nothing is built
        self.fuse = self.top / "fuse"
        self.fuse.touch()
        self.fuse.chmod(0o666)

    def start(self, *words, as_nobody=False):
        if as_nobody and os.geteuid() == 0:
            return self.run_script("quickstart", *words, variables={"VARVE_FUSE": str(self.fuse)}, user=NOBODY, group=NOBODY, extra_groups=[])
        return self.run_script("quickstart", *words, variables={"VARVE_FUSE": str(self.fuse)})

    def test_only_what_the_tools_need_is_installed_and_built(self):
        self.start(as_nobody=True)
        self.assertEqual(self.called()[:2], ["apt-install build", "cmake --preset release -DVARVE_TESTS=OFF -DVARVE_BENCH=OFF"])
        self.assertRegex(self.called()[2], r"^cmake --build --preset release -j \d+ --target bin/mkfs.varve bin/fsck.varve bin/varve$")

    def test_benches_are_built_when_asked_for(self):
        self.start("--with-benches", as_nobody=True)
        self.assertIn("cmake --preset release -DVARVE_TESTS=OFF -DVARVE_BENCH=ON", self.called())
        self.assertTrue(self.called()[-1].endswith(" benches"), self.called())

    def test_what_was_chosen_for_the_folder_stays(self):
        (self.top / "build/release").mkdir(parents=True)
        (self.top / "build/release/CMakeCache.txt").write_text("VARVE_BENCH:BOOL=OFF\nVARVE_TESTS:BOOL=ON\n")
        self.start(as_nobody=True)
        self.assertIn("cmake --preset release -DVARVE_TESTS=ON -DVARVE_BENCH=OFF", self.called())

    def test_without_fuse_nothing_is_installed(self):
        self.fuse.unlink()
        done = self.start()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"There is no {self.fuse} here", done.stderr)
        self.assertRegex(done.stderr, "modprobe fuse|--device /dev/fuse")
        self.assertEqual(self.called(), [])

    def test_a_device_that_may_not_be_opened_is_described(self):
        self.fuse.chmod(0o600)
        if os.geteuid() != 0:
            self.skipTest("needs root: the file has to be another user's")
        done = self.start(as_nobody=True)
        self.assertEqual(done.returncode, 1)
        for told in ("has mode 600 and belongs to root:root", f"chmod 666 {self.fuse}", "/etc/udev/rules.d/"):
            self.assertIn(told, done.stderr)
        self.assertEqual(self.called(), [])

    def test_help_names_the_option_and_others_are_refused(self):
        helped = self.start("--help")
        self.assertEqual((helped.returncode, helped.stderr), (0, ""))
        self.assertIn("--with-benches", helped.stdout)
        for words in (["--bench"], ["--with-benches", "x"], [""]):
            self.assertEqual(self.start(*words).returncode, 2, words)
        self.assertEqual(self.called(), [])


class Packages(Checkout):
    def setUp(self):
        super().setUp()
        self.take("packaging/apt-install")
        (self.top / "packaging/apt-packages").write_text("build: here lacking\n# no package\ntest: one\noptional: rare\n")
        self.stub("bin/dpkg-query", '[[ "$*" == *" here" ]] && echo installed')
        self.stub("bin/sudo", '"$@"')
        self.stub("bin/apt-get")

    def apt(self):
        """The last words of each call of apt-get, but those that only ask how much will be fetched."""
        calls = [line.split("Dpkg::Use-Pty=0 ")[1] for line in self.called() if line.startswith("apt-get ")]
        return [call for call in calls if not call.startswith("--print-uris")]

    def test_lists_are_fetched_once_for_all_purposes(self):
        done = self.run_script("packaging/apt-install", "build", "test", "--", "optional")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Installing 3 packages", done.stdout)
        self.assertEqual(self.apt(), ["update", "--download-only install --no-install-recommends lacking one rare",
                                      "install --no-install-recommends lacking one rare"])

    def test_nothing_is_fetched_where_all_is_there(self):
        self.stub("bin/dpkg-query", "echo installed")
        self.assertEqual(self.run_script("packaging/apt-install", "build", "--", "optional").returncode, 0)
        self.assertEqual(self.apt(), [])

    def test_what_is_only_wished_for_may_lack(self):
        self.stub("bin/apt-get", '[[ "$*" != *rare* ]]')
        done = self.run_script("packaging/apt-install", "build", "--", "optional")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.apt()[-1], "install --no-install-recommends lacking")
        self.assertIn("Installing 1 package and", done.stdout)

    def test_what_is_needed_may_not(self):
        self.stub("bin/apt-get", '[[ "$*" != *lacking* ]]')
        self.assertNotEqual(self.run_script("packaging/apt-install", "build").returncode, 0)

    def test_a_system_of_32_bits_is_refused_in_one_sentence(self):
        """Its offsets would be cut without a word. The package is for what it has been built for."""
        def configured(pointer_bytes):
            return subprocess.run(["cmake", f"-DCMAKE_SIZEOF_VOID_P={pointer_bytes}", "-P", ROOT / "cmake/word_size.cmake"],
                                  capture_output=True, text=True)
        self.assertEqual(configured(8).returncode, 0)
        refused = configured(4)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("Varve needs a 64-bit system", refused.stderr)
        self.assertIn("include(cmake/word_size.cmake)", (ROOT / "CMakeLists.txt").read_text())
        lines = (ROOT / "packaging/debian/control").read_text().splitlines()
        self.assertEqual({line for line in lines if line.startswith("Architecture:")}, {"Architecture: amd64 arm64"})

    def test_lines_of_the_package_s_changelog_are_short(self):
        """lintian refuses longer ones, but only at night, after a build."""
        lines = (ROOT / "packaging/debian/changelog").read_text().splitlines()
        self.assertEqual([line for line in lines if len(line) > 80], [])

    def test_tools_need_nothing_of_tests(self):
        lines = (ROOT / "packaging/apt-packages").read_text().splitlines()
        named = {purpose: {name for line in lines if line.startswith(f"{purpose}:") for name in line.split()[1:]} for purpose in ("build", "test", "bench")}
        control = (ROOT / "packaging/debian/control").read_text()
        libraries = {name for name in named["build"] if name.startswith("lib") and name.endswith("-dev")}
        self.assertLessEqual(libraries, set(control.replace(",", " ").split()), "the package is built from the same libraries")
        self.assertFalse(named["build"] & (named["test"] | named["bench"]))


if __name__ == "__main__":
    unittest.main(verbosity=1)
