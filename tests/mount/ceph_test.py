#!/usr/bin/env python3
"""Mounts of images of a real Ceph cluster (tests/ceph/cluster): its OSD is killed under load, stopped, and comes back; the daemon dies;
another client takes the image over. All by a user with the capability "profile rbd" for its pool only.
VARVE_CEPH_DEATHS: how often something is killed."""

from network_tools import *

CLUSTER = ROOT / "tests/ceph/cluster"
DEATHS = int(os.environ.get("VARVE_CEPH_DEATHS", 2))


def setUpModule():
    if why := why_unknown("rbd:pool/image:conf=/nowhere"):
        skip(why)
    CephTest.cluster = new_folder() / "cluster"
    made = command(CLUSTER, "start", CephTest.cluster, check=False, timeout=240)
    if made.returncode == 77:
        skip(made.stdout.strip())
    atexit.register(tearDownModule)
    if made.returncode:
        raise AssertionError(made.stdout + made.stderr)


def tearDownModule():
    command(CLUSTER, "stop", CephTest.cluster, check=False)


class CephTest(unittest.TestCase):
    cluster = None
    images = 0

    def setUp(self):
        self.conf = self.cluster / "ceph.conf"
        self.folder = Path(tempfile.mkdtemp(prefix="varve-test.", dir=os.environ.get("VARVE_TEST_DIR", "/var/tmp")))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def rbd(self, *words, **more):
        return command("rbd", "-c", self.conf, *words, **more)

    def image(self, *options, size="1G"):
        CephTest.images += 1
        name = f"rbd/disk{CephTest.images}"
        self.rbd("create", "--size", size, *options, name)
        return name

    def uri(self, name, more=""):
        return f"rbd:{name}:conf={self.conf}:id=varve:keyring={self.cluster}/varve.keyring{more}"

    def export(self, name, place="one"):
        folder = self.folder / place
        folder.mkdir()
        export = Export(self.uri(name), folder)
        self.addCleanup(export.clean_up)
        return export

    def mounted(self, name, options=""):
        export = self.export(name)
        export.mkfs()
        export.mount(options)
        return export

    def osd(self):
        return int((self.cluster / "run/osd.0.pid").read_text())

    def restart_osd(self, pause=0.0):
        command(CLUSTER, "kill-osd", self.cluster)
        time.sleep(pause)  # the cluster does without it for so long
        command(CLUSTER, "start-osd", self.cluster)


class EveryTool(CephTest):
    def test_the_name_of_an_image_goes_where_a_device_does(self):
        name = self.image()
        export = self.mounted(name)
        fill_random(export.dir / "file", 8 * MIB, seed=1)
        status = export.status()
        self.assertEqual(status["mount"]["source"], export.path)
        self.assertEqual(status["backend"], "rbd")
        self.assertTrue(status["lease"]["held"])
        refused = command(BIN / "fsck.varve", "-f", "-y", export.path, check=False)
        self.assertEqual(refused.returncode, 8, refused.stdout + refused.stderr)
        self.assertIn(f"process {status['mount']['pid']}", refused.stdout + refused.stderr)
        self.assertIn("in use by the Ceph client at 127.0.0.1", refused.stdout + refused.stderr)
        self.assertNotEqual(command(BIN / "mkfs.varve", "-f", export.path, check=False).returncode, 0)
        other_name = export.path + ":rbd_readahead_max_bytes=0"  # by which the table of mounts does not find it
        self.assertIn("in use by process", command(BIN / "varve", "status", other_name).stdout)
        self.assertIn("is using it", command(BIN / "fsck.varve", "-n", other_name, check=False).stderr)
        command(BIN / "varve", "map", export.path)
        export.umount()
        export.fsck("--data")
        command(BIN / "varve", "dump", "superblock", export.path)
        command(BIN / "varve", "status", export.path)
        command(BIN / "varve", "salvage", export.path, self.folder / "out")
        self.assertTrue(same_random(self.folder / "out/file", 8 * MIB, seed=1))
        export.mount("ro")
        self.assertTrue(same_random(export.dir / "file", 8 * MIB, seed=1))
        export.umount()

    def test_growing(self):
        name = self.image()
        export = self.mounted(name)
        self.rbd("resize", "--size", "1536M", name)
        command(BIN / "varve", "resize", export.dir)
        fill_random(export.dir / "file", 1100 * MIB, seed=2)
        export.remount()
        self.assertTrue(same_random(export.dir / "file", 1100 * MIB, seed=2))
        export.check_all()

    def test_what_is_free_is_given_back(self):
        name = self.image()
        export = self.mounted(name)
        used = lambda: sum(int(line.split()[1]) for line in self.rbd("diff", name).stdout.splitlines()[1:])
        fill_random(export.dir / "file", 128 * MIB, seed=3)
        full = used()
        self.assertGreater(full, 128 * MIB)
        (export.dir / "file").unlink()
        command(BIN / "varve", "checkpoint", export.dir)
        command(BIN / "varve", "trim", export.dir)
        self.assertLess(used(), full - 100 * MIB)
        export.check_all()

    def test_a_snapshot_shows_what_was_synced(self):
        name = self.image()
        export = self.mounted(name)
        fill_random(export.dir / "before", 4 * MIB, seed=4)
        self.rbd("snap", "create", f"{name}@monday")
        fill_random(export.dir / "after", 4 * MIB, seed=5)
        shown = self.export(name + "@monday", "two")
        refused = shown.mount(check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("is a snapshot of an image: only read-only use is possible", refused.stderr)
        shown.mount("ro")
        self.assertTrue(same_random(shown.dir / "before", 4 * MIB, seed=4))
        self.assertFalse((shown.dir / "after").exists())
        shown.umount()
        shown.fsck("--data")
        self.assertNotIn("process", command(BIN / "varve", "status", shown.path).stdout, "what its lease says is no longer so")
        self.assertNotIn("warning", command(BIN / "fsck.varve", "-n", shown.path).stderr)
        self.assertTrue(same_random(export.dir / "after", 4 * MIB, seed=5))
        export.check_all()

    def test_what_is_wrong_is_said(self):
        plain = self.image("--image-feature", "layering")
        for uri, words in ((self.uri(plain), "the image has no exclusive lock"),
                           (self.uri("rbd/nothing"), "check the names of image and snapshot"),
                           (self.uri("nothing/disk"), "no pool of this name"),
                           (self.uri(plain, ":no_such=1"), 'Ceph knows no setting "no_such"'),
                           (f"rbd:{plain}:conf={self.conf}:id=nobody", "check that its monitors run, and ceph.conf, user and keyring"),
                           (f"rbd:{plain}:conf=/nowhere", "check the path behind conf=")):
            refused = command(BIN / "mkfs.varve", "-f", uri, check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(words, refused.stderr)


class Death(CephTest):
    def test_an_osd_that_is_killed_under_load_and_comes_back(self):
        export = self.mounted(self.image())
        writers = Writers(export.dir, 4)
        generator = random.Random(SEED)
        for _ in range(DEATHS):
            time.sleep(generator.uniform(0.1, 2.0))
            self.restart_osd(generator.uniform(0, 2.0))
            before = sum(writers.promised)
            wait_until(lambda: sum(writers.promised) > before, "it goes on")
        writers.have_lost_nothing(self, export)

    def test_osd_and_daemon_killed_at_once(self):
        export = self.mounted(self.image())
        generator = random.Random(SEED + 1)
        for _ in range(DEATHS):
            shutil.rmtree(export.dir / "logs", ignore_errors=True)
            (export.dir / "logs").mkdir()
            writers = Writers(export.dir / "logs", 3)
            time.sleep(generator.uniform(0.2, 2.0))
            command(CLUSTER, "kill-osd", self.cluster)
            export.kill()
            writers.end()
            command(CLUSTER, "start-osd", self.cluster)
            export.mount()
            writers.check(self, export.dir / "logs")
        export.check_all()

    # Its client is still known to the cluster, and has the lock: it is shut out, since its process is known to have ended.
    def test_a_killed_daemon_is_no_obstacle(self):
        export = self.mounted(self.image())
        for _ in range(DEATHS):
            shutil.rmtree(export.dir / "logs", ignore_errors=True)
            (export.dir / "logs").mkdir()
            writers = Writers(export.dir / "logs", 3)
            time.sleep(0.5)
            export.kill()
            writers.end()
            export.mount()
            writers.check(self, export.dir / "logs")
        export.check_all()

    def test_one_that_does_not_answer_is_a_failed_disk(self):
        export = self.mounted(self.image(), "patience=5")
        writers = Writers(export.dir, 2)
        time.sleep(0.5)  # something is being written when it happens
        stop(self.osd())
        self.addCleanup(os.kill, self.osd(), signal.SIGCONT)
        for thread in writers.threads:
            thread.join(HANG)
        self.assertTrue(all(writers.failed), "programs that sync hear of it")
        status = export.status()
        self.assertTrue(status["read_only"])
        self.assertIn("no answer for 5 s", status["read_only_reason"])
        export.umount(check=False)  # the cluster is still silent
        refused = export.mount("patience=5", check=False)
        self.assertIn("the cluster does not answer", refused.stderr)
        os.kill(self.osd(), signal.SIGCONT)
        export.mount()
        writers.check(self, export.dir)
        export.check_all()


class OneWriter(CephTest):
    def two(self):
        name = self.image()
        one, two = self.mounted(name), self.export(name, "two")
        refused = two.mount(check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("in use by the Ceph client at 127.0.0.1", refused.stderr)
        self.assertIn("--take-over", refused.stderr)
        self.assertIn(str(one.dir), refused.stderr)
        return one, two

    def reason(self, export):
        state = lambda: json.loads(command(BIN / "varve", "status", "--json", export.dir).stdout)
        wait_until(lambda: state()["read_only"], "it notices")
        return state()["read_only_reason"]

    def test_a_take_over_under_load(self):
        one, two = self.two()
        writers = Writers(one.dir, 3)
        time.sleep(1)  # something is being written when it happens
        two.mount("take_over")
        for thread in writers.threads:
            thread.join(HANG)
        self.assertTrue(all(writers.failed))
        self.assertIn("another Ceph client has taken the image over", self.reason(one))
        writers.check(self, two.dir)
        fill_random(two.dir / "file", 16 * MIB, seed=6)
        one.umount(check=False)
        two.remount()
        self.assertTrue(same_random(two.dir / "file", 16 * MIB, seed=6))
        writers.check(self, two.dir)
        two.check_all()

    def test_an_idle_mount_notices(self):
        one, two = self.two()
        two.mount("take_over")
        self.assertIn("another Ceph client has taken the image over", self.reason(one))
        one.umount(check=False)
        two.check_all()

    # As by an administrator, or a tool that fences a machine.
    def test_a_client_that_is_put_on_the_blocklist(self):
        name = self.image()
        export = self.mounted(name)
        fill_random(export.dir / "kept", MIB, seed=7)
        owner = json.loads(self.rbd("lock", "ls", "--format", "json", name).stdout)[0]["address"]
        command("ceph", "-c", self.conf, "osd", "blocklist", "add", owner)
        self.assertIn("blocklist", self.reason(export))
        self.assertTrue((export.dir / "kept").exists())
        export.umount(check=False)
        export.mount()
        self.assertTrue(same_random(export.dir / "kept", MIB, seed=7))
        export.check_all()


class Contract(CephTest):
    # What every device promises: tests/io/contract_test.cc.
    def test_contract(self):
        program = BIN.parent / "tests/bin/io_test"
        if not program.exists():
            self.skipTest("io_test is not built")
        done = command(program, "--gtest_filter=*Contract*/rbd", check=False, timeout=400, env={**os.environ, "VARVE_TEST_CEPH": str(self.conf)})
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])
        self.assertRegex(done.stdout, r"PASSED  \] \d\d")
        self.assertNotIn("SKIPPED", done.stdout)


main(timeout=1800)
