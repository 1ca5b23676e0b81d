"""Real meters, where a machine has them: the processor's counters (RAPL) and the battery. A disk's own are seldom to be had."""

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


class Battery:
    """Only while it is discharged."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.name = self.folder.name
        if (self.folder / "status").read_text().strip() != "Discharging":
            raise OSError("on mains")
        self.begin = self.left()

    def left(self):
        """Joules: from µWh, or from µAh and µV."""
        if (self.folder / "energy_now").exists():
            return int((self.folder / "energy_now").read_text()) * 3.6e-3
        charge, volt = (int((self.folder / name).read_text()) for name in ("charge_now", "voltage_now"))
        return charge * 3.6e-3 * volt * 1e-6

    def joules(self):
        return self.begin - self.left()


def all_meters(rapl="/sys/class/powercap", supply="/sys/class/power_supply"):
    meters = []
    for kind, places in ((Rapl, sorted(Path(rapl).glob("intel-rapl:*"))), (Battery, sorted(Path(supply).glob("BAT*")))):
        for place in places:
            try:
                meters.append(kind(place))
            except OSError:  # only root may look, or it is not used now
                continue
    return meters


def found():
    return [meter.name for meter in all_meters()]
