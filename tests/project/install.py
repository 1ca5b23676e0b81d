#!/usr/bin/env python3
"""Installs the build into an empty folder and looks for everything a distribution expects there; compares the options
that the tools name in --help with their man pages. Arguments: cmake, build folder."""

import functools
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
    "lib/systemd/system/varve@.service", "lib/systemd/system/varve-metrics.service", "lib/systemd/system/varve-metrics.timer",
    *(f"lib/systemd/system/varve-{kind}@.{suffix}" for kind in ("scrub", "trim", "snapshot") for suffix in ("service", "timer")),
    "lib/systemd/system/varve-sleep.service", "lib/varve/varve-sleep", "lib/varve/varve-timed-snapshot", "share/varve/varve.rules.yml",
    "lib/systemd/system-generators/varve-generator", "lib/udev/rules.d/61-varve.rules", "share/varve/magic", "share/varve/varve.json",
    "share/zsh/vendor-completions/_varve", "share/fish/vendor_completions.d/varve.fish", "include/varve/cleaner/registry.h",
    "share/bash-completion/completions/varve", "share/bash-completion/completions/mkfs.varve",
]


COMPLETIONS = {shell: ROOT / "packaging" / f"varve.{shell}-completion" for shell in ("bash", "zsh", "fish")}


@functools.cache
def help_of(tool, *words):
    done = subprocess.run([BIN / tool, *words, "--help"], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{tool} {words} --help: {done.stderr}")
    return done.stdout


def options_of(tool, *words):
    own = help_of(tool, *words).partition("Options of a mount")[0]
    lines = re.findall(r"^ +(-[^ ]+)", own, re.M)
    return {option for line in lines for option in line.split(",")} - {"--help", "-h", "--version", "-V"}


def commands():
    """All of varve's, as ("status",) or ("snapshot", "list")."""
    found = []
    for command in subcommands_of():
        inner = subcommands_of(command)
        found += [(command, one) for one in inner] or [(command,)]
    return found


def subcommands_of(*words):
    return re.findall(r"^  (\w+) ", help_of("varve", *words).partition("Subcommands:")[2], re.M)


def names(text, option):
    return re.search(r"(?<![\w-])" + re.escape(option) + r"(?![\w-])", text)


def sections_of(page, command):
    """What stands of a command in the synopsis, and below its name."""
    synopsis, _, rest = page.partition(".SH DESCRIPTION")
    usages = [usage for usage in synopsis.split("\n.br\n") if f"varve {' '.join(command)}" in usage]
    top = {word for one in commands() for word in one[:1]}
    parts = re.split(r"^\.TP\n\.BR? (.*)$", rest.partition(".SH PERMISSIONS")[0], flags=re.M)
    text, mine = "", False
    for heading, part in zip(parts[1::2], parts[2::2]):
        told = set(re.findall(r"\w+", heading))
        if told <= top:
            mine = command[0] in told or command[-1] in told
        text += part if mine else ""
    return "\n".join(usages) + text


def by_bash(tool, command, word="-", environment=None):
    """What is completed after these words, of which the last one may be empty: then it is the one that is completed."""
    words = [tool, *command, word] if not command or command[-1] else [tool, *command]
    function = {"varve": "_varve", "mkfs.varve": "_mkfs_varve", "fsck.varve": "_fsck_varve"}[tool]
    script = (f'source "{COMPLETIONS["bash"]}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); {function}; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True, cwd="/", env=environment)
    return set(done.stdout.split("\n")) - {""}


def by_zsh(tool, command):
    text = COMPLETIONS["zsh"].read_text()
    if tool != "varve":
        return set(re.search(rf"{tool}\)\n +_arguments '\*'{{(.*?)}}", text)[1].split(","))
    if not command[-1]:
        listed = re.findall(r"^    '(\w+):", text, re.M) if len(command) == 1 else re.search(r"compadd (create .*)", text)[1].split()
        return set(listed)
    indent = " " * (4 if len(command) == 1 else 8)
    for cases, options in re.findall(rf"^{indent}([\w |]+)\) options=\((.*?)\)", text, re.M):
        if command[-1] in cases.split(" | "):
            return set(options.split())
    return set()


def by_fish(tool, command):
    found = set()
    for line in COMPLETIONS["fish"].read_text().splitlines():
        if not line.startswith(f"complete -c {tool} "):
            continue
        condition = re.search(r"-n '([^']*)'", line)
        needed = re.findall(r"(?<!not )__fish_seen_subcommand_from ([\w ]+)", condition[1]) if condition else []
        if all(set(words.split()) & set(command) for words in needed):
            rest = line.replace(condition[0], "") if condition else line
            found |= {f"--{name}" for name in re.findall(r" -l ([\w-]+)", rest)} | {f"-{name}" for name in re.findall(r" -s (\w)", rest)}
            found |= set(" ".join(re.findall(r" -a '?([\w ]+)", rest)).split())
    return found


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
            self.check_headers(Path(destination) / "usr")

    def check_headers(self, top):
        """A policy is built elsewhere, with no other headers than these."""
        example, = top.glob("share/doc/varve*/examples/patient.cc")
        done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", f"-I{top}/include/varve", example], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_man_pages_name_every_option(self):
        pages = {page: (ROOT / "docs/man" / page).read_text().replace("\\-", "-") for page in [*TOOLS.values(), "mount.varve.8"]}
        for tool, page in TOOLS.items():
            for option in sorted(options_of(tool) | {"-h", "--help", "-V", "--version"}):
                self.assertTrue(names(pages[page], option), f"{page} does not mention {option}")
        for command in commands():
            text = sections_of(pages["varve.1"], command)
            for option in sorted(options_of("varve", *command)):
                self.assertTrue(names(text, option), f"varve.1 does not mention {option} where it tells of {' '.join(command)}")
        for option in re.findall(r"^  (\w+) ", help_of("varve", "mount").partition("Options of a mount")[2], re.M):
            self.assertRegex(pages["mount.varve.8"], rf"\b{option}\b", f"mount.varve.8 does not mention {option}")

    def test_completions_know_every_option(self):
        for shell, completed in (("bash", by_bash), ("zsh", by_zsh), ("fish", by_fish)):
            for tool, *command in [("mkfs.varve",), ("fsck.varve",), *(("varve", *command) for command in commands())]:
                lacking = options_of(tool, *command) - completed(tool, command)
                self.assertFalse(lacking, f"{shell} completes no {lacking} after {' '.join((tool, *command))}")
            for command in commands():
                self.assertIn(command[-1], completed("varve", [*command[:-1], ""]), f"{shell} does not know {' '.join(command)}")

    def test_the_last_of_several_mount_options_is_completed(self):
        self.assertEqual(by_bash("varve", ["mount", "a.img", "d", "-o"], "ro,noa"), {"ro,noatime", "ro,noallow_other"})
        known = by_bash("varve", ["mount", "a.img", "d", "-o"], "")
        listed = re.findall(r"^  (\w+) ", help_of("varve", "mount").partition("Options of a mount")[2], re.M)
        self.assertFalse(set(listed) - {option.partition("=")[0] for option in known})

    def test_no_name_of_a_mount_point_is_carried_out(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = Path(folder) / "mark"
            place = f"/tmp/$(touch${{IFS}}{mark})\\040with a blank"
            awk = Path(folder) / "awk"
            awk.write_text(f"#!/bin/sh\ncat <<'END'\n{place}\nEND\n")
            awk.chmod(0o755)
            found = by_bash("varve", ["umount", ""], environment=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"))
            self.assertEqual(found, {place.replace("\\040", " ")})
            self.assertFalse(mark.exists(), "a name was carried out as a command")

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
