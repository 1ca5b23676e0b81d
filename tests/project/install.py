#!/usr/bin/env python3
"""Installs the build into an empty folder and looks for everything a distribution expects there; compares the options
that the tools name in --help with their man pages. Arguments: cmake, build folder."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CMAKE, BUILD = sys.argv[1], Path(sys.argv[2])
BIN = BUILD / "bin"
TOOLS = {"mkfs.varve": "mkfs.varve.8", "fsck.varve": "fsck.varve.8", "varve": "varve.1"}

INSTALLED = [
    "sbin/mkfs.varve", "sbin/fsck.varve", "sbin/mount.varve", "sbin/mount.fuse.varve", "sbin/umount.fuse.varve",
    "sbin/fsck.fuse.varve", "bin/varve",
    "share/man/man8/mkfs.varve.8", "share/man/man8/fsck.varve.8", "share/man/man8/mount.varve.8",
    "share/man/man1/varve.1",
    "lib/systemd/system/varve@.service",
    "lib/systemd/system-generators/varve-generator", "lib/udev/rules.d/61-varve.rules", "share/varve/magic", "share/varve/varve.json",
    "share/zsh/vendor-completions/_varve", "share/fish/vendor_completions.d/varve.fish", "include/varve/cleaner/registry.h",
    "share/bash-completion/completions/varve", "share/bash-completion/completions/mkfs.varve",
]


class Install(unittest.TestCase):
    def test_everything_is_installed(self):
        with tempfile.TemporaryDirectory() as destination:
            done = subprocess.run([CMAKE, "--install", BUILD, "--prefix", "/usr"], capture_output=True, text=True,
                                  env=dict(os.environ, DESTDIR=destination))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for name in INSTALLED:
                path = Path(destination) / "usr" / name
                self.assertTrue(path.exists(), f"{name} was not installed")
                if name.split("/")[0] in ("bin", "sbin"):
                    self.assertTrue(os.access(path, os.X_OK), f"{name} cannot be run")
                    self.assertNotIn(b".debug_info", path.read_bytes(), f"{name} is not stripped")

    def options_of(self, *words):
        done = subprocess.run([*words, "--help"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{words} --help: {done.stderr}")
        own, _, mount_options = done.stdout.partition("Options of a mount")
        options = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+|-[A-Za-z])(?![\w-])", own))
        return options - {"--help", "-h", "--version", "-V"}, re.findall(r"^  (\w+) ", mount_options, re.M)

    def test_man_pages_name_every_option(self):
        pages = {page: (ROOT / "docs/man" / page).read_text().replace("\\-", "-")
                 for page in [*TOOLS.values(), "mount.varve.8"]}
        for tool, page in TOOLS.items():
            calls = [[BIN / tool]]
            if tool == "varve":
                calls += [[BIN / tool, c] for c in ("mount", "umount", "status", "checkpoint", "trim", "clean", "dump", "salvage",
                                                       "probe", "label", "uuid", "metrics", "doctor", "report")]
            for call in calls:
                options, mount_options = self.options_of(*call)
                for option in sorted(options):
                    self.assertRegex(pages[page], re.escape(option) + r"(?![\w-])", f"{page} does not mention {option}")
                for option in mount_options:
                    self.assertRegex(pages["mount.varve.8"], rf"\b{option}\b", f"mount.varve.8 does not mention {option}")

    def test_versions_agree(self):
        version = re.search(r"project\(varve VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        for tool in TOOLS:
            done = subprocess.run([BIN / tool, "--version"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{tool} --version: {done.stderr}")
            self.assertIn(version, done.stdout)


if __name__ == "__main__":
    if not all((BIN / tool).exists() for tool in TOOLS):
        print("skipped: the tools are not built")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=1)
