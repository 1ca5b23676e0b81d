"""The kinds of stages of a test run. Each is made of parts, which have a stamp each."""

import os
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

for folder in ("mutation", "machines"):
    sys.path.append(str(Path(__file__).resolve().parents[1] / folder))

import commands
import cross_build
import kernels
import mutation_test
import suites
from commands import LOGS
from stamps import FAILED, PASSED, ROOT, SKIPPED, digest, digest_of, digest_of_tools, digest_of_tree

BUILD = ROOT / "build"
UNITS = "units-"  # and a processor: a part of Machines


@dataclass
class Settings:
    """What the command line says."""
    jobs: int = os.cpu_count() or 1
    resume: bool = False
    every_rule: bool = False       # also those rules whose files and tests are as they were
    ctest_options: list = field(default_factory=list)
    fuzz_seconds: int = 60         # for each target
    fuzz_images: int = 400_000     # whole images, without sanitizers


@dataclass
class Stage:
    """A step of a run: `parts` lists (name, key) of what there is to do, `run_parts` does some of it and calls on_end(part, result, seconds)."""
    name: str
    what: str
    needs: tuple = ()      # stages that come before it
    beside: bool = False   # it computes, and goes on beside those that mostly wait
    idle: bool = False     # it gets only the time that others leave

    def is_possible(self):
        """Or a sentence that says why not."""
        return None

    def leaves_out(self, settings):
        """Parts that have passed on the same are not repeated."""
        return settings.resume

    def log(self, suffix=""):
        return LOGS / f"{self.name}{suffix}.log"


@dataclass
class Build(Stage):
    """A preset of CMake; all of it, or some targets."""
    preset: str = ""
    targets: tuple = ()
    options: tuple = ()

    def parts(self, settings):
        return [(self.preset, digest(self.preset, *self.targets, *self.options))]

    def leaves_out(self, settings):
        return False  # ninja knows what there is to do

    def run_parts(self, parts, settings, on_end, say):
        began = time.monotonic()
        configured = commands.run(["cmake", "--preset", self.preset, *self.options], self.log("-configure"), idle=self.idle)
        if configured:
            print((self.log("-configure")).read_text())
        targets = ["--target", *self.targets] if self.targets else []
        words = ["cmake", "--build", "--preset", self.preset, "-j", settings.jobs, *targets, "--", "-k", "0"]  # all errors at once
        built = configured or commands.run(words, self.log(), say, self.idle)
        on_end(self.preset, FAILED if built else PASSED, time.monotonic() - began)


@dataclass
class Suite(Stage):
    """The tests of a test preset."""
    preset: str = ""
    build: str = ""                # folder below build/
    filters: tuple = ()            # further options of ctest that choose tests
    at_once: float = 1             # tests for each processor: those of mounts mostly wait
    reports: bool = False          # sanitizers of programs without a terminal write files

    def parts(self, settings):
        return [(test.name, test.key) for test in suites.tests_of(self.preset, BUILD / self.build, [*self.filters, *settings.ctest_options])]

    def run_parts(self, parts, settings, on_end, say):
        for report in LOGS.glob(f"report-{self.preset}.*") if self.reports else ():
            report.unlink()
        suites.run(self.preset, parts, round(self.at_once * settings.jobs), self.log(), on_end, say, self.idle)
        if self.reports:
            self.look_at_reports(on_end)

    def look_at_reports(self, on_end):
        """A daemon has nobody to tell what it has found: its reports are files."""
        found = sorted(LOGS.glob(f"report-{self.preset}.*"))
        if found:
            self.log().write_text(self.log().read_text() + "".join(report.read_text() for report in found))
        on_end("reports", FAILED if found else PASSED, 0)


@dataclass
class Packages(Stage):
    """The Debian packages in new Debian trees: built, installed, used, upgraded, purged."""
    systems: tuple = ("bookworm", "trixie")

    def is_possible(self):
        if os.geteuid() or not shutil.which("debootstrap"):
            return "it needs root and debootstrap"
        return None

    def parts(self, settings):
        key = digest(digest_of_tree(), digest_of_tools())
        return [(system, key) for system in self.systems]

    def run_parts(self, parts, settings, on_end, say):
        for system in parts:
            began = time.monotonic()
            words = ["packaging/fresh-debian", "--suite", system, "tests/packages/packages"]
            status = commands.run(words, self.log(f"-{system}"), None, self.idle)
            say(self.log(f"-{system}").read_text().splitlines()[-1])
            on_end(system, FAILED if status else PASSED, time.monotonic() - began)


@dataclass
class Machines(Stage):
    """Kernels of Debian's, and other processors, in guests: a part for each. And tests of units for other processors, by qemu-user. What cannot
    be had here is skipped, and its log says why."""

    def parts(self, settings):
        folders = (BUILD / "release/bin", ROOT / "src", ROOT / "tools", ROOT / "tests/machines", ROOT / "tests/mount", ROOT / "packaging")
        key = digest(digest_of(*folders), digest_of_tools())
        units = digest(key, digest_of(ROOT / "tests"))
        return [*((machine.name, key) for machine in kernels.MACHINES if not machine.refused),
                *((UNITS + processor.name, units) for processor in cross_build.PROCESSORS)]

    def run_parts(self, parts, settings, on_end, say):
        results = {0: PASSED, 77: SKIPPED}
        for machine in parts:
            began = time.monotonic()
            words = ["tests/machines/processors", machine.removeprefix(UNITS)] if machine.startswith(UNITS) else ["tests/machines/run", machine]
            status = commands.run(words, self.log(f"-{machine}"), None, self.idle,
                                  {"VARVE_BIN": str(BUILD / "release/bin")})
            say(self.log(f"-{machine}").read_text().splitlines()[-1])
            on_end(machine, results.get(status, FAILED), time.monotonic() - began)


@dataclass
class Mutations(Stage):
    """Each rule that keeps a hazard away is taken out in turn: its tests must fail."""

    def leaves_out(self, settings):
        return not settings.every_rule

    def parts(self, settings):
        tools = digest_of_tools()
        return [(rule.name, digest(tools, mutation_test.dependence(rule))) for rule in mutation_test.RULES]

    def run_parts(self, parts, settings, on_end, say):
        def look(line):
            say(line)
            words = [word.strip() for word in line.split("|")]
            if len(words) > 5 and words[1] in parts:
                on_end(words[1], FAILED if words[4] == "NOT NOTICED" else PASSED, float(words[5].split()[0]))

        words = ["tests/mutation/mutation_test.py", "--build", BUILD / "mutation", "--jobs", settings.jobs, *parts]
        commands.run(words, self.log(), look, self.idle)


@dataclass
class Fuzzing(Stage):
    """A libFuzzer program for each target; what it finds beyond the corpus in the tree goes to build/test-logs."""
    targets: tuple = ()

    def parts(self, settings):
        corpora = digest_of(ROOT / "tests/fuzz/corpus")
        programs = BUILD / "fuzz/tests/bin"
        return [(target, digest(digest_of(programs / f"fuzz_{target}"), corpora, str(settings.fuzz_seconds), digest_of_tools()))
                for target in self.targets]

    def run_parts(self, parts, settings, on_end, say):
        for target in parts:
            began = time.monotonic()
            status = commands.run(self.words(target, settings.fuzz_seconds), self.log(f"-{target}"), None, self.idle)
            inputs = [line.split()[-1] for line in self.log(f"-{target}").read_text().splitlines() if "number_of_executed_units" in line]
            say(f"fuzz_{target}: {inputs[0] if inputs else 'no'} inputs")
            on_end(target, FAILED if status else PASSED, time.monotonic() - began)

    def words(self, target, seconds):
        found, corpus = LOGS / "fuzz" / target, ROOT / "tests/fuzz/corpus" / target
        found.mkdir(parents=True, exist_ok=True)
        corpus.mkdir(parents=True, exist_ok=True)
        # Whole images take so long that choosing inputs well costs more than trying them, and none is longer than twelve mutations.
        special = ["-entropic=0", "-len_control=0", "-max_len=194"] if target == "image" else []
        return [BUILD / f"fuzz/tests/bin/fuzz_{target}", *special, f"-max_total_time={seconds}", "-timeout=60", "-rss_limit_mb=2048",
                "-print_final_stats=1", f"-artifact_prefix={LOGS}/fuzz/{target}-", found, corpus]


@dataclass
class Images(Stage):
    """Whole images at full speed, by the release build: seeds of the day, so that no night repeats another one. Its parts are so many images."""
    BATCH = 100_000

    def parts(self, settings):
        key = digest(digest_of(BUILD / "release/tests/bin/fuzz_images", ROOT / "tests/fuzz/corpus/image"), digest_of_tools())
        return [(f"{number}", key) for number in range(1, -(-settings.fuzz_images // self.BATCH) + 1)]

    def run_parts(self, parts, settings, on_end, say):
        found = LOGS / "fuzz" / "images"
        found.mkdir(parents=True, exist_ok=True)
        first = int(time.time() // 86400) * 1_000_000_000
        for part in parts:
            began = time.monotonic()
            words = [BUILD / "release/tests/bin/fuzz_images", "--images", self.BATCH, "--seed", first + int(part) * self.BATCH,
                     "--jobs", settings.jobs, "--folder", found]
            status = commands.run(words, self.log(f"-{part}"), say, self.idle)
            on_end(part, FAILED if status else PASSED, time.monotonic() - began)
