#!/usr/bin/env python3
"""Which headers each compile unit of a joined build reads (cmake/rooms.cmake), by the source lists of CMakeLists.txt and the #include lines.
Called by itself it prints for each header of src/ how many units, and how many sources, are compiled again after an edit of it."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [ROOT / name for name in ("src", "tools", "tests", "bench")]
MORE_FOLDERS = [ROOT / name for name in ("tests/crash", "bench/engine")]  # that target_include_directories names besides
ROOM_BATCH, OTHER_BATCH = 20, 12  # a tool is joined as a room is
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
LIST = re.compile(r"\b(varve_library|varve_test|varve_fuzz_targets|add_library|add_executable|target_sources)\s*\(([^()]*)\)")


def included(path):
    """Headers of the project that the file names by itself."""
    found = set()
    for name in INCLUDE.findall(path.read_text()):
        for folder in (path.parent, *FOLDERS, *MORE_FOLDERS):
            if (folder / name).exists():
                found.add((folder / name).resolve())
                break
    return found


def units_of(cmake_lists):
    """(name, sources) of each unit that the file describes."""
    text = re.sub(r"#[^\n]*", "", cmake_lists.read_text())
    joined = set(re.findall(r"\bvarve_join\((\w+)\)", text))
    tools = set(re.findall(r"\bvarve_join_tool\((\w+)\)", text))
    apart = {source for names in re.findall(r"set_source_files_properties\(([^()]*) PROPERTIES SKIP_UNITY", text) for source in names.split()}
    batches, sources = {}, defaultdict(list)
    for command, arguments in LIST.findall(text):
        target, *others = arguments.split()
        if command == "varve_library":
            target = "varve_" + target
        is_joined = command == "varve_test" or target in joined
        batches.setdefault(target, ROOM_BATCH if command == "varve_library" or target in tools else OTHER_BATCH if is_joined else 1)
        sources[target] += [name for name in others if name.endswith(".cc")]
    for target, names in sources.items():
        together = [name for name in names if name not in apart]
        batch = batches[target]
        for number, first in enumerate(range(0, len(together), batch)):
            yield f"{target}_{number}", [(cmake_lists.parent / name).resolve() for name in together[first:first + batch]]
        yield from ((f"{target}_{name}", [(cmake_lists.parent / name).resolve()]) for name in names if name in apart)


class Build:
    """reach[header]: names of the units that read it; sources[header]: how many sources do."""

    def __init__(self):
        self.units = [unit for folder in FOLDERS for path in sorted(folder.rglob("CMakeLists.txt")) for unit in units_of(path)]
        self.direct = {path: included(path) for folder in FOLDERS for path in folder.rglob("*") if path.suffix in (".h", ".cc")}
        self.reach, self.sources = defaultdict(set), defaultdict(int)
        reads = {path: self.all_of(path) for path in self.direct if path.suffix == ".cc"}
        for headers in reads.values():
            for header in headers:
                self.sources[header] += 1
        for name, sources in self.units:
            for header in set().union(*(reads[source] for source in sources)):
                self.reach[header].add(name)

    def all_of(self, path):
        seen, waiting = set(), [path]
        while waiting:
            new = self.direct.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        return seen


def main():
    build = Build()
    print(f"{len(build.units)} units, {sum(path.suffix == '.cc' for path in build.direct)} sources")
    for header in sorted(build.reach, key=lambda header: (-len(build.reach[header]), -build.sources[header], header)):
        if header.is_relative_to(ROOT / "src"):
            print(f"{len(build.reach[header]):4} units {build.sources[header]:4} sources  {header.relative_to(ROOT / 'src')}")


if __name__ == "__main__":
    main()
