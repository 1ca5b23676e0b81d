"""A filesystem that is aged: what it is recorded on, and what a cold read and its rounds take on modelled devices."""

import os
from pathlib import Path

import free_space
import stand
from experiment import of_phases, replay

MIB = 1 << 20
MODELS = {"disk": "hdd-desktop", "SSD": "ssd-page"}
OTHERS = {"laptop's disk": "hdd-laptop", "eMMC": "emmc"}  # to see what depends on the device
ALIKE = {"disk": "laptop's disk", "SSD": "eMMC"}


def grep(top):
    for folder, _, names in os.walk(top):
        for name in names:
            with open(Path(folder, name), "rb", buffering=0) as file:
                while file.read(MIB // 8):
                    pass


def used(top):
    return sum(Path(folder, name).stat().st_size for folder, _, names in os.walk(top) for name in names)


def fullness_of(top):
    stat = os.statvfs(top)
    return 1 - stat.f_bavail / stat.f_blocks


class Image:
    """One filesystem that is aged, full or empty, or that has got a fresh copy."""

    def __init__(self, experiment, name, size, rotational=True):
        self.stand = stand.Stand(name, size, experiment.options.varve_bin, rotational)
        self.holdings, self.free, self.fullness = {}, {}, None
        self.rounds = None  # that it has stood, if not all

    def cold_read(self, number):
        self.stand.sync()
        self.fullness = self.fullness or fullness_of(self.stand.top)
        self.stand.mark("remount")
        self.stand.fs.unmount()
        Path("/proc/sys/vm/drop_caches").write_text("3")
        self.free[number] = free_space.lengths(self.stand)  # of a mounted one, tools would see what was read before
        self.stand.fs.mount()
        self.stand.mark(f"grep {number}")
        grep(self.stand.top)
        self.holdings[number] = used(self.stand.top)
        self.stand.mark("go on")

    def models(self):
        """What was recorded on a modelled device tells of devices of that kind only."""
        model = self.stand.model
        kinds = [what for what, name in MODELS.items() if model in ("", name)]
        return {what: MODELS.get(what) or OTHERS[what] for kind in kinds for what in (kind, ALIKE[kind])}

    def figures(self, options):
        """{device: {"grep": {round: s a GiB}, "write": {round: s}}}"""
        out, models = {}, self.models()
        got = replay(options.varve_bin, self.stand.events, list(models.values()), -(-self.stand.size // (32 * MIB)) * 32, "--think", 0)
        self.stand.events = None
        for what, model in models.items():
            reads = {n: of_phases(got[model], f"grep {n}")["seconds"] / bytes_ * 2**30 for n, bytes_ in self.holdings.items() if bytes_}
            writes = {int(phase["phase"].split()[1]): phase["busy_seconds"] for phase in got[model]["phases"]
                      if phase["phase"].startswith("write ")}
            writes = {number: seconds for number, seconds in writes.items() if self.rounds is None or number <= self.rounds}
            out[what] = {"grep": reads, "write": writes}
        return out
