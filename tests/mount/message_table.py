#!/usr/bin/env python3
"""How many messages of FUSE common work takes for each file, at most: the rows of requests_test.py. Run alone it prints the table of
docs/performance.md."""

import os
import subprocess
from dataclasses import dataclass
from typing import Callable

FILES = 200


def run(*words, **more):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, **more)


def each(use):
    """An action that does something with each file of the folder in use."""
    def action(state):
        for i in range(FILES):
            use(state.work / f"f{i}")
    return action


def write_block(path):
    with open(path, "wb", buffering=0) as file:  # with a buffer, Python asks whether it is a terminal
        file.write(b"x" * 4096)


def make_files(state):
    each(write_block)(state)


def unpack(state):
    run("tar", "xf", state.archive, "-C", state.work)


def write_small(path):
    with open(path, "wb", buffering=0) as file:
        for _ in range(16):
            file.write(b"x" * 4096)


def replace(path):
    """As editors and package managers do."""
    fresh = path.with_suffix(".new")
    with open(fresh, "wb", buffering=0) as file:
        file.write(b"y" * 4096)
        os.fsync(file.fileno())
    fresh.rename(path)


def append(path):
    with open(path, "ab", buffering=0) as file:
        file.write(b"x" * 100)


def overwrite_and_sync(path):
    with open(path, "r+b", buffering=0) as file:
        file.write(b"z" * 4096)
        os.fsync(file.fileno())


def git(state, *words):
    run("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0", *words, cwd=state.work)


def commit(state):
    unpack(state)
    git(state, "init", "-q")
    git(state, "add", ".")
    git(state, "commit", "-qm", "one")


def nothing(state):
    pass


@dataclass
class Row:
    name: str
    most: float      # messages for each file
    made_of: str     # which ones
    action: Callable
    prepare: Callable = nothing
    is_cold: bool = False  # after a remount
    warms: bool = False    # the second time counts


ROWS = [
    Row("create an empty file", 3.1, "GETATTR of the directory, LOOKUP, MKNOD", each(lambda path: path.touch())),
    Row("new file of 4 KiB", 5.1, "and GETXATTR of security.capability, WRITE", make_files),
    Row("new file of 64 KiB in 16 writes", 5.1, "the same: the kernel's cache gathers writes", each(write_small)),
    Row("append 100 bytes", 4.1, "GETATTR, GETXATTR, WRITE, SETATTR of the times", each(append), make_files),
    Row("overwrite 4 KiB, fsync", 5.1, "GETATTR, GETXATTR, WRITE, SETATTR of the times, FSYNC", each(overwrite_and_sync), make_files),
    Row("write, fsync, rename over", 11.1, "as a new file; FSYNC, RENAME; twice each LOOKUP, GETATTR of the directory, SETATTR of times", each(replace), make_files),
    Row("unlink", 3.1, "GETATTR of the directory, UNLINK, SETATTR of its ctime", each(lambda path: path.unlink()), make_files),
    Row("mkdir", 3.1, "GETATTR of the directory, LOOKUP, MKDIR", each(lambda path: path.mkdir())),
    Row("untar", 9.6, "as a new file; SETATTR of owner, of mode, of times; GETXATTR again, since these changed", unpack),
    Row("cp -r", 6.1, "as a new file", lambda state: run("cp", "-r", state.tree, state.work / "copy")),
    Row("rm -r", 3.5, "as unlink", lambda state: run("rm", "-r", state.work / "d0", *(state.work / f"d{i}" for i in range(1, 10))), unpack),
    Row("ls -lR, cold", 2.5, "READDIRPLUS for many names, GETXATTR of ACLs and labels", lambda state: run("ls", "-lR", state.work), unpack, is_cold=True),
    Row("ls -lR, again", 1.3, "GETXATTR of labels, which the kernel never keeps", lambda state: run("ls", "-lR", state.work), unpack, warms=True),
    Row("find, cold", .3, "READDIRPLUS for many names", lambda state: run("find", state.work, "-size", "+1M"), unpack, is_cold=True),
    Row("grep -r, cold", 1.3, "and READ", lambda state: run("grep", "-rc", "7", state.work), unpack, is_cold=True),
    Row("git status, cold", 2.0, "LOOKUP and GETATTR of each file", lambda state: git(state, "status", "--short"), commit, is_cold=True),
    Row("git status, again", .3, "nothing but what git writes itself", lambda state: git(state, "status", "--short"), commit, warms=True),
]


def table():
    text = "| For each file | Messages, at most | Of |\n|---|---|---|\n"
    for row in ROWS:
        text += f"| {row.name} | {row.most:g} | {row.made_of} |\n"
    return text


if __name__ == "__main__":
    print(table(), end="")
