#!/usr/bin/env python3
"""Reads the sources and fails on what reviews should not have to find. Such are includes against the layering of
docs/design.md, calls that break determinism or safety, files that have grown too long, and words that belong elsewhere."""

import ast
import functools
import os
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = {".h", ".cc"}
TEXT = CODE | {".py", ".sh", ".md", ".txt", ".cmake", ".json", ".in", ".1", ".8", ".service", ""}
MAX_LINES = 500          # of a source file in src/ and tools/
MAX_COLUMNS = 140        # as in .clang-format
MAX_BYTES = 300 * 1024   # of anything that is not a test image

# What each room may include besides itself (docs/design.md, "Layers").
ROOMS = {
    "base": [],
    "io": ["base"],
    "remote": ["io", "base"],
    "format": ["base"],
    "blocks": ["format", "base"],
    "lease": ["format", "remote", "io", "base"],
    "device": ["format", "io", "base"],
    "segments": ["device", "format", "base"],
    "log": ["segments", "device", "format", "io", "base"],
    "tree": ["log", "segments", "format", "io", "base"],
    "snapshots": ["tree", "segments", "format", "base"],
    "changes": ["snapshots", "tree", "log", "format", "base"],
    "space": ["changes", "snapshots", "tree", "log", "segments", "device", "format", "io", "base"],
    "checkpoint": ["space", "changes", "snapshots", "tree", "log", "segments", "device", "format", "io", "base"],
    "store": ["checkpoint", "space", "changes", "snapshots", "tree", "log", "segments", "device", "format", "base"],
    "cleaner": ["store", "checkpoint", "space", "changes", "snapshots", "tree", "log", "segments", "device", "format", "io", "base"],
    "scrub": ["store", "checkpoint", "changes", "snapshots", "tree", "device", "format", "base"],
    "operation": ["store", "checkpoint", "space", "changes", "snapshots", "tree", "log", "segments", "device", "io", "base"],
    "jobs": ["operation", "cleaner", "store", "checkpoint", "space", "changes", "snapshots", "log", "segments", "device", "io", "base"],
    "fs": ["jobs", "operation", "scrub", "cleaner", "store", "checkpoint", "space", "changes", "snapshots", "log", "segments", "device",
           "format", "io", "base"],
    "compare": ["fs", "operation", "changes", "snapshots", "tree", "format", "base"],
    "send": ["compare", "format", "base"],
    "check": ["format", "io", "base"],
    "image": ["check", "log", "format", "io", "base"],
    "repair": ["check", "checkpoint", "tree", "log", "format", "io", "base"],
    "fuse/protocol": ["format", "base"],
    "fuse/transport": ["fuse/protocol", "log", "io", "base"],
    "control": ["compare", "fs", "jobs", "cleaner", "checkpoint", "snapshots", "log", "lease", "format", "remote", "io", "base"],
    "fuse/operations": ["control", "fuse/transport", "fuse/protocol", "compare", "fs", "operation", "snapshots", "format", "io",
                        "base"],
    "daemon": ["fuse/operations", "control", "fuse/transport", "fuse/protocol", "fs", "cleaner", "lease", "remote", "io", "base"],
}

# Foreign headers that only some rooms may know.
FOREIGN = [
    (re.compile(r"<liburing"), {"io"}),
    (re.compile(r"<(zstd|lz4)"), {"blocks"}),
    (re.compile(r"<(fuse|fuse3/|linux/fuse)"), {"fuse/protocol", "fuse/transport", "fuse/operations", "daemon"}),
    (re.compile(r"<CLI/"), set()),
]

# pattern, why, files (regular expression on the path) where it is fine
BANNED_CALLS = [
    (r"\b(sprintf|strcpy|strcat|gets|tmpnam|mktemp)\s*\(", "unbounded or racy", r"^$"),
    (r"(?<![\w.>])(rand\(\)|srand\(|time\((nullptr|NULL|0|&)|system\([^)])", "Clock and Random are injected", r"^$"),
    (r"std::(random_device|mt19937)|system_clock::now", "Clock and Random are injected", r"src/base/clock\.cc|^tests/|^bench/"),
    (r"std::(cout|cerr)\b|\bprintf\s*\(", "libraries do not print", r"^(tools|tests|bench)/"),
    (r"using namespace std;", "spell it", r"^$"),
    (r"\bspdlog::(trace|debug|info|warn|error|critical|log)\(|\bfmt::v?format_to(_n)?\(", "compiles all of fmt again: base/logging.h, fmt::format",
     r"^src/base/types\.cc"),
    # One that waits in the kernel for a daemon that is stopped cannot be joined.
    (r"\bnew\s+std::thread\b|\.detach\(\)", "threads are owned and joined", r"^tools/varve/observe/status_asker\.cc"),
]

ALGORITHM = re.compile(r"std::(ranges::)?(sort|stable_sort|unique|find(_if)?|any_of|all_of|none_of|count(_if)?|copy|fill|reverse|rotate|"
                       r"(min|max)_element|(lower|upper)_bound|equal|transform|remove_if|shuffle|clamp|search|is_sorted)\(")

BANNED_WORDS = [
    (r"\b(FIXME|XXX|HACK)\b", "finish it, or describe the limit"),
    (r"(?<![\w.])/(work|root|home/(?!ann/))[/\w]", "a path of one machine"),
    (r"\b[\w.-]+\.(debian|ubuntu|github|pypi|googleapis)\.(org|com|io)\b|\bartifact-?registry\b", "a host"),
    (r"(?i)\bissue\s+#?\d", "describe the matter instead of a number"),
]


def files(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def name(path):
    return path.relative_to(ROOT).as_posix()


@functools.cache
def project_texts():
    """Every text file of the project, as lines, but this one, which has to spell the words it looks for."""
    found = []
    top = [p for p in ROOT.iterdir() if p.is_file() and p.suffix in TEXT]
    inside = files("src", "tools", "tests", "bench", "docs", "cmake", "packaging", ".ci")
    for path in top + [p for p in inside if p.suffix in TEXT and "corpus" not in p.parts]:
        if path != Path(__file__).resolve() and path.name != ".git":
            found.append((path, path.read_text(encoding="utf-8", errors="replace").splitlines()))
    return found


def room_of(path):
    """The folder of src/ that is a room: of two levels only where the first one is none."""
    first, *rest = path.split("/")
    return first if first in ROOMS or not rest else f"{first}/{rest[0]}"


def enclosed(text):
    """Up to the parenthesis that closes the first one."""
    depth = 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and character == ")":
            return text[:at + 1]
    return text


def without_comments(line):
    return re.sub(r'"(\\.|[^"\\])*"', '""', line).split("//")[0]


class Tidy(unittest.TestCase):
    def setUp(self):
        self.findings = []

    def tearDown(self):
        if self.findings:
            self.fail("\n" + "\n".join(self.findings))

    def note(self, path, number, text):
        self.findings.append(f"{name(path)}:{number}: {text}")

    def test_includes_follow_the_layers(self):
        include = re.compile(r'\s*#\s*include\s+(["<])([^">]+)[">]')
        for path in files("src"):
            if path.suffix not in CODE:
                continue
            room = room_of(path.relative_to(ROOT / "src").as_posix())
            if room not in ROOMS:
                self.note(path, 1, f"room {room} is not in the layering")
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = include.match(line)
                if not match:
                    continue
                if match[1] == '"':
                    target = room_of(match[2])
                    if target in ROOMS and target != room and target not in ROOMS[room]:
                        self.note(path, number, f"{room} must not use {target}")
                    elif target not in ROOMS:
                        self.note(path, number, f'"{match[2]}": name project headers from src/ on')
                for pattern, rooms in FOREIGN:
                    if pattern.match(f"<{match[2]}") and match[1] == "<" and room not in rooms:
                        self.note(path, number, f"{match[2]} belongs in {', '.join(sorted(rooms)) or 'tools'} only")

    def test_namespaces_are_rooms(self):
        """The last one that a file opens is its own. Before it others may be declared."""
        for path in files("src"):
            if path.suffix in CODE:
                room = path.relative_to(ROOT / "src").parts[0]
                opened = re.findall(r"^namespace (varve[\w:]*) \{", path.read_text(), re.M)
                wanted = "varve" if room == "base" else f"varve::{room}"
                if opened and opened[-1].split("::")[:2] != wanted.split("::"):
                    self.note(path, 1, f"namespace {opened[-1]}, and not {wanted}")

    def test_every_room_introduces_itself(self):
        design = (ROOT / "docs/design.md").read_text()
        for room, uses in ROOMS.items():
            path = ROOT / "src" / room / "README.md"
            lines = path.read_text().splitlines() if path.exists() else []
            if len(lines) < 6 or len(lines) >= 40:
                self.note(path, len(lines), "a README of 6 to 39 lines: what the room is for, what it may use, where to begin")
            elif lines[4] != f"May use: {', '.join(uses) or 'nothing'}.":
                self.note(path, 5, f"may use: {', '.join(uses)}")
            elif f"| [{room}](../src/{room}/README.md) | {lines[2]} |" not in design:
                self.note(path, 3, "docs/design.md, \"Rooms\", says something else")

    def test_every_lock_has_its_place(self):
        own_ways = {"src/daemon/journal_sink.h", "src/daemon/late_file_sink.h"}  # the base class wants it
        locks = (ROOT / "docs/design.md").read_text().split("## Locks\n")[1].split("\n## ")[0]
        for path in files("src"):
            if path.suffix not in CODE or name(path) == "src/base/mutex.h":
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if not re.search(r"\b(Spinning)?Mutex \w+(\{.*\})?;|\bstd::\w*mutex\b", without_comments(line)):
                    continue
                if f"`{name(path).removeprefix('src/')}`" not in locks:
                    self.note(path, number, "a lock that docs/design.md, \"Locks\", does not name")
                if "std::" in line and name(path) not in own_ways:
                    self.note(path, number, "use base/mutex.h, which the compiler checks")

    def test_ranks_of_locks_are_those_of_the_table(self):
        ranks = re.findall(r"^  (\w+),", (ROOT / "src/base/lock_order.h").read_text().split("enum class LockRank")[1].split("};")[0], re.M)
        locks = (ROOT / "docs/design.md").read_text().split("## Locks\n")[1].split("\n## ")[0]
        rows = [row for row in re.findall(r"^\| `(\w+)` \| (.*?) \|", locks, re.M)]
        if list(dict.fromkeys(rank for rank, _ in rows)) != ranks:
            self.note(ROOT / "docs/design.md", 1, "the table of locks has other ranks, or another order, than src/base/lock_order.h")
        of_file = {(path, rank) for rank, text in rows for path in re.findall(r"`([\w/]+\.(?:h|cc))`", text)}
        for path in files("src"):
            if path.suffix in CODE and path.stem not in ("mutex", "lock_order"):
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    for rank in re.findall(r"LockRank::(\w+)", without_comments(line)):
                        if (name(path).removeprefix("src/"), rank) not in of_file:
                            self.note(path, number, f"docs/design.md, \"Locks\", does not list it at {rank}")

    def test_what_the_compiler_does_not_check_has_a_reason(self):
        """On the line, or on the one above it."""
        for path in files("src", "tools", "tests", "bench"):
            if path.suffix not in CODE:
                continue
            before = ""
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if re.search(r"\bNO_THREAD_SAFETY_ANALYSIS\b|(\.|->)assume_locked(_shared)?\(\);", without_comments(line)):
                    if "//" not in line and not before.lstrip().startswith("//") and "#define" not in line:
                        self.note(path, number, "the compiler takes this on trust: say why it is true")
                before = line

    def test_algorithms_are_included(self):
        """Other headers bring them along with some compilers only."""
        for path in files("src", "tools", "tests", "bench", "examples"):
            if path.suffix in CODE and "#include <algorithm>" not in (text := path.read_text()):
                for number, line in enumerate(text.splitlines(), 1):
                    if ALGORITHM.search(without_comments(line)):
                        self.note(path, number, "no #include <algorithm>")

    def test_no_two_tries_in_one_expression(self):
        """The second one would return without destroying what the first one gave."""
        quiet = re.compile(r'//[^\n]*|"(\\.|[^"\\\n])*"')
        joined = re.compile(r"[^;{}?]*(,|==|!=|<|>|\+|-|&&|\|\|)[^;{}?]*")
        for path in files("src", "tools", "bench"):
            if path.suffix not in CODE:
                continue
            text = quiet.sub(lambda found: " " * len(found[0]), path.read_text())
            tries = [found.start() for found in re.finditer(r"\bTRY\(", text)]
            for first, second in zip(tries, tries[1:]):
                end = first + len(enclosed(text[first:]))
                between = text[end:second] if second >= end else ";"
                if joined.fullmatch(between) and not re.fullmatch(r"\)*,\s*\w+ = ", between):
                    self.note(path, text.count("\n", 0, second) + 1, "two TRY() in one expression")

    def test_files_stay_short(self):
        for path in files("src", "tools"):
            if path.suffix in CODE:
                lines = len(path.read_text().splitlines())
                if lines > MAX_LINES:
                    self.note(path, lines, f"{lines} lines, more than {MAX_LINES}: look for a second noun")

    def test_headers_begin_with_their_role(self):
        for path in files("src", "tools", "tests"):
            if path.suffix == ".h":
                lines = path.read_text().splitlines()
                if not lines or not lines[0].startswith("//"):
                    self.note(path, 1, "a header begins with a comment that says what it is for")
                if "#pragma once" not in lines:
                    self.note(path, 1, "no #pragma once")

    def test_no_banned_calls(self):
        any_of_them = re.compile("|".join(f"(?:{pattern})" for pattern, _, _ in BANNED_CALLS))
        for path in files("src", "tools"):
            if path.suffix not in CODE:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                code = without_comments(line)
                for pattern, why, fine in BANNED_CALLS if any_of_them.search(code) else ():
                    if re.search(pattern, code) and not re.search(fine, name(path)):
                        self.note(path, number, f"{why}: {line.strip()}")

    def test_no_banned_words(self):
        any_of_them = re.compile("|".join(f"(?:{pattern.removeprefix('(?i)')})" for pattern, _ in BANNED_WORDS), re.I)
        for path, lines in project_texts():
            for number, line in enumerate(lines, 1):
                for pattern, why in BANNED_WORDS if any_of_them.search(line) else ():
                    if re.search(pattern, line) and "packaging-manuals/copyright-format" not in line:  # the name of a standard
                        self.note(path, number, f"{why}: {line.strip()[:100]}")

    def test_threads_and_operations_have_names(self):
        """Plain English: "which" for things; a thread, an operation or a caller instead of "who"."""
        words = re.compile(r"(?i)\b(whoever|whom|who|he|him|his)\b")
        people = re.compile(r"(?i)(users?|somebody|anybody) who\b|those who could|\bwho (may|mounts|mounted|text)\b|^\| who \||listens to whom")
        for path, lines in project_texts():
            if path.suffix not in CODE | {".md", ".py", ".1", ".8"}:
                continue
            for number, line in enumerate(lines, 1):
                # In Python only comments and texts: not names of variables.
                text = line if path.suffix != ".py" else "".join(re.findall(r'#.*$|"""[^"]*|"[^"]* [^"]*"', line))
                if words.search(people.sub("", text)):
                    self.note(path, number, f"who is that? {line.strip()[:100]}")

    def test_sleeping_has_a_reason(self):
        """A time that is long enough here is too short elsewhere: tests wait for what can be seen (tests/support/waiting.h)."""
        asleep = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|::sleep)\(")
        for path in files("tests"):
            if path.suffix in CODE and name(path) != "tests/support/waiting.h":
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    if asleep.search(without_comments(line)) and "//" not in line:
                        self.note(path, number, "sleeps: wait_until() something, or say why in the same line")
            elif path.suffix == ".py":
                self.look_for_fixed_sleeps(path)

    def look_for_fixed_sleeps(self, path):
        text = path.read_text()
        if "time.sleep" not in text:
            return
        lines = text.splitlines()
        tree = ast.parse(text)
        in_loops = {inside for loop in ast.walk(tree) if isinstance(loop, (ast.While, ast.For)) for inside in ast.walk(loop)}
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "time.sleep" and call not in in_loops \
                    and "#" not in lines[call.lineno - 1]:
                self.note(path, call.lineno, "sleeps: wait for something, or say why in the same line")

    def test_no_large_or_binary_files(self):
        for path in files("src", "tools", "tests", "bench", "docs", "cmake", "packaging"):
            if "images" in path.parts or "corpus" in path.parts:
                continue
            if path.stat().st_size > MAX_BYTES:
                self.note(path, 1, f"{path.stat().st_size} bytes")
            if path.suffix in TEXT and b"\0" in path.read_bytes():
                self.note(path, 1, "binary content")

    def test_lines_end_cleanly(self):
        for path, lines in project_texts():
            for number, line in enumerate(lines, 1):
                if line != line.rstrip():
                    self.note(path, number, "blanks at the end of the line")
                if "\t" in line and path.suffix in CODE | {".py"}:
                    self.note(path, number, "tab")
                if path.suffix in CODE and len(line) > MAX_COLUMNS:
                    self.note(path, number, f"{len(line)} columns")

    def test_scripts_are_executable(self):
        for path, lines in project_texts():
            if lines and lines[0].startswith("#!") and not os.access(path, os.X_OK):
                self.note(path, 1, "has #! but is not executable")


if __name__ == "__main__":
    unittest.main(verbosity=1)
