#!/usr/bin/env python3
"""Unmounting: what it waits for, and what it does not."""

from harness import *


class Umount(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.dir = self.image.dir

    def made(self, *options):
        self.image.mkfs("512M", *options)
        return self.image

    def test_unmount_of_a_busy_mount_fails_and_harms_nothing(self):
        image = self.made()
        image.mount()
        with open(self.dir / "f", "w") as file:
            self.assertNotEqual(image.umount(check=False).returncode, 0)
            file.write("still here")
        self.assertEqual((self.dir / "f").read_text(), "still here")
        image.check_all()

    def test_unmount_says_what_it_waits_for(self):
        if not IS_ROOT:
            self.skipTest("needs root: a mount namespace that keeps the mount")
        image = self.made()
        image.mount()
        (self.dir / "f").write_text("kept")
        # In a chroot nothing can be made private, because its root is no mount: there it has to be so already.
        hold = "echo held; exec cat"
        holder = subprocess.Popen(["sh", "-c", f"unshare -m --propagation private sh -c '{hold}' 2>/dev/null ||"
                                               f" unshare -m --propagation unchanged sh -c '{hold}'"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.kill)
        self.assertEqual(holder.stdout.readline(), b"held\n")
        leaving = subprocess.Popen([BIN / "varve", "umount", self.dir], stderr=subprocess.PIPE, text=True)
        self.addCleanup(leaving.kill)
        line = leaving.stderr.readline()  # the test's own time limit ends it should nothing be said
        self.assertIn("namespace", line)
        self.assertIn(str(image.path), line)
        self.assertIsNone(leaving.poll())
        holder.communicate()
        leaving.communicate()
        self.assertEqual(leaving.returncode, 0)
        image.fsck("--data")

    def test_unmount_does_not_wait_for_those_who_come_after(self):
        image = self.made()
        image.mount()
        for i in range(20_000):  # that ends with a checkpoint that takes a while
            os.symlink("x" * 200, self.dir / f"{i}")
        leaving = subprocess.Popen([BIN / "varve", "umount", self.dir], stderr=subprocess.PIPE, text=True)
        self.addCleanup(leaving.kill)
        wait_until(lambda: not image.is_mounted(), 30, "it is unmounted")
        leaving.send_signal(signal.SIGSTOP)
        wait_until(lambda: not processes_of(image.path), 30, "the daemon has ended")
        image.mount()
        leaving.send_signal(signal.SIGCONT)
        self.assertIn("again", leaving.communicate(timeout=20)[1])
        self.assertEqual(leaving.returncode, 0)
        self.assertEqual(len(os.listdir(self.dir)), 20_000)
        image.check_all()


if __name__ == "__main__":
    main()
