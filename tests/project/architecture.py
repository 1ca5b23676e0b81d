#!/usr/bin/env python3
"""Reads the classes of src/ and fails on those that know too much: more than 30 public functions besides constructors, more than 20
members, a friend that is not allowed. Structs that only hold data may be as long as what they describe. Devices stay small, what was taken
apart stays so, an edit of a header compiles little again, and the project has what others look for."""

import re
import unittest
from pathlib import Path

from compile_units import Build

ROOT = Path(__file__).resolve().parents[2]
MOST_FUNCTIONS = 30
MOST_MEMBERS = 20
LEAST_INVARIANTS = 250
MOST_DEVICE_LINES, MOST_ROOM_LINES = 400, 40
GONE = r"\b(?:IoQueue|ServingScope|make_queue|merge_failed|lookup_handle|Resumption|CreationRoom|FirstException)\b"

# Facades that only forward, as what a mount can do is as many things as POSIX has, or that only put parts together.
FACADES = {"fs/filesystem.h": {"Filesystem"}, "store/store.h": {"Store"}, "jobs/jobs.h": {"Jobs"}}

# How many parts a class is given to use (its struct Parts), at most. Those that more are given to; these figures may shrink, but not grow.
MOST_PARTS = 7
MANY_PARTS = {
    "CheckpointParts": 22,     # it is where all parts of a store come together
    "SpaceParts": 9,           # what its rules look at (admission.h)
    "Protection::Parts": 8,
    "Reshaping::Parts": 9,
}
# How many lines keep a handle to a whole store, engine or filesystem, room by room. A class is given the parts that it uses.
HANDLE = re.compile(r"^\s+(?:const )?(?:\w+::)*(?:Store|Engine|Filesystem)& \w+_;", re.M)
HANDLES = {"cleaner": 4, "fuse": 5, "operation": 1, "scrub": 2}

# Which class lets which other one see inside it (docs/design.md, "Friends").
FRIENDS = {("base/mutex.h", "Mutex", "Lock"), ("base/mutex.h", "Lock", "Condition"),
           ("fuse/transport/buffer_pool.h", "Lease", "BufferPool")}

# How many compile units of a joined build, and how many sources, read a header of these rooms (compile_units.py), at most.
MOST_UNITS, MOST_SOURCES = 15, 60
ENGINE = ("tree", "snapshots", "changes", "space", "checkpoint", "store")
# Headers that more read, with the reason. These figures may shrink, but not grow. (A room that is divided adds a unit, with fewer sources.)
WIDELY_READ = {
    "snapshots/protection_settings.h": (54, 203),  # it is a mount option, so that fs/options.h has it by value
    "snapshots/snapshot_change.h": (32, 87),       # it is what tools and tests ask the filesystem for
    "snapshots/snapshots.h": (19, 50),
    "store/options.h": (31, 120),                  # a Store has it by value
    "store/store.h": (31, 120),                    # tests of the engine look into the store
    "tree/tree_view.h": (35, 105),                 # tests read the trees, and move blocks in them
    "tree/trees.h": (31, 80),
    "tree/node_cache.h": (45, 171),                # tools, repair and scrub read trees, too
    "tree/item_tree.h": (43, 151),
    "tree/map_tree.h": (42, 132),
    "tree/block_map.h": (23, 80),
    "tree/range_map.h": (21, 75),
    "checkpoint/checkpoints.h": (20, 45),          # tests without threads make checkpoints when they want one
    "changes/layers.h": (18, 60),                  # what an operation waits with has it by value (operation/wait.h)
    "changes/delta.h": (21, 75),                   # an Inode is guarded by its own lock, and so are its deltas: inode.h shows them
    "changes/inode.h": (20, 63),
}

ANNOTATION = re.compile(r"\b(GUARDED_BY|PT_GUARDED_BY|REQUIRES|REQUIRES_SHARED|EXCLUDES|ACQUIRE|ACQUIRE_SHARED|RELEASE|RELEASE_SHARED|"
                        r"RELEASE_GENERIC|TRY_ACQUIRE|TRY_ACQUIRE_SHARED|RETURN_CAPABILITY|ASSERT_CAPABILITY|ASSERT_SHARED_CAPABILITY|"
                        r"CAPABILITY|alignas)\s*\([^()]*(\([^()]*\)[^()]*)*\)")
OTHER = re.compile(r"^(using|typedef|friend|enum|static_assert|template\s*<[^>]*>\s*(friend|using))\b")


def bare(text):
    """Without comments, strings and annotations."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', '""', text)
    text = re.sub(r"^\s*#[^\n]*(\\\n[^\n]*)*", "", text, flags=re.M)
    return ANNOTATION.sub("", text)


def without_templates(text):
    previous = None
    while previous != text:
        previous, text = text, re.sub(r"<[^<>;{}]*>", "", text)
    return text


def end_of_block(text, start):
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def statements(body):
    """(text before its braces, what is in the braces or None) of each declaration at the top of a class."""
    start = at = 0
    parentheses = 0
    inside = None
    while at < len(body):
        char = body[at]
        parentheses += {"(": 1, ")": -1}.get(char, 0)
        if char == "{" and parentheses == 0:
            end = end_of_block(body, at)
            inside = body[at + 1:end]
            text = body[start:at]
            rest = re.match(r"\s*([\w\s,={}]*;)?", body[end + 1:])
            is_function = "(" in without_templates(text) and "=" not in without_templates(text).split("(")[0]
            yield text.strip(), inside
            at = end + 1 + (0 if is_function else rest.end())
            start = at
            continue
        if char == ";" and parentheses == 0:
            yield body[start:at].strip(), None
            start = at + 1
        at += 1


class Class:
    def __init__(self, name, kind, body):
        self.name, self.kind, self.functions, self.members, self.friends, self.inner = name, kind, 0, 0, [], []
        self.acts = kind == "class"  # or has functions that do more than to compare all members
        access = "public" if kind == "struct" else "private"
        for text, inside in statements(body):
            while match := re.match(r"(public|protected|private)\s*:\s*", text):
                access, text = match[1], text[match.end():]
            if not text:
                continue
            if inside is not None and (match := re.match(r"(template\s*<[^>]*>\s*)?(class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w+\s+)?(\w+)", text)) and "(" not in text:
                self.inner.append(Class(match[4], match[2], inside))
                continue
            if match := re.match(r"friend\s+(?:class|struct)?\s*([\w:]+)", text):
                self.friends.append(match[1])
            if OTHER.match(text) or re.match(r"(class|struct)\s+\w+$", text):
                continue
            plain = without_templates(text)
            head = re.split(r"=|\{", plain)[0]
            if "(" in head or "operator" in head:
                constructs = re.match(rf"(explicit\s+)?~?{name}\s*\(", head)
                self.functions += access == "public" and "= delete" not in plain and not constructs
                self.acts |= not constructs and not re.search(r"=\s*(delete|default)$", plain)
            elif not re.match(r"(inline\s+)?static\s+constexpr|constexpr|static\s", plain):
                self.members += 1 + without_templates(text).count(",")

    def all(self):
        yield self
        for inner in self.inner:
            yield from inner.all()


def classes(path):
    text = bare(path.read_text())
    for match in re.finditer(r"^(?:template\s*<[^\n]*>\s*)?(class|struct)\s+(?:SCOPED_CAPABILITY\s+)?(\w+)\s*(?:final\s*)?(?::[^;{]*)?\{", text, flags=re.M):
        body = text[match.end():end_of_block(text, match.end() - 1)]
        yield from Class(match[2], match[1], body).all()


class Architecture(unittest.TestCase):
    def setUp(self):
        self.findings = []

    def tearDown(self):
        if self.findings:
            self.fail("\n" + "\n".join(self.findings))

    def headers(self):
        for path in sorted((ROOT / "src").rglob("*.h")):
            yield path, path.relative_to(ROOT / "src").as_posix()

    def test_no_class_knows_everything(self):
        seen = 0
        for path, name in self.headers():
            for found in classes(path):
                seen += 1
                if found.name in FACADES.get(name, ()):
                    continue
                if found.functions > MOST_FUNCTIONS:
                    self.findings.append(f"{name}: {found.name} has {found.functions} public functions: it is more than one thing")
                if found.members > MOST_MEMBERS and found.acts:
                    self.findings.append(f"{name}: {found.name} has {found.members} members: it is more than one thing")
        self.assertGreater(seen, 300)  # or this test has forgotten how to read

    def test_invariants_are_written_down(self):
        sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".h", ".cc") and path.stem != "invariant"]
        found = sum(len(re.findall(r"\bINVARIANT\(|\bMEMORY_INVARIANT\(", path.read_text())) for path in sources)
        self.assertGreaterEqual(found, LEAST_INVARIANTS)
        for path in sources:
            if re.search(r"(?<![\w.])assert\(", path.read_text()):
                self.findings.append(f"{path.relative_to(ROOT)}: INVARIANT instead of assert, which release builds leave out")

    def test_classes_are_given_parts(self):
        seen = set()
        for path, name in self.headers():
            text = bare(path.read_text())
            for match in re.finditer(r"(?:class|struct) (\w+)[^;{]*\{(?:(?!\n\}).)*?struct Parts \{(.*?)\};|struct (\w+Parts) \{(.*?)\n\};", text, re.S):
                of, body = (f"{match[1]}::Parts", match[2]) if match[1] else (match[3], match[4])
                seen.add(of)
                parts = len(re.findall(r"^[^()\n]*& ?\w+;", body, re.M))
                most = MANY_PARTS.get(of, MOST_PARTS)
                if parts > most:
                    self.findings.append(f"{name}: {of} has {parts} parts, {most} are enough: it is for more than one thing")
                if of in MANY_PARTS and parts < most:
                    self.findings.append(f"{name}: {of} has {parts} parts: MANY_PARTS can be less")
        self.assertLessEqual(set(MANY_PARTS), seen)

    def test_nothing_keeps_a_handle_to_everything(self):
        kept = {}
        for path in (ROOT / "src").rglob("*.h"):
            room = path.relative_to(ROOT / "src").parts[0]
            kept[room] = kept.get(room, 0) + len(HANDLE.findall(path.read_text()))
        self.assertEqual({room: count for room, count in kept.items() if count}, HANDLES, "fewer is fine: then lower the figure")

    def test_friends_are_few(self):
        seen = set()
        for path, name in self.headers():
            for found in classes(path):
                for friend in found.friends:
                    if friend in ("void", "bool", "auto"):  # a function, defined where it is declared
                        continue
                    seen.add((name, found.name, friend))
                    if (name, found.name, friend) not in FRIENDS:
                        self.findings.append(f"{name}: {found.name} has the friend {friend}: make it a nested class, or give it functions")
        self.assertEqual(FRIENDS - seen, set(), "there are none such any more")

    def test_a_device_is_a_small_client_of_the_reactor(self):
        """With its header: that it waits, tries again and is found by its name stands in files of its own."""
        for device in ("io/file_device", "remote/nbd_device", "remote/rbd_device", "io/mem_device"):
            lines = sum(len((ROOT / f"src/{device}{suffix}").read_text().splitlines()) for suffix in (".h", ".cc"))
            if lines >= MOST_DEVICE_LINES:
                self.findings.append(f"src/{device}: {lines} lines: take apart what is not requests and answers")

    def test_what_has_gone_stays_away(self):
        """Names of what was taken apart: IoQueue was reactor and device at once, ServingScope a thread's hidden state."""
        for path in [path for folder in ("src", "tools") for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cc")]:
            for name in re.findall(GONE, bare(path.read_text())):
                self.findings.append(f"{path.relative_to(ROOT)}: {name} has gone on purpose (docs/design.md)")

    def test_an_edit_of_the_store_compiles_little_again(self):
        build = Build()
        self.assertGreater(len(build.units), 100)  # or this test has forgotten how to read
        seen = set()
        for header in (header for room in ENGINE for header in (ROOT / "src" / room).rglob("*.h")):
            name = header.relative_to(ROOT / "src").as_posix()
            units, sources = len(build.reach[header]), build.sources[header]
            most_units, most_sources = WIDELY_READ.get(name, (MOST_UNITS, MOST_SOURCES))
            seen.add(name)
            if units > most_units or sources > most_sources:
                self.findings.append(f"{name}: {units} units and {sources} sources read it, more than {most_units} and {most_sources}: "
                                     "declare its classes where a reference is all that is needed")
            if name in WIDELY_READ and units <= MOST_UNITS and sources <= MOST_SOURCES:
                self.findings.append(f"{name}: few read it now, so it needs no exception")
        self.assertEqual(set(WIDELY_READ) - seen, set(), "there are none such any more")
        widest = sorted(seen, key=lambda name: -len(build.reach[ROOT / "src" / name]))[:5]
        print("read most:", ", ".join(f"{name} {len(build.reach[ROOT / 'src' / name])}" for name in widest))

    def test_a_project_has_what_others_look_for(self):
        for file, most in (("README.md", 120), ("LICENSE", None), ("CONTRIBUTING.md", None), ("CHANGELOG.md", None), ("SECURITY.md", None)):
            lines = len((ROOT / file).read_text().splitlines())
            self.assertGreater(lines, 10, file)
            if most and lines >= most:
                self.findings.append(f"{file}: {lines} lines, {most} are too many")
        for readme in [*(ROOT / "src").rglob("README.md")]:
            if len(readme.read_text().splitlines()) >= MOST_ROOM_LINES:
                self.findings.append(f"{readme.relative_to(ROOT)}: what a room is for takes fewer than {MOST_ROOM_LINES} lines")


if __name__ == "__main__":
    unittest.main(verbosity=1)
