"""Figures 1 and 11 to 14, a panel each; two where both mappings are shown."""

import pictures
from tables import DRIVES, rate_of, ratio


def amplified(model):
    return lambda got, _: ratio(got[model]["bytes_programmed"], got[model]["write_bytes"])


def erased(model):
    return lambda got, first: ratio(got[model]["erases"], first[model]["erases"])


# Title, what is drawn of a filesystem's figures and those of the first one.
ROWS = [("12: MB/s, SSD-M", lambda got, _: rate_of(got, "sfs-m")),
        ("13: WA, FAST", amplified("ftl-fast")), ("13: WA, page-mapped", amplified("ftl-page")),
        ("14: erases by row 1, FAST", erased("ftl-fast")), ("14: the same, page-mapped", erased("ftl-page"))]


def by_request(axis, found):
    pictures.curves(axis, found)
    axis.set_xscale("log", base=2)
    axis.set_xticks([1 << power for power in (12, 18, 24)], ["4 KiB", "256 KiB", "16 MiB"])
    axis.minorticks_off()
    axis.set_title("1: random writes by request,\nby writes in a row (modelled)")


def by_utilisation(axis, drive, found):
    """Of one drive, a curve for each load."""
    pictures.curves(axis, {load: {100 * share: ratio(by[drive], DRIVES[drive][3]) for share, by in of.items() if drive in by} for load, of in found.items()})
    axis.set_ylim(bottom=0)
    axis.set_xlabel("in use, %")
    axis.set_title(f"11: {DRIVES[drive][0]}, Varve,\nby writes in a row (modelled)")


def by_filesystem(axis, title, value, results, names):
    """A row for each filesystem, a point for each load."""
    of = {load: {name: value(by[name], by[next(iter(by))]) or 0 for name in names if name in by} for load, by in results.items()}
    pictures.points(axis, names, of, log=False)
    axis.set_title(f"{title} (modelled)")


def draw(data):
    """Figures 1 and 11 in four panels, then pairs of FAST and page-mapped flash beside each other."""
    def plot(file):
        names = list(dict.fromkeys(name for by in data["filesystems"].values() for name in by))
        high = 0.6 + 0.24 * len(names)
        figure, axes = pictures.sheet([2.0, 2.0, high, high, high], 2)
        by_request(axes[0][0], data["curves"])
        for axis, drive in zip((axes[0][1], *axes[1]), list(DRIVES)[:3]):
            by_utilisation(axis, drive, data["utilisation"])
        axes[2][1].axis("off")
        for axis, (title, value) in zip((axes[2][0], *axes[3], *axes[4]), ROWS):
            by_filesystem(axis, title, value, data["filesystems"], names)
            if axis in axes[:, 1]:
                axis.set_yticklabels([])
        axes[2][1].legend(*axes[2][0].get_legend_handles_labels(), loc="center", frameon=False, title="for all rows below")
        pictures.save(figure, file)
    return plot
