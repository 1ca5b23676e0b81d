"""Figures of a run, tables and plots of them."""

KINDS = ("read", "write", "flush", "discard")


def figures(before, after, operations):
    def grown(key):
        return after[key] - before[key]

    # What the device does by itself is work that the requests have made: it must not pay to let it wait.
    busy = grown("device_seconds") + grown("background_seconds")
    out = {"operations": operations, "device_seconds": busy, "background_seconds": grown("background_seconds"),
           "bytes_programmed": grown("bytes_programmed"), "erases": grown("erases"), "seeks": grown("seeks"),
           "modelled_joules": grown("modelled_joules")}
    for kind in KINDS:
        out[f"{kind}_requests"] = after[kind]["requests"] - before[kind]["requests"]
        out[f"{kind}_bytes"] = after[kind]["bytes"] - before[kind]["bytes"]
    return out


def longest(got):
    """Seconds of the device; none if no call was timed."""
    return max((most for _, most in got["waits"].values()), default=None)


def line(model, row, name, got):
    waits = ", ".join(f"{call} {most:.2f} s (p99.9 {usual:.2f})" for call, (usual, most) in got["waits"].items())
    per = got["device_seconds"] / got["operations"] * 1000
    return (f"{model:11} {row:36} {name:14} {per:9.3f} ms/op  {got['device_seconds']:8.1f} device s"
            f"  {got['bytes_programmed'] / got['operations'] / 1024:8.1f} KiB/op{waits and '  longest '}{waits}")


def best(got, names, key):
    """Of an operation: parts end when their time is over, however much was done."""
    values = [got[name][key] / got[name]["operations"] for name in names if name in got]
    return min(values) if values else None


def ratio(part, whole):
    if part is None or whole is None or part == whole == 0:
        return None
    return part / whole if whole else "∞"


# Models whose power has a source (docs/devices.md).
SOURCED = ("hdd-laptop", "hdd-laptop-7200", "hdd-desktop", "ssd-page", "ssd-hybrid")


def note_of(key, models):
    """A joule that rests on an unsourced power is no amount."""
    unsourced = [model for model in models if model not in SOURCED]
    if key != "modelled_joules" or not unsourced:
        return ""
    return f" The power of {', '.join(unsourced)} is unsourced: whether above or below 1 may be told, and not by how much."


TITLES = {"device_seconds": "Device time of ext4 by that of Varve: above 1 Varve is faster", "bytes_programmed": "Bytes programmed, likewise",
          "modelled_joules": "Modelled joules while the device works, likewise"}


def ratios(results, names, key):
    """How many times as much of `key` ext4 takes, with the better of its two settings, as Varve with the better of its."""
    ext4 = [name for name in names if name.startswith("ext4")]
    varve = [name for name in names if name.startswith("varve")]
    rows = list(dict.fromkeys(row for by in results.values() for row in by))
    return [[row] + [ratio(best(by.get(row, {}), ext4, key), best(by.get(row, {}), varve, key)) for by in results.values()] for row in rows]


WAITING = ["device", "work", "filesystem", "operations", "seconds", "ms an operation", "longest call"]


def waiting(results):
    """Only where the device is as slow as a real one."""
    out = []
    for model, rows in results.items():
        for row, by in rows.items():
            for name, got in by.items():
                took, count = got["waited_seconds"], got["operations"]
                out.append([model, row, name, count, took, 1000 * took / count, longest(got)])
    return out


def plot(results, path, waited=False):
    key = "waited_seconds" if waited else "device_seconds"
    import pictures

    figure, axes = pictures.sheet([0.7 + 0.27 * len(rows) for rows in results.values()])
    for axis, (model, rows) in zip(axes[:, 0], results.items()):
        names = list(dict.fromkeys(name for got in rows.values() for name in got))
        of = {name: {row: got[name][key] / got[name]["operations"] * 1000 for row, got in rows.items() if name in got} for name in names}
        pictures.points(axis, list(rows), of)
        axis.set_title(f"{model}: {'what one waits for' if waited else 'device time of'} an operation, ms")
    pictures.shared_legend(figure, axes[0][0])
    pictures.save(figure, path)
