"""How plots look, for all experiments: one colour and mark for each filesystem, names at the ends of curves, points instead of bars on
logarithmic axes, legends beside the data."""

import re

MOST_CURVES = 6  # in one panel
# A page shows a picture 780 pixels wide, a telephone 400: letters of 9 points are read on both.
WIDTH, DPI, LETTERS = 6.0, 130, 9
# After Okabe and Ito, and Tol: eyes that do not tell red from green tell them apart, too.
FILESYSTEMS = {"varve": ("#0072b2", "o"), "ext4": ("#d55e00", "s"), "btrfs": ("#009e73", "^"), "xfs": ("#cc79a7", "D"), "ext2": ("#e69f00", "v"),
               "ext3": ("#882255", "<"), "fat": ("#332288", ">"), "f2fs": ("#56b4e9", "P"), "nilfs2": ("#b8a800", "X"), "fuse2fs": ("#7f7f7f", "d"),
               "passthrough_ll": ("#404040", "*")}
SAME = {"vfat": "fat", "mtools": "fat"}
# For what is no filesystem: policies, strategies, loads, devices.
OTHERS = (("#332288", "o"), ("#e69f00", "s"), ("#44aa99", "^"), ("#882255", "D"), ("#56b4e9", "v"), ("#7f7f7f", "P"))


def filesystem_of(name):
    """The one that `varve@hdd-desktop`, `varve, copying`, `ext4+discard` or `btrfs-nodatacow` is a kind of; None for no filesystem."""
    base = re.split(r"[@:, +]|-nodatacow", name.lower())[0]
    base = SAME.get(base, base)
    return base if base in FILESYSTEMS else None


def shade(colour, step):
    """The colour, lighter and darker in turn."""
    parts = [int(colour[i:i + 2], 16) for i in (1, 3, 5)]
    towards, share = (255, 0.5) if step % 2 else (0, 0.5)
    return "#" + "".join(f"{round(part + (towards - part) * share * (0.6 + 0.4 * (step > 2))):02x}" for part in parts)


def look_of(name, among=()):
    """(colour, mark). Of several kinds of one filesystem the first has its colour, the others have shades of it. Where all in a panel are
    of one filesystem, or of none, they go by their place in `among`."""
    known, among = filesystem_of(name), list(among)
    kinds = [other for other in among if filesystem_of(other) == known]
    if known and (len(kinds) <= 1 or name == kinds[0] and len(kinds) < len(among)):
        return FILESYSTEMS[known]
    if known and len(kinds) < len(among):
        step = kinds.index(name)
        return shade(FILESYSTEMS[known][0], step), OTHERS[step % len(OTHERS)][1]
    return OTHERS[(among.index(name) if name in among else 0) % len(OTHERS)]


def sheet(heights, columns=1, width=WIDTH):
    """(figure, rows of panels), each row as high as said, in inches."""
    from matplotlib import pyplot
    pyplot.rcParams.update({"font.size": LETTERS, "axes.titlesize": LETTERS, "axes.labelsize": LETTERS, "xtick.labelsize": LETTERS - 1,
                            "ytick.labelsize": LETTERS - 1, "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False})
    return pyplot.subplots(len(heights), columns, figsize=(width, sum(heights)), squeeze=False, gridspec_kw={"height_ratios": heights})


def plain_log(axis, which="x"):
    """A logarithmic axis with 0.1, 1 and 10 for 10⁻¹, 10⁰ and 10¹."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
    (axis.set_xscale if which == "x" else axis.set_yscale)("log")
    of = axis.xaxis if which == "x" else axis.yaxis
    of.set_major_locator(LogLocator(numticks=8))
    of.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    of.set_minor_formatter(NullFormatter())


def apart(places, least):
    """The places, moved as little as needed to be at least so far apart, in their order."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = [places[i] for i in order]
    for _ in range(200):
        for i in range(1, len(moved)):
            lack = least - (moved[i] - moved[i - 1])
            if lack > 1e-9:
                moved[i - 1] -= lack / 2
                moved[i] += lack / 2
    result = [0.0] * len(places)
    for i, place in zip(order, moved):
        result[i] = place
    return result


def others_at(axis, x, y):
    """What the curves have at x, but the one that goes through (x, y)."""
    from numpy import interp
    found = [interp(x, line.get_xdata(), line.get_ydata()) for line in axis.lines if min(line.get_xdata()) <= x <= max(line.get_xdata())]
    return [value for value in found if value != y]


def name_ends(axis, ends, size=LETTERS - 1):
    """`ends`: [(name, colour, x, y)], as late as possible: when the limits of the axis are set. Writes each name behind the last point."""
    to_axes = axis.transData + axis.transAxes.inverted()
    least = size * axis.figure.dpi / 72 * 1.15 / axis.get_window_extent().height
    places = [to_axes.transform((x, y)) for _, _, x, y in ends]
    # Those that end together must not lie on each other.
    heights = [place[1] for place in places]
    late = [i for i, place in enumerate(places) if place[0] > 0.9]
    for i, height in zip(late, apart([heights[i] for i in late], least)):
        heights[i] = height
    for (name, colour, x, y), (across, _), height in zip(ends, places, heights):
        text = {"color": colour, "fontsize": size, "va": "center", "annotation_clip": False}
        if across <= 0.9:  # behind it other curves go on
            side = -1 if any(value > y for value in others_at(axis, x, y)) else 1
            axis.annotate(name, xy=(x, y), xytext=(0, side * size), textcoords="offset points", ha="center", **text)
        else:
            axis.annotate(name, xy=(x, y), xytext=(across + 0.04, height), textcoords="axes fraction",
                          arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}, **text)


def curves(axis, of, style="-", marks=True, size=LETTERS - 1, looks=None):
    """`of`: {name: {x: y}}, at most MOST_CURVES. Two points are no curve: they stay points."""
    if len(of) > MOST_CURVES:
        raise ValueError(f"{len(of)} curves in one panel: nobody could follow them")
    for name, points in of.items():
        colour, mark = look_of(name, looks or of)
        axis.plot(list(points), list(points.values()), style if len(points) > 2 else "", color=colour, linewidth=1.4, markersize=4, label=name,
                  marker=mark if marks or len(points) < 3 else "")
    axis.grid(True, axis="y", linewidth=0.4, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    axis.pending_names = getattr(axis, "pending_names", []) + [(name, look_of(name, looks or of)[0], list(points)[-1], list(points.values())[-1])
                                                               for name, points in of.items() if points]
    axis.name_size = size


def number(value):
    """Three digits, two of what is small; no more than there are."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.1 else f"{value:.2g}"


def from_zero(axis, least):
    """The axis begins at 0, or as much before it as the text left of the least value needs."""
    right = axis.get_xlim()[1]
    axis.set_xlim(0, right)
    ticks = [tick for tick in axis.get_xticks() if 0 <= tick <= right]
    room = 0.22 if axis.get_subplotspec().get_gridspec().ncols == 1 else 0.36
    axis.set_xlim(0 if least is None else min(0, least - room * right), right)
    axis.set_xticks(ticks)


def points(axis, rows, of, values=True, log=True):
    """A line for each of `rows`, on it a point for each name: {name: {row: value}}. On a logarithmic axis no bar has a beginning."""
    for name, by in of.items():
        colour, mark = look_of(name, of)
        at = [i for i, row in enumerate(rows) if by.get(row)]
        axis.plot([by[rows[i]] for i in at], at, linestyle="none", marker=mark, color=colour, markersize=6, label=name)
    for i, row in enumerate(rows):
        found = sorted(by[row] for by in of.values() if by.get(row))
        if len(found) > 1:
            axis.plot([found[0], found[-1]], [i, i], color="#bbbbbb", linewidth=1, zorder=0)
        if values and found:
            for place, value in {"right": found[0], "left": found[-1]}.items():
                away = -7 if place == "right" else 7
                if place == "left" or len(found) > 1:
                    axis.annotate(number(value), (value, i), xytext=(away, 0), textcoords="offset points", ha=place, va="center", fontsize=LETTERS - 1)
    axis.set_yticks(range(len(rows)), rows)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.margins(x=0.18)
    if log:
        plain_log(axis)
    else:
        from_zero(axis, min((value for by in of.values() for value in by.values()), default=0) if values else None)
    axis.grid(True, axis="x", linewidth=0.4, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)


def ranges(axis, rows, of, unit=""):
    """For each of `rows` a lane for each name, from a lower to a higher value: {name: {row: (low, high)}}, with both as text."""
    lanes = 1 / (len(of) + 1)
    for i, (name, by) in enumerate(of.items()):
        colour, mark = look_of(name, of)
        at = [(row, line + (i - (len(of) - 1) / 2) * lanes) for line, row in enumerate(rows) if row in by]
        for row, height in at:
            low, high = by[row]
            axis.plot([low, high], [height, height], color=colour, linewidth=1)
            axis.annotate(f"{number(low)}, {number(high)}", (high, height), xytext=(6, 0), textcoords="offset points", va="center", fontsize=LETTERS - 2)
        axis.plot([by[row][0] for row, _ in at], [height for _, height in at], linestyle="none", marker=mark, color=colour, markersize=4.5, label=name)
        axis.plot([by[row][1] for row, _ in at], [height for _, height in at], linestyle="none", marker=mark, color=colour, markersize=4.5,
                  markerfacecolor="white")
    for line in range(1, len(rows)):
        axis.axhline(line - 0.5, color="#dddddd", linewidth=0.6)
    axis.set_yticks(range(len(rows)), rows)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    plain_log(axis)
    axis.margins(x=0.12)
    axis.set_xlabel(unit)


def legend_below(axis, columns=3, size=LETTERS - 1, gap=0.18):
    """Below the panel, where no data are."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=size, loc="upper center", bbox_to_anchor=(0.5, -gap), ncol=columns, frameon=False)


def shared_legend(figure, axis, columns=4, size=LETTERS):
    """One for all panels, above them: `axis` has them all."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=columns, fontsize=size, frameon=False, bbox_to_anchor=(0.5, 1.0), handletextpad=0.3,
                  columnspacing=1.2)


def save(figure, file, dpi=DPI):
    """When everything is drawn: names go beside the ends of curves, and nothing is cut off."""
    figure.tight_layout()
    if any(getattr(axis, "pending_names", []) for axis in figure.axes):
        figure.subplots_adjust(wspace=0.75 if figure.axes[0].get_subplotspec().get_gridspec().ncols == 2 else 0.5)
        figure.canvas.draw()
    for axis in figure.axes:
        name_ends(axis, getattr(axis, "pending_names", []), getattr(axis, "name_size", 8))
    figure.savefig(file, dpi=dpi, bbox_inches="tight", facecolor="white")
