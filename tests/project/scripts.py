#!/usr/bin/env python3
"""Every shell script parses, and every Python file compiles."""

import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["packaging", ".ci", "tests", "bench", "tools", "docs"]


def scripts():
    candidates = [p for p in ROOT.iterdir() if p.is_file()]
    for folder in FOLDERS:
        candidates += [p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    for path in sorted(candidates):
        with path.open("rb") as file:
            first = file.readline(80).decode("utf-8", "replace")
        if first.startswith("#!") or path.suffix in (".py", ".sh"):
            yield path, first


class Scripts(unittest.TestCase):
    def test_shell_scripts_parse(self):
        for path, first in scripts():
            if first.startswith("#!") and first.split("/")[-1].split()[-1].endswith("sh"):
                done = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_python_files_compile(self):
        for path, first in scripts():
            if "python" in first or path.suffix == ".py":
                compile(path.read_text(), str(path), "exec")


if __name__ == "__main__":
    unittest.main(verbosity=1)
