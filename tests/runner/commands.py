"""Commands of a test run: each in a process group of its own, so that all of it can be ended, also by the run that follows a killed one."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from stamps import ROOT, write_whole

LOGS = ROOT / "build/test-logs"
RUNNING = LOGS / "running"

_groups = {}  # process group -> time at which its first process began
_lock = threading.Lock()
_ended = threading.Event()  # no command begins any more


class Ended(Exception):
    """The run has been told to end."""


def _state(pid):
    """(session, time of its begin in ticks since the boot) of a process, or (None, None) if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[3]), fields[19]
    except OSError:
        return None, None


def _boot():
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _note_groups():
    write_whole(RUNNING, "".join(f"{_boot()} {pid} {began}\n" for pid, began in _groups.items()))


def _members(session):
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _state(entry.name)[0] == session]


def _signal(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it has ended meanwhile


def end_leftovers():
    """Ends the commands that a killed run has left behind, so that their tests clean up. A number that is another process's by now stays alone."""
    try:
        lines = [line.split() for line in RUNNING.read_text().splitlines()]
    except OSError:
        return
    for boot, pid, began in lines:
        leader = _state(pid)[1]
        if boot != _boot() or leader not in (None, began) or not _members(int(pid)):
            continue
        print(f"== ending command {pid} of a run that was killed", flush=True)
        _signal(_members(int(pid)), signal.SIGTERM)
        end = time.monotonic() + 30
        while _members(int(pid)) and time.monotonic() < end:
            time.sleep(0.1)
        _signal(_members(int(pid)), signal.SIGKILL)
    RUNNING.unlink(missing_ok=True)


def end_all():
    """Ends all commands; those that would begin raise Ended."""
    _ended.set()
    with _lock:
        for pid in _groups:
            try:
                os.killpg(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass


def is_ended():
    return _ended.is_set()


def _idle():
    """Only the time that others leave. Where the kernel shares the processors by session first, idle priority counts only inside of one."""
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        Path("/proc/self/autogroup").write_text("19")
    except OSError:
        pass  # not allowed here, or no such kernel


def run(words, log=None, on_line=None, idle=False, environment=None):
    """Runs a command in the root of the project; returns its status. Each line of its output goes to the file `log` and to on_line."""
    if _ended.is_set():
        raise Ended
    process = subprocess.Popen([str(w) for w in words], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True, preexec_fn=_idle if idle else None,
                               env={**os.environ, **(environment or {})})
    with _lock:
        _groups[process.pid] = _state(process.pid)[1]
        _note_groups()
    try:
        with process.stdout:
            _follow(process, log, on_line)
        status = process.wait()
    finally:
        with _lock:
            del _groups[process.pid]
            _note_groups()
    if _ended.is_set():
        raise Ended
    return status


def run_until_the_end(words):
    """Runs a command that end_all() ends."""
    try:
        run(words)
    except Ended:
        pass


def _follow(process, log, on_line):
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
    with open(log or os.devnull, "w") as file:
        for line in process.stdout:
            file.write(line)
            file.flush()
            if on_line:
                on_line(line.rstrip("\n"))
