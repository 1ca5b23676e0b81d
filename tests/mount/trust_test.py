#!/usr/bin/env python3
"""The promises of SECURITY.md: whose images, plugins and logs are trusted, and what listens to whom."""

import threading

from harness import *
from system_calls import *

NOBODY = 65534


def flags_of(directory):
    return mount_line(directory).split()[3].split(",")


@unittest.skipUnless(IS_ROOT, "needs root")
class OtherUsersImages(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.image.mkfs("64M")

    def tearDown(self):
        self.image.check_all()

    def test_roots_own_image_is_believed(self):
        self.image.mount()
        self.assertFalse({"nosuid", "nodev"} & set(flags_of(self.image.dir)))

    def test_of_another_owner_nothing_gains_rights(self):
        os.chown(self.image.path, NOBODY, NOBODY)
        self.image.mount()
        self.assertLessEqual({"nosuid", "nodev"}, set(flags_of(self.image.dir)))
        shutil.copy("/usr/bin/id", self.image.dir / "id")
        os.chmod(self.image.dir / "id", 0o4755)
        os.chmod(self.image.folder, 0o755)
        shown = command(self.image.dir / "id", "-u", user=NOBODY, group=NOBODY).stdout
        self.assertEqual(shown.strip(), str(NOBODY))
        os.mknod(self.image.dir / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        with self.assertRaises(PermissionError):
            open(self.image.dir / "zero", "rb")
        self.image.umount()

    def test_writable_by_others_is_another_users(self):
        os.chmod(self.image.path, 0o666)
        self.image.mount()
        self.assertIn("nosuid", flags_of(self.image.dir))

    def test_writable_by_a_group_is_another_users(self):
        os.chown(self.image.path, 0, NOBODY)
        os.chmod(self.image.path, 0o660)
        self.image.mount()
        self.assertLessEqual({"nosuid", "nodev"}, set(flags_of(self.image.dir)))
        self.image.umount()
        os.chown(self.image.path, 0, 0)  # root's own group
        self.image.mount()
        self.assertFalse({"nosuid", "nodev"} & set(flags_of(self.image.dir)))

    def test_no_symbolic_link_is_followed_where_that_is_asked_for(self):
        self.image.mount("nosymfollow")
        (self.image.dir / "link").symlink_to("/etc/hostname")
        with self.assertRaisesRegex(OSError, "Too many levels of symbolic links"):
            open(self.image.dir / "link", "rb")
        self.assertEqual(os.readlink(self.image.dir / "link"), "/etc/hostname")
        self.assertIn("nosymfollow", flags_of(self.image.dir))

    def test_root_may_ask_for_it(self):
        os.chown(self.image.path, NOBODY, NOBODY)
        self.image.mount("suid,dev")
        self.assertFalse({"nosuid", "nodev"} & set(flags_of(self.image.dir)))


@unittest.skipUnless(IS_ROOT, "needs root")
class MountsOfOthers(unittest.TestCase):
    """Any user may mount a FUSE filesystem under whatever name."""

    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("64M")
        os.chmod(self.image.folder, 0o755)
        self.theirs = self.image.folder / "theirs"
        self.theirs.mkdir()
        self.addCleanup(subprocess.run, ["umount", "-l", self.theirs], stderr=subprocess.DEVNULL)

    def pretend(self, source):
        """As fusermount3 does it for a program of another user's, which answers nobody."""
        self.connection = os.open("/dev/fuse", os.O_RDWR)
        self.addCleanup(os.close, self.connection)
        options = f"fd={self.connection},rootmode=40000,user_id={NOBODY},group_id={NOBODY}"
        checked(libc.mount(os.fsencode(source), os.fsencode(self.theirs), b"fuse.varve", 6, options.encode()))  # nosuid, nodev

    def test_of_no_device_of_roots_is_believed(self):
        self.pretend(self.image.path)
        said = command(BIN / "varve", "status", "-s", self.image.path).stdout
        self.assertIn("not mounted, clean", said)
        command(BIN / "varve", "label", self.image.path, "mine")
        self.assertEqual(command(BIN / "varve", "label", self.image.path).stdout, "mine\n")

    def test_what_they_name_is_not_opened_for_a_tag(self):
        pipe = self.image.folder / "pipe"
        os.mkfifo(pipe)
        os.chown(pipe, NOBODY, NOBODY)
        self.pretend(pipe)
        opened = []
        waiter = threading.Thread(target=lambda: opened.append(os.open(pipe, os.O_WRONLY)), daemon=True)
        waiter.start()
        done = command(BIN / "varve", "status", "UUID=01234567-89ab-cdef-0123-456789abcdef", check=False)
        self.assertIn("no mounted image and no block device", done.stderr)
        waiter.join(0.2)
        self.assertEqual(opened, [], "it was opened")
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


class CodeAndFiles(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.image.mkfs("64M")

    def refused(self, options, why):
        done = self.image.mount(options, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, why)
        self.assertFalse(self.image.is_mounted())

    def test_a_plugin_that_others_may_change_is_not_loaded(self):
        plugin = self.image.folder / "p.so"
        shutil.copy(BIN.parent / "examples/patient.so", plugin) if (BIN.parent / "examples/patient.so").exists() else plugin.write_bytes(b"x")
        os.chmod(plugin, 0o666)
        self.refused(f"plugin={plugin}", "others may change it")
        os.chmod(plugin, 0o644)
        os.chmod(self.image.folder, 0o777)
        self.refused(f"plugin={plugin}", "others may put another file in its place")

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_a_plugin_of_another_user_is_not_loaded(self):
        plugin = self.image.folder / "p.so"
        plugin.write_bytes(b"x")
        os.chown(plugin, NOBODY, NOBODY)
        self.refused(f"plugin={plugin}", f"belongs to user {NOBODY}")

    def test_a_log_is_no_link_and_nobody_elses(self):
        victim = self.image.folder / "victim"
        victim.write_text("precious\n")
        (self.image.folder / "log").symlink_to(victim)
        self.refused(f"log={self.image.folder / 'log'}", "not a plain file")
        self.assertEqual(victim.read_text(), "precious\n")
        os.chmod(victim, 0o666)
        self.refused(f"log={victim}", "others may change it")
        os.chmod(self.image.folder, 0o777)
        self.refused(f"log={self.image.folder / 'new.log'}", "others may put another file in its place")
        os.chmod(self.image.folder, 0o755)
        self.image.mount(f"log={self.image.folder / 'new.log'}")
        self.assertIn(str(self.image.folder / "new.log"), command(BIN / "varve", "status", "-s", self.image.dir).stdout)
        self.image.check_all()

    def test_a_trace_is_written_over_nothing(self):
        trace = self.image.folder / "trace"
        trace.write_text("precious\n")
        self.refused(f"trace={trace}", "there is something in it already")
        self.assertEqual(trace.read_text(), "precious\n")
        os.chmod(trace, 0o666)
        self.refused(f"trace={trace}", "others may change it")
        trace.unlink()
        trace.symlink_to(self.image.path)
        self.refused(f"trace={trace}", "not a plain file")

    def test_metrics_listen_to_this_machine_only(self):
        for place in ("0.0.0.0:9811", "192.0.2.1:9811", "[::]:9811", "localhost", "unix:", "127.0.0.1:99999"):
            done = command(BIN / "varve", "metrics", "--all", "--listen", place, check=False)
            self.assertEqual(done.returncode, 1, place)
            self.assertIn("--listen", done.stderr)


if __name__ == "__main__":
    main()
