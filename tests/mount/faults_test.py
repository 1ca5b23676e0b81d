#!/usr/bin/env python3
"""What is below the filesystem misbehaves: the host has no room left for the image, the image shrinks, the device goes away or
answers with errors. An fsync that has returned is never broken. One that cannot be kept fails, now and ever after. What is
there stays readable as far as it can be read. Status says why nothing is written any more."""

import errno
import shutil

from harness import *


def fsync_write(path, data):
    """Returns the errno of what failed, or 0."""
    try:
        with open(path, "wb", buffering=0) as file:
            file.write(data)
            os.fsync(file.fileno())
        fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        return error.errno
    return 0


class Faults(unittest.TestCase):
    def setUp(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        self.folder = new_folder()
        self.addCleanup(clean_up_all)
        self.generator = random.Random(SEED)
        self.kept = {}

    def keep(self, top, count, prefix="kept", size=200_000):
        """Files whose fsync has returned."""
        for i in range(count):
            data = self.generator.randbytes(size)
            error = fsync_write(top / f"{prefix}{i}", data)
            if error:
                return error
            self.kept[f"{prefix}{i}"] = data
        return 0

    def check_kept(self, top):
        self.assertTrue(self.kept)
        for name, data in self.kept.items():
            self.assertEqual((top / name).read_bytes(), data, f"{name} was fsynced")

    def expect_read_only(self, image):
        """After a failed write: no sync succeeds any more, nothing can be changed, and status tells why."""
        for _ in range(3):
            self.assertIn(fsync_write(image.dir / "later", b"x" * 10_000), (errno.EIO, errno.EROFS, errno.ENOSPC, errno.ENODEV))
        status = image.status()
        self.assertTrue(status["read_only"])
        self.assertTrue(status["read_only_reason"])
        self.assertNotEqual(status["last_error"], None)
        self.assertIn(status["read_only_reason"], command(BIN / "varve", "status", image.dir).stdout)
        return status["read_only_reason"]

    def expect_advice_to_make_room(self, image):
        """A repair or a trim would find no room either."""
        reason = self.expect_read_only(image)
        self.assertRegex(reason, "make room on the host.*unmount, mount again")
        with open(image.dir / "kept0", "rb") as file, self.assertRaises(OSError) as caught:
            os.fsync(file.fileno())
        self.assertEqual(caught.exception.errno, errno.ENOSPC)
        found = image.findings()
        said = [f["advice"] for f in found if f["subject"] in ("mount", "host")]
        self.assertEqual(len(said), 2, found)
        for advice in (*said, reason):
            self.assertIn("make room", advice)
            self.assertNotRegex(advice, "fsck|trim")

    def expect_unclean_umount(self, image):
        """It ends, and says that the image is not what an unmount promises, and why."""
        reason = self.expect_read_only(image)
        done = image.umount(check=False)
        self.assertFalse(image.is_mounted())
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("clean end", done.stderr)
        self.assertIn(reason, done.stderr)

    def expect_in_order_again(self, image):
        """The device is what it was: all that was fsynced is there."""
        image.fsck("--data")
        image.mount()
        self.check_kept(image.dir)

    def host_of(self, kind):
        """A small filesystem with a file that can be removed to make room."""
        host = self.folder / "host"
        host.mkdir()
        if kind == "tmpfs":
            command("mount", "-t", "tmpfs", "-o", "size=64M", "none", host)
        else:
            if shutil.which(f"mkfs.{kind}") is None:
                self.skipTest(f"no mkfs.{kind}")
            with open(self.folder / "host.img", "wb") as file:
                file.truncate(160 * MIB)
            command(f"mkfs.{kind}", "-q", self.folder / "host.img")
            done = command("mount", "-o", "loop", self.folder / "host.img", host, check=False)
            if done.returncode:
                self.skipTest(f"cannot mount {kind}: {done.stderr}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(host)], capture_output=True)
        (host / "ballast").write_bytes(self.generator.randbytes(16 * MIB))
        fd = os.open(host / "ballast", os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        return host

    def make_room(self, host):
        (host / "ballast").unlink()
        os.sync()

    def fill_host(self, host):
        """A mount whose host is full, and that has kept all that was fsynced."""
        image = Image(host / "disk.img", self.folder)
        image.mkfs("1G")
        image.mount("log=" + str(self.folder / "log"))
        self.assertEqual(self.keep(image.dir, 2000), errno.ENOSPC, "the host cannot have had the room")
        self.assertGreater(len(self.kept), 20)
        return image

    def expect_to_be_held(self, image):
        status = image.status()
        self.assertFalse(status["read_only"], status)
        self.assertTrue(status["host"]["full"], status["host"])
        self.assertGreater(status["host"]["held_bytes"], 0)
        self.assertIn("changes are refused", command(BIN / "varve", "status", "-s", image.dir).stdout)
        found = image.findings()
        advice = [one["advice"] for one in found if one["subject"] == "room on host"]
        self.assertEqual(len(advice), 1, found)
        self.assertIn("make room", advice[0])
        self.assertRegex(command(BIN / "varve", "doctor", image.dir, check=False).stdout, r"(?m)^broken  room on host +no room for \d+ s; ")
        for words in (("label", image.dir, "x"), ("uuid", image.dir, "random"), ("clean", image.dir), ("resize", image.dir, "512M")):
            done = command(BIN / "varve", *words, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("no space left where the image lies", done.stderr, words)
        self.assertRegex(command(BIN / "varve", "metrics", image.dir).stdout, r"varve_host_full\{[^}]*\} 1\b")
        for call in (lambda: (image.dir / "new").mkdir(), lambda: (image.dir / "kept0").unlink()):
            with self.assertRaises(OSError) as refused:
                call()
            self.assertEqual(refused.exception.errno, errno.ENOSPC)
        self.assertEqual(fsync_write(image.dir / "new", b"x"), errno.ENOSPC)
        self.check_kept(image.dir)

    def expect_to_go_on(self, image):
        wait_until(lambda: not image.status()["host"]["full"], "the mount has noticed that there is room")
        self.assertEqual(self.keep(image.dir, 20, "again"), 0)
        status = image.status()
        self.assertFalse(status["read_only"])
        self.assertGreater(status["host"]["times"], 0)
        self.assertEqual(status["host"]["held_bytes"], 0)
        log = (self.folder / "log").read_text()
        self.assertRegex(log, "a write has failed: (No space left on device|Disk quota exceeded).*make room on the host")
        self.assertRegex(log, "there is room again")
        self.check_kept(image.dir)
        image.umount()
        self.expect_in_order_again(image)
        image.check_all()

    def a_full_host(self, kind):
        host = self.host_of(kind)
        image = self.fill_host(host)
        self.expect_to_be_held(image)
        self.make_room(host)
        self.expect_to_go_on(image)

    def test_a_full_tmpfs(self):
        self.a_full_host("tmpfs")

    def test_a_full_ext4(self):
        self.a_full_host("ext4")

    def test_a_full_btrfs(self):
        self.a_full_host("btrfs")

    def test_a_full_host_without_direct_io(self):
        os.environ["VARVE_IO_BUFFERED"] = "1"
        self.addCleanup(os.environ.pop, "VARVE_IO_BUFFERED")
        self.a_full_host("ext4")

    def test_a_trim_makes_room_on_a_full_host(self):
        """What was removed inside, the host does not know."""
        host = self.host_of("tmpfs")
        image = Image(host / "disk.img", self.folder)
        image.mkfs("1G")
        image.mount("log=" + str(self.folder / "log"))
        self.assertEqual(self.keep(image.dir, 80, "gone"), 0)
        for name in list(self.kept):
            (image.dir / name).unlink()
            del self.kept[name]
        command(BIN / "varve", "checkpoint", image.dir)
        self.assertEqual(self.keep(image.dir, 2000), errno.ENOSPC)
        self.expect_to_be_held(image)
        command(BIN / "varve", "trim", image.dir)
        self.expect_to_go_on(image)

    def test_a_daemon_that_dies_on_a_full_host(self):
        """What was held goes with it; all that was fsynced is there."""
        host = self.host_of("ext4")
        image = self.fill_host(host)
        image.kill()
        image.clean_up()
        self.make_room(host)
        image.mount()
        self.check_kept(image.dir)
        self.assertEqual(self.keep(image.dir, 20, "again"), 0)
        image.check_all()

    def test_unmounted_and_mounted_on_a_full_host(self):
        """It waits for room, but not for ever. The next mount is read-only, since nothing waits for it yet."""
        host = self.host_of("tmpfs")
        image = self.fill_host(host)
        done = image.umount(check=False)
        self.assertFalse(image.is_mounted())
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("clean end", done.stderr)
        log = (self.folder / "log").read_text()
        self.assertRegex(log, "what was held for [0-9.]* s for want of room could not be written")
        self.assertRegex(log, "unmounting failed: .*make room on the host")
        image.clean_up()
        image.mount()
        self.expect_advice_to_make_room(image)
        self.check_kept(image.dir)
        image.umount(check=False)
        image.clean_up()
        self.make_room(host)
        self.expect_in_order_again(image)
        self.assertEqual(self.keep(image.dir, 20, "again"), 0)
        image.check_all()

    def test_salvage_to_where_nothing_stays(self):
        """What the target's device refuses when the kernel writes it back is no success of salvage."""
        host, target = self.folder / "host", self.folder / "target"
        for folder in (host, target):
            folder.mkdir()
        command("mount", "-t", "tmpfs", "-o", "size=24M", "none", host)
        self.addCleanup(subprocess.run, ["umount", "-l", str(host)], capture_output=True)
        with open(host / "disk", "wb") as file:
            file.truncate(256 * MIB)
        done = command("losetup", "--find", "--show", host / "disk", check=False)
        if done.returncode:
            self.skipTest(f"no loop device: {done.stderr}")
        self.addCleanup(subprocess.run, ["losetup", "-d", done.stdout.strip()])
        command("mkfs.ext4", "-q", done.stdout.strip())
        command("mount", done.stdout.strip(), target)
        self.addCleanup(subprocess.run, ["umount", "-l", str(target)], capture_output=True)
        image = Image(None, self.folder)
        image.mkfs("512M")
        image.mount()
        self.assertEqual(self.keep(image.dir, 60, "kept", 1_000_000), 0)
        image.umount()
        done = command(BIN / "varve", "salvage", image.path, target / "out", check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("target", done.stderr)

    def test_the_image_shrinks_under_the_mount(self):
        """What is cut off is lost; nothing else is, and nothing wrong is shown for it."""
        image = Image(None, self.folder)
        image.mkfs("512M")
        image.mount()
        self.assertEqual(self.keep(image.dir, 100, "kept", 1_000_000), 0)
        os.truncate(image.path, 60 * MIB)
        for name in self.kept:
            drop_cached(image.dir / name)
        lost = self.count_lost(image.dir)
        self.assertGreater(lost, 0)
        self.assertLess(lost, len(self.kept))
        (image.dir / "more").write_bytes(b"x" * MIB)
        image.umount(check=False)
        image.clean_up()
        done = command(BIN / "fsck.varve", "-n", "-f", "--data", image.path, check=False, timeout=600)
        self.assertIn(done.returncode, (4, 8), done.stdout + done.stderr)
        if image.mount("ro", check=False).returncode == 0:
            self.assertGreater(self.count_lost(image.dir), 0)

    def count_lost(self, top):
        """Files that cannot be read; those that can are right."""
        lost = 0
        for name, data in self.kept.items():
            try:
                self.assertEqual((top / name).read_bytes(), data, f"{name}: wrong data")
            except OSError as error:
                self.assertIn(error.errno, (errno.EIO, errno.EUCLEAN), name)
                lost += 1
        return lost

    def loop_device(self):
        with open(self.folder / "disk", "wb") as file:
            file.truncate(512 * MIB)
        done = command("losetup", "--find", "--show", "--direct-io=on", self.folder / "disk", check=False)
        if done.returncode:
            self.skipTest(f"no loop device: {done.stderr}")
        self.loop = done.stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "-d", self.loop])
        self.addCleanup(clean_up_all)
        return Image(self.loop, self.folder)

    def limit(self, size):
        """How much of the loop device is left, while it is in use; 0: all of it."""
        get_status, set_status, size_at = 0x4C05, 0x4C04, 32  # <linux/loop.h>: LOOP_*_STATUS64, lo_sizelimit
        with open(self.loop, "rb") as device:
            info = bytearray(232)
            fcntl.ioctl(device, get_status, info)
            info[size_at:size_at + 8] = size.to_bytes(8, "little")

            def is_set():
                with contextlib.suppress(BlockingIOError):  # somebody reads the device at this moment
                    fcntl.ioctl(device, set_status, bytes(info))
                    return True
            wait_until(is_set, "the loop device has another size")

    def test_a_device_that_goes_away_and_comes_back(self):
        image = self.loop_device()
        image.mkfs(None)
        image.mount()
        self.assertEqual(self.keep(image.dir, 30), 0)
        self.limit(4096)
        self.assertNotEqual(self.keep(image.dir, 5, "gone"), 0)
        self.expect_read_only(image)
        self.limit(0)
        self.expect_read_only(image)  # it is back, but what was lost meanwhile is not
        self.check_kept(image.dir)
        self.expect_unclean_umount(image)
        image.clean_up()
        self.expect_in_order_again(image)
        image.check_all()

    def test_writers_to_a_device_that_has_gone_are_told(self):
        """The kernel accepts what is written into its cache, whatever becomes of it: it is the daemon that ends that."""
        image = self.loop_device()
        image.mkfs(None)
        image.mount()
        self.assertEqual(self.keep(image.dir, 3), 0)
        opened = os.open(image.dir / "kept0", os.O_RDWR)
        self.limit(4096)
        self.assertNotEqual(self.keep(image.dir, 5, "gone"), 0)
        self.expect_read_only(image)
        os.pwrite(opened, b"x" * MIB, 0)
        with self.assertRaises(OSError):
            os.fsync(opened)
        with self.assertRaises(OSError) as refused:
            for _ in range(10):  # the first one, of a thread that is not known to write, is accepted
                os.pwrite(opened, b"x" * 4096, 0)
        self.assertEqual(refused.exception.errno, errno.EROFS)
        for _ in range(3):
            with self.assertRaises(OSError):
                os.fsync(opened)
        with contextlib.suppress(OSError):
            os.close(opened)
        self.limit(0)
        self.expect_unclean_umount(image)
        image.clean_up()
        self.expect_in_order_again(image)
        image.check_all()

    def test_a_device_that_becomes_smaller(self):
        image = self.loop_device()
        image.mkfs(None)
        image.mount()
        self.assertEqual(self.keep(image.dir, 30), 0)
        self.limit(64 * MIB)
        self.assertNotEqual(self.keep(image.dir, 400, "more", 1_000_000), 0)
        self.expect_read_only(image)
        self.check_kept(image.dir)
        self.expect_unclean_umount(image)
        image.clean_up()
        done = image.mount(check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "smaller")
        self.limit(0)
        self.expect_in_order_again(image)
        image.check_all()


if __name__ == "__main__":
    main()
