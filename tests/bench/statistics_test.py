#!/usr/bin/env python3
"""What the experiments compute from what they measured."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "bench" / part) for part in ("common", "energy", "aging", "trace", "latency")]

import experiment  # noqa: E402
import free_space  # noqa: E402
import image  # noqa: E402
import meters  # noqa: E402
import pulls  # noqa: E402
import tree  # noqa: E402
import work  # noqa: E402


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
        text = "nodesize\t\t4096\n item 0 key (1048576 BLOCK_GROUP_ITEM 1048576) itemoff 1\n key (1064960 METADATA_ITEM 0) x\n" \
               " key (1069056 EXTENT_ITEM 8192) y\n key (4194304 BLOCK_GROUP_ITEM 65536) z\n"
        self.assertEqual(list(free_space.btrfs(text)), [16384, (1 << 21) - 1077248, 65536])
        cells = [{"blocks": blocks, "live": live} for blocks, live in ((2, 0), (2, 0), (2, 1), (1, 0))]
        self.assertEqual(list(free_space.varve(json.dumps({"cells": cells}))), [16384, 4096])

    def test_what_flash_stands(self):
        kind = {"requests": 1, "bytes": 100, "seconds": 1}
        phase = {**dict.fromkeys(experiment.SUMS, 2), "read": kind, "write": kind, "flush": kind, "discard": kind, "lifetime_bytes": 3000}
        replayed = {"phases": [{"phase": name, **phase} for name in ("a", "b")]}
        self.assertEqual(experiment.of_phases(replayed, ("a", "b"))["lifetime_bytes"], 3000)
        self.assertIsNone(experiment.of_phases(replayed, "c")["lifetime_bytes"])


class Latency(unittest.TestCase):
    def turns(self, span, operations):
        for done, _ in enumerate(span.turns(), 1):
            for operation in operations:
                span.keep(operation, done)
        return len(span.took.get(operations[0], []))

    def test_a_part_goes_on_until_there_are_enough_samples(self):
        self.assertEqual(self.turns(work.Span(0, 60, 3), ["a"]), 3)
        self.assertEqual(self.turns(work.Span(0, 60, 4), ["a", "a", "b"]), 8, "b has them later than a")
        self.assertEqual(self.turns(work.Span(0, 0, 10), ["a"]), 0)
        self.assertGreater(self.turns(work.Span(0.02, 60, 3), ["a"]), 3, "and not before its time")


class Aging(unittest.TestCase):
    def test_unaged_copies_are_of_the_first_the_middle_and_the_last_round(self):
        self.assertEqual(image.copied(range(0, 11, 2), False), {0, 6, 10})
        self.assertEqual(image.copied([0], False), {0})
        self.assertEqual(image.copied(range(0, 11, 2), True), {0, 2, 4, 6, 8, 10})

    def test_pulls_go_on_until_a_copy_had_no_room(self):
        options = SimpleNamespace(pulls=4, most_pulls=8, pulls_every=2)

        def ends(dropped_at):
            return next(n for n in range(20) if not pulls.go_on(SimpleNamespace(dropped=int(n >= dropped_at)), n, options))
        self.assertEqual([ends(dropped_at) for dropped_at in (1, 5, 99)], [4, 6, 8])

    def test_a_round_takes_as_much_as_it_gives_and_comes_again(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            trees = []
            for top, goals in ((one, (1 << 20, 2 << 20)), (other, None)):
                trees.append(tree.Tree(Path(top), SimpleNamespace(seed=1, folders=5)))
                trees[-1].begin(goals or [most])
                most = trees[0].held
                before = trees[-1].shrink()
                self.assertLessEqual(trees[-1].held, 0.95 * before)
                trees[-1].grow(1, before)
            self.assertEqual(trees[0].files, trees[1].files)
            self.assertEqual({str(f.relative_to(one)) for f in Path(one).rglob("*")}, {str(f.relative_to(other)) for f in Path(other).rglob("*")})


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
        self.assertEqual([meter.name for meter in meters.all_meters(self.top, self.top, self.top)], ["BAT0", "BAT1"])
        by_energy, by_charge = meters.Battery(first), meters.Battery(second)
        (first / "energy_now").write_text("9000000")
        (second / "charge_now").write_text("1000000")
        self.assertAlmostEqual(by_energy.joules(), 3600)
        self.assertAlmostEqual(by_charge.joules(), 12 * 3600)
        (first / "status").write_text("Full")
        self.assertRaises(OSError, by_energy.joules)

    def test_sensors_count_energy_or_tell_power(self):
        chip = self.make("hwmon0", name="fake", energy1_input=5_000_000, energy1_label="socket", power2_input=2_000_000, power2_average=1)
        self.make("hwmon1", name="mean", power1_average=3_000_000)
        self.make("hwmon2", name="heat", temp1_input=40_000)
        self.make("hwmon3", name="mute", power1_input="")
        self.make("hwmon4", name="mean", power1_average=0)
        names = ["fake socket", "fake power2", "mean power1", "mean power1 #2"]
        self.assertEqual([meter.name for meter in meters.all_meters(self.top, self.top, self.top)], names)
        now = 0
        energy, power = (meters.Hwmon(chip / file, lambda: now) for file in ("energy1_input", "power2_input"))
        (chip / "energy1_input").write_text("7500000")
        self.assertAlmostEqual(energy.joules(), 2.5)
        now = 10
        (chip / "power2_input").write_text("4000000")
        self.assertAlmostEqual(power.joules(), 30, msg="3 W for 10 s")
        now = 11
        self.assertAlmostEqual(power.joules(), 34)

    def test_readings_are_taken_around_each_phase(self):
        zone = self.make("intel-rapl:0", name="package-0", max_energy_range_uj=999_999, energy_uj=0)
        battery = self.make("BAT0", status="Discharging", energy_now=10_000_000)
        cpu = 0
        with meters.Readings(meters.all_meters(self.top, self.top, self.top), 0.01, lambda: cpu) as readings:
            readings.begin("one")
            (zone / "energy_uj").write_text("250000")
            cpu = 3
            readings.begin("two")
            (battery / "status").write_text("Charging")
            readings.end()
        one, two = readings.phases["one"], readings.phases["two"]
        self.assertEqual(one["cpu_seconds"], 3)
        self.assertAlmostEqual(one["joules"]["package-0"], 0.25)
        self.assertEqual(one["joules"]["BAT0"], 0)
        self.assertEqual(two["joules"], {"package-0": 0, "BAT0": None}, "a meter that fails tells nothing, and the others go on")

    def test_processors_are_added_up(self):
        (self.top / "stat").write_text("cpu  100 20 30 9999 999 5 7 11 0 0\ncpu0 1 1 1 1 1 1 1 0 0 0\n")
        self.assertAlmostEqual(meters.cpu_seconds(self.top / "stat") * os.sysconf("SC_CLK_TCK"), 162)


if __name__ == "__main__":
    unittest.main()
