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
    axes.stairs(shares, [i / bins for i in range(bins + 1)], label=label, linewidth=1.5, color=pictures.look_of(label, labels)[0])
    axes.set_xlabel("live share of a segment", fontsize=8)
    axes.set_ylabel("share of segments", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def panels(count, columns=3):
    rows = (count + columns - 1) // columns
    figure, axes = plt.subplots(rows, columns, figsize=(4.3 * columns, 3.1 * rows), squeeze=False)
    flat = [a for line in axes for a in line]
    for unused in flat[count:]:
        unused.set_visible(False)
    return figure, flat


def draw_distributions(rows, into):
    cases = grouped([r for r in rows if sum(r["shares"]) > 0], "workload", "writes")
    columns = max(2, len(grouped(rows, "writes")))
    figure, axes = panels(len(cases), columns)
    for place, ((workload, writes), case) in zip(axes, cases.items()):
        labels = list(dict.fromkeys(row["policy"] for row in rows))
        for row in case:
            steps(place, row["shares"], row["policy"], labels)
        place.set_title(f"{workload}, {writes} writes", fontsize=9)
        pictures.legend_below(place, columns=2, gap=0.22)
    into.save(figure, "policies-utilisation")


def draw_costs(rows, into):
    cases = grouped([r for r in rows if r["2/(1-u)"] is not None], "cleaning")  # else it ran out of space
    keys = {"2/(1-u)": "mean over cleans of 2/(1-u)", "(new+read+moved)/new": "counted: (new + read + moved)/new"}
    figure, axes = panels(len(keys) * len(cases), len(keys))
    panel = iter(axes)
    for (cleaning,), case in cases.items():
        for key, says in keys.items():
            place = next(panel)
            pictures.curves(place, {policy: {r["occupancy"]: r[key] for r in line} for (policy,), line in grouped(case, "policy").items()})
            place.set_title(f"{cleaning}\n{says}", fontsize=8)
            place.set_xlabel("occupancy of the volume", fontsize=8)
            place.set_ylabel("write cost", fontsize=8)
            place.set_ylim(bottom=0)
    into.save(figure, "policies-cost")


def bars(axes, rows, key, title):
    names = list(dict.fromkeys(r["policy"] for r in rows))
    groups = grouped(rows, "workload")
    width = 0.8 / len(groups)
    for i, ((workload,), case) in enumerate(groups.items()):
        at = [names.index(r["policy"]) + (i - (len(groups) - 1) / 2) * width for r in case]
        drawn = axes.bar(at, [r[key] for r in case], width, label=workload, color=pictures.look_of(workload, [w for w, in groups])[0])
        axes.bar_label(drawn, [pictures.number(r[key]) for r in case], fontsize=6)
    axes.set_xticks(range(len(names)), [n.replace(", ", ",\n") for n in names], fontsize=7)
    axes.set_title(title, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    pictures.legend_below(axes, gap=0.3)


def draw_groups(result, into):
    figure, axes = panels(2, 2)
    bars(axes[0], result["groups"]["rows"], "write cost", "write cost by number of groups, 85 %")
    bars(axes[1], result["schemes"]["rows"], "write cost", "by quantisation and victim policy, 85 %")
    into.save(figure, "sfs-groups")


def draw_utilisations(rows, into):
    cases = grouped(rows, "workload")
    figure, axes = panels(3 * len(cases))
    for column, ((workload,), case) in enumerate(cases.items()):
        policies = grouped(case, "policy")
        labels = [policy for policy, in policies]
        for line, key in enumerate(("write cost", "MB/s (modelled)")):
            pictures.curves(axes[line * len(cases) + column], {policy: {r["utilisation"]: r[key] for r in rows_} for (policy,), rows_ in policies.items()})
            axes[line * len(cases) + column].set_xlabel("utilisation", fontsize=8)
            axes[line * len(cases) + column].set_ylim(bottom=0)
        for row in case:
            if row["utilisation"] == 0.7:
                steps(axes[2 * len(cases) + column], row["shares"], row["policy"], labels)
        for line, label in ((0, "write cost"), (1, "MB/s, modelled"), (2, "share of segments, at 70 %")):
            axes[line * len(cases) + column].set_title(f"{workload}: {label}", fontsize=9)
        pictures.legend_below(axes[2 * len(cases) + column], columns=2, gap=0.22)
    into.save(figure, "sfs-utilisation")


def draw_cleaning(rows, into):
    cases = grouped(rows, "sample")
    figure, axes = panels(2 * len(cases), len(cases))
    for column, ((sample,), case) in enumerate(cases.items()):
        names = [f"{r['strategy']}\n{r['amount']}" + (f", {r['buffer']} blocks" if r["buffer"] else "") for r in case]
        for line, key in ((0, "s (modelled)"), (1, "read s (modelled)")):
            place = axes[line * len(cases) + column]
            drawn = place.barh(range(len(case)), [r[key] for r in case], color=pictures.OTHERS[line][0])
            place.bar_label(drawn, [pictures.number(r[key]) for r in case], fontsize=6, padding=2)
            place.spines[["top", "right"]].set_visible(False)
            place.set_yticks(range(len(case)), names, fontsize=6)
            place.invert_yaxis()
            place.set_title(f"{sample}: {'cleaning' if line == 0 else 'reading all after'}, s (model)", fontsize=8)
    into.save(figure, "fragmentation-cleaning")


def draw_maps(rows, into):
    figure, axes = panels(1, 1)
    samples = list(dict.fromkeys(r["sample"] for r in rows))
    ways = grouped(rows, "how")
    for i, ((how,), case) in enumerate(ways.items()):
        drawn = axes[0].bar([samples.index(r["sample"]) + (i - 0.5) * 0.4 for r in case], [r["s (modelled)"] for r in case], 0.4, label=how,
                            color=pictures.look_of(how, [way for way, in ways])[0])
        axes[0].bar_label(drawn, [pictures.number(r["s (modelled)"]) for r in case], fontsize=7)
    axes[0].set_xticks(range(len(samples)), samples)
    axes[0].set_ylabel("s, modelled")
    axes[0].set_title("Finding the owners of all blocks, nothing in memory", fontsize=9)
    axes[0].spines[["top", "right"]].set_visible(False)
    pictures.legend_below(axes[0])
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
