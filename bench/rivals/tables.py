"""Tables of the parts: each model has one for device time, and one each for bytes programmed, erases and the longest wait."""

KINDS = {"device_seconds": ("device time of an operation, ms", 1000), "bytes_programmed": ("KiB programmed for an operation", 1 / 1024),
         "erases": ("erases for 1000 operations", 1000)}


def line(part, said):
    if "rows" not in said:
        return f"{part}: {said.get('missing') or said['failed']}"
    rows = [f"{row} {each(got, 'device_seconds', 1000):.3g} ms, {each(got, 'bytes_programmed', 1 / 1024):.3g} KiB" for row, got in said["rows"].items()]
    return f"{part}: {'; '.join(rows)}"


def each(got, key, factor):
    return got[key] * factor / got["operations"] if got["operations"] else None


def longest(got):
    return max((most for _, most in got["waits"].values()), default=None)


def of(results, names):
    """(title, columns, rows, note) of each table."""
    for model, by_row in results.items():
        written = {row: by for row, by in by_row.items() if not row.startswith("cold read")}
        for key, (title, factor) in KINDS.items():
            shown = by_row if key == "device_seconds" else written
            if any(got[key] for by in shown.values() for got in by.values()):
                yield f"{model}: {title}", ["", *names], cells(shown, names, lambda got: each(got, key, factor)), ""
        waited = {row: by for row, by in written.items() if any(longest(got) is not None for got in by.values())}
        if waited:
            yield f"{model}: longest wait, s", ["", *names], cells(waited, names, longest), ""
    for title, key in COMPARED.items():
        rows = [row for row in against_the_best(results, names, VALUES[key]) if key == "device_seconds" or not row[0].startswith("cold read")]
        yield title, ["", *results], rows, "The best rival is in brackets. Below 1 it is ahead of Varve."


def cells(by_row, names, value):
    return [[row, *(value(by[name]) if name in by else None for name in names)] for row, by in by_row.items()]


VALUES = {"device_seconds": lambda got: each(got, "device_seconds", 1), "bytes_programmed": lambda got: each(got, "bytes_programmed", 1),
          "waits": longest}
COMPARED = {"Device time of the best rival by that of Varve": "device_seconds", "Bytes programmed, likewise": "bytes_programmed",
            "Longest wait, likewise": "waits"}


def against_the_best(results, names, value):
    rows = list(dict.fromkeys(row for by_row in results.values() for row in by_row))
    return [[row, *(against(by_row.get(row, {}), names, value) for by_row in results.values())] for row in rows]


def against(by, names, value):
    """A rival without figures has not won."""
    known = {name: value(by[name]) for name in names if name in by and value(by[name]) is not None}
    ours = min((got for name, got in known.items() if name.startswith("varve")), default=None)
    theirs = min(((got, name) for name, got in known.items() if not name.startswith("varve")), default=None)
    if not ours or not theirs:
        return None
    times = theirs[0] / ours
    return f"{times:.0f} ({theirs[1]})" if times >= 10 else f"{times:.2f} ({theirs[1]})"
