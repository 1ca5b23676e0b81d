#!/usr/bin/env python3
"""Making, mounting, unmounting: what a person meets first."""

from harness import *

import ctypes


def may_be_idle_for_a_while():
    """As the daemon asks: in a process that nobody needs."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.stat("/proc/thread-self/schedstat")
            for policy in (os.SCHED_IDLE, os.SCHED_OTHER):
                os.sched_setscheduler(0, policy, os.sched_param(0))
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def serving_threads(pid, ask):
    """What `ask` says of each now. Threads that do something else for a moment have that name, too, until they take their own, and end."""
    answers = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            if (thread / "comm").read_text() == "varve-serve\n":
                answers.append(ask(int(thread.name)))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return answers


class Lifecycle(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.dir = self.image.dir

    def made(self, *options):
        self.image.mkfs("512M", *options)
        return self.image

    def test_make_mount_use_unmount_check(self):
        image = self.made("-L", "first")
        image.mount()
        self.assertIn("varve", mount_line(self.dir))
        (self.dir / "hello").write_text("sediment\n")
        self.assertEqual((self.dir / "hello").read_text(), "sediment\n")
        image.umount()
        self.assertFalse(image.is_mounted())
        self.assertEqual(processes_of(image.path), [], "umount returned before the daemon had ended")
        self.assertFalse((self.dir / "hello").exists())
        image.fsck("--data")
        image.mount()
        self.assertEqual((self.dir / "hello").read_text(), "sediment\n")
        image.check_all()

    def test_closed_standard_descriptors(self):
        """Else what is opened takes their numbers: pipes of the mount, counters of the daemon, the image."""
        image = self.image
        for closed in ("<&-", "<&- >&-", "<&- >&- 2>&-", "2>&-"):
            command("sh", "-c", f'"$1/mkfs.varve" -q -f --size 64M "$2" {closed}', "sh", BIN, image.path)
            command("sh", "-c", f'"$1/varve" mount "$2" "$3" {closed}', "sh", BIN, image.path, self.dir)
            (self.dir / "file").write_text("kept")
            daemon = image.daemon()
            for number in range(3):
                self.assertEqual(os.readlink(f"/proc/{daemon}/fd/{number}"), "/dev/null")
            image.umount()
            done = command("sh", "-c", f'"$1/fsck.varve" -n -f --data "$2" {closed}', "sh", BIN, image.path, check=False)
            self.assertEqual(done.returncode, 8 if " >&-" in closed else 0, "what it says is lost, or is not")
            image.fsck("--data")

    def test_output_that_is_lost_is_no_success(self):
        image = self.made()
        image.mount()
        for words in (["varve", "--help"], ["varve", "checkpoint", "--json", self.dir], ["varve", "status", "--json", self.dir],
                      ["mkfs.varve", "--size", "64M", image.folder / "new"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([BIN / words[0], *words[1:]], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1, words)
            self.assertRegex(done.stderr, f"^{words[0]}: the output could not all be written", words)
        done = subprocess.run(["sh", "-c", '"$1" status "$2" >&-', "sh", BIN / "varve", self.dir], capture_output=True)
        self.assertEqual(done.returncode, 1, "its output was closed")

    def test_a_mount_waits_for_the_one_that_is_ending(self):
        image = self.made()
        for turn in range(2):
            image.mount()
            for i in range(20_000):  # that ends with a checkpoint that takes a while
                os.symlink("x" * 200, self.dir / f"{turn}-{i}")
            command("umount", "-i", self.dir)  # without our helper nobody waits for the daemon
        image.mount()
        self.assertEqual(len(os.listdir(self.dir)), 40_000)
        image.check_all()

    def test_inode_numbers_and_times_survive_a_remount(self):
        image = self.made()
        image.mount()
        (self.dir / "d").mkdir()
        (self.dir / "d/f").write_text("x")
        os.utime(self.dir / "d/f", ns=(-1_500_000_001, 5_000_000_000_123_456_789))
        before = os.stat(self.dir / "d/f"), os.stat(self.dir / "d")
        image.remount()
        after = os.stat(self.dir / "d/f"), os.stat(self.dir / "d")
        for name in ("st_ino", "st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ctime_ns"):
            for old, new in zip(before, after):
                self.assertEqual(getattr(old, name), getattr(new, name), name)
        self.assertEqual(after[0].st_atime_ns, -1_500_000_001)
        self.assertEqual(after[0].st_mtime_ns, 5_000_000_000_123_456_789)

    def test_mount_failures_say_why(self):
        def refused(path, directory, word):
            done = command(BIN / "varve", "mount", path, directory, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertTrue(done.stderr.strip(), "no message")
            self.assertTrue(done.stderr.endswith("\n"))
            self.assertRegex(done.stderr.lower(), word)
            self.assertIsNone(mount_line(directory))
            self.assertEqual(processes_of(path), [])
        folder = self.image.folder
        refused(folder / "absent.img", self.dir, "no such .*file")
        text = folder / "text.img"
        text.write_bytes(b"not a filesystem\n" * MIB)
        refused(text, self.dir, "(not a|no) varve")
        (folder / "empty.img").touch()
        refused(folder / "empty.img", self.dir, ".")
        self.made()
        refused(self.image.path, folder / "nowhere", "no such .*(file|directory)")
        (folder / "file").touch()
        refused(self.image.path, folder / "file", "not a directory")
        done = command(BIN / "varve", "mount", self.image.path, self.dir, "-o", "frobnicate", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("frobnicate", done.stderr)

    def test_a_mounted_image_is_refused(self):
        image = self.made()
        image.mount()
        (self.dir / "f").write_text("keep")
        other = image.folder / "other"
        other.mkdir()
        for words in ([BIN / "varve", "mount", image.path, other], [BIN / "mkfs.varve", "-f", image.path],
                      [BIN / "fsck.varve", "-y", "-f", image.path]):
            done = command(*words, check=False)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertRegex(done.stderr.lower(), "in use|mounted|busy")
        self.assertIsNone(mount_line(other))
        self.assertEqual((self.dir / "f").read_text(), "keep")
        image.check_all()

    def test_a_stale_mount_point_is_cleared(self):
        image = self.made()
        image.mount()
        (self.dir / "f").write_text("x")
        sync_filesystem(self.dir)
        fd = os.open(self.dir / "f", os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        image.kill()
        with self.assertRaises(OSError):
            os.stat(self.dir / "what the kernel has not cached")
        image.mount()
        self.assertEqual((self.dir / "f").read_text(), "x")
        image.check_all()

    def test_status(self):
        image = self.made("-L", "named")
        image.mount()
        fill_random(self.dir / "f", 8 * MIB)
        status = json.dumps(image.status())
        self.assertIn("named", status)
        text = command(BIN / "varve", "status", self.dir).stdout
        for word in ("live", "garbage", "cleaner"):
            self.assertIn(word, text.lower())
        command(BIN / "varve", "checkpoint", self.dir)
        command(BIN / "varve", "trim", self.dir)
        done = command(BIN / "varve", "status", image.folder, check=False)
        self.assertNotEqual(done.returncode, 0)
        image.check_all()

    def test_what_the_kernel_agrees_to(self):
        """Without one of these a mount works as well, but needs more requests for the same."""
        image = self.made()
        image.mount()
        features = set(image.status()["mount"]["features"])
        wanted = {"parallel_dirops", "writeback_cache", "readdirplus", "readdirplus_auto", "no_open", "no_opendir",
                  "cache_symlinks", "explicit_inval_data", "max_pages", "async_dio", "async_read", "posix_acl",
                  "export_support", "dont_mask", "ioctl_dir"}
        if LINUX >= (5, 15):
            wanted |= {"handle_killpriv_v2", "setxattr_ext"}
        self.assertEqual(wanted - features, set())
        self.assertIn("explicit_inval_data", command(BIN / "varve", "status", self.dir).stdout)
        self.assertIn(f"max_read={MIB}", mount_line(self.dir).split()[3].split(","))
        image.check_all()

    def test_a_trace_has_what_reaches_the_device(self):
        trace = self.made().folder / "of device"
        self.image.mount(f"trace={trace}")
        fill_random(self.image.dir / "f", 2 * MIB, 1)
        (self.image.dir / "f").unlink()
        done = self.image.status()["traffic"]
        self.image.umount()
        note, *lines = trace.read_text().splitlines()
        self.assertIn(str(self.image.path), note)
        sums = {op: 0 for op in "RWFD"}
        durable = 0
        for line in lines:
            t_ns, op, offset, length, flags = line.split()
            self.assertLessEqual(int(offset) + int(length), self.image.path.stat().st_size)
            sums[op] += int(length)
            durable += flags == "S"
        self.assertGreaterEqual(sums["W"], done["device_bytes_written"])
        self.assertGreater(durable, 0)
        self.image.check_all()

    @unittest.skipUnless(IS_ROOT, "needs root, for a small tmpfs")
    def test_a_trace_without_room_ends_and_the_mount_goes_on(self):
        small = self.made().folder / "small"
        small.mkdir()
        command("mount", "-t", "tmpfs", "-o", "size=8k,mode=755", "none", small)
        try:
            log = self.image.folder / "log"
            self.image.mount(f"trace={small / 't'},log={log}")
            for i in range(1000):
                fill_random(self.image.dir / "f", 4 * KIB, i)
            self.assertTrue(same_random(self.image.dir / "f", 4 * KIB, 999))
            self.image.umount()
            self.assertEqual(log.read_text().count("the trace ends here"), 1)
        finally:
            command("umount", small)

    def test_map_of_what_is_being_written(self):
        image = self.made()
        image.mount()
        for i in range(10):
            fill_random(self.dir / f"f{i}", 4 * MIB, i)
        going_on = image.folder / "going-on"
        going_on.touch()
        copy = f"cp '{self.dir}/f1' '{self.dir}/g'; rm '{self.dir}/g'"
        writer = subprocess.Popen(["sh", "-c", f"while [ -e '{going_on}' ]; do {copy}; done"])
        self.addCleanup(writer.kill)
        for turn in range(10):
            for aspect in ("live", "age", "group", "owner"):
                drawn = command(BIN / "varve", "map", "--by", aspect, self.dir).stdout
                self.assertIn(" % live" if aspect == "live" else "live (", drawn)
        self.assertIn("/f3", command(BIN / "varve", "map", "--by", "owner", image.path).stdout)
        going_on.unlink()  # killed, the shell would leave its last copy behind, and the mount busy
        writer.wait()
        image.check_all()

    def test_read_only(self):
        image = self.made()
        image.mount()
        (self.dir / "f").write_text("x" * 10000)
        image.umount()
        before = image.path.read_bytes()
        image.mount("ro")
        self.assertEqual((self.dir / "f").read_text(), "x" * 10000)
        for attempt in (lambda: (self.dir / "g").write_text("y"), lambda: (self.dir / "f").unlink(),
                        lambda: os.utime(self.dir / "f")):
            with self.assertRaises(OSError) as caught:
                attempt()
            self.assertEqual(caught.exception.errno, 30)  # EROFS
        image.umount()
        self.assertEqual(image.path.read_bytes(), before, "a read-only mount wrote")

    def test_read_only_after_a_crash_replays_in_memory(self):
        image = self.made()
        image.mount()
        with open(self.dir / "f", "w") as file:
            file.write("after the checkpoint")
            file.flush()
            os.fsync(file.fileno())
        image.kill()
        image.clean_up()
        before = image.path.read_bytes()
        image.mount("ro")
        self.assertEqual((self.dir / "f").read_text(), "after the checkpoint")
        self.assertTrue(image.status()["mount"]["read_only"])
        image.umount()  # not clean before, nor now, which is right
        self.assertEqual(image.path.read_bytes(), before, "a read-only mount wrote")

    def test_any_number_of_threads_serves(self):
        image = self.made()
        for options in ("threads=64", "memory=32M,threads=1", "memory=130M,threads=16", "memory=500M,threads=64"):
            image.mount(options)
            for i in range(50):
                (self.dir / f"f{i}").write_text(options)
            fill_random(self.dir / "f", 8 * MIB, 5)
            self.assertTrue(same_random(self.dir / "f", 8 * MIB, 5))
            image.umount()
        image.check_all()

    def test_what_users_ask_for_is_no_idle_io(self):
        """Serving threads may be idle ones for the CPU. On a device with an I/O scheduler their requests must not stand behind all others."""
        call = {"x86_64": 252, "aarch64": 31}.get(os.uname().machine)
        if call is None:
            self.skipTest("the number of ioprio_get is not known here")
        image = Image()
        image.mkfs()
        image.mount("idle_threads=on")
        wait_until(lambda: set(serving_threads(image.daemon(), os.sched_getscheduler)) == {os.SCHED_IDLE}, "the threads have begun")
        classes = serving_threads(image.daemon(), lambda thread: ctypes.CDLL(None).syscall(call, 1, thread) >> 13)
        self.assertEqual(set(classes), {2}, "not best effort")

    def test_idle_threads_do_not_starve_beside_others(self):
        """Programs that take all CPUs come before idle threads, and what waits for these would wait, too."""
        image = self.made()
        image.mount("idle_threads=auto")
        def policies():
            return set(serving_threads(image.daemon(), os.sched_getscheduler))
        self.assertTrue(policies())
        if not may_be_idle_for_a_while():
            self.skipTest("threads may not become idle ones here and leave that again")
        fd = os.open(self.dir / "f", os.O_CREAT | os.O_WRONLY)
        self.addCleanup(os.close, fd)

        def write_until(policy):
            while policy not in policies():
                os.pwrite(fd, bytes(4096), 0)
                os.fdatasync(fd)
        write_until(os.SCHED_IDLE)  # others may take the CPUs by now
        hogs = []
        for cpu in sorted(os.sched_getaffinity(0)):
            hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.addCleanup(hog.wait)
            self.addCleanup(hog.kill)
            os.sched_setaffinity(hog.pid, {cpu})
            hogs.append(hog)
        write_until(os.SCHED_OTHER)
        for hog in hogs:
            hog.kill()
        write_until(os.SCHED_IDLE)
        # Nobody asks for anything: then others may take the CPUs, and the next request finds a normal thread.
        wait_until(lambda: policies() == {os.SCHED_OTHER}, "all threads are normal ones")

    def test_an_idle_mount_is_silent(self):
        image = self.made()
        image.mount()
        fill_random(self.dir / "f", 4 * MIB)
        command(BIN / "varve", "checkpoint", self.dir)
        time.sleep(14)  # longer than the seal timer, and until files in pieces have been looked at
        pid = image.daemon()

        def requested():
            traffic = image.status()["traffic"]
            return traffic["device_bytes_read"], traffic["device_bytes_written"]

        def used():
            io = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            return int(io["write_bytes"]), int(io["read_bytes"]), int(fields[11]) + int(fields[12])

        for _ in range(6):  # idle threads come late on a busy machine
            requests, stat_before, before, began = requested(), image.path.stat().st_mtime_ns, used(), time.monotonic()
            time.sleep(8)  # what is idle is seen only over a time
            after, took = used(), time.monotonic() - began
            requests_after = requested()
            looks = (after[1] - before[1]) / (4 * 4096)  # the superblock and the lease, every two seconds
            ticks = after[2] - before[2]
            if requests_after == requests and before[0] == after[0] and looks <= took + 4 and ticks <= 2:
                break
        self.assertEqual(requests, requests_after, "an idle mount read or wrote")
        self.assertEqual(before[0], after[0], "an idle mount wrote")
        self.assertLessEqual(looks, took + 4, "an idle mount looks at its lease more often than it should")
        self.assertLessEqual(ticks, 2, "an idle mount used the CPU")
        self.assertEqual(stat_before, image.path.stat().st_mtime_ns)
        image.check_all()

    def test_the_mount_helper_takes_what_fstab_may_say(self):
        image = self.made()
        helper = BIN / "mount.varve"
        command(helper, image.path, self.dir, "-f", "-o", "defaults")
        self.assertFalse(image.is_mounted(), "-f is a dry run")
        command(helper, image.path, self.dir, "-n", "-s", "-o", "defaults,nofail,_netdev,x-systemd.automount,noatime")
        (self.dir / "f").write_text("x")
        self.assertIn("f", os.listdir(self.dir))
        self.assertTrue(os.statvfs(self.dir).f_flag & os.ST_NOATIME)
        if IS_ROOT:
            command(helper, image.path, self.dir, "-o", "remount,ro,noatime")
            with self.assertRaises(OSError):
                (self.dir / "g").touch()
            command(helper, image.path, self.dir, "-o", "rw,remount,nosuid,noexec")
            (self.dir / "g").touch()
            self.assertTrue(os.statvfs(self.dir).f_flag & os.ST_NOSUID)
            self.assertTrue(os.statvfs(self.dir).f_flag & os.ST_NOEXEC)
        command(BIN / "umount.fuse.varve", self.dir)
        self.assertEqual(processes_of(image.path), [])
        image.fsck()
        self.assertEqual(command(BIN / "umount.fuse.varve", self.dir, check=False).returncode, 32)
        self.assertEqual(command(helper, self.dir / "none.img", self.dir, check=False).returncode, 32)
        self.assertEqual(command(helper, check=False).returncode, 1)

    def test_a_mount_that_began_read_only_stays_so(self):
        """The daemon stays read-only, so the kernel would take writes and lose them."""
        if not IS_ROOT:
            self.skipTest("not root")
        image = self.made()
        helper = BIN / "mount.varve"
        image.mount("ro")
        for options in ("remount,rw", "rw,remount,noexec", "remount,nosuid"):
            done = command(helper, image.path, self.dir, "-o", options, check=False)
            self.assertEqual(done.returncode, 32, options)
            self.assertIn(f"{self.dir}: its daemon writes nothing", done.stderr)
            self.assertEqual(os.statvfs(self.dir).f_flag & (os.ST_RDONLY | os.ST_NOSUID), os.ST_RDONLY, options)
        command(helper, image.path, self.dir, "-o", "remount,ro,nosuid")
        self.assertTrue(os.statvfs(self.dir).f_flag & os.ST_NOSUID)
        image.umount()
        done = command(helper, image.path, self.dir, "-o", "remount,rw", check=False)
        self.assertEqual(done.returncode, 32, done.stderr)

    def test_mkfs_refuses_what_is_not_empty(self):
        image = self.made()
        done = command(BIN / "mkfs.varve", image.path, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("-f", done.stderr)
        image.fsck()
        dry = command(BIN / "mkfs.varve", "-n", "--size", "64M", image.folder / "dry.img")
        self.assertFalse((image.folder / "dry.img").exists(), dry.stdout)
        made = json.loads(command(BIN / "mkfs.varve", "--json", "-U", "11111111-2222-4333-8444-555555555555", "--size", "64M",
                                  image.folder / "new.img").stdout)
        self.assertIn("11111111-2222-4333-8444-555555555555", json.dumps(made))

    def test_mkfs_of_a_terabyte_writes_little(self):
        self.image.mkfs("1T")
        self.assertLess(self.image.path.stat().st_blocks * 512, 16 << 20)
        self.image.mount()
        self.assertGreater(os.statvfs(self.dir).f_blocks * 4096, 900 * GIB)
        self.image.check_all()


if __name__ == "__main__":
    main()
