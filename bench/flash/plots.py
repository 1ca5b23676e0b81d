"""Figures 1 and 11 to 14, a panel each; two where both mappings are shown."""

from tables import DRIVES, rate_of, ratio


def amplified(model):
    return lambda got, _: ratio(got[model]["bytes_programmed"], got[model]["write_bytes"])


def erased(model):
    return lambda got, first: ratio(got[model]["erases"], first[model]["erases"])


# Title, what is drawn of a filesystem's figures and those of the first one.
BARS = [("12: MB/s, SSD-M", lambda got, _: rate_of(got, "sfs-m")),
        ("13: WA, FAST", amplified("ftl-fast")), ("13: WA, page-mapped", amplified("ftl-page")),
        ("14: erases by the first one's, FAST", erased("ftl-fast")), ("14: erases by the first one's, page-mapped", erased("ftl-page"))]


def by_request(axis, curves):
    for name, curve in curves.items():
        axis.plot(list(curve), list(curve.values()), marker="o", label=name)
    axis.set_xscale("log", base=2)
    axis.set_title("1: random writes by request,\nas share of writes in a row (modelled)", fontsize=9)
    if curves:
        axis.legend(fontsize=7)


def by_utilisation(axis, found):
    for style, (workload, of) in zip(("-o", "--s", ":^", "-.d"), found.items()):
        for color, drive in enumerate(DRIVES):
            points = {share: ratio(by[drive], DRIVES[drive][3]) for share, by in of.items() if drive in by}
            axis.plot(list(points), list(points.values()), style, color=f"C{color}", label=f"{workload}, {DRIVES[drive][0]}")
    axis.set_ylim(bottom=0)
    axis.set_title("11: the log's speed by utilisation,\nas share of writes in a row (modelled)", fontsize=9)
    if found:
        axis.legend(fontsize=6)


def bars(axis, title, value, results):
    names = list(dict.fromkeys(name for by in results.values() for name in by))
    for i, name in enumerate(names):
        values = [(value(by[name], by[next(iter(by))]) or 0) if name in by else 0 for by in results.values()]
        axis.bar([x + i / (len(names) + 1) for x in range(len(results))], values, 1 / (len(names) + 1), label=name, color=f"C{i % 10}")
    axis.set_xticks([x + 0.4 for x in range(len(results))], list(results), fontsize=8)
    axis.set_title(f"{title} (modelled)", fontsize=9)


def draw(data):
    def plot(file):
        import matplotlib.pyplot as plt
        figure, axes = plt.subplots(2, 4, figsize=(19, 8))
        *panels, last = axes.flat
        by_request(panels[0], data["curves"])
        by_utilisation(panels[1], data["utilisation"])
        for axis, (title, value) in zip(panels[2:], BARS):
            bars(axis, title, value, data["filesystems"])
        last.axis("off")
        last.legend(*panels[2].get_legend_handles_labels(), fontsize=7, loc="center")
        figure.tight_layout()
        figure.savefig(file, dpi=80)
    return plot
