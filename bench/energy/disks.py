"""The disks that a trace goes through, and what holds for all of them."""

import math

from experiment import rank_stability, replay_cases

SIZE = 544  # MiB: of all devices; the cleaning study's is a little smaller
BUSY = ("--think", 0, "--awake")  # programs take no time, and disks never sleep
# What is not published is varied: {case: (model, MiB, options of bench_replay)}. A rank counts where it is the same in all.
CASES = {"microdrive": ("microdrive", SIZE, BUSY), "idle 25 %": ("microdrive-idle25", SIZE, BUSY),
         "idle 75 %": ("microdrive-idle75", SIZE, BUSY), "8 GiB disk": ("microdrive", 8192, BUSY), "hdd-laptop": ("hdd-laptop", SIZE, BUSY),
         "hdd-laptop, 8 GiB": ("hdd-laptop", 8192, BUSY), "hdd-laptop-7200": ("hdd-laptop-7200", SIZE, BUSY),
         "hdd-desktop": ("hdd-desktop", SIZE, BUSY)}
SIZES = f"Disks have {SIZE} MiB, or 8 GiB where it says so; the trace uses the beginning."
MICRODRIVES = ("microdrive", "idle 25 %", "idle 75 %", "8 GiB disk")


def costs(varve_bin, events, cases=None):
    """{case: what bench_replay says}."""
    return replay_cases(varve_bin, events, cases or CASES)


def rank_row(name, values):
    """Of {case: {name: joules}}; Varve only as it is by default."""
    values = {case: {one: joules for one, joules in by.items() if ":" not in one} for case, by in values.items()}
    order, tau = rank_stability(values)
    best = {min(by, key=by.get) for by in values.values() if by}
    return [name, tau, ", ".join(sorted(best)), joined(order, values) if order else "not the same everywhere"]


def joined(order, values):
    """a = b < c: equal where no case tells them apart."""
    out = order[0]
    for before, name in zip(order, order[1:]):
        same = all(math.isclose(by[before], by[name], rel_tol=1e-3) for by in values.values())
        out += f" {'=' if same else '<'} {name}"
    return out


RANK_COLUMNS = ["tau", "least joules", "rank in all"]
RANK_NOTE = "tau: Kendall's, of the two cases that agree least. Only what is the same in all counts: "
