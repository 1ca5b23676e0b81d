#!/usr/bin/env python3
"""Daemons that nobody sees: left in a mount namespace of their own. They are named, listed and ended."""

from snapshot_tools import *


class Lonely(MountTest):
    size = "64M"

    def setUp(self):
        if not IS_ROOT:
            self.skipTest("only root makes mount namespaces")
        super().setUp()
        self.image.umount()

    def leave_alone(self):
        command("unshare", "-m", BIN / "varve", "mount", self.image.path, self.dir)
        self.assertFalse(self.image.is_mounted())
        return self.image.daemon()

    def test_is_named_by_what_finds_the_image_in_use(self):
        pid = self.leave_alone()
        said = rf"is in use by process {pid} \(varve mount .*\), mounted at {self.dir} in another mount namespace: `varve umount --pid {pid}` ends it"
        for words in ((BIN / "fsck.varve", "-n", self.image.path), (BIN / "varve", "status", self.image.path),
                      (BIN / "varve", "mount", self.image.path, self.dir), (BIN / "mkfs.varve", "-f", self.image.path)):
            done = command(*words, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, said)
        varve("umount", "--pid", pid)
        self.image.fsck()

    def test_is_listed_and_ended_by_its_image(self):
        pid = self.leave_alone()
        line = f"{self.image.path} on {self.dir} (process {pid}, in another mount namespace: `varve umount --pid {pid}` ends it)\n"
        self.assertIn(line, varve("list").stdout)
        self.assertIn(line, varve("status", "--all").stdout)
        (one,) = [one for one in json.loads(varve("list", "--json").stdout) if one["source"] == str(self.image.path)]
        self.assertEqual((one["pid"], one["directory"], one["elsewhere"]), (pid, str(self.dir), True))
        varve("umount", self.image.path)
        self.assertEqual(processes_of(self.image.path), [])
        self.image.fsck()
        self.assertIn("not mounted", varve("umount", self.image.path, expect=1).stderr)

    def test_what_is_no_daemon_is_not_ended(self):
        sleeper = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        self.assertIn("is no daemon of a mount", varve("umount", "--pid", sleeper.pid, expect=1).stderr)
        self.assertIsNone(sleeper.poll())

    def test_a_namespace_that_keeps_a_copy_is_named(self):
        self.image.mount()
        self.assertIn(f"{self.image.path} on {self.dir} (process {self.image.daemon()})\n", varve("list").stdout)
        keeper = subprocess.Popen(["unshare", "-m", "sleep", "1000"])
        self.addCleanup(keeper.wait)
        self.addCleanup(keeper.kill)
        own = os.readlink("/proc/self/ns/mnt")
        wait_until(lambda: os.readlink(f"/proc/{keeper.pid}/ns/mnt") != own, "it has a namespace of its own")
        unmounting = subprocess.Popen([BIN / "varve", "umount", self.dir], stderr=subprocess.PIPE, text=True)
        self.assertIn(f"process {keeper.pid} (sleep 1000) in another mount namespace", unmounting.stderr.readline())
        keeper.kill()
        self.assertEqual(unmounting.wait(HANG), 0)
        unmounting.stderr.close()

    def test_a_daemon_that_is_ending_is_not_taken_for_one_with_the_same_number(self):
        """The kernel gives the number of a mount again at once. Here the daemon before cannot end."""
        for _ in range(20):  # another test may take the number
            before = Image()
            before.mkfs("64M")
            before.mount()
            old, device = before.daemon(), os.stat(before.dir).st_dev
            stop(old)
            try:
                command("umount", "-l", before.dir)
                self.image.mount()
                is_again = os.stat(self.dir).st_dev == device
                if is_again:
                    said = varve("list").stdout
                    self.assertIn(f"{self.image.path} on {self.dir} (process {self.image.daemon()})\n", said)
                    self.assertNotIn(f"{self.dir} (process {old}", said)
                self.image.umount()
            finally:
                os.kill(old, signal.SIGCONT)
            wait_until(lambda: not processes_of(before.path), "it has ended")
            if is_again:
                return
        self.skipTest("others have taken the number each time")

    def test_a_renamed_image_is_named_with_its_mount(self):
        self.image.mount()
        other = self.image.path.with_name("renamed.img")
        self.image.path.rename(other)
        done = varve("status", other, expect=1)
        self.assertRegex(done.stderr, rf"in use by process \d+ .*, mounted at {self.dir}")
        other.rename(self.image.path)
        self.image.umount()

    def mounted_by_a_relative_name(self):
        command(BIN / "varve", "mount", self.image.path.name, self.dir.name, cwd=self.image.folder)
        return self.image.status()["mount"]["pid"]

    def test_a_renamed_image_that_was_mounted_by_a_relative_name(self):
        pid = self.mounted_by_a_relative_name()
        other = self.image.path.with_name("renamed.img")
        self.image.path.rename(other)
        self.assertRegex(varve("status", other, expect=1).stderr, rf"in use by process {pid} .*, mounted at {self.dir}: `varve umount --pid {pid}` ends")
        self.assertIn(f"{self.image.path} on {self.dir} (process {pid})\n", varve("list").stdout)
        varve("umount", other)
        self.assertFalse(self.image.is_mounted())
        other.rename(self.image.path)
        self.image.fsck()

    def test_a_part_that_is_left_is_listed(self):
        pid = self.mounted_by_a_relative_name()
        (self.dir / "part").mkdir()
        left = self.image.folder / "left"
        left.mkdir()
        command("mount", "--bind", self.dir / "part", left)
        self.addCleanup(subprocess.run, ["umount", "-l", str(left)], capture_output=True)
        self.assertIn(f"still mounted at {left}", varve("umount", self.dir).stderr)
        line = f"{self.image.path} on {left} (process {pid}, only /part of it)\n"
        self.assertIn(line, varve("list").stdout)
        self.assertIn(line, varve("status", "--all").stdout)
        (one,) = [one for one in json.loads(varve("list", "--json").stdout) if one["source"] == str(self.image.path)]
        self.assertEqual((one["pid"], one["part"]), (pid, "/part"))
        self.assertRegex(varve("status", "-s", self.image.path).stdout, rf"(?m)^Mounted +{left}$")
        varve("umount", left)
        self.image.fsck()

    def test_what_only_another_namespace_shows_is_listed_and_ended_by_its_image(self):
        self.image.mount()
        keeper = subprocess.Popen(["unshare", "-m", "sleep", "1000"])
        self.addCleanup(keeper.wait)
        self.addCleanup(keeper.kill)
        own = os.readlink("/proc/self/ns/mnt")
        wait_until(lambda: os.readlink(f"/proc/{keeper.pid}/ns/mnt") != own, "it has a namespace of its own")
        pid = self.image.daemon()
        unmounting = subprocess.Popen([BIN / "varve", "umount", self.dir], stderr=subprocess.PIPE, text=True)
        self.assertIn(f"`varve umount --pid {pid}` ends it at once", unmounting.stderr.readline())
        unmounting.stderr.close()
        line = f"{self.image.path} on {self.dir} (process {pid}, in another mount namespace: `varve umount --pid {pid}` ends it)\n"
        self.assertIn(line, varve("list").stdout)
        said = command(BIN / "fsck.varve", "-n", self.image.path, check=False).stderr
        self.assertIn(f"`varve umount --pid {pid}` ends it", said)
        varve("umount", self.image.path)
        self.assertEqual(unmounting.wait(HANG), 0)
        self.image.fsck()

    def test_commands_for_a_mount_name_the_daemon(self):
        pid = self.leave_alone()
        for words in (("scrub",), ("checkpoint",), ("trim",), ("history",), ("tune",), ("metrics",), ("top", "-n", "1")):
            self.assertIn(f"`varve umount --pid {pid}` ends it", varve(words[0], self.image.path, *words[1:], expect=1).stderr, words)
        found = [one for one in json.loads(varve("doctor", "--json", self.image.path).stdout) if one["subject"] == "image"]
        self.assertEqual([one["grade"] for one in found], ["note"], found)
        self.assertIn(f"`varve umount --pid {pid}` ends it", found[0]["text"])
        self.assertNotIn("damaged", found[0]["advice"])
        varve("umount", "--pid", pid)

    def test_one_on_a_loop_device_is_ended_by_its_image(self):
        loop = command("losetup", "--find", "--show", self.image.path).stdout.strip()
        self.addCleanup(command, "losetup", "-d", loop)
        command("unshare", "-m", BIN / "varve", "mount", loop, self.dir)
        varve("umount", self.image.path)
        self.assertNotIn(loop, varve("list").stdout)
        self.image.fsck()

    def test_an_image_that_was_cut_off_is_told(self):
        self.image.mount()
        self.assertNotIn("CUT OFF", varve("status", "-s", self.dir).stdout)
        os.truncate(self.image.path, 20 * MIB)
        self.assertRegex(varve("status", "-s", self.dir).stdout, r"(?m)^Image +CUT OFF: the image is 44.0 MiB shorter than the filesystem")
        texts = [one["text"] for one in self.image.findings() if one["grade"] == "broken"]
        self.assertEqual(texts, ["44.0 MiB shorter than the filesystem: it was cut off while mounted"])
        os.truncate(self.image.path, 64 * MIB)
        command(BIN / "varve", "umount", self.dir, check=False)
        self.image.path.unlink()
        self.image.mkfs("64M")

    def test_two_with_one_uuid(self):
        second = Image()
        shutil.copy(self.image.path, second.path)
        for image in (self.image, second):
            image.mount()
        uuid = self.image.status()["uuid"]
        done = varve("umount", f"UUID={uuid}", expect=1)
        self.assertIn("both have it: name the device", done.stderr)
        for image in (self.image, second):
            self.assertIn(str(image.path), done.stderr)
            image.umount()

    def test_root_without_the_right_to_mount(self):
        done = command("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", BIN / "varve", "mount", self.image.path, self.dir,
                       check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("CAP_SYS_ADMIN", done.stderr)
        self.image.mount()
        for words in (("umount", self.dir), ("doctor",)):
            done = command("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", BIN / "varve", *words, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("CAP_SYS_ADMIN", done.stdout + done.stderr, words)


if __name__ == "__main__":
    main()
