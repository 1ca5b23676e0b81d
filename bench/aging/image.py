"""A filesystem that is aged: what it is recorded on, and what a cold read and its rounds take on modelled devices."""

import contextlib
import os
from pathlib import Path

import free_space
import stand
from experiment import of_phases, replay_cases
from room import fullness_of

MIB = 1 << 20
# The published disks have 500 GB, and what is tested is a partition at their beginning: no seek crosses more than a tenth of them.
DISK, LAPTOP_DISK = 476928, 305152  # MiB: 500 GB, 320 GB
# {device: (model, MiB or None: as large as the image)}
MODELS = {"disk": ("hdd-desktop", DISK), "SSD": ("ssd-page", None)}
OTHERS = {"disk of that size": ("hdd-desktop", None), "laptop's disk": ("hdd-laptop", LAPTOP_DISK), "eMMC": ("emmc", None)}
ALIKE = {"disk": ("disk of that size", "laptop's disk"), "SSD": ("eMMC",)}  # to see what depends on the device


def grep(top):
    for folder, _, names in os.walk(top):
        for name in names:
            with open(Path(folder, name), "rb", buffering=0) as file:
                while file.read(MIB // 8):
                    pass


def used(top):
    """Bytes, as du -s counts them."""
    return sum(os.lstat(Path(folder, name)).st_blocks * 512 for folder, _, names in os.walk(top) for name in (".", *names))


def copied(numbers, each):
    """Of which measured rounds there is an unaged copy: of each, or of the first, the middle and the last one."""
    numbers = list(numbers)
    return set(numbers) if each else {numbers[0], numbers[len(numbers) // 2], numbers[-1]}


class Image:
    """One filesystem that is aged, full or empty, or that has got a fresh copy."""

    def __init__(self, experiment, name, size):
        wholes = dict(MODELS.values())
        whole = wholes.get(name.partition("@")[2])
        self.stand = stand.Stand(name, size, experiment.options.varve_bin, rotational=True, whole=whole * MIB if whole else None)
        self.holdings, self.free, self.fullness = {}, {}, {}  # by the number of the round
        self.rounds = None  # that it has stood, if not all

    def cold_read(self, number):
        self.stand.sync()
        self.fullness[number] = fullness_of(self.stand.top)
        self.stand.mark("remount")
        self.stand.fs.unmount()
        Path("/proc/sys/vm/drop_caches").write_text("3")
        self.free[number] = free_space.lengths(self.stand)  # of a mounted one, tools would see what was read before
        self.stand.fs.mount()
        self.stand.mark(f"grep {number}")
        grep(self.stand.top)
        self.holdings[number] = used(self.stand.top)
        self.stand.mark("go on")

    @contextlib.contextmanager
    def aside(self):
        """It is not mounted, so that it has no idle time in which it could put its files together. Memory holds the same as before."""
        self.stand.mark("aside")
        self.stand.fs.unmount()
        yield
        self.stand.fs.mount()
        grep(self.stand.top)
        self.stand.mark("go on")

    def cases(self):
        """What was recorded on a modelled device tells of devices of that kind only."""
        size = -(-self.stand.size // (32 * MIB)) * 32
        kinds = [what for what, (model, _) in MODELS.items() if self.stand.model in ("", model)]
        known = MODELS | OTHERS
        return {what: (known[what][0], known[what][1] or size, ("--think", 0)) for kind in kinds for what in (kind, *ALIKE[kind])}

    def figures(self, options):
        """{device: {"grep": {round: s a GiB}, "write": {round: s}}}"""
        out = {}
        found = replay_cases(options.varve_bin, self.stand.events, self.cases())
        self.stand.events = None
        for what, got in found.items():
            reads = {n: of_phases(got, f"grep {n}")["seconds"] / bytes_ * 2**30 for n, bytes_ in self.holdings.items() if bytes_}
            writes = {int(phase["phase"].split()[1]): phase["busy_seconds"] for phase in got["phases"] if phase["phase"].startswith("write ")}
            writes = {number: seconds for number, seconds in writes.items() if self.rounds is None or number <= self.rounds}
            out[what] = {"grep": reads, "write": writes}
        return out


class Unaged:
    """What there was at some rounds, each time copied to a new filesystem."""

    def __init__(self, experiment, name):
        self.experiment, self.name, self.images = experiment, name, []

    def make(self, number, copy):
        """`copy(top)` puts the files there."""
        image = Image(self.experiment, self.name, 10 * self.experiment.options.size * MIB)
        with image.stand as place:
            place.mark("fill")
            copy(place.top)
            image.cold_read(number)
        self.images.append(image)

    def figures(self, options):
        out = {}
        for image in self.images:
            for what, got in image.figures(options).items():
                out.setdefault(what, {"grep": {}, "write": {}})["grep"].update(got["grep"])
        return out
