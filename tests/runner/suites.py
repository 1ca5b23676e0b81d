"""Tests as CTest knows them: which there are, what each depends on, and a run of some of them."""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import commands
from stamps import FAILED, PASSED, ROOT, SKIPPED, digest, digest_of, digest_of_tools, digest_of_tree

# As CTest prints the end of a test, e.g. "12/108 Test  #5: log_test ......   Passed    3.21 sec".
END = re.compile(r"\s*\d+/\d+ Test +#\d+: (\S+) \.*\s*(Passed|\*\*\*\S+.*?|Exception.*?)\s+([\d.]+) sec")


@dataclass(frozen=True)
class Test:
    name: str
    key: str


def _properties(entry):
    return {p["name"]: p["value"] for p in entry.get("properties", [])}


def _key(entry, shared):
    """Of the program, its arguments and its environment, and of the files that it reads. A test of Python uses the tools, and what lies
    beside it; one of the project reads all there is."""
    known = _properties(entry)
    environment = sorted(known.get("ENVIRONMENT", []))
    files = [Path(word) for word in entry["command"] if word.startswith(str(ROOT)) and Path(word).is_file()]
    files += [Path(value) for line in environment for value in [line.partition("=")[2]] if value.startswith(str(ROOT)) and Path(value).is_file()]
    files += [Path(name) for name in known.get("REQUIRED_FILES", [])]
    parts = [*entry["command"], *environment, shared["settings"], shared["tools"], digest_of(*files)]
    if "project" in known.get("LABELS", []):
        parts.append(shared["tree"])
    elif any(path.suffix == ".py" for path in files):
        parts.append(shared["scripts"])
    return digest(*parts)


def tests_of(preset, build, filters=()):
    """Those that a test preset would run, once they are built."""
    words = ["ctest", "--preset", preset, "--show-only=json-v1", *filters]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    settings = json.dumps({name: value for name, value in sorted(os.environ.items()) if name.startswith("VARVE_")})
    scripts = (ROOT / name for name in ("tests/mount", "tests/bench", "bench", "packaging", "examples"))
    shared = {"settings": settings + (ROOT / "CMakePresets.json").read_text(), "tools": digest_of_tools(), "tree": digest_of_tree(),
              "scripts": digest_of(build / "bin", *scripts)}
    # One without a command has not been built: CTest says so when it is to run.
    return [Test(entry["name"], _key(entry, shared) if entry.get("command") else "") for entry in json.loads(done.stdout)["tests"]]


def run(preset, names, jobs, log, on_end, on_line, idle=False, options=()):
    """Runs the tests that are called so; on_end(name, result, seconds) is called as each one ends. Returns CTest's status."""
    def look(line):
        on_line(line)
        if ended := END.match(line):
            name, how, seconds = ended.groups()
            result = PASSED if how == "Passed" else SKIPPED if how == "***Skipped" else FAILED
            on_end(name, result, float(seconds))

    only = "^(" + "|".join(re.escape(name) for name in names) + ")$"
    return commands.run(["ctest", "--preset", preset, "-R", only, "-j", jobs, *options], log, look, idle)
