"""Real meters, where a machine has them: the processor's counters (RAPL), sensors of chips (hwmon) and the battery; and what the machine
took in each phase of a run, by them. A disk's own are seldom to be had."""

import os
import threading
import time
from pathlib import Path


class Rapl:
    """Joules of a zone since it was made; its counter wraps around."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.name = (self.folder / "name").read_text().strip()
        self.most = int((self.folder / "max_energy_range_uj").read_text())
        self.last, self.sum = self.now(), 0

    def now(self):
        return int((self.folder / "energy_uj").read_text())

    def joules(self):
        """To be asked more often than the counter wraps, which takes a minute at least."""
        now = self.now()
        self.sum += (now - self.last) % (self.most + 1)
        self.last = now
        return self.sum * 1e-6


class Hwmon:
    """Joules of a sensor since it was made. One that tells watts has to be asked often: what lies between is taken as a straight line."""

    def __init__(self, file, clock=time.monotonic):
        self.file, self.clock = Path(file), clock
        kind = self.file.name.rpartition("_")[0]
        label = self.file.with_name(f"{kind}_label")
        self.name = f"{(self.file.parent / 'name').read_text().strip()} {label.read_text().strip() if label.exists() else kind}"
        self.counts = kind.startswith("energy")
        self.last, self.at, self.sum = self.now(), self.clock(), 0

    def now(self):
        """Joules or watts."""
        return int(self.file.read_text()) * 1e-6

    def joules(self):
        now, at = self.now(), self.clock()
        self.sum += max(now - self.last, 0) if self.counts else (now + self.last) / 2 * (at - self.at)
        self.last, self.at = now, at
        return self.sum


class Battery:
    """Only while it is discharged."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.name = self.folder.name
        self.begin = self.left()

    def left(self):
        """Joules: from µWh, or from µAh and µV."""
        if (self.folder / "status").read_text().strip() != "Discharging":
            raise OSError("on mains")
        if (self.folder / "energy_now").exists():
            return int((self.folder / "energy_now").read_text()) * 3.6e-3
        charge, volt = (int((self.folder / name).read_text()) for name in ("charge_now", "voltage_now"))
        return charge * 3.6e-3 * volt * 1e-6

    def joules(self):
        return self.begin - self.left()


def sensors(hwmon):
    """Files of all sensors of energy or power; a mean only where a chip does not tell the power itself."""
    for chip in sorted(Path(hwmon).glob("hwmon*")):
        yield from sorted(chip.glob("energy*_input"))
        yield from sorted(chip.glob("power*_input")) or sorted(chip.glob("power*_average"))


def all_meters(rapl="/sys/class/powercap", supply="/sys/class/power_supply", hwmon="/sys/class/hwmon"):
    meters = []
    for kind, places in ((Rapl, sorted(Path(rapl).glob("intel-rapl:*"))), (Hwmon, sensors(hwmon)), (Battery, sorted(Path(supply).glob("BAT*")))):
        for place in places:
            try:
                meter = kind(place)
            except (OSError, ValueError):  # only root may look, or it is not used now
                continue
            same = sum(other.name.partition(" #")[0] == meter.name for other in meters)
            meter.name += f" #{same + 1}" if same else ""
            meters.append(meter)
    return meters


def found():
    return [meter.name for meter in all_meters()]


def cpu_seconds(stat="/proc/stat"):
    """Of all processors and all that ran on them, since the machine was started."""
    user, nice, system, _, _, interrupts, soft = (int(word) for word in Path(stat).read_text().split()[1:8])
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


class Readings:
    """with Readings(meters) as readings: what the whole machine takes in each phase. A thread asks the meters meanwhile."""

    def __init__(self, meters, every=0.2, cpu=cpu_seconds):
        self.meters, self.every, self.cpu = meters, every, cpu
        self.phases = {}  # name: {"seconds", "cpu_seconds", "joules": {meter: joules, or None where it did not tell}}
        self.lock, self.over = threading.Lock(), threading.Event()
        self.name = None

    def __enter__(self):
        self.thread = threading.Thread(target=self.ask_on)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def ask_on(self):
        while self.meters and not self.over.wait(self.every):
            self.joules()

    def joules(self):
        with self.lock:
            return [joules_or_none(meter) for meter in self.meters]

    def begin(self, name):
        self.end()
        self.name, self.before = name, (time.monotonic(), self.cpu(), self.joules())

    def end(self):
        if self.name is None:
            return
        clock, cpu, joules = self.before
        took = [None if a is None or b is None else b - a for a, b in zip(joules, self.joules())]
        self.phases[self.name] = {"seconds": time.monotonic() - clock, "cpu_seconds": self.cpu() - cpu,
                                  "joules": {meter.name: value for meter, value in zip(self.meters, took)}}
        self.name = None


def joules_or_none(meter):
    try:
        return meter.joules()
    except (OSError, ValueError):
        return None
