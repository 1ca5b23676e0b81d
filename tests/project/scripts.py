#!/usr/bin/env python3
"""Every shell script parses, and every Python file compiles. What the generator of systemd units makes."""

import os
import shutil
import subprocess
import tempfile
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


class Generator(unittest.TestCase):
    """What it writes for /etc/varve/NAME.conf, as systemd reads such files."""

    def written_for(self, conf):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "name.conf").write_text(conf)
            subprocess.run(["sh", ROOT / "packaging/varve-generator", f"{folder}/units"], check=True,
                           env=dict(os.environ, VARVE_CONF=folder))
            made = Path(folder) / "units/varve@name.service.d/50-storage.conf"
            return made.read_text().splitlines()[2:] if made.exists() else []

    def test_lines_are_read_as_systemd_reads_them(self):
        both = ['RequiresMountsFor="/srv/data.img" "/mnt/x"']
        for conf in ("IMAGE=/srv/data.img\nDIRECTORY=/mnt/x\n", "IMAGE=/srv/data.img\nDIRECTORY=/mnt/x", "IMAGE=/srv/data.img  \nDIRECTORY = /mnt/x",
                     "  IMAGE = '/srv/data.img'\n# DIRECTORY=/no\nDIRECTORY=\"/mnt/x\"\n"):
            self.assertEqual(self.written_for(conf), both, conf)
        self.assertEqual(self.written_for('IMAGE="/srv/my data.img"\n'), ['RequiresMountsFor="/srv/my data.img"'])
        self.assertEqual(self.written_for("OPTIONS=ro\n"), [])

    def test_devices_are_waited_for(self):
        if not shutil.which("systemd-escape") or os.path.exists("/run/systemd/container"):
            self.skipTest("no systemd-escape, or a container, where devices are not waited for")
        for image, unit in (("/dev/sdb1", "dev-sdb1"), ("UUID=0123-ab", "dev-disk-by\\x2duuid-0123\\x2dab"), ("LABEL=old", "dev-disk-by\\x2dlabel-old")):
            self.assertEqual(self.written_for(f"IMAGE={image}\n"), [f"Requires={unit}.device", f"After={unit}.device"])
        self.assertEqual(self.written_for("IMAGE=nbd://host/export\n"), ["Wants=network-online.target", "After=network-online.target"])


if __name__ == "__main__":
    unittest.main(verbosity=1)
