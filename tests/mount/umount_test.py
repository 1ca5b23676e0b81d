#!/usr/bin/env python3
"""Unmounting: what it waits for, and what it does not."""

import threading

from harness import *


class Host:
    """A filesystem of its own for the image. While it is frozen, nothing that is written there comes to an end: a daemon
    that has something to write cannot end either, however fast the machine is."""

    def __init__(self, test):
        self.folder = new_folder()
        self.dir = self.folder / "host"
        self.dir.mkdir()
        with open(self.folder / "disk", "wb") as file:
            file.truncate(1024 * MIB)
        command("mkfs.ext4", "-q", "-F", self.folder / "disk")
        if command("mount", "-o", "loop", self.folder / "disk", self.dir, check=False).returncode:
            test.skipTest("no loop device")
        test.addCleanup(subprocess.run, ["umount", "-l", self.dir], capture_output=True)
        test.addCleanup(self.thaw)

    def freeze(self):
        command("fsfreeze", "--freeze", self.dir)

    def thaw(self):
        subprocess.run(["fsfreeze", "--unfreeze", self.dir], capture_output=True)


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

    def test_an_image_that_is_gone_is_not_known_to_be_clean(self):
        image = self.made()
        image.mount()
        (self.dir / "f").write_text("kept")
        away = image.path.with_suffix(".away")
        image.path.rename(away)
        self.addCleanup(kill_all, processes_of(image.path))
        done = image.umount(check=False)
        self.assertFalse(image.is_mounted())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("not known to be clean", done.stderr)
        self.assertIn(str(image.path), done.stderr)
        away.rename(image.path)
        image.fsck("--data")
        image.mount("ro")  # of which nothing was promised
        image.path.rename(away)
        image.umount()

    def test_who_watches_does_not_keep_the_mount_busy(self):
        image = self.made()
        image.mount()
        watching = subprocess.Popen([BIN / "varve", "top", "-b", "-d", "3600", self.dir], stdout=subprocess.PIPE, text=True)
        self.addCleanup(watching.communicate)
        self.addCleanup(watching.kill)
        self.assertIn(str(self.dir), watching.stdout.readline())  # the first view: then it waits
        image.umount()
        image.fsck("--data")

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

    def mounted_in_another_pid_namespace(self):
        """There the daemon has a number that is another process's here: 1."""
        unshare = ["unshare", "--pid", "--fork", "--kill-child"]
        daemon = subprocess.Popen([*unshare, BIN / "varve", "mount", "-f", self.image.path, self.dir], stderr=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        wait_until(lambda: self.image.is_mounted() or daemon.poll() is not None, "the mount is there")
        self.assertEqual(self.image.status()["mount"]["pid"], 1)

    def test_a_daemon_in_another_pid_namespace(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        image = self.made()
        self.mounted_in_another_pid_namespace()
        image.umount()
        image.fsck("--data")

    def test_whoever_holds_the_image_does_not_keep_root_waiting(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        image = self.made()
        for _ in range(50):  # umount may be the first that the daemon's end lets in
            self.mounted_in_another_pid_namespace()
            with open(image.path, "rb") as file:
                after = threading.Thread(target=fcntl.flock, args=(file, fcntl.LOCK_EX))
                after.start()
                done = image.umount(check=False)
                after.join()
            if done.returncode != 0:
                break
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("still in use, or again", done.stderr)

    def test_a_bind_mount_is_not_waited_for(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        image = self.made()
        image.mount()
        (self.dir / "d").mkdir()
        bound = image.folder / "bound"
        bound.mkdir()
        self.addCleanup(subprocess.run, ["umount", "-i", "-l", bound], capture_output=True)
        for way, says in (([BIN / "varve", "umount"], True), ([BIN / "umount.fuse.varve"], False)):
            for shown in (self.dir, self.dir / "d"):
                command("mount", "--bind", shown, bound)
                done = command(*way, bound)
                self.assertEqual(f"still mounted at {self.dir}" in done.stderr, says, done.stderr)
                self.assertIsNone(mount_line(bound))
        command("mount", "--bind", self.dir, bound)
        image.umount()
        self.assertEqual(os.listdir(bound), ["d"])
        command(BIN / "varve", "umount", bound)  # the last one ends it
        image.fsck("--data")

    def test_unmount_does_not_wait_for_those_who_come_after(self):
        if not IS_ROOT:
            self.skipTest("needs root: a filesystem that can be frozen")
        host = Host(self)
        image = Image(host.dir / "disk.img", self.image.folder)
        image.mkfs("512M")
        image.mount()
        for i in range(2000):
            os.symlink("x" * 200, self.dir / f"{i}")
        host.freeze()
        leaving = subprocess.Popen([BIN / "varve", "umount", self.dir], stderr=subprocess.PIPE, text=True)
        self.addCleanup(leaving.kill)
        wait_until(lambda: not image.is_mounted(), "it is unmounted")
        stop(leaving.pid)
        host.thaw()
        wait_until(lambda: not processes_of(image.path), "the daemon has ended")
        image.mount()
        leaving.send_signal(signal.SIGCONT)
        self.assertIn("again", leaving.communicate(timeout=HANG)[1])
        self.assertEqual(leaving.returncode, 0)
        self.assertEqual(len(os.listdir(self.dir)), 2000)
        image.check_all()


class UmountProgram(unittest.TestCase):
    """umount(8) where the helper is installed: in a mount namespace of its own, with a /usr/sbin and a /run of its own."""

    def setUp(self):
        if not IS_ROOT:
            self.skipTest("needs root: a mount namespace")
        self.addCleanup(clean_up_all)
        self.host = Host(self)
        self.image = Image(self.host.dir / "disk.img", new_folder())
        self.image.mkfs("512M")
        self.dir = self.image.dir
        over = self.image.folder / "over"
        over.mkdir()
        prepare = f"""
            mount -t tmpfs tmpfs {over} && mkdir {over}/upper {over}/work &&
            mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir={over}/upper,workdir={over}/work /usr/sbin &&
            mount -t tmpfs tmpfs /run && ln -sf {BIN}/umount.fuse.varve /usr/sbin/ && echo ready && exec cat"""
        ways = " || ".join(f"unshare -m --propagation {way} sh -c '{prepare}' 2>/dev/null" for way in ("private", "unchanged"))
        self.holder = subprocess.Popen(["sh", "-c", ways], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       start_new_session=True)
        self.addCleanup(self.holder.stdout.close)
        self.addCleanup(self.holder.communicate)
        if self.holder.stdout.readline() != "ready\n":
            self.skipTest("cannot make a mount namespace with an overlay over /usr/sbin")
        children = Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").read_text().split()
        self.inside = ["nsenter", "-m", "-r", "-w", "-t", children[0] if children else str(self.holder.pid)]

    def run_inside(self, *words, **more):
        return command(*self.inside, *words, **more)

    def make_much(self):
        self.run_inside("python3", "-c", "import os, sys\nfor i in range(2000): os.symlink('x' * 200, f'{sys.argv[1]}/{i}')",
                        self.dir)

    def is_mounted(self):
        return str(self.dir) in self.run_inside("cat", "/proc/self/mounts").stdout

    def test_it_waits_for_the_daemon(self):
        for way in (["umount"], ["umount", "-v"], ["sh", "-c", f"cd {self.dir.parent}; umount {self.dir.name}", "sh"]):
            self.run_inside(BIN / "varve", "mount", self.image.path, self.dir)
            self.run_inside("sh", "-c", f"rm -f {self.dir}/*")
            self.make_much()
            self.host.freeze()
            leaving = subprocess.Popen([*self.inside, *way, *([self.dir] if way[0] == "umount" else [])], stderr=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, text=True)
            self.addCleanup(leaving.kill)
            wait_until(lambda: not self.is_mounted(), "it is unmounted")
            time.sleep(6 if way == ["umount"] else 1)  # `varve umount` would say after five seconds what it waits for
            self.assertIsNone(leaving.poll(), f"{way}: has not waited")
            self.host.thaw()
            self.assertNotIn("varve:", leaving.communicate(timeout=HANG)[1])
            self.assertEqual(leaving.returncode, 0)
            self.assertEqual(processes_of(self.image.path), [])
            self.assertNotIn(str(self.dir), self.run_inside("cat", "/run/mount/utab").stdout)
            self.image.fsck("--data")

    def test_nothing_of_ours_is_left_behind(self):
        self.run_inside(BIN / "varve", "mount", self.image.path, self.dir)
        self.assertIn("uhelper=fuse.varve", self.run_inside("cat", "/run/mount/utab").stdout)
        self.run_inside("umount", "-i", self.dir)  # without the helper
        wait_until(lambda: not processes_of(self.image.path), "the daemon has ended")
        self.assertNotIn(str(self.dir), self.run_inside("cat", "/run/mount/utab").stdout)

    def test_a_bind_mount_of_a_file(self):
        self.run_inside(BIN / "varve", "mount", self.image.path, self.dir)
        self.run_inside("sh", "-c", f"echo kept > {self.dir}/file")
        bound = self.image.folder / "bound file"
        bound.write_text("")
        for way, says in ((["umount"], False), ([BIN / "varve", "umount"], True)):  # scripts take what umount(8) says for a failure
            self.run_inside("mount", "--bind", self.dir / "file", bound)
            done = self.run_inside(*way, bound)
            self.assertEqual(f"still mounted at {self.dir}" in done.stderr, says, done.stderr)
            self.assertEqual(bool(done.stderr), says)
        self.run_inside("mount", "--bind", self.dir / "file", bound)
        self.run_inside("umount", self.dir)
        self.assertEqual(self.run_inside("cat", bound).stdout, "kept\n")
        self.run_inside("umount", bound)  # the last one: nobody is left to be asked, only the lock tells
        self.assertTrue(is_unlocked(self.image.path))
        self.image.fsck("--data")


if __name__ == "__main__":
    main()
