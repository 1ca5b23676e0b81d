"""The filesystems that are compared, beside those of bench/devices, and how each is made and mounted."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "devices"))

import stage  # noqa: E402

CLEANERD = Path("/etc/nilfs_cleanerd.conf")
# A cleaner whose owner wants the room back now. By default nothing younger than an hour is cleaned, and it looks every ten seconds.
AS_WANTED = {"protection_period": "0", "min_clean_segments": "8%", "max_clean_segments": "12%", "clean_check_interval": "1",
             "mc_cleaning_interval": "0.1"}
# Segments of the size of the device's unit, in MiB. F2FS has segments of 2 MiB, of which a section takes several.
UNITS = {"sd-cheap": 4, "sd-a1": 4, "usb-one": 4, "usb-stick": 8}


class F2fs(stage.Filesystem):
    """As it comes. By default it discards where the device can do it, so that must be refused."""

    def mkfs(self):
        return ["mkfs.f2fs", "-q", "-f", "-t", "1" if self.discard else "0"]

    def mount(self):
        stage.run("mount", "-t", "f2fs", "-o", ",".join(self.mount_words()), self.device.loop, self.directory)

    def mount_words(self):
        return ["discard" if self.discard else "nodiscard"]


class F2fsCard(F2fs):
    """As the owner of a card would have it: it never overwrites in place, sections are units, and no more logs than stay open."""

    def __init__(self, name, folder, discard, model):
        super().__init__(name, folder, discard)
        self.segments = UNITS.get(model, 2) // 2

    def mkfs(self):
        return [*super().mkfs(), "-s", str(self.segments)]

    def mount_words(self):
        return [*super().mount_words(), "mode=lfs", "active_logs=4"]


class Nilfs2(stage.Filesystem):
    """With its cleaner, which mount.nilfs2 starts and umount.nilfs2 ends."""

    def mkfs(self):
        return ["mkfs.nilfs2", "-q", "-f", *([] if self.discard else ["-K"])]

    def mount(self):
        self.configure()
        super().mount()

    def configure(self):
        """The root is another's, so the file is only seen here."""
        lines = CLEANERD.read_text().splitlines()
        words = [line.split() for line in lines]
        wanted = [f"{word[0]}\t{AS_WANTED[word[0]]}" if word and word[0] in AS_WANTED else line for word, line in zip(words, lines)]
        own = Path("/run/nilfs_cleanerd.conf")
        if not own.exists():
            own.write_text("\n".join(wanted) + "\n")
            stage.run("mount", "--bind", own, CLEANERD)

    def cleaner_runs(self):
        return subprocess.run(["pgrep", "-x", "nilfs_cleanerd"], stdout=subprocess.DEVNULL).returncode == 0


KINDS = {"f2fs": F2fs, "nilfs2": Nilfs2}
NAMES = ["ext4", "btrfs", "f2fs", "f2fs-card", "nilfs2", "varve"]


def filesystem(name, folder, model, options):
    """`name` as f2fs, f2fs-card+discard, and those of bench/devices."""
    kind, _, discard = name.partition("+")
    if kind == "f2fs-card":
        return F2fsCard("f2fs", folder, bool(discard), model)
    if kind in KINDS:
        return KINDS[kind](kind, folder, bool(discard))
    return stage.filesystem(name, folder, options)
