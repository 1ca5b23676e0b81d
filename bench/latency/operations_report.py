"""What is shown of the latency of operations: tables, what a blog published beside them, and the plot."""

from typing import NamedTuple

from experiment import number, percentile
from work import BLOCK, MIB

SHARES = {"p50": .5, "p90": .9, "p99": .99, "p99.9": .999, "p99.99": .9999}
LEAST_ABOVE = 5  # samples that must lie above a percentile for it to be shown
ENOUGH = 600     # samples that have a p99

DD = {"4 B × 1024": (4, 1024), "4 KiB × 1024": (BLOCK, 1024), "1 MiB × 4": (MIB, 4), "1 MiB × 256": (MIB, 256), "16 MiB × 16": (16 * MIB, 16)}
# Seconds, on an Intel X18-M. The blog's first run on nilfs2 wrote 4 bytes at a time, on ext4 4 KiB.
PUBLISHED = {"ext4, published": {"4 KiB × 1024": 2.64042, "1 MiB × 4": 0.199603, "1 MiB × 256": 11.0575},
             "nilfs2, published": {"4 B × 1024": 4.20935, "1 MiB × 4": 0.257392, "1 MiB × 256": 16.2356}}
READS = ("Reads are direct. But those of passthrough_ll come from the host's page cache, since it does not pass O_DIRECT on, and those of fuse2fs "
         "from the kernel's cache of its device.")


class State(NamedTuple):
    percent: int   # full
    written: bool  # aged, and being overwritten

    def __str__(self):
        return f"{self.percent} % full, {'being overwritten' if self.written else 'quiet'}"


STATES = (State(30, False), State(90, False), State(50, True), State(90, True))


def row(values):
    out = []
    for share in SHARES.values():
        out.append(percentile(values, share) / 1000 if len(values) * (1 - share) >= LEAST_ABOVE else None)
    return [*out, values[-1] / 1000, len(values)]


def short_table(experiment, data):
    """What fits beside each other: two percentiles, one process. What is missing says why."""
    found = {(name, *row_[:3]): row_ for name, got in data.items() for row_ in got["rows"]}
    depth = min(experiment.options.depths)
    cases = dict.fromkeys(key[1:] for key in found if key[2] == depth)
    place = 3 + list(SHARES).index("p99")
    reasons, rows = [], []

    def cell(name, case):
        if one := found.get((name, *case)):
            return f"{number(one[3])}, {number(one[place])}"
        why = f"{name}: {data[name]['missing'].get(case[0], 'it has no such operation')}"
        if why not in reasons:
            reasons.append(why)
        return f"– [{reasons.index(why) + 1}]"

    for case in cases:
        rows.append([case[0], case[2], *(cell(name, case) for name in data)])
    notes = [f"–: fewer than {LEAST_ABOVE * 100} operations in {experiment.options.most_seconds:g} s.", READS,
             *(f"[{i}] {why}." for i, why in enumerate(reasons, 1))]
    experiment.table(f"p50 and p99, {depth} at once, µs", ["state", "operation", *data], rows, " ".join(notes))


def tables_of_dd(experiment, data):
    took = {**PUBLISHED, **{name: got["dd"] for name, got in data.items() if got["dd"]}}
    note = "Published: a blog of 2010, Intel X18-M, Fedora 12."
    experiment.table("dd oflag=sync, seconds", ["filesystem", *DD], [[name, *map(by.get, DD)] for name, by in took.items()], note)
    rows = [[name, *(size * count / by[text] / 1e6 if text in by else None for text, (size, count) in DD.items())] for name, by in took.items()]
    experiment.table("dd oflag=sync, MB/s", ["filesystem", *DD], rows, note)


def draw_plot(file, data):
    """All operations in the first and in the last state, reads and writes in all."""
    import pictures
    depth = min(row_[1] for got in data.values() for row_ in got["rows"])
    at = 3 + list(SHARES).index("p50"), 3 + list(SHARES).index("p99")
    cases = dict.fromkeys((row_[2], row_[0]) for got in data.values() for row_ in got["rows"] if row_[1] == depth)
    ends = str(STATES[0]), str(STATES[-1])
    rows = sorted((case for case in cases if case[1] in ends or "write" in case[0] or "read" in case[0]), key=lambda case: list(cases).index(case))
    of = {name: {f"{row_[2]},\n{row_[0]}": (row_[at[0]], row_[at[1]]) for row_ in got["rows"]
                 if row_[1] == depth and row_[at[0]] is not None and row_[at[1]] is not None} for name, got in data.items()}
    figure, ((axis,),) = pictures.sheet([0.8 + (0.18 + 0.115 * len(of)) * len(rows)])
    pictures.ranges(axis, [f"{operation},\n{state}" for operation, state in rows], of, "µs")
    axis.set_title(f"p50 (filled) and p99 (hollow), {depth} at once, µs")
    pictures.shared_legend(figure, axis, columns=3)
    pictures.save(figure, file)
