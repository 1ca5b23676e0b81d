#!/usr/bin/env python3
"""varve send and varve receive: what comes over is the same, and what is no whole stream leaves no snapshot."""

from send_tools import *
from system_calls import *

import re
import socket

NODUMP = 0x40
# A user and the mask beside owner, group and others, as the kernel keeps ACLs.
ACL = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in (
    (1, 6, 0xFFFFFFFF), (2, 7, 1234), (4, 4, 0xFFFFFFFF), (0x10, 7, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF)))


class Send(SendTest):
    def fill(self):
        folder = self.dir / "d"
        folder.mkdir()
        for i in range(20):
            fill_random(folder / f"f{i}", 50 * KIB + i, i, sync=False)
        os.link(folder / "f0", self.dir / "linked")
        os.symlink("nowhere", folder / "symbolic")
        os.utime(folder / "symbolic", ns=(5, 6), follow_symlinks=False)
        os.mkfifo(folder / "fifo", 0o600)
        with socket.socket(socket.AF_UNIX) as listening:
            before = os.getcwd()
            os.chdir(folder)
            listening.bind("socket")
            os.chdir(before)
        os.setxattr(folder / "f1", "user.of", b"1")
        os.setxattr(folder / "f1", "user.large", os.urandom(40_000))
        os.setxattr(folder / "f2", "system.posix_acl_access", ACL)
        os.setxattr(folder, "system.posix_acl_default", ACL)
        with open(folder / "sparse", "wb") as file:
            file.write(b"begin")
            os.posix_fallocate(file.fileno(), MIB, 64 * KIB)
            os.pwrite(file.fileno(), b"end", 20 * MIB)
        word = array.array("L", [NODUMP])
        with open(folder / "f3", "rb") as file:
            fcntl.ioctl(file.fileno(), SETFLAGS, word)
        os.chmod(folder / "f4", 0o4755)
        os.utime(folder / "f5", ns=(123_456_789_012_345_678, 987_654_321_098_765_432))
        os.chown(folder / "f6", 1234, 4321)
        os.chmod(folder / "f6", 0o6711)
        os.chown(folder / "symbolic", 7, 8, follow_symlinks=False)
        os.mknod(folder / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.setxattr(folder / "f7", "trusted.of", b"root")
        os.setxattr(folder / "f7", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))

    def change(self):
        folder = self.dir / "d"
        (self.dir / "new").mkdir()
        os.rename(folder / "f8", self.dir / "new/f8")
        os.unlink(folder / "f9")
        os.mkdir(folder / "f9")
        with open(folder / "f10", "r+b") as file:
            file.seek(20 * KIB)
            file.write(b"in the middle")
        os.truncate(folder / "f11", 100)
        os.unlink(self.dir / "linked")
        os.link(folder / "f12", self.dir / "linked")
        os.rename(folder / "f13", folder / "f14")
        os.removexattr(folder / "f1", "user.large")
        os.setxattr(folder / "f1", "user.of", b"2")
        os.chmod(folder / "f15", 0o600)
        with open(folder / "sparse", "r+b") as file:
            os.posix_fallocate(file.fileno(), 30 * MIB, MIB)
            os.truncate(file.fileno(), 2 * MIB)
        os.rename(folder, self.dir / "new/e")
        os.rename(self.dir / "new/e/symbolic", self.dir / "d")

    def test_all_of_it_then_steps(self):
        self.fill()
        self.snapshot("one")
        one = self.tree(self.dir)
        self.change()
        self.snapshot("two")
        two = self.tree(self.dir)
        self.send("one")
        self.assertRegex(self.receive().stdout, r"^one: \d+ changes, [\d.]+ [KM]iB\n$")
        self.assertEqual(self.tree(self.other.dir), one)
        whole = self.stream.stat().st_size
        self.assertLess(self.send("two", "one"), whole / 10)
        self.receive()
        self.assertEqual(self.tree(self.other.dir), two)
        self.assertEqual(self.names(self.other.dir), ["one", "two"])
        kept = self.other.dir / ".varve-snapshots/one"
        for name, about in one.items():
            if about[7] is not None:
                self.assertEqual((kept / name).read_bytes(), about[7], name)
        self.send("one", "two")  # and back
        self.assertIn("already", self.receive(None, 1).stderr)
        self.receive(None, 0, "--name", "one again")
        self.assertEqual(self.tree(self.other.dir), one)
        self.other.remount()
        self.image.umount()
        self.send("two", "one", place=self.image.path)
        self.receive(None, 0, "--name", "two again")
        self.assertEqual(self.tree(self.other.dir), two)

    def test_several_streams_in_one_file(self):
        """As `cat 1 2 | varve receive` gives them. What stands behind them and is no stream is refused, and what was before it stays."""
        self.fill()
        self.snapshot("one")
        self.change()
        self.snapshot("two")
        streams = []
        for name, base in (("one", None), ("two", "one")):
            self.send(name, base)
            streams.append(self.stream.read_bytes())
        self.stream.write_bytes(b"".join(streams))
        self.assertRegex(self.receive().stdout, r"^one: \d+ changes, .*\ntwo: \d+ changes, .*\n$")
        self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))
        self.assertEqual(self.names(self.other.dir), ["one", "two"])
        target = self.other.dir / "again"
        target.mkdir()
        self.stream.write_bytes(streams[0] + os.urandom(MIB))
        self.assertIn("more follows the stream, and it is no stream", self.receive(target, 1, "--name", "renamed").stderr)
        self.assertIn("renamed", self.names(self.other.dir))
        self.assertEqual(varve("receive", "--last", target).stdout, "one\n")
        third = self.other.dir / "third"
        third.mkdir()
        self.stream.write_bytes(b"".join(streams))
        done = self.receive(third, 1, "--name", "by another name")
        self.assertRegex(done.stdout, r"^by another name: \d+ changes")
        self.assertIn("--name is for one stream, and another one follows, of 'two'", done.stderr)

    def test_several_streams_go_on_where_the_last_was_interrupted(self):
        self.fill()
        self.snapshot("one")
        self.send("one")
        streams = self.stream.read_bytes()
        fill_random(self.dir / "large", 20 * MIB)
        self.snapshot("two")
        self.send("two", "one")
        streams += self.stream.read_bytes()
        self.stream.write_bytes(streams[:-10 * MIB])
        self.assertIn("--resume-token", self.receive(None, 1).stderr)
        self.stream.write_bytes(streams)
        self.assertRegex(self.receive().stdout, r"^one: was received before\ntwo: \d+ changes")
        self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))

    def two_states_and_a_target(self):
        """Snapshots "one" and "two", and a directory of the other filesystem."""
        self.fill()
        self.snapshot("one")
        (self.dir / "d/later").write_text("later")
        self.snapshot("two")
        target = self.other.dir / "copies/here"
        target.mkdir(parents=True)
        return target

    def test_into_a_directory_beside_others(self):
        target = self.two_states_and_a_target()
        self.send("one")
        self.receive(target)
        (self.other.dir / "copies/beside").write_text("is no business of it")
        self.send("two", "one")
        self.receive(target)
        self.assertEqual(self.tree(target), self.tree(self.dir))

    def test_into_a_bind_mount_of_a_part(self):
        """Is it unchanged? That is asked of the directory that the mount shows, whatever its name is."""
        real = self.two_states_and_a_target()
        shown = self.image.folder / "x"
        shown.mkdir()
        command("mount", "--bind", real, shown)
        try:
            self.send("one")
            self.receive(shown)
            self.send("two", "one")
            (real / "d/f1").write_text("by somebody")
            self.assertIn("/copies/here/d/f1", self.receive(shown, 1).stderr)
            varve("restore", "--delete", shown, "--from", "one")
            self.receive(shown)
        finally:
            command("umount", shown)
        self.assertEqual(self.tree(real), self.tree(self.dir))

    def test_a_change_of_little_is_a_short_stream(self):
        for i in range(500):
            (self.dir / f"f{i}").write_bytes(b"x" * 5000)
        self.snapshot("one")
        (self.dir / "f77").write_bytes(b"other")
        self.snapshot("two")
        self.assertGreater(self.send("one"), 500 * 5000)
        self.receive()
        self.assertLess(self.send("two", "one"), 2000)
        self.receive()
        self.assertEqual((self.other.dir / "f77").read_bytes(), b"other")

    def test_room_behind_the_end_comes_and_goes(self):
        def change(name, size, reserved=None, punched=None):
            with open(self.dir / name, "r+b") as file:
                os.truncate(file.fileno(), size)
                for mode, part in ((KEEP_SIZE, reserved), (KEEP_SIZE | PUNCH_HOLE, punched)):  # beyond the end
                    if part:
                        fallocate(file.fileno(), mode, *part)
        for name in ("gone", "kept"):
            fill_random(self.dir / name, 100 * KIB, 1)
        change("gone", 100 * KIB, reserved=(512 * KIB, 512 * KIB))
        change("kept", MIB, reserved=(512 * KIB, 512 * KIB))
        self.snapshot("one")
        one = self.tree(self.dir)
        self.send("one")
        self.receive()
        self.assertEqual(self.tree(self.other.dir), one)
        change("gone", 100 * KIB, punched=(512 * KIB, 512 * KIB))
        change("kept", 512 * KIB, reserved=(512 * KIB, 512 * KIB))
        self.snapshot("two")
        two = self.tree(self.dir)
        self.assertNotEqual(two["gone"], one["gone"])
        self.send("two", "one")
        self.receive()
        self.assertEqual(self.tree(self.other.dir), two)
        for name, tree in (("one", one), ("two", two)):
            varve("restore", "--from", name, self.dir)
            self.assertEqual(self.tree(self.dir), tree)
            self.assertEqual(varve("restore", "--from", name, self.dir).stdout.count("modified"), 0)

    def test_a_path_that_the_kernel_takes_only_in_parts(self):
        here = os.getcwd()
        os.chdir(self.dir)
        for i in range(30):
            os.mkdir(f"{i}{'x' * 200}")
            os.chdir(f"{i}{'x' * 200}")
        Path("deep").write_text("one")
        os.chdir(here)
        self.snapshot("one")
        self.send("one")
        self.receive()
        top = os.open(self.other.dir, os.O_RDONLY)
        for i in range(30):
            below = os.open(f"{i}{'x' * 200}", os.O_RDONLY, dir_fd=top)
            os.close(top)
            top = below
        with os.fdopen(os.open("deep", os.O_RDONLY, dir_fd=top)) as deep:
            self.assertEqual(deep.read(), "one")
        os.close(top)

    def test_what_does_not_fit_is_refused_before_anything_changes(self):
        (self.dir / "f").write_text("one")
        self.snapshot("one")
        (self.dir / "f").write_text("two")
        self.snapshot("two")
        self.send("two", "one")
        self.assertIn("has not received the snapshot 'one'", self.receive(None, 1).stderr)
        (self.other.dir / "in the way").touch()
        self.send("one")
        self.assertIn("empty directory", self.receive(None, 1).stderr)
        (self.other.dir / "in the way").unlink()
        self.receive()
        (self.other.dir / "f").write_text("changed here")
        self.send("two", "one")
        self.assertIn("not what was received any more: modified /f", self.receive(None, 1).stderr)
        self.assertEqual((self.other.dir / "f").read_text(), "changed here")
        self.assertEqual(self.names(self.other.dir), ["one"])
        self.assertIn("there is no snapshot 'none'", varve("send", self.dir, "none", expect=1).stderr)
        self.assertIn("there is no snapshot 'none'", varve("send", "--from", "none", self.dir, "one", expect=1).stderr)
        self.assertEqual(varve("receive", "/proc", expect=1, input="").returncode, 1)

    def test_a_damaged_stream_leaves_no_snapshot(self):
        fill_random(self.dir / "f", 300 * KIB, 1)
        self.snapshot("one")
        size = self.send("one")
        good = self.stream.read_bytes()
        for place, (name, bad) in enumerate({
                "no stream": b"hello world, this is no stream", "nothing": b"", "cut": good[:size // 2], "without its end": good[:-1],
                "a bit": good[:size // 2] + bytes([good[size // 2] ^ 1]) + good[size // 2 + 1:]}.items()):
            with self.subTest(name):
                self.stream.write_bytes(bad)
                target = self.other.dir / f"target{place}"
                target.mkdir()
                said = self.receive(target, 1).stderr
                self.assertIn("the stream is empty" if name == "nothing" else "stream", said)
                self.assertEqual(self.names(self.other.dir), [])
                mark = os.getxattr(target, "trusted.varve.received") if "trusted.varve.received" in os.listxattr(target) else b"receiving "
                self.assertTrue(mark.startswith(b"receiving "), mark)

    def resume(self, token, target=None):
        with open(self.stream, "wb") as out:
            subprocess.run([BIN / "varve", "send", "--resume", token, self.dir], stdout=out, check=True, timeout=300)
        return self.receive(target)

    def token(self, target=None):
        return varve("receive", "--resume-token", target or self.other.dir).stdout.strip()

    def test_goes_on_where_the_connection_broke(self):
        self.fill()
        for i in range(3000):
            (self.dir / f"small{i}").write_bytes(b"x" * (i % 300))
        fill_random(self.dir / "large", 20 * MIB, 1)
        self.snapshot("one")
        one = self.tree(self.dir)
        size = self.send("one")
        good = self.stream.read_bytes()
        self.stream.write_bytes(good[:size * 2 // 3])
        said = self.receive(None, 1).stderr
        self.assertIn("ends too early", said)
        self.assertIn("varve receive --resume-token", said)
        self.assertEqual(self.names(self.other.dir), [])
        varve("snapshot", "rename", self.dir, "one", "renamed")  # is no other one
        self.resume(self.token())
        self.assertLess(self.stream.stat().st_size, size * 2 // 3)
        self.assertEqual(self.tree(self.other.dir), one)
        self.assertEqual(self.names(self.other.dir), ["one"])
        self.assertIn("no receive was interrupted", varve("receive", "--resume-token", self.other.dir, expect=1).stderr)
        # A step: from the same file once more.
        self.change()
        fill_random(self.dir / "large", 4 * MIB, 2)
        self.snapshot("two")
        two = self.tree(self.dir)
        size = self.send("two", "renamed")
        good = self.stream.read_bytes()
        for part in (50, 5, 2):
            self.stream.write_bytes(good[:size - size // part])
            self.receive(None, 1)
        self.send("two")
        self.assertIn("receiving 'two' was interrupted here", self.receive(None, 1).stderr)
        self.stream.write_bytes(good)
        self.receive()
        self.assertEqual(self.tree(self.other.dir), two)
        self.assertEqual(self.names(self.other.dir), ["one", "two"])

    def receive_and_kill(self, seconds):
        """The daemon is killed so long after the beginning: nothing has been synced."""
        with open(self.stream, "rb") as stream:
            receiving = subprocess.Popen([str(BIN / "varve"), "receive", str(self.other.dir)], stdin=stream,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)  # at any moment
        self.other.kill()
        receiving.wait(HANG)
        self.other.mount()

    def test_goes_on_after_the_receiving_daemon_was_killed(self):
        self.fill()
        for i in range(2500):
            (self.dir / f"small{i}").write_bytes(b"x" * (i % 300))
        self.snapshot("one")
        one = self.tree(self.dir)
        size = self.send("one")
        good = self.stream.read_bytes()
        for part in (3, 2):
            self.stream.write_bytes(good[:size - size // part])
            self.receive(None, 1)
            self.other.kill()
            self.other.mount()
        self.stream.write_bytes(good[:-1])
        for seconds in (0.02, 0.1):
            self.receive_and_kill(seconds)
        self.stream.write_bytes(good)
        self.receive()
        self.assertEqual(self.tree(self.other.dir), one)
        self.change()
        self.snapshot("two")
        size = self.send("two", "one")
        good = self.stream.read_bytes()
        for tenths in range(1, 10):
            self.stream.write_bytes(good[:size * tenths // 10])
            self.receive_and_kill(0.02 * tenths)
            self.receive(None, 1)
            self.other.kill()
            self.other.mount()
        self.resume(self.token())  # told of after each interruption, so it has survived the crash
        self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))

    def test_a_crash_beside_the_last_step(self):
        """All has been received, and the snapshot of it was about to be made, or had just been."""
        mark = "trusted.varve.received"
        self.fill()
        self.snapshot("one")
        self.send("one")
        self.assertIn("no snapshot was received", varve("receive", "--last", self.other.dir, expect=1).stderr)
        self.receive()
        kept = os.getxattr(self.other.dir, mark)
        one = self.tree(self.other.dir)

        def crash(has_snapshot):
            os.setxattr(self.other.dir, mark, b"keeping " + os.getxattr(self.other.dir, mark))
            if not has_snapshot:
                varve("snapshot", "delete", self.other.dir, self.names(self.other.dir)[-1])
            sync_filesystem(self.other.dir)
            self.other.kill()
            self.other.mount()
        for has_snapshot in (False, True):  # the same stream once more
            crash(has_snapshot)
            self.assertEqual(varve("receive", "--last", self.other.dir).stdout, "one\n")
            self.assertIn("was received before", self.receive().stdout)
            self.assertEqual(self.names(self.other.dir), ["one"])
            made = os.getxattr(self.other.dir, mark)
            self.assertEqual(made.split(b"/")[::2], kept.split(b"/")[::2])  # in between stands the serial of what was made
        self.assertEqual(self.tree(self.other.dir), one)
        for number, has_snapshot in enumerate((False, True)):  # or the next step
            crash(has_snapshot)
            before = "two" if number else "one"
            (self.dir / f"more{number}").write_text("more")
            self.snapshot("three" if number else "two")
            self.send("three" if number else "two", before)
            self.receive()
            self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))
        self.assertEqual(sorted(self.names(self.other.dir)), ["one", "three", "two"])
        self.assertEqual(varve("receive", "--last", self.other.dir).stdout, "three\n")
        # Nothing but the mark may have changed, and without a crash no snapshot is made anew.
        os.setxattr(self.other.dir, "user.other", b"1")
        (self.dir / "f").write_text("f")
        self.snapshot("four")
        self.send("four", "three")
        self.assertIn("not what was received any more", self.receive(None, 1).stderr)
        os.removexattr(self.other.dir, "user.other")
        varve("snapshot", "delete", self.other.dir, "three")
        self.assertIn("the snapshot 'three' that was received here last has been deleted, and no step can follow it: send a whole snapshot "
                      "into a new directory", self.receive(None, 1).stderr)
        self.assertIn("'three' that was received here last has been deleted", varve("receive", "--last", self.other.dir, expect=1).stderr)
        self.send("four")
        self.assertIn("'three' that was received here last has been deleted", self.receive(None, 1).stderr)

    def test_the_last_one_is_known_under_any_name(self):
        self.fill()
        self.snapshot("one")
        self.send("one")
        self.receive(None, 0, "--name", "here")
        self.assertEqual(varve("receive", "--last", self.other.dir).stdout, "one\n", "as send --from needs it")
        varve("snapshot", "rename", self.other.dir, "here", "another")
        varve("snapshot", "create", self.other.dir, "here")  # is not it
        (self.dir / "more").write_text("more")
        self.snapshot("two")
        self.send("two", "one")
        (self.other.dir / "d/f2").write_bytes(b"by somebody")
        self.assertIn('--from "another"', self.receive(None, 1).stderr)
        varve("restore", "--delete", self.other.dir, "--from", "another")
        self.receive()
        self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))
        # A mark from before tells the name alone.
        mark = os.getxattr(self.other.dir, "trusted.varve.received").decode()
        os.setxattr(self.other.dir, "trusted.varve.received", mark.split("/")[0].encode())
        self.assertEqual(varve("receive", "--last", self.other.dir).stdout, "two\n")
        (self.dir / "more").write_text("more still")
        self.snapshot("three")
        self.send("three", "two")
        self.assertIn("'auto-x': names that begin with 'auto-'", self.receive(None, 1, "--name", "auto-x").stderr)
        self.receive()
        self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))

    def backup(self, now, expect=0):
        """One night with the script of docs/snapshots.md."""
        text = (ROOT / "docs/snapshots.md").read_text()
        script = re.search(r"^```sh\n(#!/bin/sh\n# \S*varve-backup:.*?)^```$", text, re.M | re.S)[1]
        for told, here in (("from=/mnt to=/backup/mnt ", f"from={self.dir} to={self.other.dir}/copy "), ("$(date +%F-%H%M)", now)):
            self.assertIn(told, script)
            script = script.replace(told, here)
        done = subprocess.run(["sh", "-c", script], env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}, capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, expect, done.stderr)

    def test_the_nightly_script(self):
        self.fill()
        self.backup("1")
        copy = self.other.dir / "copy"
        self.assertEqual(self.tree(copy), self.tree(self.dir))
        self.change()
        self.backup("2")
        self.assertEqual(self.tree(copy), self.tree(self.dir))
        # A night that is interrupted, and one that crashes before its snapshot.
        fill_random(self.dir / "large", 10 * MIB, 3)
        self.snapshot("backup-3")
        self.send("backup-3", "backup-2")
        self.stream.write_bytes(self.stream.read_bytes()[:-5000])
        self.receive(copy, 1)
        (self.dir / "later").write_text("later")
        self.backup("4")
        self.assertEqual(self.tree(copy), self.tree(self.dir))
        os.setxattr(copy, "trusted.varve.received", b"keeping " + os.getxattr(copy, "trusted.varve.received"))
        varve("snapshot", "delete", self.other.dir, "backup-4")
        (self.dir / "later").write_text("still later")
        self.backup("5")
        self.assertEqual(self.tree(copy), self.tree(self.dir))
        self.assertEqual(sorted(self.names(self.other.dir)), [f"backup-{night}" for night in "12345"])
        self.assertEqual(self.names(self.dir), ["backup-5"])
        # The other filesystem is not there, or somebody has changed the copy: nothing is left behind.
        self.other.umount()
        self.backup("6", 1)
        self.other.mount()
        (copy / "later").write_text("by somebody")
        self.backup("7", 1)
        self.assertEqual(self.names(self.dir), ["backup-5"])
        varve("restore", "--delete", copy, "--from", "backup-5")
        self.backup("8")
        self.assertEqual(self.tree(copy), self.tree(self.dir))

    def test_a_copy_that_was_brought_back_is_what_was_received(self):
        self.fill()
        self.snapshot("one")
        self.send("one")
        self.receive()
        (self.dir / "more").write_text("more")
        self.snapshot("two")
        self.send("two", "one")
        changed = self.other.dir / "d/f1"
        mode = stat.S_IMODE(changed.stat().st_mode)
        changed.chmod(0o600)
        said = self.receive(None, 1).stderr
        self.assertIn("metadata /d/f1", said)
        self.assertIn("varve restore --delete", said)
        changed.chmod(mode)  # nothing but its time of change differs
        with open(self.other.dir / "d/f2", "r+b") as file:
            file.write(b"by somebody")
        self.assertIn("modified /d/f2", self.receive(None, 1).stderr)
        varve("restore", "--delete", self.other.dir, "--from", "one")
        self.receive()
        self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))

    def test_one_at_a_time(self):
        self.fill()
        self.snapshot("one")
        self.send("one")
        with subprocess.Popen([BIN / "varve", "receive", self.other.dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
            def has_lock():  # only looked at: a lock that is tried would be in its way
                locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
                return any(lock[1] == "FLOCK" and lock[3:5] == ["WRITE", str(first.pid)] for lock in locks)
            wait_until(has_lock, "it waits for its stream")
            self.assertIn("another varve receive is at work there", self.receive(None, 1).stderr)
            first.communicate(self.stream.read_bytes(), timeout=120)
        self.assertEqual(first.returncode, 0)
        self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))

    def test_what_is_locked_stays_locked(self):
        """A file in an immutable directory changes, and both are locked again."""
        (self.dir / "d").mkdir()
        (self.dir / "d/f").write_text("one")
        reserved = self.dir / "reserved"
        reserved.write_bytes(b"x" * 16384)
        command("fallocate", "-n", "-o", "16384", "-l", "1M", reserved)

        def flag(path, on=None):
            file = os.open(path, os.O_RDONLY)
            word = array.array("L", [0])
            fcntl.ioctl(file, GETFLAGS, word)
            if on is not None:
                fcntl.ioctl(file, SETFLAGS, array.array("L", [0x10 if on else 0]))
            os.close(file)
            return bool(word[0] & 0x10)
        roots = (self.dir, self.other.dir)
        try:
            flag(self.dir / "d/f", True)
            flag(self.dir / "d", True)
            self.snapshot("one")
            self.send("one")
            self.receive()
            flag(self.dir / "d/f", False)
            (self.dir / "d/f").write_text("two")
            flag(self.dir / "d/f", True)
            with open(reserved, "r+b") as file:
                file.write(b"changed")
            self.snapshot("two")
            self.send("two", "one")
            self.receive()
            self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))
            varve("restore", self.dir / "d/f", "--from", "one")
            varve("restore", reserved, "--from", "one")
            self.assertEqual((self.dir / "d/f").read_text(), "one")
            self.assertEqual(reserved.stat().st_blocks, (self.other.dir / "reserved").stat().st_blocks)
            for path in ("d", "d/f"):
                self.assertEqual([flag(root / path) for root in roots], [True, True], path)
        finally:
            for root in roots:
                for path in ("d", "d/f"):
                    if (root / path).exists():
                        flag(root / path, False)

    def test_tokens_that_do_not_fit(self):
        (self.dir / "f").write_text("one")
        self.snapshot("one")
        self.send("one")
        self.stream.write_bytes(self.stream.read_bytes()[:-20])
        self.receive(None, 1)
        token = self.token()
        for bad, why in ((token[:-2], "not all of it"), ("none", "no token"), (token[:-1] + "x", "no token")):
            self.assertIn(why, varve("send", "--resume", bad, self.dir, expect=1).stderr)
        self.assertIn("another filesystem", varve("send", "--resume", token, self.other.dir, expect=1).stderr)
        self.assertIn("either name a snapshot", varve("send", "--resume", token, self.dir, "one", expect=1).stderr)
        varve("snapshot", "delete", self.dir, "one")
        self.assertIn("has been deleted", varve("send", "--resume", token, self.dir, expect=1).stderr)

    def test_what_cannot_be_changed_comes_over(self):
        """Files and directories that are immutable, also the root and files with several names."""
        (self.dir / "d").mkdir()
        for name in ("d/f", "g"):
            (self.dir / name).write_text(name)
        os.link(self.dir / "g", self.dir / "d/h")
        os.link(self.dir / "g", self.dir / "z")

        def set_flag(path, on):
            file = os.open(path, os.O_RDONLY)
            fcntl.ioctl(file, SETFLAGS, array.array("L", [0x10 if on else 0]))
            os.close(file)

        def set_all(on):
            for name in ("", "d", "d/f", "g") if not on else ("g", "d/f", "d", ""):
                set_flag(self.dir / name, on)
        set_all(True)
        try:
            self.snapshot("one")
            self.send("one")
            self.receive()
            self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))
            set_all(False)
            (self.dir / "d/f").write_text("other")
            os.unlink(self.dir / "d/h")
            set_all(True)
            self.snapshot("two")
            self.send("two", "one")
            self.receive()
            self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))
        finally:
            set_all(False)


main()
