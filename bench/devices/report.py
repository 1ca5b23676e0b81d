"""Figures of a run, tables and plots of them."""

import platform

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


def line(model, row, name, got):
    per = got["device_seconds"] / got["operations"] * 1000
    return (f"{model:11} {row:36} {name:14} {per:9.3f} ms/op  {got['device_seconds']:8.1f} device s"
            f"  {got['bytes_programmed'] / got['operations'] / 1024:8.1f} KiB/op  longest {got['longest_call_seconds']:.2f} s")


def best(got, names, key):
    """Of an operation: parts end when their time is over, however much was done."""
    values = [got[name][key] / got[name]["operations"] for name in names if name in got]
    return min(values) if values else None


def ratio(part, whole):
    if part is None or whole is None:
        return "–"
    if whole == 0:
        return "–" if part == 0 else "∞"
    value = part / whole
    return f"{value:.0f}" if value >= 20 else f"{value:.2g}" if value >= 1 else f"{value:.2f}"


def table(results, names, key, title):
    """How many times as much of `key` ext4 takes, with the better of its two settings, as Varve with the better of its."""
    ext4 = [name for name in names if name.startswith("ext4")]
    varve = [name for name in names if name.startswith("varve")]
    models = list(results)
    rows = list(dict.fromkeys(row for model in models for row in results[model]))
    out = [f"### {title}", "", "| | " + " | ".join(models) + " |", "|---|" + "---:|" * len(models)]
    for row in rows:
        cells = []
        for model in models:
            got = results[model].get(row, {})
            cells.append(ratio(best(got, ext4, key), best(got, varve, key)))
        out.append(f"| {row} | " + " | ".join(cells) + " |")
    return out


def markdown(results, names, options):
    out = [f"Modelled devices of {options.size} MiB, speed {options.speed:g}, seed {options.seed}; Linux {platform.release()}.", ""]
    out += table(results, names, "device_seconds", "Device time of ext4 by that of Varve: above 1 Varve is faster")
    out += [""] + table(results, names, "bytes_programmed", "Bytes programmed, likewise")
    out += [""] + table(results, names, "modelled_joules", "Modelled joules, likewise")
    return "\n".join(out) + "\n"


def plot(results, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(results), 1, figsize=(12, 4 * len(results)), squeeze=False)
    for axis, (model, rows) in zip(axes[:, 0], results.items()):
        names = list(dict.fromkeys(name for got in rows.values() for name in got))
        for place, name in enumerate(names):
            values = [got[name]["device_seconds"] / got[name]["operations"] * 1000 if name in got else 0 for got in rows.values()]
            axis.bar([i + place / (len(names) + 1) for i in range(len(rows))], values, 1 / (len(names) + 1), label=name)
        axis.set_yscale("log")
        axis.set_title(f"{model}: device time of an operation, ms")
        axis.set_xticks([i + 0.3 for i in range(len(rows))], list(rows), rotation=20, ha="right", fontsize=7)
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
