#!/usr/bin/env python3
"""A daemon that is told to end while its mount is used from where its own path does not lead, or while that path leads to
something else. What has been written is there afterwards, and nothing else is unmounted."""

import resource

from harness import *

SIZE = 3_000_000
PATIENCE = 2.0  # seconds that a daemon gives its users after a signal


class Signals(unittest.TestCase):
    def setUp(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        self.image = self.made()
        self.addCleanup(clean_up_all)
        self.dir = self.image.dir
        self.log = self.image.folder / "log"
        self.image.mount(f"log={self.log}")

    def made(self):
        image = Image()
        image.mkfs("256M")
        return image

    def use(self, directory, apart=False):
        """A process that has written to a file and never closed it; if apart, in a mount namespace that keeps the mount, too."""
        hold = f"import sys; f = open('{directory}/f', 'wb', 0); f.write(b'x' * {SIZE}); print('held', flush=True); sys.stdin.read()"
        # In a chroot nothing can be made private, because its root is no mount: there it has to be so already.
        ways = [["unshare", "-m", "--propagation", way] for way in ("private", "unchanged")] if apart else [[]]
        for way in ways:
            user = subprocess.Popen([*way, sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL)
            self.addCleanup(user.communicate)
            self.addCleanup(user.kill)
            if user.stdout.readline() == b"held\n":
                return user
        self.fail("nobody uses it")

    def end(self):
        """By a signal."""
        os.kill(self.image.daemon(), signal.SIGTERM)
        wait_until(lambda: not processes_of(self.image.path), "the daemon ends")

    def expect_all_of_it(self):
        self.image.mount()
        self.assertEqual(os.stat(self.dir / "f").st_size, SIZE)
        self.assertEqual((self.dir / "f").read_bytes(), b"x" * SIZE)
        self.assertIn("still used", self.log.read_text())
        self.image.check_all()

    def test_used_in_another_namespace(self):
        user = self.use(self.dir, apart=True)
        self.end()
        self.assertFalse(self.image.is_mounted())
        user.kill()
        self.expect_all_of_it()

    def test_unmounted_here_before(self):
        user = self.use(self.dir, apart=True)
        leaving = subprocess.Popen([BIN / "varve", "umount", self.dir], stderr=subprocess.PIPE, text=True)
        self.addCleanup(leaving.kill)
        wait_until(lambda: not self.image.is_mounted(), "it is unmounted here")
        self.end()
        leaving.communicate(timeout=HANG)
        user.kill()
        self.expect_all_of_it()

    def test_used_through_a_bind_mount(self):
        bound = self.image.folder / "bound"
        bound.mkdir()
        command("mount", "--bind", self.dir, bound)
        self.addCleanup(subprocess.run, ["umount", "-l", bound], capture_output=True)
        user = self.use(bound)
        self.end()
        user.kill()
        command("umount", "-l", bound)
        self.expect_all_of_it()

    def test_users_may_finish_elsewhere(self):
        for _ in range(10):  # on a busy machine all of it may take longer than the daemon waits
            user, told = self.use(self.dir, apart=True), self.log.read_text().count("still used")
            began = time.monotonic()
            os.kill(self.image.daemon(), signal.SIGTERM)
            wait_until(lambda: self.log.read_text().count("still used") > told, "it waits for users")
            user.communicate()
            wait_until(lambda: not processes_of(self.image.path), "the daemon ends")
            took = time.monotonic() - began
            self.expect_all_of_it()
            if took < PATIENCE:
                return
            self.image.mount(f"log={self.log}")
        self.fail("the daemon does not end when nobody is left")

    def test_another_mount_of_ours_at_its_place(self):
        self.use(self.dir)
        command(BIN / "varve", "umount", "-l", self.dir)
        other = self.made()
        other.dir = self.dir
        other.mount()
        (self.dir / "g").write_text("the other one")
        self.end()
        self.assertTrue(other.is_mounted())
        self.assertEqual((self.dir / "g").read_text(), "the other one")
        with open(self.dir / "g") as file:  # in use it stays, too
            command(BIN / "varve", "checkpoint", self.dir)
            self.assertEqual(file.read(), "the other one")
        other.check_all()
        self.expect_all_of_it()

    def test_its_device_number_is_used_again(self):
        (self.dir / "f").write_bytes(b"x" * SIZE)
        command("sync", "-f", self.dir)  # so that the kernel need not ask the daemon for anything when it is unmounted
        number, daemon = os.stat(self.dir).st_dev, self.image.daemon()
        stop(daemon)
        command("umount", "-i", "-l", self.dir)
        other = self.made()
        other.dir = self.dir
        other.mount()
        if os.stat(self.dir).st_dev != number:
            self.skipTest("the kernel has given the device number to somebody else")
        (self.dir / "g").write_text("the other one")
        os.kill(daemon, signal.SIGCONT)
        wait_until(lambda: not processes_of(self.image.path), "the daemon ends")
        self.assertTrue(other.is_mounted())
        self.assertEqual((self.dir / "g").read_text(), "the other one")
        other.check_all()
        self.image.check_all()

    def test_something_else_on_top(self):
        self.use(self.dir)
        command("mount", "-t", "tmpfs", "none", self.dir)
        self.addCleanup(subprocess.run, ["umount", "-l", self.dir], capture_output=True)
        (self.dir / "g").write_text("in memory")
        self.end()
        self.assertEqual((self.dir / "g").read_text(), "in memory")
        command("umount", self.dir)
        command("umount", "-l", self.dir)  # what the daemon could not take away
        self.expect_all_of_it()


class StraySignals(unittest.TestCase):
    """What others send by mistake, or limits bring, costs nobody data. Needs no root."""

    def setUp(self):
        self.image = Image()
        self.image.mkfs("256M")
        self.addCleanup(clean_up_all)
        self.dir = self.image.dir
        self.image.mount()
        fill_random(self.dir / "f", 5 * MIB, 3)

    def test_most_end_nothing(self):
        daemon = self.image.daemon()
        for number in (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGUSR1, signal.SIGUSR2, signal.SIGIO, signal.SIGPIPE,
                       signal.SIGXFSZ, signal.SIGSTKFLT, signal.SIGRTMIN, signal.SIGRTMAX):
            for _ in range(3):
                os.kill(daemon, number)
        (self.dir / "g").write_text("still here")
        self.assertEqual(self.image.daemon(), daemon)
        self.image.remount()
        self.assertEqual((self.dir / "g").read_text(), "still here")
        self.assertTrue(same_random(self.dir / "f", 5 * MIB, 3))
        self.image.check_all()

    def test_a_stray_signal_hides_no_unmount(self):
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            daemon = self.image.daemon()
            stop(daemon)
            os.kill(daemon, number)
            leaving = subprocess.Popen([BIN / "varve", "umount", self.dir], stderr=subprocess.PIPE, text=True)
            os.kill(daemon, signal.SIGCONT)
            self.assertEqual(leaving.wait(HANG), 0, leaving.stderr.read())
            leaving.stderr.close()
            self.image.mount()
        self.image.check_all()

    def test_others_end_it_cleanly(self):
        for number in (signal.SIGQUIT, signal.SIGXCPU, signal.SIGPWR):
            (self.dir / number.name).write_text("written, never synced")
            os.kill(self.image.daemon(), number)
            wait_until(lambda: not processes_of(self.image.path), "the daemon ends")
            self.image.fsck("--data")
            self.image.mount()
            self.assertEqual((self.dir / number.name).read_text(), "written, never synced")
        self.image.check_all()

    def test_a_limit_of_file_sizes_is_a_failed_write(self):
        resource.prlimit(self.image.daemon(), resource.RLIMIT_FSIZE, (4096, 4096))
        with open(self.dir / "g", "wb", buffering=0) as file:
            file.write(b"x" * MIB)
            with self.assertRaises(OSError):
                os.fsync(file.fileno())
        status = json.loads(command(BIN / "varve", "status", "--json", self.dir).stdout)
        self.assertIn("oo large", json.dumps(status))
        self.assertTrue(same_random(self.dir / "f", 5 * MIB, 3))
        self.image.umount(check=False)
        wait_until(lambda: not processes_of(self.image.path), "the daemon ends")
        self.image.mount()
        self.assertTrue(same_random(self.dir / "f", 5 * MIB, 3))
        self.image.check_all()


if __name__ == "__main__":
    main()
