"""A disk that is used now and then: the filesystem's timers and the disk's together decide when it rests. Each filesystem is traced while
time passes, all at once, and the disk gets its requests at the times of the trace."""

import contextlib
import mmap
import os
import random
import time

import disks
import formats
import stand
from experiment import of_phases

MIB = 1 << 20
BLOCK = 4096
FILES = 50
OPEN = ("--mode", "open")
# {case: (model, MiB, options of bench_replay)}: when a disk falls asleep was not published, so that it is varied.
CASES = {"APM off": ("hdd-laptop", disks.SIZE, (*OPEN, "--awake")),
         "timers 1 s and 10 s": ("hdd-laptop", disks.SIZE, OPEN),
         "timers a third": ("hdd-laptop", disks.SIZE, (*OPEN, "--stretch", 0.33)),
         "timers three times": ("hdd-laptop", disks.SIZE, (*OPEN, "--stretch", 3)),
         "standby after 5 s": ("hdd-laptop", disks.SIZE, (*OPEN, "--standby", 5)),
         "standby after 20 s": ("hdd-laptop", disks.SIZE, (*OPEN, "--standby", 20)),
         "hdd-laptop-7200": ("hdd-laptop-7200", disks.SIZE, OPEN),
         "hdd-desktop": ("hdd-desktop", disks.SIZE, OPEN),
         "microdrive": ("microdrive", disks.SIZE, OPEN)}
STANDBY = "standby after 5 s"
LEASE = (0, 16384)  # offset and length of what a mount of Varve on a loop device reads every two seconds


class Background:
    """Every two seconds 4 KiB of some file are written over, and nobody waits for them."""
    name, every = "in the background", 2

    def step(self, place, draw):
        with open(place.top / f"file{draw.randrange(FILES)}", "r+b", buffering=0) as file:
            file.seek(draw.randrange(16) * BLOCK)
            file.write(draw.randbytes(BLOCK))


class Saving:
    """Every ten seconds a file is saved: a new one, synced, takes the place of the old one."""
    name, every = "saving", 10

    def step(self, place, draw):
        new = place.top / "new"
        with open(new, "wb", buffering=0) as file:
            file.write(draw.randbytes(5 * BLOCK))
            os.fsync(file.fileno())
        new.rename(place.top / f"file{draw.randrange(FILES)}")


PHASES = (Background, Saving)


def prepare(place, draw):
    for number in range(FILES):
        (place.top / f"file{number}").write_bytes(draw.randbytes(16 * BLOCK))
    place.sync()


def stamp(place, name):
    """A phase begins with a read of the device, so that the trace has its time and the disk is awake."""
    place.mark(name)
    device = os.open(place.image.loop, os.O_RDONLY | os.O_DIRECT)
    try:
        os.preadv(device, [mmap.mmap(-1, BLOCK)], 0)
    finally:
        os.close(device)


def from_first_phase(events):
    """Without what came before, which keeps the disk busy long after its time; the clock begins with the phase."""
    first = events.index(formats.Mark(PHASES[0].name))
    begin = events[first + 1].t_ns
    return [e if isinstance(e, formats.Mark) else e._replace(t_ns=max(e.t_ns - begin, 0)) for e in events[first:]]


def variants(name, events):
    """A loop device may have a second one beside it, and so a mount of Varve looks at its lease. On a disk it does not: once with, once without."""
    yield name, events
    if name == "varve":
        yield "varve:as on a disk", [e for e in events if isinstance(e, formats.Mark) or e.op != "R" or (e.offset, e.length) != LEASE]


class Places:
    """The filesystems, side by side; one that fails is left out, and the others go on."""

    def __init__(self, experiment, names):
        self.experiment, self.names = experiment, names
        self.places, self.events = {}, {}

    def each(self, act):
        for name, (stack, place, draw) in list(self.places.items()):
            try:
                act(place, draw)
            except stand.FAILURES as why:
                self.drop(name, stack, why)

    def drop(self, name, stack, why):
        self.experiment.leave_out(f"{name}: {why}")
        self.places.pop(name, None)
        with contextlib.suppress(*stand.FAILURES):
            stack.close()

    def __enter__(self):
        for name in self.names:
            stack = contextlib.ExitStack()
            try:
                place = stack.enter_context(stand.Stand(name, 512 * MIB, self.experiment.options.varve_bin, rotational=True))
                self.places[name] = stack, place, random.Random(self.experiment.options.seed)
            except stand.FAILURES as why:
                self.drop(name, stack, why)
        return self

    def __exit__(self, *_):
        for name, (stack, place, _) in list(self.places.items()):
            try:
                stack.close()
                self.events[name] = list(place.events)  # few: a minute of each phase
            except stand.FAILURES as why:
                self.experiment.leave_out(f"{name}: {why}")


def trace(experiment, names, seconds):
    """{filesystem: events}"""
    with Places(experiment, names) as places:
        places.each(prepare)
        for phase in (kind() for kind in PHASES):
            experiment.progress(f"{phase.name}: {seconds:.0f} s on {', '.join(places.places)}")
            places.each(lambda place, _, name=phase.name: stamp(place, name))
            begin = time.monotonic()
            for number in range(1, int(seconds // phase.every) + 1):
                time.sleep(max(begin + number * phase.every - time.monotonic(), 0))
                places.each(phase.step)
            places.each(lambda place, _: place.sync())
        places.each(lambda place, _: place.mark("end"))
    return places.events


def run(experiment):
    """{phase: {case: {filesystem: figures}}}"""
    options = experiment.options
    results = {kind.name: {case: {} for case in CASES} for kind in PHASES}
    traced = trace(experiment, options.used.split(","), options.use_seconds)
    for name, events in [one for name, events in traced.items() for one in variants(name, from_first_phase(events))]:
        try:
            got = disks.costs(options.varve_bin, events, CASES)
        except stand.FAILURES as why:
            experiment.leave_out(f"{name}: {why}")
            continue
        for phase, by in results.items():
            for case in CASES:
                by[case][name] = of_phases(got[case], phase)
    return results


def figures(experiment, results):
    rows, ranks = [], []
    for phase, by in results.items():
        for name in by[STANDBY]:
            figure = by[STANDBY][name]
            requests = figure["read_requests"] + figure["write_requests"] + figure["flush_requests"]
            rows.append([phase, name, requests, figure["spin_ups"]] + [by[case][name]["modelled_joules"] for case in CASES])
        ranks.append(disks.rank_row(phase, {case: {name: f["modelled_joules"] for name, f in of.items()} for case, of in by.items()}))
    experiment.table(f"A disk that is used now and then, for {experiment.options.use_seconds:.0f} s each: joules (modelled)",
                     ["what", "filesystem", "requests", f"spin-ups, {STANDBY}", *CASES], rows,
                     "The first six are hdd-laptop. Requests come at the times of the trace. " +
                     " ".join(f"{kind.name.capitalize()}: {kind.__doc__[0].lower()}{kind.__doc__[1:]}" for kind in PHASES))
    experiment.table("Ranks by joules (modelled) of a disk that is used now and then", ["what", *disks.RANK_COLUMNS], ranks,
                     disks.RANK_NOTE + ", ".join(CASES) + ".")
