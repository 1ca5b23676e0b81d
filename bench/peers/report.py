"""Tables, JSON and a plot out of the measured values: {row: {peer: [value of each repeat]}}."""

import json
import os
import platform
import statistics
import time

from rows import ROWS


def median(values):
    return statistics.median(values) if values else None


def number(value, digits):
    if value is None:
        return "–"
    return f"{value:,.{digits}f}".replace(",", " ")


def ratio(row, value, base):
    """How many times as good as the base."""
    if not value or not base:
        return None
    return value / base if ROWS[row].more_is_better else base / value


def judge(row, medians):
    """(goal as text, reached?) for Varve."""
    varve = medians.get("varve")
    texts, reached = [], True
    for peer, factor in ROWS[row].goals.items():
        if not peer:
            texts.append(f"≤ {factor:g}")
            reached &= varve is not None and varve <= factor
        elif ROWS[row].more_is_better:
            texts.append(f"≥ {factor:g} × {peer}")
            reached &= bool(varve and medians.get(peer) and varve >= factor * medians[peer])
        else:
            texts.append(f"≤ {factor:g} × {peer}")
            reached &= bool(varve and medians.get(peer) and varve <= factor * medians[peer])
    if not texts:
        return "", None
    return ", ".join(texts), reached if varve else None


def machine(filesystems):
    lines = [f"{time.strftime('%Y-%m-%d')}, kernel {platform.release()}, {os.cpu_count()} CPUs"]
    lines += [f"{fs.name} {fs.version}".strip() for fs in filesystems]
    return "; ".join(lines)


def table(results, peers, base="ext4"):
    """Markdown: the base in absolute figures, the others as ratio to it; then the rows where less is better."""
    base = base if base in peers else peers[0]
    others = [p for p in peers if p != base]
    yardsticks = [name for name in ("passthrough_ll", "memory") if name in peers and "varve" in peers]
    out = []

    def header(cells):
        out.append("| " + " | ".join(cells) + " |")
        out.append("|---" * len(cells) + "|")

    head = ["workload", f"{base}"] + others + [f"varve / {name}" for name in yardsticks]
    if "varve" in peers:
        head += ["goal for varve", ""]
    header(head)
    for row, spec in ROWS.items():
        if row not in results or not spec.more_is_better:
            continue
        medians = {p: median(v) for p, v in results[row].items()}
        cells = [f"{spec.text}, {spec.unit}", number(medians.get(base), spec.digits)]
        cells += [number(ratio(row, medians.get(p), medians.get(base)), 2) for p in others]
        cells += [number(ratio(row, medians.get("varve"), medians.get(name)), 2) for name in yardsticks]
        if "varve" in peers:
            goal, reached = judge(row, medians)
            cells += [goal, {True: "yes", False: "no", None: ""}[reached]]
        out.append("| " + " | ".join(cells) + " |")

    less = [row for row in results if not ROWS[row].more_is_better]
    if less:
        out.append("")
        header(["absolute, less is better"] + peers + (["goal for varve", ""] if "varve" in peers else []))
        for row in less:
            medians = {p: median(v) for p, v in results[row].items()}
            cells = [f"{ROWS[row].text}, {ROWS[row].unit}"]
            cells += [number(medians.get(p), ROWS[row].digits) for p in peers]
            if "varve" in peers:
                goal, reached = judge(row, medians)
                cells += [goal, {True: "yes", False: "no", None: ""}[reached]]
            out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def behind(results, other):
    """Rows in which Varve is not ahead of another filesystem."""
    rows = []
    for row, values in results.items():
        r = ratio(row, median(values.get("varve", [])), median(values.get(other, [])))
        if r is not None and r < 1:
            rows.append(f"{ROWS[row].text} ({r:.2f})")
    return rows


def save_json(path, results, details, filesystems, options):
    with open(path, "w") as file:
        json.dump({
            "machine": machine(filesystems),
            "options": options,
            "rows": {row: {"text": ROWS[row].text, "unit": ROWS[row].unit, "values": values}
                     for row, values in results.items()},
            "details": details,
        }, file, indent=1)
        file.write("\n")


def plot(path, results, peers, base="ext4"):
    try:
        import matplotlib
        matplotlib.use("Agg")
        import pictures
    except ImportError:
        print("no plot: this Python has no matplotlib")
        return
    rows = [row for row in results if median(results[row].get(base, []))]
    others = [p for p in peers if p != base]
    figure, ((axes,),) = pictures.sheet([0.3 * len(rows) + 0.8])
    texts = [ROWS[row].text for row in rows]
    of = {peer: {text: ratio(row, median(results[row].get(peer, [])), median(results[row][base])) for row, text in zip(rows, texts)} for peer in others}
    pictures.points(axes, texts, of)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel(f"times as good as {base}")
    pictures.shared_legend(figure, axes)
    pictures.save(figure, path)
