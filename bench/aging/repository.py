"""A synthetic history in git, and copies of it that pull one commit at a time."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "devices"))

from stage import run  # noqa: E402

QUIET = ("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false", "-c", "advice.detachedHead=false")


def make(folder, commits, files, changes, seed):
    """Files of some 20 KiB, of which each commit changes so many; branch cN ends with the commit N."""
    random_ = random.Random(seed)
    names = [f"d{i % 23}/s{i % 7}/f{i}.c" for i in range(files)]
    run("git", "init", "-q", "--bare", folder)
    with subprocess.Popen(["git", "-C", folder, "fast-import", "--quiet"], stdin=subprocess.PIPE, text=True) as importer:
        for commit in range(commits):
            changed = names if commit == 0 else random_.sample(names, min(changes, files))
            before = f"from refs/heads/c{commit - 1}\n" if commit else ""
            importer.stdin.write(f"commit refs/heads/c{commit}\ncommitter a <a> {1600000000 + commit} +0000\ndata 1\nc\n{before}")
            for name in changed:
                text = "".join(f"{random_.getrandbits(120):x}\n" for _ in range(random_.randint(40, 1400)))
                importer.stdin.write(f"M 100644 inline {name}\ndata {len(text)}\n{text}\n")
    if importer.returncode:
        raise RuntimeError(f"git fast-import: status {importer.returncode}")


class Copies:
    """They take the next commit in turn. One that cannot, for lack of room, goes."""

    def __init__(self, source, top):
        self.source, self.top = source, top
        self.last = len(run("git", "-C", source, "for-each-ref", "refs/heads").splitlines()) - 1
        self.at = {}  # commit of each copy, by its number
        self.turns, self.dropped, self.log = 0, 0, []

    def do(self, verb, which):
        folder = self.top / f"copy{which}"
        if verb == "clone":
            run("git", *QUIET, "clone", "-q", "--single-branch", "--branch", "c0", f"file://{self.source}", folder)
            self.at[which] = 0
        elif verb == "pull":
            run("git", *QUIET, "-C", folder, "pull", "-q", "--ff-only", f"file://{self.source}", f"c{self.at[which] + 1}")
            self.at[which] += 1
        else:
            shutil.rmtree(folder)
            del self.at[which]
        self.log.append((verb, which))

    def clone(self):
        self.do("clone", len(self.at))

    def turn(self):
        """The next copy that there is a commit for. False: there is none."""
        for _ in range(len(self.at)):
            which = list(self.at)[self.turns % len(self.at)]
            self.turns += 1
            if self.at[which] == self.last:
                continue
            try:
                self.do("pull", which)
            except RuntimeError:
                if len(self.at) == 1:
                    raise
                self.do("drop", which)
                self.dropped += 1
            return True
        return False


def copy_tree(source, target):
    """In the order of names."""
    for folder, folders, names in os.walk(source):
        folders.sort()
        there = Path(target, Path(folder).relative_to(source))
        there.mkdir(parents=True, exist_ok=True)
        for name in sorted(names):
            shutil.copyfile(Path(folder, name), there / name)
