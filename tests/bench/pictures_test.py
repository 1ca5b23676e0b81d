#!/usr/bin/env python3
"""Plots: one colour for each filesystem, few curves in a panel, no bars on a logarithmic axis, no legend on data. Needs matplotlib for most."""

import importlib
import importlib.util
import itertools
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench/common"))

import pictures  # noqa: E402

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


def module_of(folder, name):
    """`report` and `plots` are in several folders."""
    path = ROOT / "bench" / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", path)
    sys.path.insert(0, str(path.parent))
    sys.path.insert(1, str(ROOT / "bench/trace"))
    before = set(sys.modules)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        del sys.path[:2]
        for other in set(sys.modules) - before:  # the next folder has others of these names
            if str(ROOT / "bench" / folder) in str(getattr(sys.modules[other], "__file__", "")):
                del sys.modules[other]


class Looks(unittest.TestCase):
    def test_a_filesystem_has_one_colour_in_all_its_kinds(self):
        for name, kinds in {"varve": ("varve@hdd-desktop", "varve:strategy=copying", "Varve"), "btrfs": ("btrfs-nodatacow", "btrfs nodatacow"),
                            "fat": ("vfat", "FAT")}.items():
            for kind in kinds:
                self.assertEqual(pictures.look_of(kind), pictures.FILESYSTEMS[name], kind)

    def test_no_two_filesystems_look_alike(self):
        for one, other in itertools.combinations(pictures.FILESYSTEMS.values(), 2):
            self.assertNotEqual(one[0], other[0])
            self.assertNotEqual(one[1], other[1])

    def test_kinds_of_one_in_a_panel_and_other_things_are_told_apart(self):
        for names in (["varve", "varve:strategy=copying", "ext4"], ["greedy", "cost-benefit", "sfs"]):
            self.assertEqual(len({pictures.look_of(name, names) for name in names}), len(names))

    def test_names_do_not_lie_on_each_other(self):
        moved = pictures.apart([0.5, 0.5, 0.1, 0.52], 0.1)
        for one, other in itertools.combinations(moved, 2):
            self.assertGreater(abs(one - other), 0.099)
        self.assertEqual(pictures.apart([0.9, 0.1], 0.1), [0.9, 0.1])


@unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib")
class Plots(unittest.TestCase):
    def setUp(self):
        import matplotlib
        matplotlib.use("Agg")
        self.figures = []
        save = pictures.save

        def keep(figure, file, **more):
            save(figure, file, **more)
            self.figures.append(figure)
        pictures.save = keep
        self.addCleanup(setattr, pictures, "save", save)
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.file = Path(place.name) / "plot.png"

    def check(self):
        from matplotlib.patches import Rectangle
        self.assertTrue(self.figures)
        for figure in self.figures:
            figure.canvas.draw()
            for axis in figure.axes:
                curves = [line for line in axis.lines if len(line.get_xdata()) > 2 and line.get_linestyle() not in ("None", "")]
                self.assertLessEqual(len(curves), pictures.MOST_CURVES, axis.get_title("left"))
                bars = [patch for patch in axis.patches if isinstance(patch, Rectangle)]
                self.assertFalse(bars and "log" in (axis.get_xscale() if bars[0].get_x() == 0 else axis.get_yscale()), axis.get_title("left"))
                if (legend := axis.get_legend()) and axis.axison:  # a panel without data may hold one
                    self.assertFalse(legend.get_window_extent().overlaps(axis.get_window_extent()), axis.get_title("left"))

    def test_devices(self):
        report = module_of("devices", "report")
        rows = {row: {name: {"device_seconds": 1.5 + i, "waited_seconds": 2.0 + i, "operations": 100} for i, name in enumerate(("ext4", "varve", "xfs"))}
                for row in ("untar", "sync4k", "stream")}
        for waited in (False, True):
            report.plot({"sd-cheap": rows, "hdd": rows}, self.file, waited)
        self.check()

    def test_peers(self):
        report = module_of("peers", "report")
        names = ("ext4", "varve", "fuse2fs")
        rows = list(report.ROWS)[:4]
        report.plot(self.file, {row: {name: [1.0 + i, 1.1 + i] for i, name in enumerate(names)} for row in rows}, names)
        self.check()

    def test_aging_of_many_kinds(self):
        tables = module_of("aging", "tables")
        names = ["varve@hdd-desktop", "ext4", "xfs", "btrfs", *(f"varve:strategy={one}" for one in ("copying", "threaded", "combined", "adaptive"))]
        by = {0: 60.0, 5: 65.0, 10: 70.0}
        of = {name: {kind: {what: {"grep": by, "write": by} for what in tables.MODELS} for kind in tables.KINDS} for name in names}
        free = {name: {10: {exponent: 5 for exponent in range(12, 27)}} for name in names}
        tables.draw({"fsfb": of, "git": {name: of[name] for name in names[:4]}, "fsfb_free": free, "git_free": {}})(self.file)
        self.check()
        for axis in self.figures[0].axes:
            if "strategies" not in axis.get_title("left") and "at the end" not in axis.get_title("left") and axis.lines:
                self.assertEqual([line.get_color() for line in axis.lines], [pictures.look_of(name)[0] for name in names[:4]], axis.get_title("left"))

    def test_cleaning(self):
        figures = module_of("cleaning", "figures")
        policies = ("greedy", "cost-benefit", "timestamp", "segregation")
        rows = [{"workload": load, "writes": writes, "policy": policy, "shares": [0.05] * 20} for load in ("uniform", "hot") for writes in (1, 2)
                for policy in policies]
        costs = [{"cleaning": "batches", "policy": policy, "occupancy": at, "2/(1-u)": 2 + at, "(new+read+moved)/new": 1 + at} for policy in policies
                 for at in (0.3, 0.5, 0.6)]
        groups = {"rows": [{"policy": f"{n} groups", "workload": load, "write cost": n} for n in (1, 2, 3) for load in ("zipf", "tpcc")]}
        use = [{"workload": load, "policy": policy, "utilisation": at, "write cost": 2 + at, "MB/s (modelled)": 9 - at, "shares": [0.05] * 20}
               for load in ("zipf", "tpcc", "uniform") for policy in policies for at in (0.7, 0.9)]
        cleaning = [{"sample": sample, "strategy": one, "amount": "all", "buffer": 0, "written": 1, "s (modelled)": 3, "read s (modelled)": 5}
                    for sample in ("standard", "small") for one in ("copying", "compacting")]
        maps = [{"sample": sample, "how": how, "s (modelled)": 1} for sample in ("standard", "small") for how in ("map", "scan")]
        figures.draw({"distributions": {"rows": rows}, "costs": {"rows": costs}, "groups": groups, "schemes": groups, "utilisations": {"rows": use},
                      "cleaning": {"rows": cleaning}, "maps": {"rows": maps}}, self.file.parent)
        self.check()
        self.assertEqual(len(list(self.file.parent.glob("*.png"))), 6)

    def test_operations(self):
        report = module_of("latency", "operations_report")
        data = {name: {"rows": [[str(state), depth, operation, *(10.0 * (i + 1) * (at + 1) for at in range(len(report.SHARES)))]
                                for state in report.STATES for depth in (1, 8) for operation in ("read", "write")]}
                for i, name in enumerate(("varve", "ext4", "btrfs", "xfs"))}
        report.draw_plot(self.file, data)
        self.check()

    def test_energy(self):
        plots = module_of("energy", "plots")
        phases = ["create", "update", "read"]
        joules = {"modelled_joules": 5.0}
        by = {name: {phase: joules for phase in phases} for name in ("varve", "ext4", "fat")}
        used = {"saving": {name: {case: joules for case in ("no timer", "timers")} for name in by}}
        plots.draw({"filesystems": {"cached": {"microdrive": by}}, "used": used}, [("7.2", phases), ("7.3", phases[:2])], 0)(self.file)
        self.check()

    def test_flash(self):
        plots = module_of("flash", "plots")
        names = ["varve@sfs-m", "ext4", "btrfs", "varve:strategy=copying"]
        got = {"sfs-m": {"bytes_programmed": 3, "write_bytes": 2, "erases": 5}, "ftl-fast": {"bytes_programmed": 3, "write_bytes": 2, "erases": 5},
               "ftl-page": {"bytes_programmed": 3, "write_bytes": 2, "erases": 5}}
        plots.rate_of = lambda *_: 5.0
        plots.ROWS = [(title, value if "MB/s" not in title else (lambda got, _: 5.0)) for title, value in plots.ROWS]
        plots.draw({"curves": {drive: {1024: 0.1, 2048: 0.2, 4096: 0.5} for drive in plots.DRIVES},
                    "utilisation": {load: {share: {drive: 5.0 for drive in plots.DRIVES} for share in (0.5, 0.7, 0.9)} for load in ("zipf", "uniform", "tpcc", "x")},
                    "filesystems": {load: {name: got for name in names} for load in ("zipf", "uniform")}})(self.file)
        self.check()

    def test_more_curves_than_anybody_follows_are_refused(self):
        import matplotlib.pyplot as plt
        with self.assertRaises(ValueError):
            pictures.curves(plt.subplots()[1], {str(i): {0: 1, 1: 2, 2: 3} for i in range(7)})


if __name__ == "__main__":
    unittest.main(verbosity=1)
