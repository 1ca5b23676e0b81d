"""How plots look, for all experiments: one colour and mark for each filesystem, names at the ends of curves, points instead of bars on
logarithmic axes, legends beside the data."""

import re

MOST_CURVES = 6  # in one panel
# After Okabe and Ito, and Tol: eyes that do not tell red from green tell them apart, too.
FILESYSTEMS = {"varve": ("#0072b2", "o"), "ext4": ("#d55e00", "s"), "btrfs": ("#009e73", "^"), "xfs": ("#cc79a7", "D"), "ext2": ("#e69f00", "v"),
               "ext3": ("#882255", "<"), "fat": ("#332288", ">"), "f2fs": ("#56b4e9", "P"), "nilfs2": ("#b8a800", "X"), "fuse2fs": ("#7f7f7f", "d"),
               "passthrough_ll": ("#404040", "*")}
SAME = {"vfat": "fat", "mtools": "fat"}
# For what is no filesystem: policies, strategies, loads, devices.
OTHERS = (("#332288", "o"), ("#e69f00", "s"), ("#44aa99", "^"), ("#882255", "D"), ("#56b4e9", "v"), ("#7f7f7f", "P"))


def filesystem_of(name):
    """The one that `varve@hdd-desktop`, `varve:strategy=copying` or `btrfs-nodatacow` is a kind of; None for no filesystem."""
    base = re.split(r"[@: ]|-nodatacow", name.lower())[0]
    base = SAME.get(base, base)
    return base if base in FILESYSTEMS else None


def look_of(name, among=()):
    """(colour, mark). Several kinds of one filesystem in one panel, and what is no filesystem, go by their place in `among`."""
    known = filesystem_of(name)
    if known and sum(filesystem_of(other) == known for other in among) <= 1:
        return FILESYSTEMS[known]
    among = list(among)
    return OTHERS[(among.index(name) if name in among else 0) % len(OTHERS)]


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


def name_ends(axis, ends, size=8):
    """`ends`: [(name, colour, x, y)], as late as possible: when the limits of the axis are set. Writes each name behind the last point."""
    to_axes = axis.transData + axis.transAxes.inverted()
    least = size * axis.figure.dpi / 72 * 1.15 / axis.get_window_extent().height
    places = [to_axes.transform((x, y)) for _, _, x, y in ends]
    # Those that end together must not lie on each other.
    heights = [0.0] * len(ends)
    for group in ([i for i, place in enumerate(places) if place[0] > 0.9], [i for i, place in enumerate(places) if place[0] <= 0.9]):
        for i, height in zip(group, apart([places[i][1] for i in group], least)):
            heights[i] = height
    for (name, colour, x, y), (across, _), height in zip(ends, places, heights):
        axis.annotate(name, xy=(x, y), xycoords="data", xytext=(across + 0.04, height), textcoords="axes fraction", color=colour, fontsize=size, va="center",
                      annotation_clip=False, arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2})


def curves(axis, of, style="-", marks=True, size=8, looks=None):
    """`of`: {name: {x: y}}, at most MOST_CURVES. Two points are no curve: they stay points."""
    if len(of) > MOST_CURVES:
        raise ValueError(f"{len(of)} curves in one panel: nobody could follow them")
    for name, points in of.items():
        colour, mark = look_of(name, looks or of)
        axis.plot(list(points), list(points.values()), style if len(points) > 2 else "", color=colour, linewidth=1.4, marker=mark if marks or len(points) < 3 else "",
                  markersize=4)
    axis.grid(True, axis="y", linewidth=0.4, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    axis.pending_names = getattr(axis, "pending_names", []) + [(name, look_of(name, looks or of)[0], list(points)[-1], list(points.values())[-1])
                                                               for name, points in of.items() if points]
    axis.name_size = size


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


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
                    axis.annotate(number(value), (value, i), xytext=(away, 0), textcoords="offset points", ha=place, va="center", fontsize=7)
    axis.set_yticks(range(len(rows)), rows, fontsize=8)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    if log:
        axis.set_xscale("log")
    axis.margins(x=0.18)
    axis.grid(True, axis="x", linewidth=0.4, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)


def legend_below(axis, columns=3, size=7, gap=0.18):
    """Below the panel, where no data are."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=size, loc="upper center", bbox_to_anchor=(0.5, -gap), ncol=columns, frameon=False)


def shared_legend(figure, axis, columns=6, size=8):
    """One for all panels, at the top: `axis` has them all."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=columns, fontsize=size, frameon=False, bbox_to_anchor=(0.5, 1.0))


def save(figure, file, dpi=80, top=1.0):
    """When everything is drawn: names go beside the ends of curves, and nothing is cut off."""
    figure.tight_layout(rect=(0, 0, 1, top))
    if any(getattr(axis, "pending_names", []) for axis in figure.axes):
        figure.subplots_adjust(wspace=0.5)
        figure.canvas.draw()
    for axis in figure.axes:
        name_ends(axis, getattr(axis, "pending_names", []), getattr(axis, "name_size", 8))
    figure.savefig(file, dpi=dpi, bbox_inches="tight", facecolor="white")
