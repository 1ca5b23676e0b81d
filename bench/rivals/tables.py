"""Tables of the parts: each model has one for device time, and one each for bytes programmed, erases and the longest wait."""

KINDS = {"device_seconds": ("device time of an operation, ms", 1000), "bytes_programmed": ("KiB programmed for an operation", 1 / 1024),
         "erases": ("erases for 1000 operations", 1000)}


def line(part, said):
    if "rows" not in said:
        return f"{part}: {said.get('missing') or said['failed']}"
    rows = "; ".join(f"{row} {each(got, 'device_seconds', 1000):.3g} ms, {each(got, 'bytes_programmed', 1 / 1024):.3g} KiB" for row, got in said["rows"].items())
    return f"{part}: {rows}"


def each(got, key, factor):
    return got[key] * factor / got["operations"] if got["operations"] else None


def longest(got):
    return max((most for _, most in got["waits"].values()), default=None)


def of(results, names):
    """(title, columns, rows, note) of each table."""
    for model, by_row in results.items():
        for key, (title, factor) in KINDS.items():
            if any(got[key] for by in by_row.values() for got in by.values()):
                yield f"{model}: {title}", ["", *names], cells(by_row, names, lambda got: each(got, key, factor)), ""
        yield f"{model}: longest wait, s", ["", *names], cells(by_row, names, longest), ""
    for title, better in (("Times as fast as the best rival, by device time", "device_seconds"), ("Times as few bytes programmed", "bytes_programmed")):
        yield title, ["", *results], against_the_best(results, names, better), "The best rival is in brackets. Below 1 it is ahead of Varve."


def cells(by_row, names, value):
    return [[row, *(value(by[name]) if name in by else None for name in names)] for row, by in by_row.items()]


def against_the_best(results, names, key):
    rows = list(dict.fromkeys(row for by_row in results.values() for row in by_row))
    return [[row, *(against(by_row.get(row, {}), names, key) for by_row in results.values())] for row in rows]


def against(by, names, key):
    """A rival without figures has not won."""
    ours = min((each(by[name], key, 1) for name in names if name in by and name.startswith("varve")), default=None)
    theirs = min(((each(by[name], key, 1), name) for name in names if name in by and not name.startswith("varve")), default=None)
    if not ours or not theirs:
        return None
    times = theirs[0] / ours
    return f"{times:.0f} ({theirs[1]})" if times >= 10 else f"{times:.2f} ({theirs[1]})"
