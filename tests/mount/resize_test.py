#!/usr/bin/env python3
"""varve resize: images, devices that have grown, in use and not; cancelled, killed in the middle, refused."""

from harness import *

import re
import signal
import threading


def resize(*words, expect=0, **more):
    done = command(BIN / "varve", "resize", *words, check=False, timeout=300, **more)
    if done.returncode != expect:
        raise AssertionError(f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
    return done


def report(place):
    return json.loads(resize("-n", "--json", place).stdout)


class Resize(MountTest):
    size = "256M"

    def blocks(self):
        return self.image.status()["space"]["device_blocks"]

    def expect_size(self, mib):
        self.assertEqual(self.blocks(), mib * 256)
        self.assertEqual(self.image.path.stat().st_size, mib * MIB)

    def available(self):
        return os.statvfs(self.dir).f_bavail * 4096

    def test_a_longer_image_is_told_of(self):
        os.truncate(self.image.path, 300 * MIB)
        for place in (self.dir, self.image.path):
            said = command(BIN / "varve", "status", "-s", place).stdout
            self.assertIn(f"varve resize {place} would give 44.0 MiB more", said)
            advice = json.loads(command(BIN / "varve", "doctor", "--json", place, check=False).stdout)
            self.assertIn(f"varve resize {place} makes it as large as that", [found["advice"] for found in advice])
            if self.image.is_mounted():
                self.image.umount()
        resize(self.image.path)
        self.assertNotIn("varve resize", command(BIN / "varve", "status", "-s", self.image.path).stdout)

    def test_what_does_not_fit_is_refused_by_name(self):
        fill_random(self.dir / "kept", 120 * MIB, 1)
        for place in (self.dir, self.image.path):
            self.assertRegex(resize(place, "80M", expect=1).stderr, f"^varve: {place}: .*the smallest possible size is")
            if self.image.is_mounted():
                self.image.umount()

    def test_grows_and_shrinks_while_it_is_used(self):
        fill_random(self.dir / "kept", 20 * MIB, 1)
        stop = threading.Event()

        def write():
            turn = 0
            while not stop.is_set():
                fill_random(self.dir / f"w{turn % 5}", 2 * MIB, turn)
                turn += 1

        writer = Beside(write)
        try:
            for mib in (400, 128, 1024, 90, 256):
                done = resize(self.dir, f"{mib}M")
                self.assertIn("The filesystem has", done.stdout)
                self.expect_size(mib)
                self.assertLess(self.available(), mib * MIB)
                self.assertGreater(self.available(), mib * MIB // 3)
        finally:
            stop.set()
            writer.end()
        self.assertTrue(same_random(self.dir / "kept", 20 * MIB, 1))
        self.assertIn("already", resize(self.dir, "256M").stdout)
        self.image.check_all()

    def test_an_image_that_is_not_mounted(self):
        fill_random(self.dir / "kept", 20 * MIB, 2)
        self.image.umount()
        for mib in (300, 100, 8192, 64):
            resize(self.image.path, f"{mib}M")
            self.assertEqual(self.image.path.stat().st_size, mib * MIB)
            self.image.fsck("--data")
        os.truncate(self.image.path, 150 * MIB)
        self.assertIn("The filesystem has 150M now, 64M before", resize(self.image.path).stdout)
        self.image.mount()
        self.assertTrue(same_random(self.dir / "kept", 20 * MIB, 2))
        self.expect_size(150)
        self.image.check_all()

    def test_the_smallest_size(self):
        for i in range(30):
            fill_random(self.dir / f"f{i}", 4 * MIB, i, sync=False)
        sync_filesystem(self.dir)
        command(BIN / "varve", "checkpoint", self.dir)  # before it the size is an estimate, and may be a segment less
        least = report(self.dir)["least_bytes"]
        text = resize("--minimum", self.dir).stdout
        self.assertRegex(text, r"^Smallest possible size: \d+[MG]$")
        self.assertTrue(120 * MIB < least < 200 * MIB, least)
        said = resize(self.dir, f"{least // MIB - 20}M", expect=1).stderr
        self.assertRegex(said, f"the smallest possible size is {least // MIB} MiB")
        resize(self.dir, str(least))
        self.expect_size(least // MIB)
        for i in range(30):
            self.assertTrue(same_random(self.dir / f"f{i}", 4 * MIB, i))
        self.image.umount()
        self.assertLessEqual(report(self.image.path)["least_bytes"], least)
        self.image.mount()
        self.image.check_all()

    def test_a_file_of_status_is_as_large(self):
        resize(self.dir, "512M")
        self.assertIn("512", command(BIN / "varve", "status", "-s", self.dir).stdout)
        self.assertEqual(json.loads(command(BIN / "varve", "status", "--json", self.dir).stdout)["space"]["device_blocks"], 512 * 256)

    def fill_the_end(self):
        for i in range(44):
            fill_random(self.dir / f"f{i}", 4 * MIB, i, sync=False)
        sync_filesystem(self.dir)
        for i in range(0, 44):
            if i % 4:
                (self.dir / f"f{i}").unlink()
        sync_filesystem(self.dir)

    def expect_the_rest(self):
        for i in range(0, 44, 4):
            self.assertTrue(same_random(self.dir / f"f{i}", 4 * MIB, i), i)

    def test_cancelled(self):
        """By another command, and by Ctrl-C: it ends soon, with the size of before, or was done already."""
        self.fill_the_end()
        for cancel in ("command", "signal"):
            process = subprocess.Popen([BIN / "varve", "resize", self.dir, "90M"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            wait_until_interruptible(process)
            if cancel == "command":
                resize("--cancel", self.dir)
            else:
                process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=HANG)
            if process.returncode:
                self.assertIn("256M as before", said[1])
                self.expect_size(256)
            else:
                self.expect_size(90)
                resize(self.dir, "256M")
            self.expect_the_rest()
        self.image.check_all()

    def test_killed_in_the_middle(self):
        """Whenever the daemon dies, the next mount finds one size or the other, and all that was synced."""
        dice = random.Random(SEED)
        self.fill_the_end()
        sizes = set()
        for turn in range(int(os.environ.get("VARVE_CRASH_ROUNDS", "6"))):
            to = 90 if self.blocks() == 256 * 256 else 256
            process = subprocess.Popen([BIN / "varve", "resize", self.dir, f"{to}M"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(dice.random() * 0.3)
            self.image.kill()
            process.wait(HANG)
            self.image.mount()
            sizes.add(self.blocks())
            self.assertIn(self.blocks(), (90 * 256, 256 * 256))
            self.expect_the_rest()
            self.image.umount()
            self.image.fsck("--data")
            self.image.mount()
        resize(self.dir, "300M")
        self.expect_the_rest()
        self.image.check_all()


class GrownDevice(unittest.TestCase):
    def test_a_loop_device_that_has_grown(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        folder = new_folder()
        file = folder / "disk"
        with open(file, "wb") as disk:
            disk.truncate(64 * MIB)
        done = command("losetup", "--find", "--show", file, check=False)
        if done.returncode:
            self.skipTest(f"no loop device: {done.stderr}")
        loop = done.stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "-d", loop])
        self.addCleanup(clean_up_all)
        image = Image(loop, folder)
        image.mkfs(None)
        image.mount()
        fill_random(image.dir / "kept", 10 * MIB, 3)
        self.assertIn("make the device larger first", resize(loop, "128M", expect=1).stderr)
        os.truncate(file, 256 * MIB)
        command("losetup", "-c", loop)
        self.assertIn("The filesystem has 256M now, 64M before", resize(image.dir).stdout)
        fill_random(image.dir / "more", 150 * MIB, 4)
        (image.dir / "more").unlink()
        resize(image.dir, "100M")
        self.assertEqual(image.status()["space"]["device_blocks"], 100 * 256)
        image.umount()
        os.truncate(file, 100 * MIB)
        command("losetup", "-c", loop)
        image.fsck("--data")
        image.mount()
        self.assertTrue(same_random(image.dir / "kept", 10 * MIB, 3))
        image.umount()


if __name__ == "__main__":
    main()
