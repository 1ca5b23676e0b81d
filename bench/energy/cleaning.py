"""Figures 7.5 to 7.9: cleaning by the engine alone, on a device in memory, whose I/O goes through the models."""

import json
import random
import subprocess
import tempfile
from pathlib import Path

import disks
import formats
from experiment import of_phases

SEGMENTS = 1024
STRATEGIES = ("copying", "compacting", "defragmenting", "hole-plugging", "combined")  # threaded cleans as hole-plugging does
# Standard after ten times as many updates: of the published ones so little dies that a tenth of it is less than cleaning costs.
WORN, WORN_UPDATES = "worn", 10
PUBLISHED_UPDATES = 1.25 * (1 << 20)  # bytes


def study(options, folder, samples, *more):
    """[rows of cleaning] of bench_published; traces are in the folder."""
    command = [options.varve_bin / "bench_published", "--json", f"{folder}/results.json", "fragmentation", "--seed", options.seed, "--samples",
               ",".join(samples), "--buffers", options.buffers, "--segments", SEGMENTS, "--strategies", ",".join(STRATEGIES),
               "--traces", f"{folder}/", *more]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"bench_published: {done.stderr.strip()}")
    return json.loads(Path(folder, "results.json").read_text())["cleaning"]["rows"]


def wear(standard, worn, seed):
    """Writes the operations of Standard with more updates behind them, of the sizes that Standard has."""
    operations = Path(standard).read_text().splitlines()
    lengths = {words[1]: int(words[2]) for words in map(str.split, operations) if words[0] == "create"}
    draw, files, left = random.Random(seed), list(lengths), (WORN_UPDATES - 1) * PUBLISHED_UPDATES
    while left > 0:
        file = draw.choice(files)
        sizes = (1 << 10, 5 << 10) if draw.random() < 0.7 else (10 << 10, 50 << 10)
        length = min(draw.randint(*sizes), lengths[file])
        operations.append(f"update {file} {draw.randint(0, lengths[file] - length)} {length}")
        left -= length
    Path(worn).write_text("\n".join(operations) + "\n")


def run(options):
    """([rows of cleaning], {name: {case: figures}})"""
    samples = options.samples.split(",")
    with tempfile.TemporaryDirectory(prefix="varve-energy-") as folder:
        rows = []
        published = [sample for sample in samples if sample != WORN]
        if WORN in samples and "standard" not in published:
            published.append("standard")
        rows += study(options, folder, published, "--record", f"{folder}/operations-")
        if WORN in samples:
            wear(f"{folder}/operations-standard", f"{folder}/operations-{WORN}", options.seed)
            rows += study(options, folder, [WORN], "--replay", f"{folder}/operations-")
        cost = {}
        for file in sorted(Path(folder).glob("*.trace")):
            with open(file) as text:
                events = list(formats.read(text))
            cost[file.stem] = {case: of_phases(got, "begin") for case, got in disks.costs(options.varve_bin, events).items()}
    return [row for row in rows if row["sample"] in samples], cost


def tag(row):
    return f"{row['sample']}-{row['strategy']}-{row['buffer']}-{'all' if row['amount'] == 'all' else 'tenth'}"


def figures(experiment, rows, cost):
    """One row for each mode, with its joules by buffer."""
    buffers = [int(buffer) for buffer in experiment.options.buffers.split(",")]
    table = []
    for row in rows:
        if row["strategy"] == "(none)" or row["buffer"] != buffers[0]:
            continue
        work, reading = (cost[f"{tag(row)}-{what}"]["microdrive"] for what in ("cleaning", "reading"))
        before = cost[f"{row['sample']}-none-reading"]["microdrive"]["modelled_joules"]
        others = [cost[f"{tag({**row, 'buffer': buffer})}-cleaning"]["microdrive"]["modelled_joules"] for buffer in buffers[1:]]
        table.append([row["sample"], row["strategy"], row["amount"], row["written"], row["segments"], work["modelled_joules"], work["seconds"],
                      work["seeks"], *others, reading["modelled_joules"], reading["modelled_joules"] / before])
    first, *more = (f"buffer of {buffer}" if buffer else "usual buffer" for buffer in buffers)
    experiment.table("Figures 7.5 to 7.8: cleaning, and reading everything afterwards (modelled: Microdrive)",
                     ["sample", "mode", "of the reclaimable", "blocks moved", "segments gained", f"J, {first}", "s", "seeks",
                      *(f"J, {buffer}" for buffer in more), "reading after: J", "by reading before"], table,
                     f"{WORN}: Standard after {WORN_UPDATES} times as many updates. Where no block was moved there is nothing to compare.")
    table = []
    for sample in experiment.options.samples.split(","):
        kept, scan = (cost[f"{sample}-map-{how}"]["microdrive"]["modelled_joules"] for how in ("mfile", "scanning"))
        whole = cost.get(f"{sample}-copying-0-all-cleaning")
        table.append([sample, kept, scan, scan / max(kept, 1e-9), scan / whole["microdrive"]["modelled_joules"] if whole else None])
    experiment.table("Figure 7.9: the map from blocks to inodes, kept in .mfile or made by a scan (modelled: Microdrive)",
                     ["sample", ".mfile: J", "scan: J", "scan by .mfile", "scan by copying everything"], table)
    ranks(experiment, rows, cost)


def beside_peers(experiment, rows, cost, peers):
    """Figure 7.7: all of Standard or Coarse is read, by peers that never clean (`peers`: {sample: {filesystem: figures of the reading}}), and
    from the log before and after it has been cleaned."""
    table = []
    buffer = int(experiment.options.buffers.split(",")[0])
    for sample, by in peers.items():
        of = [row for row in rows if row["sample"] == sample and row["amount"] == "all" and row["buffer"] == buffer and row["strategy"] != "(none)"]
        if not of or not by:
            continue
        logs = {"the log, not cleaned": f"{sample}-none-reading", **{f"the log after {row['strategy']}": f"{tag(row)}-reading" for row in of}}
        found = by | {name: cost[key]["microdrive"] for name, key in logs.items()}
        first = cost[logs["the log, not cleaned"]]["microdrive"]["modelled_joules"]
        table += [[sample, name, got["modelled_joules"], got["seconds"], got["modelled_joules"] / first] for name, got in found.items()]
    experiment.table("Figure 7.7: reading everything after cleaning, beside figure 7.4's filesystems (modelled: Microdrive)",
                     ["sample", "what is read", "J", "s", "J by the log's, not cleaned"], table,
                     "Published: cleaned, the log beats all. Peers as in figure 7.4, cached. The log is read by the engine alone: files drawn by "
                     "another lot, without the kernel and its read-ahead. So small differences between both mean nothing.")


def ranks(experiment, rows, cost):
    """Modes by joules, on all disks; those that have moved something."""
    table = []
    buffer = int(experiment.options.buffers.split(",")[0])
    for sample in experiment.options.samples.split(","):
        for amount in ("all", "10 %"):
            of = [row for row in rows if row["sample"] == sample and row["amount"] == amount and row["buffer"] == buffer and row["written"] > 0]
            if len(of) < 2:
                continue
            for what in ("cleaning", "reading"):
                values = {case: {row["strategy"]: cost[f"{tag(row)}-{what}"][case]["modelled_joules"] for row in of} for case in disks.CASES}
                table.append([sample, amount, *disks.rank_row("cleaning" if what == "cleaning" else "reading after", values)])
    experiment.table("Ranks of the modes by joules (modelled), on all disks", ["sample", "of the reclaimable", "what", *disks.RANK_COLUMNS], table,
                     disks.RANK_NOTE + ", ".join(disks.CASES) + ".")
