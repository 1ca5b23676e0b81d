"""What is shown of aged filesystems: tables, what was published beside them, and the plot."""

import pictures
from experiment import log2_histogram, rank_stability
from image import ALIKE, MODELS


def show_reads(experiment, part, found):
    rows, at_each = [], []
    for name, (got, images) in found.items():
        for what in (what for what in MODELS if what in got["unaged"]):
            fresh = got["unaged"][what]["grep"]
            last = max(fresh)
            for kind in ("full", "empty"):
                by, fullness = got[kind][what]["grep"], images[kind].fullness
                rows.append([name, what, kind, f"{fullness[0]:.0%}", f"{fullness[last]:.0%}", by[0], by[last], fresh[last], by[last] / fresh[last]])
            at_each += [[name, what, number, seconds, *(got[kind][what]["grep"][number] / seconds for kind in ("full", "empty"))]
                        for number, seconds in fresh.items()]
    experiment.table(f"{part}: recursive grep, cold, seconds a GiB (modelled)",
                     ["filesystem", "device", "image", "full at first", "full at the end", "new", "at the end", "unaged copy", "aged by unaged"], rows)
    experiment.table(f"{part}: aged by an unaged copy of the same round (modelled)",
                     ["filesystem", "device", "round" if part == "FSFB" else "pulls", "unaged, s a GiB", "full", "empty"], at_each)
    show_devices(experiment, part, {name: got for name, (got, _) in found.items()})


def aged_by_unaged(got, what):
    """Full, empty; at the end."""
    last, fresh = max(got["unaged"][what]["grep"].items())
    return [got[kind][what]["grep"][last] / fresh for kind in ("full", "empty")]


def show_devices(experiment, part, found):
    rows = []
    for what, like in ((what, like) for what, others in ALIKE.items() for like in others):
        by = {device: {name: aged_by_unaged(got, device) for name, got in found.items() if device in got["unaged"]} for device in (what, like)}
        rows += [[name, f"{what}, {like}", *(by[device][name][i] for i in (0, 1) for device in (what, like))] for name in by[what]]
        order, tau = rank_stability({device: {name: figures[0] for name, figures in of.items()} for device, of in by.items()})
        if len(by[what]) > 1:
            rows.append(["rank of full", f"{what}, {like}", f"Kendall's tau {tau:.2f}", "the same" if order else "not the same", "", ""])
    experiment.table(f"{part}: aged by unaged, on two devices of a kind (modelled)",
                     ["filesystem", "devices", "full, first", "full, second", "empty, first", "empty, second"], rows,
                     "The disk has 500 GB, of which the image is the beginning, as published. A disk of its size makes seeks as long as they can be.")


def thirds(by):
    values = [seconds for _, seconds in sorted(by.items())]
    third = max(len(values) // 3, 1)
    return (sum(values[:third]) / third, sum(values[-third:]) / third) if values else (None, None)


def show_writes(experiment, found):
    rows = []
    for name, (got, _) in found.items():
        for what in MODELS:
            for kind in ("full", "empty"):
                if what not in got[kind]:
                    continue
                early, late = thirds(got[kind][what]["write"])
                rows.append([name, what, kind, len(got[kind][what]["write"]), early, late, late / early if early else None])
    experiment.table("FSFB: device seconds of a round (modelled)", ["filesystem", "device", "image", "rounds", "first third", "last third",
                                                                    "last by first"], rows)
    every = {what: sorted({number for got, _ in found.values() for kind in ("full", "empty") for number in got[kind].get(what, {}).get("write", {})})
             for what in MODELS}
    for what, numbers in every.items():
        rows = [[name, kind, *(got[kind].get(what, {}).get("write", {}).get(number) for number in numbers)]
                for name, (got, _) in found.items() for kind in ("full", "empty")]
        experiment.table(f"FSFB: device seconds of each round, {what} (modelled)", ["filesystem", "image", *map(str, numbers)], rows)


def shares_of(lengths):
    """{exponent: percent of the free bytes} of pieces by the power of two below their length; 4 KiB at least, and 64 MiB at most."""
    total, out = sum(lengths) or 1, {}
    for exponent, (_, held) in log2_histogram(lengths).items():
        place = min(max(exponent, 12), 26)
        out[place] = out.get(place, 0) + 100 * held / total
    return out


def name_of(exponent):
    return f"{1 << exponent - 10} KiB" if exponent < 20 else f"{1 << exponent - 20} MiB"


def show_free_space(experiment, part, found):
    """Returns {name: {round: shares}}."""
    by = {name: {number: shares_of(lengths) for number, lengths in images["full"].free.items() if lengths is not None}
          for name, (_, images) in found.items()}
    pieces = {(name, number): len(lengths) for name, (_, images) in found.items() for number, lengths in images["full"].free.items()
              if lengths is not None}
    classes = sorted({exponent for of in by.values() for shares in of.values() for exponent in shares})
    rows = [[name, number, pieces[name, number], *(shares.get(exponent, 0) for exponent in classes)]
            for name, of in by.items() for number, shares in of.items()]
    experiment.table(f"{part}: free space by the length of its pieces, % of the bytes (full image)",
                     ["filesystem", "round" if part == "FSFB" else "pulls", "pieces", *map(name_of, classes)], rows,
                     "By dumpe2fs, xfs_db, btrfs inspect-internal and varve map. A class goes to twice its length, the last has all above.")
    return by


def published(experiment, fsfb, git):
    """What is published as a number, beside the same here."""
    def part(found, name, kind, what):
        return found.get(name, ({},))[0].get(kind, {}).get(what)

    def more(found, name, what, kind, other):
        one, two = part(found, name, kind, what), part(found, name, other, what)
        if not one or not two:
            return None
        last = max(two["grep"])
        return 100 * (one["grep"][last] / two["grep"][last] - 1)

    def slower(name, what, kind):
        got = part(fsfb, name, kind, what)
        early, late = thirds(got["write"]) if got else (None, None)
        return 100 * (late / early - 1) if early else None

    rows = []
    for name, disk, ssd in (("ext4", "+40", "+25"), ("btrfs", "+25", "+100"), ("xfs", "0", "a little less than 0")):
        rows += [["2", f"FSFB, full, disk: a round at the end by one at the begin, {name}", disk, slower(name, "disk", "full")],
                 ["2", f"FSFB, full, SSD: the same, {name}", ssd, slower(name, "SSD", "full")],
                 ["2", f"FSFB, empty, disk: the same, {name}", "0", slower(name, "disk", "empty")],
                 ["1", f"FSFB, SSD: grep, empty by unaged, {name}", "+25 to +50", more(fsfb, name, "SSD", "empty", "unaged")],
                 ["1", f"FSFB, SSD: grep, full by empty, {name}", "0", more(fsfb, name, "SSD", "full", "empty")]]
    rows += [["3", "git, disk: grep, full by empty, ext4", "+20", more(git, "ext4", "disk", "full", "empty")],
             ["3", "git, disk: grep, empty by unaged, ext4", "+1200", more(git, "ext4", "disk", "empty", "unaged")]]
    experiment.table("Published, and here: by how many percent it takes longer (modelled)", ["figure", "what", "published, %", "here, %"],
                     sorted(rows, key=lambda row: row[0]))


KINDS = ("full", "empty", "unaged")


def plain(name):
    """As a picture names it: one device is in a panel, and a strategy is Varve's."""
    return name.split("@")[0].replace("varve:strategy=", "varve, ")


def sets_of(names):
    """[(words for a title, names)] with few enough curves for a panel: filesystems, and Varve's strategies."""
    kinds = [name for name in names if pictures.filesystem_of(name) == "varve" and ":" in name]
    others = [name for name in names if name not in kinds]
    return [(words, some[:pictures.MOST_CURVES]) for words, some in (("", others), (" (strategies)", kinds)) if some]


def at_the_end(found, what):
    """{kind: {filesystem: seconds a GiB of the last grep}}"""
    out = {}
    for name, got in found.items():
        for kind in (kind for kind in KINDS if got.get(kind, {}).get(what, {}).get("grep")):
            grep = got[kind][what]["grep"]
            out.setdefault(kind, {})[plain(name)] = grep[max(grep)]
    return out


def of_kind(found, names, what, key, kind="full"):
    """{filesystem: {round: seconds}}"""
    by = ((plain(name).removeprefix("varve, "), found[name].get(kind, {}).get(what, {}).get(key)) for name in names)
    return {name: of for name, of in by if of}


def rows_of(data):
    """Rows of two panels [(title, form, {name: …})], of the disk and the SSD: reads at the end, then rounds, then free space."""
    rows = []
    for part in ("fsfb", "git"):
        rows.append([(f"{part}, {what}: a cold grep at the end", "points", at_the_end(data[part], what)) for what in MODELS])
    for part, unit, keys in (("fsfb", "round", ("grep", "write")), ("git", "pulls", ("grep",))):
        for words, names in sets_of(data[part]):
            for key in keys:
                says = "a cold grep" if key == "grep" else "writing a round"
                rows.append([(f"{part}, {what}, full:\n{says}{words}", unit, of_kind(data[part], names, what, key)) for what in MODELS])
    for part in ("fsfb", "git"):
        free = {name: by[max(by)] for name, by in data[f"{part}_free"].items()}
        row = [(f"{part}: free space by length,\n%{words}", "lengths",
                {plain(name).removeprefix("varve, "): {exponent: free[name].get(exponent, 0) for exponent in range(12, 27)} for name in dict.fromkeys(names)})
               for words, names in sets_of(free)]
        rows.append(row)
    return [row for row in rows if any(of for _, _, of in row)]


def height_of(row):
    if row[0][1] == "points":
        return 0.8 + 0.22 * max(len(by) for by in row[0][2].values())
    return 2.4 if row[0][1] == "lengths" else 1.9


def draw_points(axis, of, first):
    names = list(dict.fromkeys(name for by in of.values() for name in by))
    pictures.points(axis, names, of, log=False)
    axis.set_xlabel("s a GiB (modelled)")
    if not first:
        axis.set_yticklabels([])


def draw_curves(axis, form, of):
    pictures.curves(axis, of, marks=form != "lengths")
    axis.set_ylim(bottom=0)
    if form == "lengths":
        axis.pending_names = []  # all end at nothing
        pictures.legend_below(axis, columns=2, gap=0.16)
        axis.set_xticks(range(12, 27, 4), [name_of(exponent) for exponent in range(12, 27, 4)])
    else:
        axis.set_xlabel(form)
        axis.locator_params(axis="x", integer=True, nbins=5)


def draw(data):
    def plot(file):
        rows = rows_of(data)
        figure, axes = pictures.sheet([height_of(row) for row in rows], 2)
        for line, row in zip(axes, rows):
            for axis in line[len(row):]:
                axis.axis("off")
            for axis, (title, form, of) in zip(line, row):
                if form == "points":
                    draw_points(axis, of, axis is line[0])
                else:
                    draw_curves(axis, form, of)
                axis.set_title(title)
            if row[0][1] not in ("points", "lengths"):
                line[0].set_ylabel("s a GiB" if "grep" in row[0][0] else "s")
        pictures.shared_legend(figure, axes[0][0])
        pictures.save(figure, file)
    return plot
