"""All figures in one picture: filesystems, a row for each run (7.2 to 7.4); cleaning (7.5 to 7.9); a disk that is used now and then."""

import itertools

import cleaning
import pictures
import samples

WIDE = 2  # panels in a row


def stacked(axis, title, names, parts):
    """`parts`: {label: {name: joules}}; the sum stands behind."""
    names = [name for name in names if any(name in of for of in parts.values())]
    left = [0.0] * len(names)
    for label, of in parts.items():
        values = [of.get(name, 0) for name in names]
        axis.barh(names, values, left=left, label=label, color=pictures.look_of(label, parts)[0])
        left = [a + b for a, b in zip(left, values)]
    for line, total in enumerate(left):
        axis.annotate(pictures.number(total), (total, line), xytext=(3, 0), textcoords="offset points", va="center", fontsize=pictures.LETTERS - 1)
    axis.invert_yaxis()
    axis.margins(x=0.2)
    finish(axis, title)


def beside(axis, title, names, parts):
    """A row for each name, a point for each part."""
    pictures.points(axis, list(names), parts, log=False)
    finish(axis, title)


def finish(axis, title):
    axis.set_title(title)
    if len(axis.get_legend_handles_labels()[0]) > 1:
        pictures.legend_below(axis, columns=2, gap=0.14)


def height_of(panel):
    """The names of the rows, and as many lines of the legend as it needs."""
    _, _, names, parts = panel
    return 0.9 + 0.21 * len(names) + 0.2 * -(-len(parts) // 2)


def plain(name):
    return name.replace("varve:strategy=", "varve, ").replace("varve:", "varve, ")


def filesystems(by, figures, run):
    """[(draw, title, names, parts)] of figures 7.2 to 7.4."""
    out = []
    for title, phases in figures:
        parts = {phase: {name: of[phase]["modelled_joules"] for name, of in by.items() if phase in of}
                 for phase in (phases if phases is not samples.READS else phases[:1])}
        parts = {phase: {plain(name): joules for name, joules in of.items()} for phase, of in parts.items()}
        out.append((stacked, f"{title}\n({run}), J (modelled)", list(map(plain, by)), {phase: of for phase, of in parts.items() if of}))
    return out


def modes(rows, cost, buffer):
    """Of figures 7.5 to 7.9."""
    def joules(key):
        return cost[key]["microdrive"]["modelled_joules"]

    chosen = list(dict.fromkeys(row["sample"] for row in rows))
    of = [row for row in rows if row["strategy"] != "(none)" and row["buffer"] == buffer and row["written"] > 0]
    work, after, tenth = {}, {}, {}
    for row in of:
        cleaned, read = joules(f"{cleaning.tag(row)}-cleaning"), joules(f"{cleaning.tag(row)}-reading")
        if row["amount"] == "all":
            work.setdefault(row["strategy"], {})[row["sample"]] = cleaned
            after.setdefault(row["strategy"], {})[row["sample"]] = read / joules(f"{row['sample']}-none-reading")
        if row["sample"] == cleaning.WORN or cleaning.WORN not in chosen:
            tenth.setdefault(row["amount"], {})[row["strategy"]] = cleaned
    maps = {how: {sample: joules(f"{sample}-map-{way}") for sample in chosen} for how, way in ((".mfile", "mfile"), ("a scan", "scanning"))}
    worn = cleaning.WORN if cleaning.WORN in chosen else "all samples"
    return [(beside, "Figure 7.5: cleaning,\nJ (modelled)", chosen, work),
            (beside, "Figures 7.6, 7.7: reading after\ncleaning, by before (modelled)", chosen, after),
            (beside, f"Figure 7.8: all, and a tenth\n({worn}), J (modelled)", list(cleaning.STRATEGIES), tenth),
            (beside, "Figure 7.9: the map,\nJ (modelled)", chosen, maps)]


def used(results):
    """Of a disk that is used now and then."""
    out = []
    for phase, by in results.items():
        parts = {plain(name): {case: of[name]["modelled_joules"] for case, of in by.items()} for name in next(iter(by.values()))}
        out.append((beside, f"A disk that is used now and then,\n{phase}, J (modelled)", list(by), parts))
    return out


def draw(data, figures, buffer):
    runs = [filesystems(by["microdrive"], figures, run) for run, by in data["filesystems"].items() if by["microdrive"]]
    panels = [panel for line in itertools.zip_longest(*runs[:WIDE]) for panel in line if panel] + [panel for run in runs[WIDE:] for panel in run]
    if data.get("cleaning"):
        panels += modes(data["modes"], data["cleaning"], buffer)
    if data.get("used"):
        panels += used(data["used"])
    panels = [panel for panel in panels if panel[-1]]

    def plot(file):
        lines = [panels[i:i + WIDE] for i in range(0, len(panels), WIDE)]
        canvas, axes = pictures.sheet([max(map(height_of, line)) for line in lines], WIDE, 7.2)
        for axis in axes.flat:
            axis.axis("off")
        for axis, (show, *what) in zip(axes.flat, panels):
            axis.axis("on")
            show(axis, *what)
        pictures.save(canvas, file)
    return plot if panels else None
