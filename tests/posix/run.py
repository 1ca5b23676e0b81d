#!/usr/bin/env python3
"""Runs a POSIX suite that others wrote on a fresh Varve, and checks the image after it.

  run.py SUITE [--from DIR] [--size 8G] [--options o,o] [--amount N] [--only PATTERN] [--log FILE]

SUITE is one of suites.py; DIR is where it was built, for those that are not installed programs. Fails if something
failed that expected.md does not list, or if fsck.varve finds a problem. docs/posix.md says where the suites come from.
The environment is that of the mount tests (tests/mount/harness.py)."""

import argparse
import fnmatch
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mount"))
from harness import *

import suites

HERE = Path(__file__).resolve().parent


def expected_failures(suite):
    """Names, or patterns of names, in expected.md: lines `- suite: name: reason`."""
    lines = (HERE / "expected.md").read_text().splitlines()
    found = (re.match(r"- `([^:`]+): ([^`]+)`: .", line) for line in lines)
    return {match[2] for match in found if match and match[1] == suite}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=sorted(suites.ALL))
    parser.add_argument("--from", dest="folder", type=Path)
    parser.add_argument("--size", default="8G")
    parser.add_argument("--options", default="")
    parser.add_argument("--amount", type=int, help="operations or seconds per test, as the suite counts")
    parser.add_argument("--only", default="", help="regular expression for names of tests")
    parser.add_argument("--log", type=Path, help="where the suite's output goes")
    return parser.parse_args()


def main():
    given = arguments()
    image = Image()
    atexit.register(clean_up_all)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    image.folder.chmod(0o755)
    image.mkfs(given.size)
    image.mount(",".join(o for o in ("allow_other" if not IS_ROOT else "", given.options) if o))
    image.dir.chmod(0o777)
    with open(given.log or "/dev/null", "w") as log:
        run = suites.Run(image, given.folder, given.amount, given.only, log)
        results = suites.ALL[given.suite](run)
    failed = {name for name, outcome in results.items() if outcome == "failed"}
    passed = sum(outcome == "passed" for outcome in results.values())
    expected = {name for name in failed for pattern in expected_failures(given.suite) if fnmatch.fnmatchcase(name, pattern)}
    if image.is_mounted():
        image.umount()
    image.fsck("--data")
    print(f"{given.suite}: {passed} passed, {len(failed)} failed ({len(expected)} expected), "
          f"{len(results) - passed - len(failed)} skipped; fsck clean")
    for name in sorted(failed - expected):
        print(f"  failed: {name}")
    sys.exit(1 if failed - expected or not passed else 0)


if __name__ == "__main__":
    main()
