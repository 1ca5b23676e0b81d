#!/usr/bin/env python3
"""What the tools make of what they are started in: without io_uring, with odd bytes in names, with signals that others ignore."""

import ctypes
import re
import select

from harness import *
from system_calls import *

IO_URING_SETUP = 425


def varve(*words, **more):
    return command(BIN / "varve", *words, **more)


def without_rings():
    """As in most containers. For the process that calls it and what it starts."""
    class Filter(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filters", ctypes.POINTER(Filter))]

    # The call's number; is it that one; EPERM; allowed.
    filters = (Filter * 4)(Filter(0x20, 0, 0, 0), Filter(0x15, 0, 1, IO_URING_SETUP), Filter(0x06, 0, 0, 0x00050001),
                           Filter(0x06, 0, 0, 0x7FFF0000))
    checked(libc.prctl(38, 1, 0, 0, 0))
    checked(libc.prctl(22, 2, ctypes.byref(Program(4, filters)), 0, 0))


class WithoutRings(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("256M")
        self.image.mount()
        fill_random(self.image.dir / "file", 4 * MIB, 1)
        varve("snapshot", "create", self.image.dir, "one")
        fill_random(self.image.dir / "newer", 1 * MIB, 2)
        self.image.kill()  # so that there is something to recover
        subprocess.run(["umount" if IS_ROOT else "fusermount3", "-l" if IS_ROOT else "-uz", self.image.dir], check=True)

    def test_what_was_asked_for_is_all_that_is_on_standard_output(self):
        for words in (["status", "--json", self.image.path], ["snapshot", "list", "--json", self.image.path],
                      ["doctor", "--json", self.image.path], ["map", "--json", self.image.path]):
            with self.subTest(words=words[0]):
                done = varve(*words, check=False, preexec_fn=without_rings)
                self.assertIn(done.returncode, (0, 1, 2), done.stderr)
                json.loads(done.stdout)

    def test_a_stream_can_be_received(self):
        with open(self.image.folder / "stream", "wb") as stream:
            subprocess.run([BIN / "varve", "send", self.image.path, "one"], stdout=stream, check=True, preexec_fn=without_rings)
        target = Image(folder=new_folder())
        target.mkfs("256M")
        target.mount()
        with open(self.image.folder / "stream", "rb") as stream:
            subprocess.run([BIN / "varve", "receive", target.dir], stdin=stream, check=True, stdout=subprocess.DEVNULL)
        self.assertTrue(same_random(target.dir / "file", 4 * MIB, 1))
        target.check_all()


class OddNames(unittest.TestCase):
    def test_an_image_whose_name_is_no_text(self):
        folder = new_folder()
        self.addCleanup(clean_up_all)
        image = Image(folder / os.fsdecode(b"d\xfc, or so.img"), folder)
        image.mkfs("64M")
        image.mount()
        (image.dir / "file").write_text("kept")
        self.assertIn("live", varve("map", image.dir).stdout)
        self.assertEqual(image.umount().stderr, "")
        image.fsck("--data")


class Inherited(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)
        self.image.mkfs("64M")

    def test_what_the_caller_has_open_is_not_kept(self):
        """It may be a lock, or a file of a filesystem that is to be unmounted."""
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as ending:
            command(BIN / "varve", "mount", self.image.path, self.image.dir, pass_fds=(writing,))
            os.close(writing)
            self.assertTrue(select.select([ending], [], [], 20)[0], "it is still open")
            self.assertEqual(ending.read(), b"")
        self.image.umount()

    def test_a_path_means_what_it_means_to_the_kernel(self):
        other = Image()
        other.mkfs("64M")
        below = other.folder / "below"
        below.mkdir()
        (self.image.folder / "current").symlink_to(below)
        varve("mount", f"{self.image.folder}/current/../{other.path.name}", self.image.dir)
        self.assertEqual(json.loads(varve("status", "--json", self.image.dir).stdout)["device"], str(other.path))
        varve("umount", self.image.dir)

    def test_an_unknown_level_of_the_log_silences_nothing(self):
        log = self.image.folder / "log"
        varve("mount", self.image.path, self.image.dir, "-o", f"log={log}", env={**os.environ, "VARVE_LOG": "verbose"})
        self.assertIn("VARVE_LOG=verbose: no such level", log.read_text())
        self.image.umount()


class Signals(unittest.TestCase):
    def test_a_repair_goes_on_when_nobody_listens_any_more(self):
        image = Image()
        self.addCleanup(clean_up_all)
        image.mkfs("64M")
        reading, writing = os.pipe()
        os.close(reading)
        done = command(BIN / "fsck.varve", "-f", "-y", f"-C{writing}", image.path, pass_fds=(writing,))
        os.close(writing)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_progress_is_told_as_fsck_of_systemd_reads_it(self):
        image = Image()
        self.addCleanup(clean_up_all)
        image.mkfs("64M")
        reading, writing = os.pipe()
        command(BIN / "fsck.varve", "-f", "-n", "--data", f"-C{writing}", image.path, pass_fds=(writing,))
        os.close(writing)
        with os.fdopen(reading) as said:
            lines = said.read().splitlines()
        self.assertGreater(len(lines), 1)
        passes = [re.fullmatch(rf"(\d+) \d+ \d+ {re.escape(str(image.path))}", line)[1] for line in lines]
        self.assertEqual(passes, sorted(passes, key=int))
        self.assertEqual(passes[0], "1")


if __name__ == "__main__":
    main()
