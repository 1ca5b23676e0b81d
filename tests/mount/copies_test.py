#!/usr/bin/env python3
"""varve receive, what is easily lost on the way: capabilities, and changes of a copy that come from outside of its directory."""

from send_tools import *

CAPABILITY = "security.capability"
CAPABLE = bytes.fromhex("0100000200040000000000000000000000000000")
SYNC, NODUMP = 0x08, 0x40
FINISH = 8  # the kind of a frame (docs/format.md)


def crc32c(data, crc):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def with_other_frames(stream, change):
    """The same with sound checksums, and with what `change(kind, body)` makes of each body."""
    made, at, crc = stream[:8], 8, 0
    while at < len(stream):
        length, kind = struct.unpack_from("<IB", stream, at)
        body = change(kind, stream[at + 5:at + 5 + length])
        frame = struct.pack("<IB", len(body), kind) + body
        crc = crc32c(frame, crc)
        made += frame + struct.pack("<I", crc)
        at += 9 + length
    return made


class Copies(SendTest):
    def capabilities(self, root):
        return {path.name: CAPABILITY in os.listxattr(path) for path in root.iterdir()}

    def test_capabilities_that_were_given_again(self):
        """Writing takes them from a file, and the same ones come back: for a step only the content has changed."""
        changes = {"written": lambda path: command("dd", "if=/dev/zero", f"of={path}", "count=1", "conv=notrunc"),
                   "cut": lambda path: os.truncate(path, 10), "holed": lambda path: command("fallocate", "-p", "-o", 4096, "-l", 4096, path),
                   "given": lambda path: os.chown(path, 5, -1), "shared": lambda path: os.chown(path, -1, 5)}
        for name in changes:
            fill_random(self.dir / name, 20 * KIB, 1, sync=False)
            os.setxattr(self.dir / name, CAPABILITY, CAPABLE)
        self.snapshot("one")
        self.send("one")
        self.receive()
        for name, change in changes.items():
            change(self.dir / name)
            self.assertNotIn(CAPABILITY, os.listxattr(self.dir / name), name)
            os.setxattr(self.dir / name, CAPABILITY, CAPABLE)
        self.snapshot("two")
        self.send("two", "one")
        self.receive()
        self.assertEqual(self.capabilities(self.other.dir), dict.fromkeys(changes, True))
        self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))

    def step(self):
        """To what there is now, from a first snapshot that was received below copies/."""
        (self.dir / "f").write_text("one")
        os.link(self.dir / "f", self.dir / "other name")
        (self.dir / "d").mkdir()
        (self.dir / "d/g").write_text("one")
        self.snapshot("one")
        self.send("one")
        copy = self.other.dir / "copies/mnt"
        copy.mkdir(parents=True)
        self.receive(copy)
        (self.dir / "more").write_text("more")
        self.snapshot("two")
        self.send("two", "one")
        return copy

    def test_a_copy_that_was_changed_by_another_name(self):
        copy, day = self.step(), self.other.dir / "copies/day1"
        shutil.copytree(copy, day, copy_function=os.link)  # cp -al
        (day / "d/g").chmod(0o600)
        self.assertIn("any more: metadata /copies/mnt/d/g\n", self.receive(copy, 1).stderr)
        varve("restore", "--delete", copy, "--from", "one")
        with open(day / "d/g", "r+b") as file:
            file.write(b"two")
        self.assertIn("any more: modified /copies/mnt/d/g\n", self.receive(copy, 1).stderr)
        varve("restore", "--delete", copy, "--from", "one")
        (day / "beside").write_text("is no business of it")
        os.link(day / "beside", day / "beside, too")
        self.receive(copy)
        self.assertEqual({path.name for path in copy.iterdir()}, {"f", "other name", "d", "more"})
        # A name that the base has, too: nothing tells which one it was written by.
        (self.dir / "more").write_text("still more")
        self.snapshot("three")
        self.send("three", "two")
        with open(day / "d/g", "r+b") as file:
            file.write(b"new")
        self.assertIn("any more: modified /copies/mnt/d/g\n", self.receive(copy, 1).stderr)

    def test_a_copy_whose_folder_has_another_name(self):
        self.step()
        os.rename(self.other.dir / "copies", self.other.dir / "kept")
        copy = self.other.dir / "kept/mnt"
        (self.other.dir / "copies/mnt").mkdir(parents=True)
        (self.other.dir / "copies/mnt/f").write_text("is no business of it")
        os.rename(copy / "d/g", self.other.dir / "g")
        self.assertIn("any more: renamed", self.receive(copy, 1).stderr)
        os.rename(self.other.dir / "g", copy / "d/g")
        (copy / "d/g").unlink()
        self.assertIn("any more: removed /copies/mnt/d/g\n", self.receive(copy, 1).stderr)

    def mark(self, copy):
        return os.getxattr(copy, "trusted.varve.received").decode()

    def test_a_copy_that_is_brought_back_knows_its_snapshot(self):
        """In the snapshot its mark says that the snapshot is about to be made."""
        copy = self.step()
        made = self.mark(copy)
        varve("snapshot", "rename", self.other.dir, "one", "renamed")
        for mark in (made, "keeping what was not made"):
            os.setxattr(copy, "trusted.varve.received", mark.encode())
            varve("restore", "--delete", copy, "--from", "renamed")
            self.assertEqual(self.mark(copy), made)
            self.assertEqual(varve("restore", "-n", "--delete", copy, "--from", "renamed").stdout, "0 changes to make\n")
        (copy / "d/g").write_text("by somebody")
        self.assertIn("any more: modified /copies/mnt/d/g\n", self.receive(copy, 1).stderr)
        self.assertEqual(self.names(self.other.dir), ["renamed"])
        # What was interrupted is given up.
        varve("restore", "--delete", copy, "--from", "renamed")
        whole = self.stream.read_bytes()
        self.stream.write_bytes(whole[:-20])
        self.receive(copy, 1)
        self.assertTrue(self.mark(copy).startswith("receiving "))
        varve("restore", "--delete", copy, "--from", "renamed")
        self.assertIn("no receive was interrupted", varve("receive", "--resume-token", copy, expect=1).stderr)
        self.stream.write_bytes(whole)
        self.receive(copy)
        self.assertEqual((copy / "more").read_text(), "more")
        shutil.rmtree(copy)
        varve("restore", self.other.dir, "--from", "renamed")
        self.assertEqual(self.mark(copy), made)

    def test_a_flag_that_is_refused_by_now(self):
        """Older Varves kept the flag for synchronous writes, so a stream or a snapshot may have it."""
        (self.dir / "f").write_text("one")
        with open(self.dir / "f") as file:
            fcntl.ioctl(file, SETFLAGS, array.array("L", [NODUMP]))
        self.snapshot("one")
        self.send("one")

        def change(kind, body):
            owner = b"\x02/f" + bytes([0xA4, 0x83, 2, 0, 0])  # 0100644, and root
            return body.replace(owner + bytes([NODUMP]), owner + bytes([SYNC | NODUMP])) if kind == FINISH else body
        good = self.stream.read_bytes()
        old = with_other_frames(good, change)
        self.assertNotEqual(old, good)
        self.stream.write_bytes(old)
        self.receive()
        with open(self.other.dir / "f") as file:
            word = array.array("L", [0])
            fcntl.ioctl(file, GETFLAGS, word)
        self.assertEqual(word[0], NODUMP)


main()
