"""xfstests on Varve without a change to it: a local.config, and `mount`, `umount` and `df` in front of the system's.
It needs them because it takes every FUSE filesystem for one without devices, and for mounted by the system."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from harness import BIN, ROOT, Image, command

MOUNT = """#!/bin/bash
# mount(8), with `-t fuse.varve` served by the helper that an installation puts in /sbin.
arguments=("$@") types= options=() places=()
while (($#)); do
  case $1 in
    -t) types=$2; shift ;;
    -o) options+=(-o "$2"); shift ;;
    -o*) options+=(-o "${1#-o}") ;;
    *) places+=("$1") ;;
  esac
  shift
done
if [[ $types == fuse.varve ]]; then PATH=%(bin)s:$PATH exec %(helper)s "${places[@]}" "${options[@]}"; fi
exec %(real)s "${arguments[@]}"
"""

UMOUNT = """#!/bin/bash
# umount(8) that returns when the images are free, as the installed umount.fuse.varve does.
%(real)s "$@"
status=$?
for image in %(images)s; do
  grep -q "^$image " /proc/self/mounts || timeout 60 flock -x "$image" true
done
exit $status
"""

DF = """#!/bin/bash
%(real)s "$@" | sed 's/ fuse\\.varve / fuse       /'
"""


@dataclass
class Configuration:
    environment: dict
    excluded: Path


def script(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def configure(run):
    tools = run.image.folder / "bin"
    tools.mkdir()
    scratch = Image()
    scratch.folder.chmod(0o755)
    scratch.mkfs("8G")
    real = {name: command("sh", "-c", f"command -v {name}").stdout.strip() for name in ("mount", "umount", "df")}
    # The helper looks for `varve` beside itself first.
    helper = tools / "mount.varve"
    helper.symlink_to(ROOT / "packaging/mount.varve")
    script(tools / "mount", MOUNT % {"real": real["mount"], "bin": BIN, "helper": helper})
    script(tools / "umount", UMOUNT % {"real": real["umount"], "images": f"{run.image.path} {scratch.path}"})
    script(tools / "df", DF % {"real": real["df"]})
    mount_options = ",".join(o for o in ("allow_other", os.environ.get("VARVE_MOUNT_OPTIONS", "")) if o)
    options = run.image.folder / "local.config"
    options.write_text(f"""export TEST_DEV={run.image.path}
export TEST_DIR={run.image.dir}
export SCRATCH_DEV={scratch.path}
export SCRATCH_MNT={scratch.dir}
export FSTYP=fuse
export FUSE_SUBTYP=.varve
export MOUNT_OPTIONS=-o{mount_options}
export TEST_FS_MOUNT_OPTS=-o{mount_options}
""")
    excluded = run.image.folder / "excluded"
    excluded.write_text("".join(f"{name}\n" for name in excluded_tests()))
    # Tests lower limits and raise them again, which a root without CAP_SYS_RESOURCE may do to soft ones only.
    soft = {"BASH_FUNC_ulimit%%": '() { builtin ulimit -S "$@"; }'}
    environment = os.environ | soft | {"HOST_OPTIONS": str(options), "PATH": f"{tools}:{BIN}:{os.environ['PATH']}"}
    return Configuration(environment, excluded)


def excluded_tests():
    """Those of expected.md that must not even run: `- xfstests!: generic/NNN: reason`."""
    text = (Path(__file__).parent / "expected.md").read_text()
    return re.findall(r"^- `xfstests!: ([^`]+)`", text, re.M)


def results_of(folder):
    """From what ./check leaves in results/: the last run's lists."""
    log = (folder / "results/check.log").read_text()
    last = log[log.rindex("\nRan:"):] if "\nRan:" in log else log
    def names(word):
        found = re.search(rf"^{word}: (.*)$", last, re.M)
        return set(found[1].split()) if found else set()
    results = {name: "passed" for name in names("Ran")}
    results |= {name: "failed" for name in names("Failures")}
    results |= {name: "skipped" for name in names("Not run")}
    return results
