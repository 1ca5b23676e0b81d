"""Pictures of what bench_published --json wrote: one for each group of figures, into a folder."""

import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))
import pictures  # noqa: E402


def grouped(rows, *keys):
    """Rows by the values of keys, in order of appearance."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[k] for k in keys), []).append(row)
    return groups


class Place(NamedTuple):
    folder: Path
    prefix: str

    def save(self, figure, name):
        pictures.save(figure, self.folder / f"{self.prefix}{name}.png")
        plt.close(figure)


def steps(axes, shares, label, labels):
    bins = len(shares)
    axes.stairs([100 * share for share in shares], [100 * i / bins for i in range(bins + 1)], label=label, linewidth=1.3,
                color=pictures.look_of(label, labels)[0])


def draw_distributions(rows, into):
    cases = grouped([r for r in rows if sum(r["shares"]) > 0], "workload", "writes")
    workloads, counts = (list(dict.fromkeys(case[i] for case in cases)) for i in (0, 1))
    labels = list(dict.fromkeys(row["policy"] for row in rows))
    figure, axes = pictures.sheet([1.7] * len(workloads), len(counts))
    for (workload, writes), case in cases.items():
        place = axes[workloads.index(workload)][counts.index(writes)]
        for row in case:
            steps(place, row["shares"], row["policy"], labels)
        place.set_title(f"{workload},\n{writes:,} writes".replace(",0", " 0"))
    for place in axes[:, 0]:
        place.set_ylabel("% of segments")
    for place in axes[-1]:
        place.set_xlabel("live in a segment, %")
    pictures.shared_legend(figure, axes[0][0])
    into.save(figure, "policies-utilisation")


def draw_costs(rows, into):
    cases = grouped([r for r in rows if r["2/(1-u)"] is not None], "cleaning")  # else it ran out of space
    keys = {"2/(1-u)": "mean of 2/(1-u)", "(new+read+moved)/new": "(new + read + moved)/new"}
    figure, axes = pictures.sheet([2.0] * len(cases), len(keys))
    panel = iter(axes.flat)
    for (cleaning,), case in cases.items():
        for key, says in keys.items():
            place = next(panel)
            pictures.curves(place, {policy: {r["occupancy"]: r[key] for r in line} for (policy,), line in grouped(case, "policy").items()})
            place.set_title(f"{cleaning}\n{says}")
            place.set_ylim(bottom=0)
    for place in axes[-1]:
        place.set_xlabel("occupancy of the volume")
    for place in axes[:, 0]:
        place.set_ylabel("write cost")
    into.save(figure, "policies-cost")


def rows_of(axes, rows, key, title):
    """A row for each policy, a point for each workload."""
    names = list(dict.fromkeys(r["policy"] for r in rows))
    pictures.points(axes, names, {workload: {r["policy"]: r[key] for r in case} for (workload,), case in grouped(rows, "workload").items()}, log=False)
    axes.set_title(title)


def draw_groups(result, into):
    tables = {"groups": "write cost by number of groups, 85 % full", "schemes": "by quantisation and choice of victims, four groups, 85 % full"}
    figure, axes = pictures.sheet([0.6 + 0.28 * len({r["policy"] for r in result[name]["rows"]}) for name in tables])
    for (place,), (name, title) in zip(axes, tables.items()):
        rows_of(place, result[name]["rows"], "write cost", title)
    pictures.shared_legend(figure, axes[0][0])
    into.save(figure, "sfs-groups")


def draw_utilisations(rows, into):
    """A row for each workload; below them what segments are like, with the legend in what is left of the last row."""
    cases = grouped(rows, "workload")
    below = len(cases) // 2 + 1
    figure, axes = pictures.sheet([1.8] * (len(cases) + below), 2)
    for place in axes[len(cases):].flat:
        place.axis("off")
    for line, ((workload,), case) in zip(axes, cases.items()):
        policies = grouped(case, "policy")
        for place, key, says in zip(line, ("write cost", "MB/s (modelled)"), ("write cost", "MB/s, modelled")):
            pictures.curves(place, {policy: {100 * r["utilisation"]: r[key] for r in rows_} for (policy,), rows_ in policies.items()})
            place.set_title(f"{workload}: {says}")
            place.set_ylim(bottom=0)
            place.set_xlabel("utilisation, %")
    labels = list(dict.fromkeys(r["policy"] for r in rows))
    places = iter(axes[len(cases):].flat)
    for ((workload,), case), place in zip(cases.items(), places):
        place.axis("on")
        for row in (row for row in case if row["utilisation"] == 0.7):
            steps(place, row["shares"], row["policy"], labels)
        place.set_title(f"{workload}, 70 %: % of segments")
        place.set_xlabel("live in a segment, %")
    next(places).legend(*axes[len(cases)][0].get_legend_handles_labels(), loc="center", frameon=False)
    into.save(figure, "sfs-utilisation")


def draw_cleaning(rows, into):
    """Of the samples in which anything is worth moving."""
    cases = {sample: case for sample, case in grouped(rows, "sample").items() if any(r["written"] for r in case)}
    figure, axes = pictures.sheet([0.6 + 0.19 * len(case) for case in cases.values()], 2)
    for line, ((sample,), case) in zip(axes, cases.items()):
        names = ["as it is" if r["strategy"] == "(none)" else ", ".join([r["strategy"], r["amount"], *([f"{r['buffer']} blocks"] if r["buffer"] else [])])
                 for r in case]
        for place, key, colour in zip(line, ("s (modelled)", "read s (modelled)"), pictures.OTHERS):
            drawn = place.barh(range(len(case)), [r[key] for r in case], color=colour[0])
            place.bar_label(drawn, [f"{r[key]:.1f}" for r in case], padding=2, fontsize=pictures.LETTERS - 1)
            place.set_yticks(range(len(case)), names if place is line[0] else [])
            place.invert_yaxis()
            place.margins(x=0.15)
        line[0].set_title(f"{sample}: cleaning, s (model)")
        line[1].set_title("reading all after it, s (model)")
    into.save(figure, "fragmentation-cleaning")


def draw_maps(rows, into):
    samples = list(dict.fromkeys(r["sample"] for r in rows))
    figure, ((axes,),) = pictures.sheet([0.8 + 0.28 * len(samples)])
    pictures.points(axes, samples, {how: {r["sample"]: r["s (modelled)"] for r in case} for (how,), case in grouped(rows, "how").items()}, log=False)
    axes.set_title("finding the owners of all blocks, nothing in memory, s (model)")
    pictures.shared_legend(figure, axes)
    into.save(figure, "fragmentation-map")


def merged(results):
    """One result of several; distributions of more counts join those there are."""
    result = {}
    for one in results:
        known = result.get("distributions", {}).get("rows", [])
        result |= one
        if known and "distributions" in one:
            rows = known + one["distributions"]["rows"]
            cases = list(dict.fromkeys(r["workload"] for r in rows))
            rows.sort(key=lambda r: (cases.index(r["workload"]), r["writes"]))
            result["distributions"] = {"rows": rows}
    return result


def draw(result, folder, prefix=""):
    """What there is of `result`; names of files begin with `prefix`."""
    into = Place(folder, prefix)
    if "distributions" in result:
        draw_distributions(result["distributions"]["rows"], into)
    if "costs" in result:
        draw_costs(result["costs"]["rows"], into)
    if "groups" in result:
        draw_groups(result, into)
    if "utilisations" in result:
        draw_utilisations(result["utilisations"]["rows"], into)
    if "cleaning" in result:
        draw_cleaning(result["cleaning"]["rows"], into)
        draw_maps(result["maps"]["rows"], into)
