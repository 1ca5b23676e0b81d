#!/usr/bin/env python3
"""Who mounts what: a raw device as root, an image as a user without any privilege, with and without io_uring."""

import re

from harness import *

NOBODY = 65534


class OnDevice(unittest.TestCase):
    def setUp(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        self.folder = new_folder()
        self.file = self.folder / "disk"
        with open(self.file, "wb") as file:
            file.truncate(512 * MIB)
        done = command("losetup", "--find", "--show", "--direct-io=on", self.file, check=False)
        if done.returncode:
            self.skipTest(f"no loop device: {done.stderr}")
        self.loop = done.stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "-d", self.loop])
        self.addCleanup(clean_up_all)
        self.image = Image(self.loop, self.folder)
        self.dir = self.image.dir


class BesideLoops(unittest.TestCase):
    """A loop device of others may stand on the same image; what it leads to must be known, or the lease is waited for."""

    def setUp(self):
        if not IS_ROOT or not (BIN / "bench_device").exists():
            self.skipTest("needs root and bench_device")
        self.addCleanup(clean_up_all)

    def test_one_whose_daemon_has_died_is_no_danger(self):
        below = new_folder()
        with subprocess.Popen([BIN / "bench_device", "--model", "ssd-page", "--size", "64M", below]) as server:
            wait_until(lambda: (below / "device").exists(), "the file is there")
            done = command("losetup", "--find", "--show", below / "device", check=False)
            server.kill()
        self.addCleanup(subprocess.run, ["umount", "-l", below])
        if done.returncode:
            self.skipTest(f"no loop device: {done.stderr}")
        self.addCleanup(subprocess.run, ["losetup", "-d", done.stdout.strip()])
        time.sleep(1.1)  # for so long the kernel knows the file's attributes without its server
        image = Image()
        image.mkfs("64M")
        image.mount()
        self.assertFalse(image.status()["lease"]["others_may_reach_it"])
        image.check_all()


class Modelled(unittest.TestCase):
    """A card that a program plays, four times as fast as a real one."""

    def setUp(self):
        if not IS_ROOT or not (BIN / "bench_device").exists():
            self.skipTest("needs root and bench_device")
        self.addCleanup(clean_up_all)
        below = new_folder()
        self.server = subprocess.Popen([BIN / "bench_device", "--model", "sd-cheap", "--size", "1G", "--speed", "4", below])
        self.addCleanup(self.server.wait)
        self.addCleanup(subprocess.run, ["umount", "-l", below])
        wait_until(lambda: (below / "device").exists(), "the file is there")
        done = command("losetup", "--find", "--show", "--direct-io=on", below / "device", check=False)
        if done.returncode:
            self.skipTest(f"no loop device: {done.stderr}")
        self.loop = done.stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "-d", self.loop])

    def probe(self, *options):
        return json.loads(command(BIN / "mkfs.varve", "-f", "--json", "--probe", *options, self.loop, timeout=300).stdout)

    def test_a_probe(self):
        image = Image(self.loop)
        for _ in range(3):  # on a machine that is busy with other things it may be unclear
            made = self.probe()
            if made["streams"]:
                break
            self.assertRegex(made["probe_found"], "^nothing: ")
        else:
            self.skipTest(f"this machine is too busy to time a device: {made['probe_found']} (trial_test does it without a clock)")
        self.assertEqual(made["probe_found"], "units of 4 MiB, 5 of them open at a time")
        self.assertEqual((made["erase_unit"], made["erase_unit_is"]), (4 * MIB, "measured"))
        self.assertEqual((made["streams"], made["streams_are"]), (5, "measured"))
        self.assertGreater(made["block_scattered_ns"], 100 * made["block_in_row_ns"])
        image.mount()
        self.assertIn("5 (measured)", command(BIN / "varve", "status", image.dir).stdout)
        image.umount()
        kept = command(BIN / "varve", "dump", "superblock", self.loop).stdout
        self.assertIn("measured", kept)
        image.fsck("--data")

    def test_what_is_given_counts_more(self):
        made = self.probe("--erase-unit", "2M", "--streams", "7")
        self.assertEqual((made["erase_unit"], made["erase_unit_is"]), (2 * MIB, "given"))
        self.assertEqual((made["streams"], made["streams_are"]), (7, "given"))


class RawDevice(OnDevice):
    def test_use_and_unmount(self):
        self.image.mkfs(None)
        self.image.mount()
        fill_random(self.dir / "f", 40 * MIB, 3)
        self.assertGreater(os.statvfs(self.dir).f_blocks * 4096, 400 * MIB)
        command("umount", self.dir)  # the plain one: on a block device it waits
        wait_until(lambda: not processes_of(self.loop), "the daemon ends")
        self.image.fsck("--data")
        self.image.mount()
        self.assertTrue(same_random(self.dir / "f", 40 * MIB, 3))
        self.image.umount()

    def test_sync_reaches_the_device(self):
        self.image.mkfs(None)
        self.image.mount()
        if " fuseblk" not in mount_line(self.dir):
            self.skipTest("not mounted as fuseblk")
        (self.dir / "f").write_text("written, then sync(1)")
        command("sync", "-f", self.dir)
        self.image.kill()
        self.image.mount()
        if LINUX >= (6, 18):
            self.assertEqual((self.dir / "f").read_text(), "written, then sync(1)")
        self.image.check_all()

    def test_one_storage_under_several_names_is_one_filesystem(self):
        label = f"stacked{os.getpid()}"
        self.image.mkfs(None, "-L", label)
        upper = command("losetup", "--find", "--show", self.loop).stdout.strip()
        try:
            shown = command(BIN / "varve", "status", "-s", f"LABEL={label}").stdout  # and not that two disks have the label
        finally:
            command("losetup", "-d", upper)  # once: afterwards its number may be another test's
        self.assertIn(f"Varve    {upper} ", shown)
        self.image.mount()
        for name in (self.file, f"LABEL={label}"):
            self.assertIn(f"Mounted  {self.dir}\n", command(BIN / "varve", "status", "-s", name).stdout)
        command(BIN / "varve", "umount", self.file)
        self.image.check_all()

    def test_a_device_in_use_is_refused(self):
        command("mkfs.ext4", "-q", "-F", self.loop)
        done = command(BIN / "mkfs.varve", self.loop, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ext", done.stderr)
        command("mount", self.loop, self.dir)
        try:
            done = command(BIN / "mkfs.varve", "-f", self.loop, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, "in use|mounted|busy")
        finally:
            command("umount", self.dir)
        command("e2fsck", "-fn", self.loop)
        self.image.mkfs(None)
        self.image.mount()
        self.assertNotEqual(command("mkfs.ext4", "-F", self.loop, check=False, input="").returncode, 0)
        other = self.folder / "other"
        other.mkdir()
        done = command(BIN / "varve", "mount", self.loop, other, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr.lower(), "in use|mounted|busy")
        self.image.check_all()

    def expect_in_use(self, path, by):
        other = self.folder / "other"
        other.mkdir(exist_ok=True)
        self.addCleanup(subprocess.run, ["umount", "-l", str(other)], capture_output=True)  # if it is not refused
        for words in ([BIN / "varve", "mount", path, other], [BIN / "fsck.varve", "-y", path], [BIN / "fsck.varve", "-n", path],
                      [BIN / "mkfs.varve", "-f", path], [BIN / "mkfs.varve", "-f", "--probe", path]):
            done = command(*words, check=False)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn("in use", done.stderr, words)
            self.assertIn(str(by), done.stderr, words)

    def test_the_image_under_a_loop_device_in_use_is_refused(self):
        self.image.mkfs(None)
        self.image.mount()
        fill_random(self.dir / "f", 10 * MIB, 3)
        self.expect_in_use(self.file, self.loop)
        self.assertTrue(same_random(self.dir / "f", 10 * MIB, 3))
        self.image.check_all()
        command(BIN / "fsck.varve", "-y", "-f", self.file)  # nobody uses the loop device any more
        command("mkfs.ext4", "-q", "-F", self.loop)
        command("mount", self.loop, self.dir)
        try:
            self.expect_in_use(self.file, self.loop)
        finally:
            command("umount", self.dir)

    def test_a_loop_device_on_a_mounted_image_is_refused(self):
        image = Image(self.file, self.folder)
        image.mkfs(None)
        image.mount()
        fill_random(self.dir / "f", 10 * MIB, 3)
        self.expect_in_use(self.loop, self.file)
        self.assertTrue(same_random(self.dir / "f", 10 * MIB, 3))
        image.check_all()

    def test_trim_gives_blocks_back(self):
        self.image.mkfs(None)
        self.image.mount()
        fill_random(self.dir / "f", 100 * MIB)
        self.assertGreater(self.file.stat().st_blocks * 512, 95 * MIB)
        unlink_and_wait(self.dir / "f")
        command(BIN / "varve", "checkpoint", self.dir)
        at_once = int(re.search(r"\((\d+) bytes\)", command("fstrim", "-v", self.dir).stdout)[1])
        in_pieces = json.loads(command(BIN / "varve", "trim", "--json", self.dir).stdout)["trimmed_bytes"]
        segment = self.image.status()["space"]["segment_blocks"] * 4096
        self.assertAlmostEqual(in_pieces, at_once, delta=2 * segment, msg="each segment belongs to one piece; the cleaner may free one")
        self.assertLess(self.file.stat().st_blocks * 512, 60 * MIB)
        fill_random(self.dir / "g", 100 * MIB, 2)
        self.image.remount()
        self.assertTrue(same_random(self.dir / "g", 100 * MIB, 2))
        self.image.check_all()

    def test_a_smaller_device_is_refused(self):
        self.image.mkfs(None)
        os.truncate(self.file, 300 * MIB)
        command("losetup", "-c", self.loop)
        done = self.image.mount(check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue(done.stderr.strip())


class TwoNames(OnDevice):
    """One image under two names, of which each has locks of its own."""

    def setUp(self):
        super().setUp()
        self.image.mkfs(None)
        self.image.mount()
        fill_random(self.dir / "f", 10 * MIB, 3)
        command("sync", "-f", self.dir)
        self.other = self.folder / "other"
        self.other.mkdir()

    def second_loop(self):
        done = command("losetup", "--find", "--show", self.file)
        loop = done.stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "-d", loop])
        return loop

    def expect_refusal(self, path, prefix=()):
        for words in ([BIN / "varve", "mount", path, self.other], [BIN / "fsck.varve", "-y", "-f", path], [BIN / "mkfs.varve", "-f", path]):
            done = command(*prefix, *words, check=False)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn("in use", done.stderr, words)

    def expect_nothing_lost(self):
        (self.dir / "g").write_text("it goes on")
        self.image.remount()
        self.assertEqual((self.dir / "g").read_text(), "it goes on")
        self.assertTrue(same_random(self.dir / "f", 10 * MIB, 3))
        self.image.check_all()

    def test_two_loop_devices(self):
        self.expect_refusal(self.second_loop())
        self.expect_nothing_lost()

    def test_a_hard_link_when_the_name_has_gone(self):
        link = self.folder / "link"
        os.link(self.file, link)
        os.unlink(self.file)
        self.expect_refusal(link)
        self.expect_nothing_lost()

    def test_another_mount_namespace_with_other_paths(self):
        hidden = self.folder / "hidden"
        hidden.mkdir()
        script = f"mount --bind {self.folder} {hidden} && mount -t tmpfs none {self.file.parent / 'other'} && " \
                 f"exec {BIN}/fsck.varve -y -f {hidden / self.file.name}"
        done = command("unshare", "-m", "sh", "-c", script, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("in use", done.stderr)
        self.expect_nothing_lost()

    def test_a_container_with_devices_of_its_own(self):
        # Neither the locks, nor sysfs, nor the other loop device can be seen from there: only what is in the image.
        loop = self.second_loop()
        nodes = self.folder / "nodes"
        nodes.mkdir()
        script = f"mount -t tmpfs none /sys && mount -t tmpfs none {nodes} && cp -a {loop} /dev/null /dev/fuse {nodes} && " \
                 f"mount --move {nodes} /dev && exec \"$@\""
        self.expect_refusal(loop, prefix=("unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", script, "sh"))
        self.expect_nothing_lost()


class RandomNames(OnDevice):
    """Two programs at the same time, each by a random name of one image: one of them gets it, and what is written stays."""
    PAIRS = int(os.environ.get("VARVE_PAIRS", "6"))

    def test_pairs(self):
        self.image.mkfs(None)
        seed = random.SystemRandom().randrange(1 << 32)
        dice = random.Random(seed)
        other = self.folder / "other"
        other.mkdir()
        link = self.folder / "link"
        os.link(self.file, link)
        second = command("losetup", "--find", "--show", self.file).stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "-d", second])
        names = [self.file, link, self.loop, second]
        written, winners = [], 0
        for turn in range(self.PAIRS):
            mounts = [(dice.choice(names), self.dir), (dice.choice(names), other)]
            apart = ["unshare", "-m", "-p", "-f", "--mount-proc"] if dice.random() < 0.3 else []
            words = [[BIN / "varve", "mount", *mounts[0]],
                     dice.choice([[BIN / "varve", "mount", *mounts[1]], [*apart, BIN / "fsck.varve", "-y", "-f", mounts[1][0]]])]
            about = f"seed {seed}, turn {turn}: {words}"
            running = []
            for each in dice.sample(words, 2):
                running.append(subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
                time.sleep(dice.random() * 0.1)
            ends = [(process.communicate(timeout=HANG)[1], process.returncode) for process in running]
            for said, status in ends:
                self.assertTrue(status in (0, 1) or "in use" in said, (about, said))
            there = [directory for directory in (self.dir, other) if mount_line(directory)]
            self.assertLessEqual(len(there), 1, about)
            for directory in there:
                winners += 1
                (directory / f"f{turn}").write_text(about)
                written.append((f"f{turn}", about))
                command(BIN / "varve", "umount", directory)
            command(BIN / "fsck.varve", "-f", "-n", "--data", dice.choice(names))
        self.assertGreater(winners, 0)
        self.image.mount()
        for name, text in written:
            self.assertEqual((self.dir / name).read_text(), text)
        self.image.check_all()


class EndedBySignal(OnDevice):
    """The kernel ends an unmount of a device only when the daemon has answered; here the daemon unmounts itself."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.let_go)

    def let_go(self):
        """A daemon that waits for itself cannot be killed: its connection has to be ended."""
        if not processes_of(self.loop):
            return
        control, device = self.folder / "control", os.stat(self.loop).st_rdev
        control.mkdir()
        command("mount", "-t", "fusectl", "none", control)
        try:
            (control / str(os.major(device) << 20 | os.minor(device)) / "abort").write_text("1")
        except OSError:
            pass  # it does not wait
        command("umount", control)
        kill_all(processes_of(self.loop))
        wait_until(lambda: is_unlocked(self.loop), "the daemon is gone")

    def begin(self):
        self.image.mkfs(None)
        log = open(self.folder / "log", "w")
        self.addCleanup(log.close)
        daemon = subprocess.Popen([BIN / "varve", "mount", "-f", self.loop, self.dir], stdout=log, stderr=log)
        wait_until(lambda: self.image.is_mounted() or daemon.poll() is not None, "the mount is there")
        self.assertIn(" fuseblk", mount_line(self.dir))
        fill_random(self.dir / "f", 20 * MIB, 3, sync=False)
        return daemon

    def expect_clean_end(self, daemon):
        self.assertEqual(daemon.wait(HANG), 0, (self.folder / "log").read_text())
        self.assertFalse(self.image.is_mounted())
        dump = command(BIN / "varve", "dump", "superblock", "--json", self.loop).stdout
        self.assertIn('"clean": true', dump)
        self.image.fsck("--data")
        self.image.mount()
        self.assertTrue(same_random(self.dir / "f", 20 * MIB, 3))

    def test_each_signal_ends_it_cleanly(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPWR, signal.SIGXCPU):
            with self.subTest(number.name):
                daemon = self.begin()
                daemon.send_signal(number)
                self.expect_clean_end(daemon)
                self.image.umount()

    def test_in_the_background(self):
        self.image.mkfs(None)
        self.image.mount()
        fill_random(self.dir / "f", 20 * MIB, 3, sync=False)
        os.kill(self.image.daemon(), signal.SIGTERM)
        wait_until(lambda: not processes_of(self.loop), "the daemon ends")
        self.image.mount()
        self.assertTrue(same_random(self.dir / "f", 20 * MIB, 3))
        self.image.check_all()

    def test_users_may_finish(self):
        daemon = self.begin()
        with open(self.dir / "g", "w") as file:
            daemon.send_signal(signal.SIGTERM)
            wait_until(lambda: not self.image.is_mounted(), "nobody new gets in")
            file.write("last words")
        self.expect_clean_end(daemon)
        self.assertEqual((self.dir / "g").read_text(), "last words")
        self.image.check_all()

    def test_users_who_stay_get_errors(self):
        daemon = self.begin()
        with open(self.dir / "g", "wb", buffering=0) as file:
            file.write(b"first words")
            daemon.send_signal(signal.SIGTERM)
            self.assertEqual(daemon.wait(HANG), 0)
            with self.assertRaises(OSError):
                os.pread(file.fileno(), 1 << 20, 1 << 20)
                os.fsync(file.fileno())
        self.expect_clean_end(daemon)
        self.assertEqual((self.dir / "g").read_text(), "first words")
        self.image.check_all()


class Unprivileged(unittest.TestCase):
    def setUp(self):
        if IS_ROOT and not shutil.which("setpriv"):
            self.skipTest("no setpriv")
        if not shutil.which("fusermount3"):
            self.skipTest("no fusermount3")
        self.folder = new_folder()
        self.tools = self.folder / "bin"  # the build may lie where others cannot look
        shutil.copytree(BIN, self.tools, ignore=lambda d, names: [n for n in names if "varve" not in n])
        self.image = Image(folder=self.folder)
        self.addCleanup(clean_up_all)
        self.user = NOBODY if IS_ROOT else os.getuid()
        if IS_ROOT:
            for path in (self.folder, self.image.dir):
                os.chown(path, NOBODY, NOBODY)

    def run_script(self, text):
        """`as_user` before a command of it takes all privileges away."""
        as_user = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups" if IS_ROOT else ""
        script = self.folder / "script"
        script.write_text(f'set -ex; cd {self.folder}; as_user="{as_user}"\n{text}')
        words = ["sh", script]
        if IS_ROOT and not os.stat("/dev/fuse").st_mode & 0o006 == 0o006:
            # Only root may use this machine's /dev/fuse: in a mount namespace, a node that all may use lies over it.
            node = self.folder / "fuse"
            os.mknod(node, 0o020666, os.stat("/dev/fuse").st_rdev)
            os.chmod(node, 0o666)
            words = ["unshare", "--mount", "--propagation", "private", "sh", "-ec",
                     f'mount --bind {node} /dev/fuse; exec "$@"', "sh", *words]
        command(*words)

    def test_an_unmount_that_fails_is_told_where_children_are_ignored(self):
        self.run_script("""
            $as_user bin/mkfs.varve -q --size 64M disk.img
            $as_user bin/varve mount disk.img mnt
            $as_user sh -c 'exec 3> mnt/open; echo > ready; exec sleep 200' & user=$!
            while [ ! -e ready ]; do sleep 0.1; done
            ignoring="import os, signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv('bin/varve', ['varve', 'umount', 'mnt'])"
            if $as_user timeout 100 python3 -c "$ignoring" 2> said; then exit 1; fi
            grep "still open" said
            kill $user
            while ! $as_user bin/varve umount mnt; do sleep 0.1; done
            """)
        self.assertEqual(processes_of(self.image.path), [])

    def test_a_user_mounts_an_image(self):
        work = self.folder / "work"
        work.write_text(f"""
            set -ex
            {self.tools}/mkfs.varve -q --size 256M disk.img
            {self.tools}/varve mount disk.img mnt
            cd mnt
            echo hello > f; mkdir d; ln f d/hard; mv f d/g; test "$(cat d/hard)" = hello
            dd if=/dev/zero of=big bs=1M count=20 conv=fsync
            test "$(stat -c %u d/g d big | sort -u)" = {self.user}
            chmod 700 d; if chown 0 d; then exit 1; fi
            {self.tools}/varve status .
            if {self.tools}/varve umount ../mnt 2> ../said; then exit 1; fi
            grep 'resource busy' ../said
            cd ..
            {self.tools}/varve umount mnt
            test ! -e mnt/d
            {self.tools}/fsck.varve -n -f --data disk.img
        """)
        self.run_script(f"$as_user sh {work}")

    def test_a_user_may_not_unmount_what_is_not_his(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        self.run_script(f"""
            {self.tools}/mkfs.varve -q --size 256M disk.img
            {self.tools}/varve mount disk.img mnt
            if $as_user {self.tools}/varve umount mnt 2> said; then exit 1; fi
            grep 'mnt: mounted by root: only root may unmount it' said
            {self.tools}/varve umount mnt
        """)

    def test_no_thread_to_be_had(self):
        """Nor a process, for unmounting; the kernel makes threads of its own for io_uring as it goes."""
        self.run_script(f"""
            $as_user {self.tools}/mkfs.varve -q --size 256M disk.img
            $as_user {self.tools}/varve mount disk.img mnt
            daemon=$($as_user {self.tools}/varve status --json mnt | sed -n 's/.*"pid": *\\([0-9]*\\).*/\\1/p')
            $as_user prlimit --pid $daemon --nproc=0
            if $as_user {self.tools}/varve scrub mnt; then exit 1; fi
            $as_user dd if=/dev/zero of=mnt/f bs=1M count=3
            kill $daemon
            while kill -0 $daemon; do sleep 0.1; done
            {self.tools}/varve dump superblock --json disk.img | grep '"clean": true'
            $as_user {self.tools}/varve mount disk.img mnt
            $as_user test $($as_user stat -c %s mnt/f) = {3 * MIB}
            $as_user {self.tools}/varve umount mnt
        """)

    def test_root_unmounts_what_a_user_has_mounted(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        self.run_script(f"""
            $as_user {self.tools}/mkfs.varve -q --size 256M disk.img
            for way in "{self.tools}/varve umount" {self.tools}/umount.fuse.varve; do
                $as_user {self.tools}/varve mount disk.img mnt
                if ls mnt; then exit 1; fi
                $as_user sh -c 'for i in $(seq 3000); do echo $i > mnt/$i; done'
                $way mnt
                {self.tools}/fsck.varve -n --data disk.img
                {self.tools}/varve dump superblock --json disk.img | grep '"clean": true'
            done
            $as_user {self.tools}/varve mount disk.img mnt -o ro
            {self.tools}/varve umount mnt
        """)


class OtherWaysOfIo(unittest.TestCase):
    def use(self, environment, folder=None):
        image = Image(folder=folder)
        self.addCleanup(clean_up_all)
        env = dict(os.environ, **environment)
        image.mkfs("256M")
        image.mount(env=env)
        fill_random(image.dir / "f", 30 * MIB, 5)
        image.umount()
        image.fsck("--data")
        image.mount(env=env)
        self.assertTrue(same_random(image.dir / "f", 30 * MIB, 5))
        status = json.dumps(image.status())
        image.check_all()
        return status

    def test_without_io_uring(self):
        self.assertIn("threads", self.use({"VARVE_IO": "threads"}))

    def test_without_direct_io(self):
        self.use({"VARVE_IO_BUFFERED": "1"})

    def test_on_tmpfs(self):
        if not os.access("/dev/shm", os.W_OK) or shutil.disk_usage("/dev/shm").free < 400 * MIB:
            self.skipTest("no room in /dev/shm")
        folder = Path(tempfile.mkdtemp(prefix="varve-test.", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, folder, True)
        self.use({}, folder)


if __name__ == "__main__":
    main()
