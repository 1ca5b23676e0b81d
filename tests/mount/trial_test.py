#!/usr/bin/env python3
"""varve trial: measures a device that may lose all it has, and nothing that may not."""

from snapshot_tools import *

WORK = ["write in a row", "4 KiB at random + fdatasync", "line of a log + fsync", "save a file of 100 KiB safely", "new files of 1 to 16 KiB + sync",
        "cold read of the large file", "cold read of the new files", "remove the new files + sync"]


class Trial(unittest.TestCase):
    def setUp(self):
        self.addCleanup(clean_up_all)
        self.folder = new_folder()
        self.device = self.folder / "card.img"
        self.report = self.folder / "report.json"
        with open(self.device, "wb") as file:
            file.truncate(256 * MIB)

    def trial(self, *words, **more):
        return command(BIN / "varve", "trial", *words, "--seconds", "1", "-o", self.report, self.device, check=False, **more)

    def measured(self, names):
        report = json.loads(self.report.read_text())
        self.assertEqual([one["filesystem"] for one in report["tried"]], names)
        for one in report["tried"]:
            self.assertEqual([work["work"] for work in one["work"]], WORK)
            for work in one["work"]:
                self.assertGreater(work["rate"], 0, work)
                self.assertGreater(work["operations"], 0, work)
                self.assertGreaterEqual(work["longest_ms"], work["median_ms"], work)
        return report

    def test_varve_alone(self):
        """On the least device: what is written there has a bound besides time."""
        os.truncate(self.device, 64 * MIB)
        places = new_folder()  # other trials of the machine, and what a killed one has left, are in the usual one
        done = self.trial("--with", "varve", "--yes", env={**os.environ, "TMPDIR": str(places)})
        self.assertEqual(done.returncode, 0, done.stderr)
        for work in WORK:
            self.assertIn(work, done.stdout)
        report = self.measured(["varve"])
        self.assertIn("probe", json.dumps(report["tried"][0]["made"]))
        self.assertEqual(report["device"]["kind"], "file")
        self.assertEqual(report["device"]["bytes"], 64 * MIB)
        self.assertIn(os.uname().release, report["machine"]["kernel"])
        self.assertEqual(command(BIN / "fsck.varve", "-n", "-f", "--data", self.device).returncode, 0)
        self.assertEqual(os.listdir(places), [])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mkfs.ext4"), "only root can mount ext4, and its tools must be there")
    def test_beside_ext4(self):
        done = self.trial("--yes", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), self.measured(["varve", "ext4"]))
        done = self.trial("--yes")  # what is there now is somebody's
        self.assertEqual(done.returncode, 1)
        self.assertIn("ext", done.stderr)
        self.assertIn("--force", done.stderr)
        self.assertEqual(command("fsck.ext4", "-n", "-f", self.device).returncode, 0)

    def test_nothing_is_lost_without_a_yes(self):
        before = self.device.read_bytes()
        for words, answer, said in ((["--with", "varve"], "no\n", "--yes"), (["--with", "reiserfs", "--yes"], "", "reiserfs"),
                                    (["--seconds", "0"], "", "seconds")):
            done = self.trial(*words, input=answer)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(said, done.stderr, words)
            self.assertEqual(self.device.read_bytes(), before, words)
        self.assertFalse(self.report.exists())
        small = self.folder / "small.img"
        small.write_bytes(bytes(MIB))
        done = command(BIN / "varve", "trial", "--with", "varve", "--yes", small, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("at least 64.0 MiB", done.stderr)
        self.assertEqual(small.read_bytes(), bytes(MIB))

    def test_what_is_mounted_is_left_alone(self):
        image = Image()
        image.mkfs("128M")
        image.mount()
        fill_random(image.dir / "f", MIB, 1)
        done = command(BIN / "varve", "trial", "--with", "varve", "--yes", "--force", image.path, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("mounted", done.stderr)
        self.assertTrue(same_random(image.dir / "f", MIB, 1))


if __name__ == "__main__":
    main()
