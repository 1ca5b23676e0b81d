"""What is shown of filesystems on flash: tables, what was published beside them, and the plot."""

from experiment import rank_stability

MIB = 1 << 20
# The drives of table 1: name, and MB/s that are published: read in a row, 4 KiB read, written in a row, 4 KiB written.
DRIVES = {"sfs-h": ("SSD-H", 216.9, 13.8, 170, 5.3), "sfs-m": ("SSD-M", 212.6, 10.6, 87, 0.6), "sfs-l": ("SSD-L", 69.1, 5.3, 38, 0.002)}
# What stands here for two filesystems of figures 12 to 14, and how tables call it. Both cleaned by copying.
SFS, LFS = "like SFS", "like LFS-CB"
STAND_INS = {SFS: "varve:strategy=copying;placement=sfs:groups=4;policy=cost-hotness",
             LFS: "varve:strategy=copying;placement=none;policy=cost-benefit"}
# What is published, as multiples of SFS's.
FASTER = {LFS: 1.6, "btrfs": 7.3, "btrfs-nodatacow": 1.5, "ext4": 1.5}
AMPLIFIED = {SFS: (1.1, 1.0), LFS: (1.1, 1.0), "ext4": (5.3, 2.8), "btrfs-nodatacow": (5.3, 2.8), "btrfs": (2.8, 1.2)}
ERASED = {LFS: (1.2, 1.2), "ext4": (3.1, 1.8), "btrfs-nodatacow": (3.4, 2.0), "btrfs": (6.1, 3.8)}


def shown(case, full):
    """Its name in tables; one that is not as full as the others says so."""
    name = case.name
    for short, long in STAND_INS.items():
        name = name.replace(long, short)
    return name + (f" ({case.full:.0%} full)" if case.full < full else "")


def rate_of(got, drive):
    """MB/s of what programs wrote; None: it was not recorded for that drive."""
    of = got.get(drive) if got else None
    return of["asked"] / of["seconds"] / 1e6 if of and of["seconds"] else None


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
                     *(rate_of(got, drive) for drive in DRIVES)])
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


def base_of(name):
    return name.partition("@")[0].partition(" (")[0]


def published(experiment, results):
    """Figures 12 to 14 beside what is published, with what is like SFS and with the first filesystem in SFS's place: the mean over the
    workloads that both stood, and the least and most."""
    logs = {SFS: SFS, base_of(experiment.options.filesystems.split(",")[0]): None}

    def cells(name, value):
        out = []
        for log in logs.values():
            values = []
            for by in results.values():
                base = by.get(next(iter(by)) if log is None else next((one for one in by if base_of(one) == log), None))
                values += [value(got, base) for one, got in by.items() if base and base_of(one) == name]
            values = [value for value in values if value is not None]
            out += [sum(values) / len(values) if values else None, spread(values)]
        return out

    def amplified(model):
        return lambda got, _: ratio(got[model]["bytes_programmed"], got[model]["write_bytes"])

    def faster(got, base):
        return ratio(rate_of(base, "sfs-m"), rate_of(got, "sfs-m"))

    rows = [["12", f"speed by: {name}, SSD-M", said, *cells(name, faster)] for name, said in FASTER.items()]
    for place, model in enumerate(("ftl-fast", "ftl-page")):
        rows += [["13", f"WA, {model}: {name}", said[place], *cells(name, amplified(model))] for name, said in AMPLIFIED.items()]
        rows += [["14", f"erases of {name}, {model}", said[place],
                  *cells(name, lambda got, base, model=model: ratio(got[model]["erases"], base[model]["erases"]))] for name, said in ERASED.items()]
    experiment.table("Figures 12 to 14: published, and here (modelled)",
                     ["figure", "what", "published", *(text for log in logs for text in (f"here, {log}: mean", "by workload"))],
                     sorted(rows, key=lambda one: one[0]),
                     "Published are means over workloads that are not all the same as here. " +
                     " ".join(f"{short[0].upper()}{short[1:]}: {long}." for short, long in STAND_INS.items()))


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
    rows = [[workload, f"{share:.0%}", *(value for drive in DRIVES for value in (by.get(drive), ratio(by.get(drive), DRIVES[drive][3])))]
            for workload, of in found.items() for share, by in of.items()]
    experiment.table("Figure 11: the log by utilisation (modelled)",
                     ["workload", "full", *(text for name, *_ in DRIVES.values() for text in (f"MB/s, {name}", f"{name}, by in a row"))],
                     rows, "Published: the log's speed follows that of writes in a row on all three. Each drive has its own recording.")


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
                         *(ratio(rate_of(by[name], drive), rate_of(by[first], drive)) for drive in DRIVES)])
    if rows:
        experiment.table("Zipf with other exponents and seeds (modelled)",
                         ["exponent", "seed", "what", "erases, FAST", "erases, page", *(f"speed, {name}" for name, *_ in DRIVES.values())], rows)
