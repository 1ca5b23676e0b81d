#!/usr/bin/env python3
"""varve scrub: finds damage while the filesystem is in use, names files and places, stops, and goes on after a remount."""

from harness import *

BLOCK = 4096


class Scrub(MountTest):
    size = "256M"

    def setUp(self):
        super().setUp()
        (self.dir / "d").mkdir()
        for i in range(8):
            fill_random(self.dir / "d" / f"f{i}", 2 * MIB, seed=i)
        self.damaged = False

    def tearDown(self):
        if not self.damaged:
            super().tearDown()

    def scrub(self, *options, expect=0):
        done = command(BIN / "varve", "scrub", self.dir, *options, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def doctor(self):
        return " ".join(command(BIN / "varve", "doctor", self.image.path, check=False).stdout.split())

    def report(self, *options, expect=0):
        return json.loads(self.scrub("--json", *options, expect=expect).stdout)

    def place_of(self, seed, block):
        """Offset in the image of a block of a file made by fill_random."""
        generator = random.Random(seed)
        data = b"".join(generator.randbytes(MIB) for _ in range(2))[block * BLOCK:(block + 1) * BLOCK]
        with open(self.image.path, "rb") as file:
            offset = 0
            while piece := file.read(16 * MIB):
                if (at := piece.find(data)) >= 0:
                    return offset + at
                offset += len(piece)
        self.fail("the block is not in the image")

    def spoil(self, offset):
        self.damaged = True
        with open(self.image.path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 0x10]))
            file.flush()
            os.fsync(file.fileno())

    def test_a_clean_filesystem(self):
        self.assertIn("no scrub", self.scrub("--status").stdout)
        report = self.report("--rate", "0")
        self.assertEqual((report["state"], report["errors"], report["findings"]), ("finished", 0, []))
        self.assertGreaterEqual(report["verified_blocks"] * BLOCK, 16 * MIB)
        self.assertRegex(self.scrub("--status").stdout, r"(?s)Scrub +finished.*Verified.*0 errors")
        self.assertEqual(self.image.status()["scrub"]["state"], "finished")
        self.assertIn("Scrub", command(BIN / "varve", "status", self.dir).stdout)

    def test_names_the_file_and_the_place(self):
        os.link(self.dir / "d" / "f3", self.dir / "second name")
        command(BIN / "varve", "checkpoint", self.dir)
        self.spoil(self.place_of(3, 100) + 1234)
        report = self.report("--rate", "0", expect=1)
        self.assertEqual(report["errors"], 1)
        finding, = report["findings"]
        self.assertEqual((finding["kind"], finding["offset"], finding["bytes"]), ("data", 100 * BLOCK, BLOCK))
        self.assertEqual(finding["inode"], (self.dir / "d" / "f3").stat().st_ino)
        self.assertEqual(sorted(finding["names"]), [str(self.dir / "d" / "f3"), str(self.dir / "second name")])
        text = self.scrub("--status").stdout
        for part in ("d/f3", "second name", str(100 * BLOCK), "checksum"):
            self.assertIn(part, text)
        with self.assertRaises(OSError):
            with open(self.dir / "d" / "f3", "rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                os.pread(file.fileno(), BLOCK, 100 * BLOCK)
        self.assertEqual(self.image.status()["lifetime"]["errors"] > 0, True)

    def test_errors_are_over_when_a_later_scrub_finds_nothing(self):
        command(BIN / "varve", "checkpoint", self.dir)
        self.spoil(self.place_of(3, 100) + 1234)
        self.report("--rate", "0", expect=1)
        self.assertRegex(self.doctor(), r"unsafe errors [1-9][0-9]* errors? since it was made, the last 20")
        self.assertIn(f"varve scrub {self.dir}", self.doctor())
        (self.dir / "d" / "f3").unlink()
        self.assertRegex(self.doctor(), r"unsafe errors")
        time.sleep(1.1)  # the times are in seconds
        self.report("--rate", "0")
        self.damaged = False
        for _ in range(2):  # mounted and not
            self.assertRegex(self.doctor(), r"ok errors [1-9][0-9]* errors? since it was made, the last 20.*found nothing any more")
            summary = command(BIN / "varve", "status", "-s", self.image.path).stdout
            self.assertRegex(summary, r"State .*[1-9][0-9]* errors? since it was made, the last 20.*found nothing any more")
            page = command(BIN / "varve", "report", self.image.path).stdout
            self.assertRegex(page, r'"g ok">ok</span><td class=w>errors')
            if self.image.is_mounted():
                self.image.umount()

    def test_a_check_of_all_data_ends_them_as_well(self):
        command(BIN / "varve", "checkpoint", self.dir)
        self.spoil(self.place_of(3, 100) + 1234)
        self.report("--rate", "0", expect=1)
        (self.dir / "d" / "f3").unlink()
        self.image.umount()
        time.sleep(1.1)  # the times are in seconds
        command(BIN / "fsck.varve", "-n", "--data", self.image.path)
        self.assertRegex(self.doctor(), r"unsafe errors")
        command(BIN / "fsck.varve", "-y", "--data", self.image.path)
        self.damaged = False
        for _ in range(2):  # mounted and not
            self.assertRegex(self.doctor(), r"ok errors [1-9][0-9]* errors? since it was made, the last 20.*found nothing any more")
            if not self.image.is_mounted():
                self.image.mount()

    def test_an_unmounted_image_tells_its_errors(self):
        command(BIN / "varve", "checkpoint", self.dir)
        self.spoil(self.place_of(3, 100) + 1234)
        self.report("--rate", "0", expect=1)
        self.image.umount()
        summary = command(BIN / "varve", "status", "-s", self.image.path).stdout
        self.assertRegex(summary, r"State *not mounted, clean; [1-9][0-9]* errors? since it was made, the last 20")

    def test_a_damaged_superblock(self):
        command(BIN / "varve", "checkpoint", self.dir)  # else the one that the scrub begins with writes it anew
        self.spoil(2000)
        report = self.report("--rate", "0", expect=1)
        self.assertEqual([f["kind"] for f in report["findings"]], ["superblock"])
        self.assertEqual(report["findings"][0]["block"], 0)

    def test_stops_and_goes_on_after_a_remount(self):
        report = self.report("--background", "--rate", "256K")  # a minute of it, however slow those are that look
        self.assertEqual(report["state"], "running")
        wait_until(lambda: self.report("--status")["verified_blocks"] > 0, "the scrub moves")
        stopped = self.report("--stop")
        self.assertEqual(stopped["state"], "stopped")
        self.image.remount()
        after = self.report("--status")
        self.assertEqual((after["state"], after["verified_blocks"]), ("stopped", stopped["verified_blocks"]))
        end = self.report("--rate", "0")
        self.assertEqual((end["state"], end["errors"], end["started"]), ("finished", 0, stopped["started"]))
        # A new one from then on.
        again = self.report("--rate", "0")
        self.assertGreaterEqual(again["started"], end["finished"])

    def test_who_waits_hears_that_somebody_stopped_it(self):
        waiting = subprocess.Popen([BIN / "varve", "scrub", "-r", "256K", self.dir], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(waiting.kill)
        wait_until(lambda: self.report("--status")["state"] == "running", "the scrub has begun")
        self.scrub("--stop")
        out, err = waiting.communicate(timeout=HANG)
        self.assertEqual(waiting.returncode, 1, out)
        self.assertIn("stopped", err)

    def test_goes_on_after_a_kill(self):
        self.report("--background", "--rate", "256K")
        wait_until(lambda: self.report("--status")["verified_blocks"] > 256, "the scrub moves")
        (self.dir / "new").write_text("x")
        command(BIN / "varve", "checkpoint", self.dir)
        self.image.kill()
        self.image.mount()
        self.assertEqual(self.report("--status")["state"], "stopped")
        self.assertEqual(self.report("--rate", "0")["state"], "finished")

    def test_beside_changes(self):
        """Files come and go, the cleaner and checkpoints work: no false alarm."""
        self.report("--background", "--rate", "20M")
        for turn in range(6):
            for i in range(8):
                fill_random(self.dir / "d" / f"f{i}", 2 * MIB, seed=10 * turn + i, sync=False)
            command(BIN / "varve", "checkpoint", self.dir)
            report = self.report("--status")
            self.assertEqual(report["errors"], 0, report)
            if report["state"] == "finished":
                self.report("--background", "--rate", "20M")
        self.assertEqual(self.report("--rate", "0")["errors"], 0)
        for i in range(8):
            self.assertTrue(same_random(self.dir / "d" / f"f{i}", 2 * MIB, seed=50 + i))

    def overwrite(self, turn):
        for i in range(8):
            fill_random(self.dir / "d" / f"f{i}", 2 * MIB, seed=10 * turn + i, sync=False)
        command(BIN / "varve", "checkpoint", self.dir)

    def test_names_the_snapshot_that_has_the_damage(self):
        command(BIN / "varve", "snapshot", "create", self.dir, "before")
        self.overwrite(1)
        self.spoil(self.place_of(3, 100) + 1234)
        report = self.report("--rate", "0", expect=1)
        self.assertEqual((report["errors"], report["snapshot_errors"]), (1, 1))
        finding, = report["findings"]
        self.assertEqual((finding["kind"], finding["offset"], finding["bytes"]), ("data", 100 * BLOCK, BLOCK))
        self.assertEqual((finding["snapshot"], finding["snapshots"]), ("before", 1))
        self.assertEqual(finding["inode"], (self.dir / "d" / "f3").stat().st_ino)
        self.assertEqual(finding["names"], [str(self.dir / ".varve-snapshots/before/d/f3")])
        text = self.scrub("--status").stdout
        for part in ("only in snapshot before", ".varve-snapshots/before/d/f3", "1 of them only in snapshots"):
            self.assertIn(part, text)
        self.assertTrue(same_random(self.dir / "d" / "f3", 2 * MIB, seed=13), "the file in use is whole")
        (self.dir / "new").write_text("it can be written to")
        command(BIN / "varve", "snapshot", "delete", self.dir, "before")
        self.assertEqual(self.report("--rate", "0", "--restart")["errors"], 0)

    def test_a_mount_of_a_snapshot(self):
        """What it shows has been moved since, and written over: no false alarm."""
        command(BIN / "varve", "snapshot", "create", self.dir, "before")
        for turn in (1, 2):
            self.overwrite(turn)
            command(BIN / "varve", "clean", "-s", "compacting", self.dir)
        self.assertEqual(self.report("--rate", "0")["errors"], 0)
        self.image.remount("snapshot=before")
        report = self.report("--rate", "0", "--restart")
        self.assertEqual((report["state"], report["errors"]), ("finished", 0), report)
        self.assertTrue(same_random(self.dir / "d" / "f3", 2 * MIB, seed=3))

    def test_read_only(self):
        self.image.remount("ro")
        self.assertEqual(self.report("--rate", "0")["state"], "finished")
        self.image.remount()
        self.assertEqual(self.report("--status")["state"], "never")

    def test_wrong_use(self):
        for words in (["--stop", "--background"], ["--status", "--restart"], ["--rate", "fast"]):
            self.scrub(*words, expect=1)
        done = command(BIN / "varve", "scrub", "/proc", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not a mounted Varve", done.stderr)

    @unittest.skipUnless(IS_ROOT, "needs another user")
    def test_only_for_those_who_may(self):
        os.chmod(self.image.folder, 0o755)
        self.image.remount("allow_other")
        done = command("setpriv", "--reuid=65534", "--clear-groups", BIN / "varve", "scrub", self.dir, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("only for root", done.stderr)


if __name__ == "__main__":
    main()
