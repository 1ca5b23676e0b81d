#!/usr/bin/env python3
"""Takes each rule that guards against a hazard out of the source, one at a time, and expects the tests of that hazard to fail.

mutation_test.py [--build DIR] [--jobs N] [--timeout SECONDS] [--list] [RULE...]

Makes a copy of the tree in which every rule can be switched off by the environment variable VARVE_MUTATION, and builds it
once. A rule whose text has moved is an error, so that the list cannot rot. A test that fails, dies or hangs has noticed.
Writes a table to stdout; exit status 1: a removal that nobody has noticed.
"""

import argparse
import concurrent.futures
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import fs_rules
import log_rules
import store_rules

ROOT = Path(__file__).resolve().parents[2]
COPIED = ["CMakeLists.txt", "CMakePresets.json", "cmake", "src", "tests", "tools", "examples", "packaging", "docs", "README.md"]
SWITCH = """#pragma once
#include <cstdlib>
#include <cstring>
inline bool mutated(const char* rule) {
  static const char* const removed = std::getenv("VARVE_MUTATION");
  return removed && std::strcmp(removed, rule) == 0;
}
"""
RULES = log_rules.RULES + store_rules.RULES + fs_rules.RULES


def copied_files():
    for name in COPIED:
        path = ROOT / name
        yield from [path] if path.is_file() else (p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def mutated_texts():
    texts = {}
    for rule in RULES:
        for edit in rule.edits:
            text = texts.get(edit.file) or (ROOT / edit.file).read_text()
            if text.count(edit.old) != 1:
                sys.exit(f"{rule.name}: {edit.file} has {text.count(edit.old)} places that read\n{edit.old}\n"
                         "Has the rule moved? Then tests/mutation has to follow.")
            texts[edit.file] = text.replace(edit.old, edit.new.replace("OFF", f'mutated("{rule.name}")'))
    return texts


SHARED = ["tests/support", "tests/mutation", "cmake"]  # what the tests of all rules are made of


def texts_of(folder):
    return [path.read_text() for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in (".cc", ".h", ".py", ".txt", ".cmake")]


@functools.cache
def tests_of(program):
    """The sources of a test program: all of its folder, and what is shared."""
    for list_of_targets in sorted((ROOT / "tests").glob("*/CMakeLists.txt")):
        if re.search(rf"varve_test\({program}\s", list_of_targets.read_text()):
            folders = [list_of_targets.parent, *(ROOT / name for name in SHARED)]
            return "".join(text for folder in folders for text in texts_of(folder))
    sys.exit(f"no folder of tests has a program {program}")


def dependence(rule):
    """All that says whether its removal is noticed, but for the sources around it: its text, the files it stands in, and its tests."""
    files = sorted({edit.file for edit in rule.edits}) or sorted({edit.file for other in RULES for edit in other.edits if rule.name in edit.new})
    return repr(rule) + "".join((ROOT / file).read_text() for file in files) + "".join(tests_of(program) for program, _ in rule.runs)


def write_if_changed(path, data):
    """Keeps the time of what has not changed, so that it is not built again."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def make_tree(tree):
    texts = mutated_texts()
    for path in copied_files():
        name = path.relative_to(ROOT)
        data = texts[str(name)].encode() if str(name) in texts else path.read_bytes()
        write_if_changed(tree / name, data)
        shutil.copymode(path, tree / name)
    write_if_changed(tree / "mutation.h", SWITCH.encode())


def build(tree, programs, jobs):
    out = tree / "build"
    flags = f"-O1 -g0 -include {tree / 'mutation.h'}"
    run = lambda *words: subprocess.run(words, check=True, stdout=sys.stderr)
    run("cmake", "-G", "Ninja", "-S", tree, "-B", out, "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_CXX_FLAGS={flags}", "-DVARVE_BENCH=OFF")
    run("cmake", "--build", out, "-j", str(jobs), "--target", *sorted(programs))
    return out / "tests" / "bin"


def run_tests(program, only, mutation, seconds, again=True):
    """What came of it: None if all tests passed, else how they noticed; and the seconds it took. What does not end in time gets
    a second chance: the machine may have stood still."""
    environment = {**os.environ, "VARVE_MUTATION": mutation}
    began = time.monotonic()
    with subprocess.Popen([program, f"--gtest_filter={only}", "--gtest_fail_fast"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env=environment, text=True, errors="replace") as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            if again:
                return run_tests(program, only, mutation, seconds, again=False)
            return f"does not end ({last_begun(output)})", time.monotonic() - began
    took = time.monotonic() - began
    if process.returncode == 0:
        if not re.search(r"\[  PASSED  \] [1-9]", output):
            sys.exit(f"{program.name} has no test that is called {only}")
        return None, took
    failed = re.search(r"^\[  FAILED  \] (\S+?)[ ,]", output, re.M)
    if failed:
        return f"fails: {failed[1].rstrip(',')}", took
    name = signal.Signals(-process.returncode).name if process.returncode < 0 else f"status {process.returncode}"
    return f"dies of {name} ({last_begun(output)})", took


def last_begun(output):
    begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.M)
    return begun[-1] if begun else "before the first test"


@functools.cache
def seconds_with_all_rules(program, only, seconds):
    failure, took = run_tests(program, only, "", seconds)
    if failure:
        sys.exit(f"{program} {only}: {failure}, with all rules in place")
    return took


def examine(rule, bin_dir, seconds):
    """What each program says without the rule."""
    results = []
    for program, only in rule.runs:
        took = seconds_with_all_rules(bin_dir / program, only, seconds)
        without, took_without = run_tests(bin_dir / program, only, rule.name, max(60, 20 * took))
        results.append((f"{program} {only}", without, took_without))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=int, default=900, help="for a run with all rules in place")
    parser.add_argument("--list", action="store_true", help="only check that each rule is where the list says")
    parser.add_argument("rules", nargs="*")
    options = parser.parse_args()
    if options.list:
        mutated_texts()
        print("\n".join(f"{rule.name:12} {rule.what}" for rule in RULES))
        return 0
    rules = [rule for rule in RULES if not options.rules or rule.name in options.rules or rule.hazard in options.rules]
    if not rules:
        sys.exit(f"no rule and no hazard is called {' or '.join(options.rules)}; --list shows them")
    options.build = options.build.resolve()  # the compiler is called from somewhere else
    make_tree(options.build)
    bin_dir = build(options.build, {program for rule in rules for program, _ in rule.runs}, options.jobs)
    unnoticed = []
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    for rule, results in zip(rules, pool.map(lambda rule: examine(rule, bin_dir, options.timeout), rules)):
        if all(without is None for _, without, _ in results):
            unnoticed.append(rule.name)
        for what, without, took in results:
            print(f"| {rule.name} | {rule.what} | `{what}` | {without or 'NOT NOTICED'} | {took:.0f} s |", flush=True)
    for hazard, why in fs_rules.STRUCTURAL.items():
        if not options.rules:
            print(f"| {hazard} | | | cannot be removed: {why} | |")
    print(f"{len(rules) - len(unnoticed)} of {len(rules)} removals are noticed" +
          (f"; not: {', '.join(unnoticed)}" if unnoticed else ""))
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
