"""A mounted filesystem with one file that fills it to a given share, aged until its cleaner has settled down."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from filesystems import MIB, Varve, run  # noqa: E402

DISTRIBUTIONS = {
    "zipf-1.0": ["--random_distribution=zipf:0.999"],  # fio has no theta of exactly 1
    "uniform": [],
    "hot-cold": ["--random_distribution=zoned:90/10:10/90"],
}


def fio(file, size, seconds, *options):
    """Runs the jobs of `options` on one file; fio's own report of each, by name."""
    text = run("fio", f"--filename={file}", f"--size={size}", f"--runtime={seconds}", "--time_based", "--bs=4k", "--direct=1",
               "--ioengine=libaio", "--norandommap", "--randrepeat=0", "--output-format=json", *options)
    return {job["jobname"]: job for job in json.loads(text[text.index("{"):])["jobs"]}


def percentile(report, which):
    """Microseconds."""
    return report["clat_ns"]["percentile"][which] / 1000


class FilledMount:
    """`arguments`: size (MiB), varve_bin, mkfs_options, mount_options."""

    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.varve = Varve(folder, arguments.size * MIB, arguments)
        self.varve.check()
        self.varve.prepare()

    def fill(self, fullness):
        """A new filesystem with one file that takes `fullness` of what df says there is; above 1: so many MiB."""
        self.varve.fresh()
        self.file = self.varve.mount_point / "file"
        total = int(run("df", "--output=size", "-B1", self.varve.mount_point).split()[-1])
        self.bytes = int(total * fullness if fullness <= 1 else fullness * MIB) // MIB * MIB
        run("dd", "if=/dev/urandom", f"of={self.file}", "bs=1M", f"count={self.bytes // MIB}", "conv=fsync", "status=none")

    def age(self, distribution):
        """Until the log has wrapped and every clean segment has to be made."""
        fio(self.file, self.bytes, 3600, "--name=age", "--rw=randwrite", "--iodepth=32", f"--io_size={self.arguments.size * MIB}",
            "--time_based=0", *DISTRIBUTIONS[distribution])

    def overwrite(self, distribution, seconds):
        """As fast as it takes it; fio's report of the writes."""
        return fio(self.file, self.bytes, seconds, "--percentile_list=50:99:99.9", "--name=most", "--rw=randwrite", "--iodepth=32",
                   *DISTRIBUTIONS[distribution])["most"]["write"]

    def status(self):
        return self.varve.status()


def add_options(parser):
    parser.add_argument("--dir", default="/var/tmp", help="where the image goes: a disk, not memory")
    parser.add_argument("--mkfs-options", default="")
    parser.add_argument("--mount-options", default="")
