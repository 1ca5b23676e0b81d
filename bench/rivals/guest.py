#!/usr/bin/env python3
"""Runs inside the guest: one workload on one filesystem on one modelled device. The first argument is a file with the options; the
figures go to the second."""

import contextlib
import errno
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "devices"), str(HERE.parent / "common")]

MODULES = "loop fuse f2fs nilfs2".split()


def prepare():
    """The guest's root is the machine's, and nothing is written there."""
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/dev/shm")):
        os.makedirs(where, exist_ok=True)
        subprocess.run(["mount", "-t", kind, "-o", "size=90%" if kind == "tmpfs" else "rw", kind, where], check=True)
    place = Path("/run/modules/lib")
    place.mkdir(parents=True)
    (place / "modules").symlink_to("/usr/lib/uml/modules")
    for module in MODULES:
        subprocess.run(["modprobe", "-d", place.parent, module], check=True)


def settled(run, device):
    """The counters, after what a sync writes."""
    run.sync()
    return device.counters(), time.monotonic()


def measure(device, work, run):
    """{row: figures}. What was put off belongs to the row: a sync is part of each."""
    import report

    rows = {}
    before, begin = settled(run, device)
    for part in work:
        after, end = settled(run, device)
        waits = run.take_waits()
        if part is not None:
            row, operations = part
            rows[row] = {**report.figures(before, after, operations), "passed_seconds": end - begin, "waits": waits}
        before, begin = settled(run, device)
    return rows


def check(filesystem, device):
    """Figures of a filesystem that does without what it is measured with would be those of another."""
    if hasattr(filesystem, "cleaner_runs") and not filesystem.cleaner_runs():
        raise RuntimeError("its cleaner does not run")
    counters = device.counters()
    if not counters["flush"]["requests"]:
        raise RuntimeError("no flush has reached the device")
    if bool(counters["discard"]["requests"]) != filesystem.discard:
        raise RuntimeError(f"{counters['discard']['requests']} discards have reached the device, and it was {filesystem.name} "
                           f"{'with' if filesystem.discard else 'without'} discard")


def work(options):
    import rivals
    import stage
    import workloads

    # In lots with an fdatasync after each, as programs do that want to keep what they write.
    overwrites = {"zipf70": workloads.zipf(0.7, lot=16), "uniform70": workloads.uniform(0.7, lot=16)}
    size = options.size * stage.MIB
    with contextlib.ExitStack() as stack, stage.SmallMachine(options.dirty):
        folder = Path("/run/work")
        folder.mkdir()
        filesystem = rivals.filesystem(options.filesystem, folder, options.model, options)
        device = stage.Device(Path(options.varve_bin) / "bench_device", folder, options.model, size, 1)
        stack.callback(device.end)
        stack.callback(filesystem.unmount)
        filesystem.make(device)
        filesystem.mount()
        run = workloads.Run(filesystem, device, size, options)
        rows = measure(device, {**workloads.WORKLOADS, **overwrites}[options.workload](run), run)
        check(filesystem, device)
        return rows


def main(options, result):
    prepare()
    options = SimpleNamespace(**json.loads(Path(options).read_text()))
    import stage
    began = time.monotonic()
    out = {"kernel": platform.release()}
    try:
        out["rows"] = work(options)
    except stage.Missing as why:
        out["missing"] = str(why)
    except Exception as error:
        traceback.print_exc()
        if getattr(error, "errno", None) == errno.ENOSPC:  # a cleaner that is slower than its users
            out["missing"] = "it ran out of room, though its files had not grown"
        else:
            out["failed"] = str(error)
    out["guest_seconds"] = time.monotonic() - began
    subprocess.run(["mount", "-t", "hostfs", "-o", str(Path(result).parent), "none", "/mnt"], check=True)
    Path("/mnt", Path(result).name).write_text(json.dumps(out, indent=1) + "\n")
    Path("/proc/sysrq-trigger").write_text("o")
    time.sleep(100)


if __name__ == "__main__":
    main(*sys.argv[1:])
