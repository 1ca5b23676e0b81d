#!/usr/bin/env python3
"""What the experiments compute from what they measured."""

import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "bench/common"), str(ROOT / "bench/energy"), str(ROOT / "bench/aging")]

import experiment  # noqa: E402
import free_space  # noqa: E402
import meters  # noqa: E402


class Statistics(unittest.TestCase):
    def test_percentiles_are_values_that_occurred(self):
        values = list(range(1, 1001))
        self.assertEqual([experiment.percentile(values, share) for share in (0.5, 0.99, 0.999, 0.9999)], [500, 990, 999, 1000])
        self.assertEqual(experiment.percentile([7], 0.5), 7)
        self.assertIsNone(experiment.percentile([], 0.5))

    def test_orders_are_compared(self):
        self.assertEqual(experiment.kendall("abcd", "abcd"), 1)
        self.assertEqual(experiment.kendall("abcd", "dcba"), -1)
        self.assertAlmostEqual(experiment.kendall("abcd", "bacd"), 4 / 6)
        order, tau = experiment.rank_stability({"x": {"a": 1, "b": 2}, "y": {"a": 3, "b": 30}})
        self.assertEqual((order, tau), (["a", "b"], 1))
        order, tau = experiment.rank_stability({"x": {"a": 1, "b": 2}, "y": {"a": 3, "b": 0.3}})
        self.assertEqual((order, tau), (None, -1))

    def test_histograms_go_by_powers_of_two(self):
        self.assertEqual(experiment.log2_histogram([1, 2, 3, 4, 1023, 1024]), {0: (1, 1), 1: (2, 5), 2: (1, 4), 9: (1, 1023), 10: (1, 1024)})

    def test_tables_are_markdown(self):
        text = experiment.markdown_of({"title": "T", "columns": ["a", "b"], "rows": [["x", 1.234], ["y", None]], "note": "N"})
        self.assertEqual(text, "### T\n\n| a | b |\n|---|---:|\n| x | 1.23 |\n| y | – |\n\nN\n")

    def test_phases_are_summed(self):
        kind = {"requests": 1, "bytes": 10, "seconds": 1}
        phase = {**dict.fromkeys(experiment.SUMS, 2), "read": kind, "write": kind, "flush": kind, "discard": kind,
                 "states": {"seek": {"seconds": 1, "modelled_joules": 3}}}
        replayed = {"phases": [{"phase": name, **phase} for name in ("a", "b", "a")]}
        self.assertEqual(experiment.of_phases(replayed, "a")["seconds"], 4)
        self.assertEqual(experiment.of_phases(replayed, ("a", "b"))["states"], {"seek": 9})
        self.assertEqual(experiment.of_phases(replayed, "c")["write_bytes"], 0)

    def test_free_space_is_read_from_tools(self):
        text = "Block size:               4096\n\nGroup 0: (Blocks 0-8191)\n  Free blocks: 27, 163-164, 1026-8191\n  Free inodes: 12-20\n" \
               "Group 1: (Blocks 8192-9999)\n  Free blocks: \n"
        self.assertEqual(list(free_space.ext4(text)), [4096, 8192, 7166 * 4096])
        self.assertEqual(list(free_space.xfs("       0       12        4\n       1     2032      512\n   from      to extents\n")), [16384, 1 << 21])
        self.assertEqual(free_space.by_size([16384, 16384, 1 << 21, 1 << 21])["< 32 KiB"], 100 * 32768 / (32768 + (1 << 22)))

    def test_free_space_adds_up(self):
        self.assertAlmostEqual(sum(free_space.by_size([4096, 1 << 15, 1 << 18, 1 << 21, 1 << 30]).values()), 100)


class Meters(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.top = Path(place.name)

    def make(self, folder, **files):
        (self.top / folder).mkdir()
        for file, text in files.items():
            (self.top / folder / file).write_text(f"{text}\n")
        return self.top / folder

    def test_a_counter_that_wraps_goes_on(self):
        zone = self.make("intel-rapl:0", name="package-0", max_energy_range_uj=999_999, energy_uj=900_000)
        meter = meters.Rapl(zone)
        (zone / "energy_uj").write_text("100000")
        self.assertAlmostEqual(meter.joules(), 0.2)
        (zone / "energy_uj").write_text("350000")
        self.assertAlmostEqual(meter.joules(), 0.45)

    def test_batteries_tell_energy_or_charge(self):
        first = self.make("BAT0", status="Discharging", energy_now=10_000_000)
        second = self.make("BAT1", status="Discharging", charge_now=2_000_000, voltage_now=12_000_000)
        self.make("BAT2", status="Charging", energy_now=1)
        self.assertEqual([meter.name for meter in meters.all_meters(self.top, self.top)], ["BAT0", "BAT1"])
        by_energy, by_charge = meters.Battery(first), meters.Battery(second)
        (first / "energy_now").write_text("9000000")
        (second / "charge_now").write_text("1000000")
        self.assertAlmostEqual(by_energy.joules(), 3600)
        self.assertAlmostEqual(by_charge.joules(), 12 * 3600)


if __name__ == "__main__":
    unittest.main()
