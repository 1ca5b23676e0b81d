#!/usr/bin/env python3
"""Builds Varve and runs its tests: what ./run-tests does once the packages are there."""

import argparse
import os
import shutil
import signal
import sys
import threading

sys.dont_write_bytecode = True

import commands
import run
from commands import LOGS
from stages import Build, Fuzzing, Images, Machines, Mutations, Packages, Settings, Suite
from stamps import Stamps

FUZZ_TARGETS = ("superblock", "chunk", "records", "node", "item", "map_record", "units", "options", "requests", "sfile", "streams", "image")


def clang():
    return next((path for version in ("", *(f"-{n}" for n in range(22, 13, -1))) if (path := shutil.which(f"clang++{version}"))), None)


def release_build(name="release", **more):
    # Warnings fail the project's own runs, not those of a user whose compiler is newer than ours.
    return Build(name, "the release build", preset="release", options=(f"-DVARVE_WERROR={'ON' if os.environ.get('CI') else 'OFF'}",), **more)


def usual_stages():
    """Tests of mounts mostly wait: they begin as soon as there are tools, and the tests without mounts are built beside them."""
    return [release_build("tools", targets=("mountable",)),
            Suite("mounts", "tests of mounts", needs=("tools",), preset="release-mounts", build="release", at_once=2),
            release_build("programs", needs=("tools",), beside=True, idle=True),
            Suite("units", "all other tests", needs=("programs",), beside=True, preset="release-units", build="release", at_once=1.5)]


def repeated_stages(times, load):
    """The same again and again, to find tests that depend on luck. Each time has stamps of its own, so that it can be resumed."""
    beside = f"-loaded-{load}" if load else ""
    stages = [release_build()]
    for number in range(1, times + 1):
        before = stages[-1].name
        stages += [Suite(f"mounts-{number}{beside}", f"tests of mounts, time {number} of {times}", needs=(before,), preset="release-mounts",
                         build="release", at_once=2),
                   Suite(f"units-{number}{beside}", f"all other tests, time {number} of {times}", needs=(before,), beside=True,
                         preset="release-units", build="release", at_once=1.5)]
    return stages


def nightly_stages():
    stages = [release_build()]
    # Clang's build gives its warnings, as errors, the tests with sanitizers, and the fuzz programs. Not gcc's warnings with sanitizers: their
    # instrumentation makes it warn where nothing is wrong.
    compiler = clang()
    sanitized = "fuzz" if compiler else "asan-ubsan"
    options = ("-DVARVE_WERROR=ON", f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_C_COMPILER={compiler.replace('++', '')}") if compiler else ()
    stages += [
        Suite("mounts", "mounts, long variants too", needs=("release",), preset="nightly-mounts", build="release", at_once=2),
        Build("sanitized", "the build with clang's warnings, sanitizers and fuzz programs", needs=("release",), beside=True, idle=True, preset=sanitized,
              options=options),
        Build("threaded", "the build with the thread sanitizer", needs=("sanitized",), beside=True, idle=True, preset="tsan", targets=("threaded",)),
        Suite("address", "tests with address and undefined-behaviour sanitizers", needs=("sanitized",), beside=True, idle=True, preset=sanitized,
              build=sanitized),
        Suite("threads", "tests that start threads, with the thread sanitizer", needs=("threaded",), beside=True, idle=True, preset="tsan", build="tsan"),
        Suite("long", "long variants", needs=("release",), beside=True, idle=True, preset="nightly-units", build="release"),
        Images("images", "whole images at full speed", needs=("release",), beside=True, idle=True),
        Machines("machines", "other kernels and processors, in guests", needs=("release",), beside=True),
        Mutations("mutations", "rules removed one by one", beside=True, idle=True)]
    if compiler:
        stages += [Suite("address-mounts", "mounts with address and undefined-behaviour sanitizers", needs=("sanitized",), preset="fuzz-mounts",
                         build="fuzz", at_once=2, reports=True),
                   Fuzzing("fuzzing", "fuzz programs", needs=("sanitized",), beside=True, idle=True, targets=FUZZ_TARGETS)]
    computing = tuple(stage.name for stage in stages if stage.beside)
    return [*stages,
            Packages("packages", "packages in new Debian trees"),
            Suite("threads-mounts", "mounts with the thread sanitizer", needs=("threaded",), preset="tsan-mounts", build="tsan", at_once=2,
                  reports=True),
            Suite("memory", "bounds of memory, alone", needs=computing, preset="nightly-memory", build="release")]


def chosen(stages, names):
    """Those that are named, and what they need to be built."""
    known = {stage.name: stage for stage in stages}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"run-tests: no stage is called {', '.join(unknown)}; there are {', '.join(known)}")
    wanted = set(names)
    for stage in reversed(stages):
        if stage.name in wanted:
            wanted.update(need for need in stage.needs if isinstance(known.get(need), Build))
    return [stage for stage in stages if stage.name in wanted]


def read_arguments():
    parser = argparse.ArgumentParser(prog="run-tests", description=__doc__, allow_abbrev=False)
    parser.add_argument("--nightly", nargs="*", metavar="STAGE", help="everything, however long; or these stages, with the builds that they need")
    parser.add_argument("--preset", help="one preset of CMakePresets.json: built, and its tests")
    parser.add_argument("--resume", action="store_true", help="leave out what has passed on the same sources, options and tools")
    parser.add_argument("--all", action="store_true", help="of the rules also those whose files and tests are as they were")
    parser.add_argument("--repeat", type=int, metavar="N", help="the usual tests so many times, to find those that depend on luck")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="with so many programs that compute beside the tests")
    parser.add_argument("--list", action="store_true", help="only show stages and how the last runs of them went")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers and tests at once (all processors)")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:split])
    options.ctest = words[split + 1:]
    return options


def main():
    options = read_arguments()
    settings = Settings(jobs=options.jobs, resume=options.resume, every_rule=options.all, ctest_options=options.ctest,
                        fuzz_seconds=int(os.environ.get("VARVE_FUZZ_SECONDS", "60")),
                        fuzz_images=int(os.environ.get("VARVE_FUZZ_IMAGES", "400000")))
    if options.preset:
        stages = [Build("build", f"preset {options.preset}", preset=options.preset),
                  Suite("tests", f"tests of {options.preset}", needs=("build",), preset=options.preset, build=options.preset)]
    elif options.nightly is not None:
        stages = nightly_stages()
    elif options.repeat:
        stages = repeated_stages(options.repeat, options.load)
    else:
        stages = usual_stages()
    if options.list:
        print(run.table(stages, settings, Stamps()))
        return 0
    return carry_out(chosen(stages, options.nightly) if options.nightly else stages, settings, options.load)


def carry_out(stages, settings, load):
    LOGS.mkdir(parents=True, exist_ok=True)
    commands.end_leftovers()
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("No usable /dev/fuse here: tests that mount something will be skipped.", file=sys.stderr)
    lock = threading.Lock()

    def say(line):
        with lock:
            print(line, flush=True)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: commands.end_all())
    whole = run.Run(stages, settings, say)
    for _ in range(load):
        threading.Thread(target=commands.run_until_the_end, args=[["sh", "-c", "while :; do :; done"]], daemon=True).start()
    try:
        whole.run()
    except commands.Ended:
        run.tell(whole, stages)
        print("== ended before it was through; go on with the same command and --resume")
        return 130
    finally:
        commands.end_all()
    return 1 if run.tell(whole, stages) else 0


if __name__ == "__main__":
    sys.exit(main())
