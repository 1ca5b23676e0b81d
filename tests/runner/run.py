"""Runs stages of tests, each as soon as those that it needs have ended, and says at the end how each one went."""

import threading
import time

import commands
from commands import LOGS
from stamps import FAILED, PASSED, SKIPPED, Stamps, write_whole


def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class Course:
    """How one stage goes on: its parts, and which of them have ended."""

    def __init__(self, stage, stamps, settings):
        self.stage, self.stamps, self.settings = stage, stamps, settings
        self.parts = {}          # part -> key
        self.ended = {}          # part -> result, of this run
        self.kept = []           # parts that an earlier run has passed on the same
        self.why_not = None
        self.seconds = 0.0

    def find_parts(self):
        self.why_not = self.stage.is_possible()
        self.parts = {} if self.why_not else dict(self.stage.parts(self.settings))
        if self.parts and not self.settings.ctest_options:
            self.stamps.keep_only(self.stage.name, self.parts)
        if self.stage.leaves_out(self.settings):
            self.kept = [part for part, key in self.parts.items() if self.stamps.is_fresh(self.stage.name, part, key)]

    def expected_seconds(self):
        """From the last time: that of the whole stage, in proportion to what the parts that are left took. Or None."""
        former = self.stamps.read(self.stage.name, "")
        if not former:
            return None
        took = {part: stamp.seconds for part in self.parts if (stamp := self.stamps.read(self.stage.name, part))}
        left = sum(seconds for part, seconds in took.items() if part not in self.kept)
        return former.seconds * left / sum(took.values()) if sum(took.values()) else former.seconds

    def note(self, part, result, seconds):
        self.ended[part] = result
        self.parts.setdefault(part, "")
        self.stamps.write(self.stage.name, part, self.parts.get(part, ""), result, seconds)

    def run(self, say):
        self.find_parts()
        left = [part for part in self.parts if part not in self.kept]
        expected = self.expected_seconds()
        say(f"== {self.stage.name}: {self.stage.what}"
            + (f"; left out, {self.why_not}" if self.why_not else "")
            + (f"; {len(self.kept)} of {len(self.parts)} have passed on the same" if self.kept else "")
            + (f"; about {minutes(expected)}, from last time" if left and expected else ""))
        if not left:
            return
        began = time.monotonic()
        try:
            self.stage.run_parts(left, self.settings, self.note, lambda line: say(f"{self.stage.name}: {line}"))
            for part in left:
                if part not in self.ended:
                    self.note(part, FAILED, 0)  # it has never ended, or never begun
        finally:
            self.seconds = time.monotonic() - began
        if not self.kept:
            self.stamps.write(self.stage.name, "", "", self.result(), self.seconds)
        say(f"== {self.stage.name}: {self.result()} in {minutes(self.seconds)}")

    def result(self):
        return FAILED if FAILED in self.ended.values() else PASSED

    def failed(self):
        return sorted(part for part, result in self.ended.items() if result == FAILED)


class Run:
    """Stages in their order, in two lanes: those that mostly wait, and beside them those that compute."""

    def __init__(self, stages, settings, say):
        self.settings, self.say = settings, say
        self.stamps = Stamps()
        self.courses = [Course(stage, self.stamps, settings) for stage in stages]
        self.done = {stage.name: threading.Event() for stage in stages}
        self.errors = []

    def run(self):
        """Whether all stages passed; raises commands.Ended when it was told to end."""
        lanes = [[c for c in self.courses if c.stage.beside == beside] for beside in (False, True)]
        threads = [threading.Thread(target=self.follow, args=[lane]) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if commands.is_ended():
            raise commands.Ended
        return not self.errors and all(course.result() == PASSED for course in self.courses)

    def follow(self, lane):
        for course in lane:
            for need in course.stage.needs:
                if need in self.done:
                    self.done[need].wait()
            try:
                if not commands.is_ended():
                    course.run(self.say)
            except commands.Ended:
                pass
            except Exception as error:  # the other stages go on
                self.errors.append(f"{course.stage.name}: {error}")
                self.say(f"== {course.stage.name}: {error}")
            self.done[course.stage.name].set()


def table(stages, settings, stamps):
    """What is known of all stages, also from earlier runs, as Markdown."""
    lines = ["| Stage | What | Passed | Skipped | Failed | Time of its parts | Commit | Ended |", "|---|---|---:|---:|---:|---:|---|---|"]
    for stage in stages:
        found = [stamp for name in stamps.names(stage.name) if (stamp := stamps.read(stage.name, name))]
        if not found:
            lines.append(f"| {stage.name} | {stage.what} | | | | | not run | |")
            continue
        count = {result: sum(stamp.result == result for stamp in found) for result in (PASSED, SKIPPED, FAILED)}
        commits = ", ".join(sorted({stamp.commit for stamp in found}))
        lines.append(f"| {stage.name} | {stage.what} | {count[PASSED]} | {count[SKIPPED] or ''} | {count[FAILED] or ''} "
                     f"| {minutes(sum(stamp.seconds for stamp in found))} | {commits} | {max(stamp.when for stamp in found)} |")
    return "\n".join(lines) + "\n"


def tell(run, stages):
    """At the end, also of a run that was ended: the table, what failed, and where to read on. Returns how many parts failed."""
    text = table(stages, run.settings, run.stamps)
    write_whole(LOGS / "table.md", text)
    print(f"\n{text}")
    failed = 0
    for course in run.courses:
        for part in course.failed():
            failed += 1
            print(f"== failed: {course.stage.name} {part} (build/test-logs/{course.stage.name}*.log)")
    for error in run.errors:
        print(f"== failed: {error}")
    return failed + len(run.errors)
