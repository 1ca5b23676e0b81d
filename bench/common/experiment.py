"""What all experiments have in common: their options, progress, tables, JSON, the machine they ran on."""

import argparse
import contextlib
import functools
import importlib.util
import json
import math
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "trace"), str(HERE.parent / "devices")]

import formats  # noqa: E402
import interruption  # noqa: E402


def version_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = (done.stdout + done.stderr).strip().splitlines()
    own = [line for line in lines if line.startswith(Path(command[0]).name)]  # before it, libraries may tell theirs
    return (own or lines or [None])[0]


def machine(varve_bin):
    cpus = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / (1 << 20)
    return {"kernel": platform.release(), "cpu": cpus[0] if cpus else platform.machine(), "cpus": len(cpus), "memory_gib": round(memory, 1),
            "load": os.getloadavg()[0], "python": platform.python_version(), "versions": versions(varve_bin)}


@functools.cache
def versions(varve_bin):
    """Asked once, though results are kept after each part."""
    programs = {"varve": (Path(varve_bin) / "varve", "--version"), "e2fsprogs": ("mke2fs", "-V"), "xfsprogs": ("mkfs.xfs", "-V"),
                "btrfs-progs": ("btrfs", "--version"), "fio": ("fio", "--version"), "sqlite": ("sqlite3", "--version"), "git": ("git", "--version"),
                "postgresql": ("psql", "--version"), "postmark": ("postmark",), "mtools": ("mtools", "--version"),
                "dosfstools": ("fatlabel", "--version"), "fuse2fs": ("fuse2fs", "-V")}
    found = {name: version_of(*map(str, command)) for name, command in programs.items()}
    return {name: version for name, version in found.items() if version}


class Experiment:
    """Options, and the results as they come: tables of rows, each with a title and a note."""

    def __init__(self, name, description):
        self.name = name
        self.parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        self.parser.add_argument("--full", action="store_true", help="the long version")
        self.parser.add_argument("--seed", type=int, default=1)
        self.parser.add_argument("--varve-bin", default=ROOT / "build/release/bin", type=Path)
        self.parser.add_argument("--json", type=Path, help="write the results to this file")
        self.parser.add_argument("--plot", type=Path, help="draw them into this file (PNG; needs matplotlib)")
        self.tables, self.left_out, self.begin = [], [], time.monotonic()

    def parse(self):
        self.options = self.parser.parse_args()
        interruption.end_in_good_order()
        for file in (self.options.json, self.options.plot):
            if file and not file.resolve().parent.is_dir():
                self.parser.error(f"{file.parent} is no folder")
        return self.options

    def progress(self, text):
        print(f"[{time.monotonic() - self.begin:6.0f} s] {text}", file=sys.stderr, flush=True)

    def leave_out(self, why):
        interruption.end_if_interrupted()
        if str(why) not in self.left_out:
            self.left_out.append(str(why))
            print(f"left out: {why}", file=sys.stderr, flush=True)

    def table(self, title, columns, rows, note=""):
        """Shown at once, and kept."""
        table = {"title": title, "columns": list(columns), "rows": [list(row) for row in rows], "note": note}
        self.tables.append(table)
        print("\n" + markdown_of(table), flush=True)
        return table

    def keep(self, data=None):
        """Writes the JSON of what there is so far: a part that fails later takes nothing along."""
        if not self.options.json:
            return
        options = {key: str(value) for key, value in vars(self.options).items()}
        result = {"experiment": self.name, "command": shlex.join(sys.argv), "date": time.strftime("%Y-%m-%d", time.gmtime()), "options": options,
                  "seconds": time.monotonic() - self.begin, "machine": machine(self.options.varve_bin), "left_out": self.left_out,
                  "tables": self.tables, "data": data or {}}
        self.options.json.write_text(json.dumps(result, indent=1) + "\n")

    def finish(self, data=None, plot=None):
        """`plot(file)` draws."""
        try:
            if self.options.plot and plot:
                self.draw(plot)
            elif self.options.plot:
                self.leave_out("plots: there is nothing to draw")
        finally:
            self.keep(data)

    def draw(self, plot):
        """In a process of its own, which ends without tidying up: matplotlib 3.6 may crash there, as it closes its fonts too late."""
        if not importlib.util.find_spec("matplotlib"):
            self.leave_out("plots: matplotlib is not installed (packaging/apt-install bench)")
            return
        sys.stdout.flush()
        if child := os.fork():
            if os.waitpid(child, 0)[1]:
                raise RuntimeError("the plot could not be drawn")
            return
        status = 1
        try:
            import matplotlib
            matplotlib.use("Agg")
            plot(self.options.plot)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)


@contextlib.contextmanager
def one_worker():
    """A thread that works beside this one. What it has not begun is given up when this one fails or is interrupted."""
    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def number(value):
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or value == 0:
        return f"{value}"
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else f"{value:.2g}"


def markdown_of(table):
    right = ["---:" if any(isinstance(row[i], (int, float)) for row in table["rows"]) else "---" for i in range(len(table["columns"]))]
    lines = [f"### {table['title']}", "", "| " + " | ".join(table["columns"]) + " |", "|" + "|".join(right) + "|"]
    lines += ["| " + " | ".join(number(cell) for cell in row) + " |" for row in table["rows"]]
    return "\n".join(lines + (["", table["note"]] if table["note"] else [])) + "\n"


@contextlib.contextmanager
def trace_file(events):
    """Its path; in memory, if that can be."""
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.NamedTemporaryFile("w", dir=where, prefix="varve-replay-", suffix=".trace") as file:
        formats.write(events, file)
        file.flush()
        yield file.name


def replay(varve_bin, events, models, size_mib, *options):
    """{model: what bench_replay says}, its phases among it."""
    return replay_cases(varve_bin, events, {model: (model, size_mib, options) for model in models})


def replay_cases(varve_bin, events, cases):
    """The same by case, of {case: (model, MiB, options of bench_replay)}."""
    together, out = {}, {}
    for case, (model, size, options) in cases.items():
        together.setdefault((size, options), {})[case] = model
    with trace_file(events) as file:
        for (size, options), models in together.items():
            command = [Path(varve_bin) / "bench_replay", file, "--model", ",".join(dict.fromkeys(models.values())), "--size", size, *options]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr.strip())
            got = {one["model"]: one for one in json.loads(done.stdout)}
            out.update({case: got[model] for case, model in models.items()})
    return {case: out[case] for case in cases}


SUMS = ("seconds", "busy_seconds", "modelled_joules", "seeks", "bytes_programmed", "bytes_copied", "erases", "spin_ups")


def of_phases(replayed, wanted):
    """Sums over the phases whose names are in `wanted` (a name, or several)."""
    names = {wanted} if isinstance(wanted, str) else set(wanted)
    erasable = 0  # how often blocks can be erased, all together
    out = dict.fromkeys(SUMS, 0)
    out.update({f"{op}_{what}": 0 for op in ("read", "write", "flush", "discard") for what in ("requests", "bytes")}, states={})
    for phase in replayed["phases"]:
        if phase["phase"] not in names:
            continue
        for key in SUMS:
            out[key] += phase[key]
        for op in ("read", "write", "flush", "discard"):
            for what in ("requests", "bytes"):
                out[f"{op}_{what}"] += phase[op][what]
        for state, spent in phase.get("states", {}).items():
            out["states"][state] = out["states"].get(state, 0) + spent["modelled_joules"]
        if phase.get("lifetime_bytes"):
            erasable = phase["lifetime_bytes"] * phase["erases"] / phase["write"]["bytes"]
    out["lifetime_bytes"] = out["write_bytes"] * erasable / out["erases"] if erasable and out["erases"] else None
    return out


def rank_stability(values):
    """Of {case: {name: value}}: names from the least to the most where all cases agree on the order, else None; and Kendall's tau of the
    two cases that agree least."""
    orders = [sorted(by, key=by.get) for by in values.values()]
    worst = 1.0
    for a in range(len(orders)):
        for b in range(a + 1, len(orders)):
            worst = min(worst, kendall(orders[a], orders[b]))
    return (orders[0] if orders and worst == 1.0 else None), worst


def kendall(first, second):
    place = {name: i for i, name in enumerate(second)}
    pairs = [(a, b) for i, a in enumerate(first) for b in first[i + 1:]]
    if not pairs:
        return 1.0
    return sum(1 if place[a] < place[b] else -1 for a, b in pairs) / len(pairs)


def percentile(sorted_values, share):
    """The least value that `share` of all do not exceed (nearest rank)."""
    if not sorted_values:
        return None
    return sorted_values[max(math.ceil(share * len(sorted_values)) - 1, 0)]


def median(values):
    return statistics.median(values) if values else None


def log2_histogram(lengths):
    """{exponent: (how many, their sum)} of positive lengths, by the power of two below."""
    out = {}
    for length in lengths:
        exponent = length.bit_length() - 1
        count, total = out.get(exponent, (0, 0))
        out[exponent] = (count + 1, total + length)
    return dict(sorted(out.items()))
