"""Stamps: a file for each part of a test run, which says what it depended on, how it ended, when, and how long it took.

A part that passed and depends on the same is not repeated by `./run-tests --resume`. A stamp is written as soon as its part has ended,
and replaces the former one at once, so that a run which is killed loses only what was under way.
"""

import hashlib
import json
import os
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


@dataclass
class Stamp:
    key: str        # digest of what the part depends on
    result: str
    seconds: float
    commit: str
    when: str       # its end, UTC

    @property
    def holds(self):
        """It need not be repeated. What was skipped is tried again: that costs nothing."""
        return self.result == PASSED


class Stamps:
    """Those of one build folder. Several threads may use it: each part has a file of its own."""

    def __init__(self, folder=ROOT / "build/test-stamps"):
        self.folder = folder
        self.commit = commit()

    def place(self, stage, part):
        return self.folder / stage / (part.replace("/", "%") + ".json")

    def read(self, stage, part):
        try:
            return Stamp(**json.loads(self.place(stage, part).read_text()))
        except (OSError, ValueError, TypeError):
            return None  # there is none, or one of another form

    def write(self, stage, part, key, result, seconds):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        write_whole(self.place(stage, part), json.dumps(asdict(Stamp(key, result, round(seconds, 1), self.commit, now))))

    def names(self, stage):
        """The parts of a stage that have a stamp."""
        return sorted(place.name.removesuffix(".json").replace("%", "/") for place in (self.folder / stage).glob("?*.json"))

    def keep_only(self, stage, parts):
        """Forgets parts that are there no more."""
        for name in self.names(stage):
            if name not in parts:
                self.place(stage, name).unlink()

    def is_fresh(self, stage, part, key):
        stamp = self.read(stage, part)
        return stamp is not None and stamp.key == key and stamp.holds


def write_whole(path, text):
    """The old file or the new one, whatever happens meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.new")
    fresh.write_text(text)
    fresh.replace(path)


def output_of(*words):
    """What a command says, or nothing where it is missing or fails."""
    try:
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def commit():
    name = output_of("git", "rev-parse", "--short", "HEAD") or "none"
    return name + ("+" if output_of("git", "status", "--porcelain") else "")


def digest(*things):
    """Of texts, in their order."""
    whole = hashlib.sha256()
    for thing in things:
        data = thing.encode()
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()[:32]


_of_files = {}  # (path, size, time of change) -> digest


def digest_of_file(path):
    state = path.stat()
    known = (str(path), state.st_size, state.st_mtime_ns)
    if known not in _of_files:
        with path.open("rb") as file:
            _of_files[known] = hashlib.file_digest(file, "sha256").hexdigest()
    return _of_files[known]


def digest_of(*paths):
    """Of files, and of all files below folders, with their names."""
    found = []
    for path in paths:
        inside = sorted(p for p in path.rglob("*") if "__pycache__" not in p.parts) if path.is_dir() else [path]
        found += [f"{p} {digest_of_file(p)}" for p in inside if p.is_file()]
    return digest(*found)


def digest_of_tree():
    """Of all that is in the project: files that git knows, and those that it would add."""
    names = output_of("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    if not names:  # no repository: the folders that a release has
        return digest_of(*(ROOT / n for n in ("src", "tools", "tests", "bench", "packaging", "docs", "cmake", "examples", "CMakeLists.txt")))
    return digest_of(*(ROOT / name for name in names))


def digest_of_tools():
    """Of the machine: kernel, compilers, and the packages that the project wants."""
    wanted = []
    for line in (ROOT / "packaging/apt-packages").read_text().splitlines():
        if ":" in line and not line.startswith("#"):
            wanted += line.split(":")[1].split()
    packages = output_of("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n", *wanted)
    return digest(output_of("uname", "-srm"), output_of("c++", "--version"), output_of("python3", "--version"), packages,
                  str(os.access("/dev/fuse", os.R_OK | os.W_OK)), str(os.geteuid() == 0))
