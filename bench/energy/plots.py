"""All figures in one picture: filesystems, a row for each run (7.2 to 7.4); cleaning (7.5 to 7.9); a disk that is used now and then."""

import cleaning
import pictures
import samples

WIDE = 3  # panels in a row


def stacked(axis, title, names, parts):
    """`parts`: {label: {name: joules}}"""
    bottom = [0.0] * len(names)
    for label, of in parts.items():
        values = [of.get(name, 0) for name in names]
        axis.bar(names, values, bottom=bottom, label=label, color=pictures.look_of(label, parts)[0])
        bottom = [a + b for a, b in zip(bottom, values)]
    finish(axis, title)


def beside(axis, title, names, parts):
    """The same, beside each other."""
    width = 1 / (len(parts) + 1)
    for i, (label, of) in enumerate(parts.items()):
        axis.bar([x + i * width for x in range(len(names))], [of.get(name, 0) for name in names], width, label=label,
                 color=pictures.look_of(label, parts)[0])
    axis.set_xticks([x + width * (len(parts) - 1) / 2 for x in range(len(names))], names)
    finish(axis, title)


def finish(axis, title):
    axis.set_title(f"{title} (modelled)", fontsize=8)
    axis.tick_params(axis="x", rotation=60, labelsize=7)
    axis.spines[["top", "right"]].set_visible(False)
    pictures.legend_below(axis, gap=0.3)


def filesystems(by, figures, run):
    """[(draw, title, names, parts)] of figures 7.2 to 7.4."""
    out = []
    for title, phases in figures:
        parts = {phase: {name: of[phase]["modelled_joules"] for name, of in by.items() if phase in of}
                 for phase in (phases if phases is not samples.READS else phases[:1])}
        out.append((stacked, f"{title} ({run}): J, Microdrive", list(by), {phase: of for phase, of in parts.items() if of}))
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
    return [(beside, "Figure 7.5: cleaning: J, Microdrive", chosen, work),
            (beside, "Figures 7.6, 7.7: reading after cleaning, by before", chosen, after),
            (beside, f"Figure 7.8: all, and a tenth ({worn}): J, Microdrive", list(cleaning.STRATEGIES), tenth),
            (beside, "Figure 7.9: the map: J, Microdrive", chosen, maps)]


def used(results):
    """Of a disk that is used now and then."""
    return [(beside, f"A disk that is used now and then, {phase}: J", list(by), {name: {case: of[name]["modelled_joules"] for case, of in by.items()}
                                                                               for name in next(iter(by.values()))})
            for phase, by in results.items()]


def draw(data, figures, buffer):
    panels = [panel for run, by in data["filesystems"].items() if by["microdrive"] for panel in filesystems(by["microdrive"], figures, run)]
    if data.get("cleaning"):
        panels += modes(data["modes"], data["cleaning"], buffer)
    if data.get("used"):
        panels += used(data["used"])
    panels = [panel for panel in panels if panel[-1]]

    def plot(file):
        import matplotlib.pyplot as plt
        height = -(-len(panels) // WIDE)
        canvas, axes = plt.subplots(height, WIDE, figsize=(15, 3.9 * height), squeeze=False)
        for axis in axes.flat:
            axis.axis("off")
        for axis, (show, *what) in zip(axes.flat, panels):
            axis.axis("on")
            show(axis, *what)
        pictures.save(canvas, file)
    return plot if panels else None
