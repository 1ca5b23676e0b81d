"""The first process of a guest: makes a system of what the initial RAM disk has, runs the checks, tells their results, and powers off.

Each result is a line that begins with MARK, on the console. `tests/machines/run` reads them there."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARK = "@guest "
SCRATCH = "/var/tmp"
PATIENCE = 3600  # seconds for one check: more than any takes that does not hang, on a busy machine without KVM

MODULES = "virtio_pci virtio_mmio virtio_blk virtio_rng crc32c_generic ext4 fuse loop overlay tun".split()
PASSED, FAILED, NOT_POSSIBLE = "passed", "failed", "not possible"


def tell(**what):
    print("\n" + MARK + json.dumps(what), flush=True)


def start_system():
    def mount(kind, place, *options):
        Path(place).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-n", "-t", kind, *options, kind, place], check=True)

    mount("proc", "/proc")
    mount("sysfs", "/sys")
    mount("devtmpfs", "/dev")
    console = os.open("/dev/console", os.O_RDWR)
    for number in range(3):
        os.dup2(console, number)
    mount("devpts", "/dev/pts")
    for place in ("/dev/shm", "/run", "/tmp"):
        mount("tmpfs", place)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        if not os.path.lexists(f"/dev/{name}"):
            os.symlink(target, f"/dev/{name}")
    for module in MODULES:
        subprocess.run(["modprobe", "-q", module])
    Path("/proc/sys/kernel/printk").write_text("1")
    end = time.monotonic() + 60
    while not os.path.exists("/dev/vda") and time.monotonic() < end:
        time.sleep(0.1)  # the device comes when the kernel has found it
    subprocess.run(["mount", "-t", "ext4", "/dev/vda", SCRATCH], check=True)
    for place in ("/tmp", "/dev/shm", SCRATCH):
        os.chmod(place, 0o1777)
    os.chmod("/dev/fuse", 0o666)  # as udev does
    Path("/proc/sys/kernel/hostname").write_text("guest")
    subprocess.run(["mount", "--make-shared", "/"], check=True)  # as systemd does


def power_off():
    os.sync()
    Path("/proc/sysrq-trigger").write_text("o")
    time.sleep(60)  # the kernel takes its time


def result_of(tests):
    """(result, reason) of a suite; runs in a process of its own."""
    import unittest
    found = unittest.TestResult()
    tests.run(found)
    if not found.wasSuccessful():
        return FAILED, "\n".join(f"{test.id()}: {text[-1500:]}" for test, text in found.errors + found.failures)
    reasons = sorted({reason for _, reason in found.skipped})
    if not found.testsRun:
        return FAILED, "there is no such test"
    if found.testsRun == len(found.skipped):
        return NOT_POSSIBLE, "; ".join(reasons)
    return PASSED, "without " + "; ".join(reasons) if reasons else ""


def in_a_process(work):
    """What work() returns, from a child that is killed after PATIENCE; whatever it leaves mounted is taken away."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            os.setsid()
            os.write(writer, json.dumps(work()).encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writer)
    text = b""
    while select.select([reader], [], [], PATIENCE)[0] and (piece := os.read(reader, 65536)):
        text += piece
    os.close(reader)
    if not text:
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return json.loads(text) if text else (FAILED, f"it gave no result within {PATIENCE} s")


def run_checks(checks):
    sys.path[0:0] = [str(HERE), str(HERE.parent / "mount")]
    os.environ.update(VARVE_BIN="/srv/varve/bin", VARVE_TEST_DIR=SCRATCH, VARVE_TEST_HANG="3000", VARVE_GUEST="1", HOME="/root")
    import unittest

    import harness
    harness.main = lambda *_: None  # some files of tests call it when they are imported

    def one(names):
        tests = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromName(name) for name in names)
        try:
            return result_of(tests)
        finally:
            harness.clean_up_all()

    for name, *tests in checks:
        began = time.monotonic()
        result, reason = in_a_process(lambda: one(tests))
        tell(check=name, result=result, reason=reason, seconds=round(time.monotonic() - began))


def messages_of_the_kernel():
    """Those that a kernel writes when something is wrong with it, or with what we made it do."""
    said = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace").stdout
    return [line for line in said.splitlines() if re.search(r"BUG|WARNING:|Oops|hung task|blocked for more", line)]


def main():
    start_system()
    sys.path.insert(0, str(HERE))
    from checks import CHECKS
    only = re.findall(r"varve.only=(\S+)", Path("/proc/cmdline").read_text())
    chosen = [check for check in CHECKS if not only or any(word in " ".join(check) for word in only[0].split(","))]
    tell(up=os.uname().release, architecture=os.uname().machine, page=os.sysconf("SC_PAGESIZE"), checks=len(chosen))
    run_checks(chosen)
    tell(end=True, kernel_messages=messages_of_the_kernel())


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
    finally:
        power_off()
