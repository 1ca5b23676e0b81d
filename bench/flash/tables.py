"""What is shown of filesystems on flash: tables, what was published beside them, and the plot."""

from experiment import rank_stability

MIB = 1 << 20
# The drives of table 1: name, and MB/s that are published: read in a row, 4 KiB read, written in a row, 4 KiB written.
DRIVES = {"sfs-h": ("SSD-H", 216.9, 13.8, 170, 5.3), "sfs-m": ("SSD-M", 212.6, 10.6, 87, 0.6), "sfs-l": ("SSD-L", 69.1, 5.3, 38, 0.002)}
# Figures 12 to 14, as multiples of SFS's, and what a name here stands for.
LOG, COPY_ON_WRITE, IN_PLACE = "log without groups (LFS-CB)", "btrfs", "btrfs nodatacow"
PEERS = {"varve:placement=none": LOG, "btrfs": COPY_ON_WRITE, "btrfs-nodatacow": IN_PLACE, "ext4": "ext4"}
FASTER = {LOG: 1.6, COPY_ON_WRITE: 7.3, IN_PLACE: 1.5, "ext4": 1.5}
AMPLIFIED = {"log with groups (SFS)": (1.1, 1.0), LOG: (1.1, 1.0), "ext4": (5.3, 2.8), IN_PLACE: (5.3, 2.8), COPY_ON_WRITE: (2.8, 1.2)}
ERASED = {LOG: (1.2, 1.2), "ext4": (3.1, 1.8), IN_PLACE: (3.4, 2.0), COPY_ON_WRITE: (6.1, 3.8)}


def rate_of(got):
    return got["asked"] / got["seconds"] / 1e6 if got["seconds"] else None


def ratio(one, other):
    return one / other if one is not None and other else None


def figures_of_filesystems(experiment, workload, by):
    """What every filesystem was given is the same; what it sends is not."""
    first = next(iter(by))
    rows = []
    for name, got in by.items():
        fast, page = got["ftl-fast"], got["ftl-page"]
        rows.append([name, fast["write_bytes"] / MIB, *(ratio(one["bytes_programmed"], one["write_bytes"]) for one in (fast, page)),
                     *(ratio(got[model]["erases"], by[first][model]["erases"]) for model in ("ftl-fast", "ftl-page")),
                     *(rate_of(got[drive]) for drive in DRIVES)])
    experiment.table(f"Figures 12 to 14, {workload} (modelled)",
                     ["filesystem", "MiB sent", "WA, FAST", "WA, page", f"erases by {first}'s, FAST", f"erases by {first}'s, page",
                      *(f"MB/s, {DRIVES[drive][0]}" for drive in DRIVES)], rows,
                     "WA: programmed by what the filesystem sent. Erases are for the same work of the programs, MB/s are what they wrote. "
                     "What a transaction writes is taken to be 96 KiB (tpcc) and 40 KiB (pgbench).")


def wear(experiment, results):
    rows = [[workload, name, *(got[model].get("fills") for model in ("ftl-fast", "ftl-page")),
             *(got[model][what] or None for model in ("ftl-fast", "ftl-page") for what in ("most", "mean"))]
            for workload, by in results.items() for name, got in by.items()]
    experiment.table("Lifetime and wear (modelled)",
                     ["workload", "filesystem", "fills until worn, FAST", "the same, page", "most erases of a block, FAST", "mean, FAST",
                      "most, page", "mean, page"], rows,
                     "Fills: how often programs can write as much as the device holds, if all blocks wear alike and stand 3000 erases. "
                     "Erases count all that was done since the flash was new.")


def spread(values):
    values = [value for value in values if value is not None]
    return f"{min(values):.2g} to {max(values):.2g}" if values else None


def published(experiment, results):
    """Figures 12 to 14 beside what is published: the mean over the workloads that a filesystem stood, and the least and most. The log is
    the first filesystem."""
    log = experiment.options.filesystems.split(",")[0]
    results = {workload: by for workload, by in results.items() if log in by}

    def row(figure, what, said, values):
        values = [value for value in values if value is not None]
        return [figure, what, said, sum(values) / len(values) if values else None, spread(values)]

    def all_of(want):
        for by in results.values():
            for name, got in by.items():
                if want == name.partition("@")[0].partition(" ")[0]:
                    yield got, by[log]

    rows = []
    firsts = [by[log] for by in results.values()]
    for model, place in (("ftl-fast", 0), ("ftl-page", 1)):
        for what, said in AMPLIFIED.items():
            names = [name for name, stands in PEERS.items() if stands == what]
            found = [got for got, _ in all_of(names[0])] if names else firsts
            rows.append(row("13", f"WA, {model}: {what}", said[place], [ratio(got[model]["bytes_programmed"], got[model]["write_bytes"])
                                                                        for got in found]))
    for name, what in PEERS.items():
        rows.append(row("12", f"the log's speed by that of {what}, SSD-M", FASTER[what],
                        [ratio(rate_of(base["sfs-m"]), rate_of(got["sfs-m"])) for got, base in all_of(name)]))
        for model, place in (("ftl-fast", 0), ("ftl-page", 1)):
            rows.append(row("14", f"erases by the log's, {model}: {what}", ERASED[what][place],
                            [ratio(got[model]["erases"], base[model]["erases"]) for got, base in all_of(name)]))
    experiment.table("Figures 12 to 14: published, and here (modelled)", ["figure", "what", "published", "here, mean", "by workload"],
                     sorted(rows, key=lambda one: one[0]), "Published are means over workloads that are not all the same as here.")


def what_is_left_open(experiment, results):
    """How far erases and ranks depend on what SFS does not say."""
    groups = (("ftl-page", "ftl-page-age", "ftl-page-raw"), ("ftl-fast", "ftl-fast-raw"))
    rows, ranks = [], []
    for workload, by in results.items():
        first = next(iter(by))
        for name, got in by.items():
            if name != first:
                rows.append([workload, name, *(ratio(got[model]["erases"], by[first][model]["erases"])
                                               for group in groups for model in group)])
        for group in groups:
            order, tau = rank_stability({model: {name: got[model]["bytes_programmed"] for name, got in by.items()} for model in group})
            ranks.append([workload, ", ".join(group), tau, " < ".join(order) if order else "not the same everywhere"])
    experiment.table("Erases by the first filesystem's, with what SFS leaves open (spare, victims)",
                     ["workload", "filesystem", *(model for group in groups for model in group)], rows)
    experiment.table("Ranks by bytes programmed, with what SFS leaves open (spare, victims)",
                     ["workload", "mappings", "least Kendall's tau", "rank in all"], ranks)


def utilisation(experiment, found):
    """Figure 11: how fast the log is on each drive, by how full it is."""
    rows = []
    for case in sorted(found, key=lambda case: case.full):
        rows.append([case.name, f"{case.full:.0%}", *(value for drive in DRIVES for value in
                                                      (rate_of(found[case][drive]), ratio(rate_of(found[case][drive]), DRIVES[drive][3])))])
    experiment.table("Figure 11: zipf by utilisation (modelled)",
                     ["filesystem", "full", *(text for name, *_ in DRIVES.values() for text in (f"MB/s, {name}", f"{name}, by in a row"))],
                     rows, "Published: the log's speed follows that of writes in a row on all three.")


def other_draws(experiment, found):
    """Zipf's exponent is not published, and each run is one draw: the same comparison with others."""
    rows = []
    draws = dict.fromkeys((case.workload, case.seed) for case in found)
    for workload, seed in draws:
        by = {case.name: got for case, got in found.items() if (case.workload, case.seed) == (workload, seed)}
        first = next(iter(by))
        for name in list(by)[1:]:
            rows.append([workload.replace("zipf", "") or "1.0", seed, f"{name} by {first}",
                         *(ratio(by[name][model]["erases"], by[first][model]["erases"]) for model in ("ftl-fast", "ftl-page")),
                         *(ratio(rate_of(by[name][drive]), rate_of(by[first][drive])) for drive in DRIVES)])
    if rows:
        experiment.table("Zipf with other exponents and seeds (modelled)",
                         ["exponent", "seed", "what", "erases, FAST", "erases, page", *(f"speed, {name}" for name, *_ in DRIVES.values())], rows)


def draw(curves, results):
    def plot(file):
        import matplotlib.pyplot as plt
        figure, axes = plt.subplots(1, 3, figsize=(14, 4.2))
        for name, curve in curves.items():
            axes[0].plot(list(curve), list(curve.values()), marker="o", label=name)
        axes[0].set_xscale("log", base=2)
        axes[0].set_title("Random writes by request size,\nas share of writes in a row (modelled)", fontsize=9)
        axes[0].legend(fontsize=7)
        for axis, model in ((axes[1], "ftl-fast"), (axes[2], "ftl-page")):
            names = list(dict.fromkeys(name for by in results.values() for name in by))
            for i, name in enumerate(names):
                values = [by[name][model]["bytes_programmed"] / MIB if name in by else 0 for by in results.values()]
                axis.bar([x + i / (len(names) + 1) for x in range(len(results))], values, 1 / (len(names) + 1), label=name)
            axis.set_xticks([x + 0.35 for x in range(len(results))], list(results), fontsize=8)
            axis.set_title(f"MiB programmed for the same work, {model} (modelled)", fontsize=9)
            axis.legend(fontsize=6)
        figure.tight_layout()
        figure.savefig(file, dpi=80)
    return plot
