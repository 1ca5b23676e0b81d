"""Pictures of what bench_published --json wrote: one for each group of figures, into a folder."""

from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


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
        figure.tight_layout()
        figure.savefig(self.folder / f"{self.prefix}{name}.png", dpi=80)
        plt.close(figure)


def steps(axes, shares, label):
    bins = len(shares)
    axes.stairs(shares, [i / bins for i in range(bins + 1)], label=label, linewidth=1.3)
    axes.set_xlabel("live share of a segment")
    axes.set_ylabel("share of segments")


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
        for row in case:
            steps(place, row["shares"], row["policy"])
        place.set_title(f"{workload}, {writes} writes", fontsize=9)
        place.legend(fontsize=6)
    into.save(figure, "policies-utilisation")


def draw_costs(rows, into):
    cases = grouped([r for r in rows if r["2/(1-u)"] is not None], "cleaning")  # else it ran out of space
    figure, axes = panels(len(cases), 2)
    for place, ((cleaning,), case) in zip(axes, cases.items()):
        for (policy,), line in grouped(case, "policy").items():
            x = [r["occupancy"] for r in line]
            place.plot(x, [r["2/(1-u)"] for r in line], marker="o", label=f"{policy}, 2/(1-u)")
            place.plot(x, [r["(new+read+moved)/new"] for r in line], marker=".", linestyle=":", label=f"{policy}, counted")
        place.set_title(cleaning, fontsize=9)
        place.set_xlabel("occupancy of the volume")
        place.set_ylabel("write cost")
        place.set_ylim(bottom=0)
        place.legend(fontsize=7)
    into.save(figure, "policies-cost")


def bars(axes, rows, key, title):
    names = list(dict.fromkeys(r["policy"] for r in rows))
    groups = grouped(rows, "workload")
    width = 0.8 / len(groups)
    for i, ((workload,), case) in enumerate(groups.items()):
        at = [names.index(r["policy"]) + (i - (len(groups) - 1) / 2) * width for r in case]
        axes.bar(at, [r[key] for r in case], width, label=workload)
    axes.set_xticks(range(len(names)), [n.replace(", ", ",\n") for n in names], fontsize=7)
    axes.set_title(title, fontsize=9)
    axes.legend(fontsize=7)


def draw_groups(result, into):
    figure, axes = panels(2, 2)
    bars(axes[0], result["groups"]["rows"], "write cost", "write cost by number of groups, 85 %")
    bars(axes[1], result["schemes"]["rows"], "write cost", "by quantisation and victim policy, 85 %")
    into.save(figure, "sfs-groups")


def draw_utilisations(rows, into):
    cases = grouped(rows, "workload")
    figure, axes = panels(3 * len(cases))
    for column, ((workload,), case) in enumerate(cases.items()):
        for (policy,), line in grouped(case, "policy").items():
            x = [r["utilisation"] for r in line]
            axes[column].plot(x, [r["write cost"] for r in line], marker="o", label=policy)
            axes[len(cases) + column].plot(x, [r["MB/s (modelled)"] for r in line], marker="o", label=policy)
            for row in line:
                if row["utilisation"] == 0.7:
                    steps(axes[2 * len(cases) + column], row["shares"], policy)
        for line, label in ((0, "write cost"), (1, "MB/s, modelled"), (2, "share of segments, at 70 %")):
            place = axes[line * len(cases) + column]
            place.set_title(f"{workload}: {label}", fontsize=9)
            place.legend(fontsize=7)
    into.save(figure, "sfs-utilisation")


def draw_cleaning(rows, into):
    cases = grouped(rows, "sample")
    figure, axes = panels(2 * len(cases), len(cases))
    for column, ((sample,), case) in enumerate(cases.items()):
        names = [f"{r['strategy']}\n{r['amount']}" + (f", {r['buffer']} blocks" if r["buffer"] else "") for r in case]
        for line, key in ((0, "s (modelled)"), (1, "read s (modelled)")):
            place = axes[line * len(cases) + column]
            place.barh(range(len(case)), [r[key] for r in case])
            place.set_yticks(range(len(case)), names, fontsize=6)
            place.invert_yaxis()
            place.set_title(f"{sample}: {'cleaning' if line == 0 else 'reading all after'}, s (model)", fontsize=8)
    into.save(figure, "fragmentation-cleaning")


def draw_maps(rows, into):
    figure, axes = panels(1, 1)
    samples = list(dict.fromkeys(r["sample"] for r in rows))
    for i, ((how,), case) in enumerate(grouped(rows, "how").items()):
        axes[0].bar([samples.index(r["sample"]) + (i - 0.5) * 0.4 for r in case], [r["s (modelled)"] for r in case], 0.4, label=how)
    axes[0].set_xticks(range(len(samples)), samples)
    axes[0].set_ylabel("s, modelled")
    axes[0].legend()
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
