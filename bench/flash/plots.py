"""Figures 1 and 11 to 14, a panel each; two where both mappings are shown."""

import pictures
from tables import DRIVES, rate_of, ratio


def amplified(model):
    return lambda got, _: ratio(got[model]["bytes_programmed"], got[model]["write_bytes"])


def erased(model):
    return lambda got, first: ratio(got[model]["erases"], first[model]["erases"])


# Title, what is drawn of a filesystem's figures and those of the first one.
BARS = [("12: MB/s, SSD-M", lambda got, _: rate_of(got, "sfs-m")),
        ("13: WA, FAST", amplified("ftl-fast")), ("13: WA, page-mapped", amplified("ftl-page")),
        ("14: erases by the first one's, FAST", erased("ftl-fast")), ("14: erases by the first one's, page-mapped", erased("ftl-page"))]


def by_request(axis, found):
    pictures.curves(axis, found)
    axis.set_xscale("log", base=2)
    axis.set_title("1: random writes by request,\nas share of writes in a row (modelled)", fontsize=9)


def by_utilisation(axis, drive, found):
    """Of one drive, a curve for each load."""
    pictures.curves(axis, {load: {share: ratio(by[drive], DRIVES[drive][3]) for share, by in of.items() if drive in by} for load, of in found.items()})
    axis.set_ylim(bottom=0)
    axis.set_xlabel("share of the device in use")
    axis.set_title(f"11: {DRIVES[drive][0]}: the log's speed by utilisation,\nas share of writes in a row (modelled)", fontsize=9)


def bars(axis, title, value, results, names):
    for i, name in enumerate(names):
        values = [(value(by[name], by[next(iter(by))]) or 0) if name in by else 0 for by in results.values()]
        axis.bar([x + i / (len(names) + 1) for x in range(len(results))], values, 1 / (len(names) + 1), label=name, **of_kind(name, names))
    axis.set_xticks([x + 0.4 for x in range(len(results))], list(results), fontsize=8)
    axis.set_title(f"{title} (modelled)", fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)


def of_kind(name, names):
    """The colour of its filesystem, and for each kind of it another pattern."""
    base = pictures.filesystem_of(name)
    kinds = [other for other in names if pictures.filesystem_of(other) == base]
    return {"color": pictures.look_of(name)[0], "hatch": ("", "///", "...", "xx", "\\\\", "++", "oo")[kinds.index(name) % 7], "edgecolor": "white"}


def draw(data):
    def plot(file):
        import matplotlib.pyplot as plt
        figure, axes = plt.subplots(3, 3, figsize=(15, 12))
        panels = iter(axes.flat)
        by_request(next(panels), data["curves"])
        for drive in list(DRIVES)[:3]:
            by_utilisation(next(panels), drive, data["utilisation"])
        names = list(dict.fromkeys(name for by in data["filesystems"].values() for name in by))
        for title, value in BARS:
            axis = next(panels)
            bars(axis, title, value, data["filesystems"], names)
        pictures.shared_legend(figure, axis, columns=5)
        pictures.save(figure, file, top=0.94)
    return plot
