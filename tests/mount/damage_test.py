#!/usr/bin/env python3
"""Bad input: whatever the bytes of an image are, the tools answer with a message or EIO; they never crash, hang or show
data that was not written."""

import errno

from harness import *

BLOCK = 4096
CRC_AT, VERSION_AT, COMPAT_AT, RO_COMPAT_AT, INCOMPAT_AT = 8, 12, 16, 24, 32  # of the superblock, see docs/format.md
AREA = 1  # the feature bit of superblocks in an area
FLIPS = int(os.environ.get("VARVE_DAMAGE_FLIPS", "60"))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Damage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """One small filesystem with a bit of everything; each test damages a copy."""
        cls.good = Image()
        cls.good.mkfs("64M")
        cls.good.mount()
        generator = random.Random(4)
        cls.content = {}
        for directory in ("", "d/", "d/e/"):
            if directory:
                (cls.good.dir / directory).mkdir()
            for i in range(40):
                data = generator.randbytes(generator.choice([0, 10, 3000, 5000, 100_000]))
                cls.content[f"{directory}f{i}"] = data
                (cls.good.dir / f"{directory}f{i}").write_bytes(data)
        os.symlink("target", cls.good.dir / "link")
        os.setxattr(cls.good.dir / "f1", "user.x", b"y" * 100)
        cls.good.umount()
        cls.good.fsck("--data")

    @classmethod
    def tearDownClass(cls):
        clean_up_all()

    def setUp(self):
        self.image = Image(folder=new_folder())
        command("cp", "--sparse=always", self.good.path, self.image.path)

    def tearDown(self):
        self.image.clean_up()
        subprocess.run(["rm", "-rf", self.image.folder])

    def patch(self, offset, data):
        with open(self.image.path, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def block(self, number):
        with open(self.image.path, "rb") as file:
            file.seek(number * BLOCK)
            return bytearray(file.read(BLOCK))

    @property
    def last_block(self):
        return self.image.path.stat().st_size // BLOCK - 1

    def places(self, path=None):
        """Where the superblocks stand: the newest two, the later one last."""
        dump = json.loads(command(BIN / "varve", "dump", "superblock", "--json", path or self.image.path).stdout)
        area = dump["first"]["area"]
        return [area["start"] + (area["sequence"] - 1 - back) % area["slots"] * area["slot_blocks"] for back in (1, 0)]

    def all_places(self):
        area = json.loads(command(BIN / "varve", "dump", "superblock", "--json", self.good.path).stdout)["first"]["area"]
        return [0, self.last_block] + [area["start"] + i * area["slot_blocks"] for i in range(area["slots"])]

    def change_superblocks(self, offset, data):
        for number in self.all_places():
            block = self.block(number)
            block[offset:offset + len(data)] = data
            block[CRC_AT:CRC_AT + 4] = bytes(4)
            block[CRC_AT:CRC_AT + 4] = crc32c(block).to_bytes(4, "little")
            self.patch(number * BLOCK, block)

    def refused(self, words, *pattern):
        """It must fail with a message, not by a signal."""
        done = command(*words, check=False)
        self.assertGreater(done.returncode, 0, f"{words}: {done.returncode} {done.stderr}")
        self.assertLess(done.returncode, 64, done.stderr)
        self.assertTrue(done.stderr.strip() or done.stdout.strip(), f"{words}: no message")
        for p in pattern:
            self.assertRegex((done.stderr + done.stdout).lower(), p)

    def tools_refuse(self, *pattern):
        self.refused([BIN / "varve", "mount", self.image.path, self.image.dir], *pattern)
        self.assertFalse(self.image.is_mounted())
        self.assertEqual(processes_of(self.image.path), [])
        self.refused([BIN / "fsck.varve", "-n", "-f", self.image.path], *pattern)

    def read_all(self):
        """Reads everything: right, or EIO, or gone with an error. Returns how many could not be read."""
        lost = 0
        for name, data in self.content.items():
            try:
                self.assertEqual((self.image.dir / name).read_bytes(), data, f"{name}: wrong data")
            except OSError as error:
                self.assertIn(error.errno, (errno.EIO, errno.EUCLEAN), name)
                lost += 1
        return lost

    def survives(self):
        """After damage somewhere: fsck and mount give an answer; what can be read is right."""
        done = command(BIN / "fsck.varve", "-n", "-f", "--data", self.image.path, check=False)
        self.assertIn(done.returncode, (0, 4, 8), done.stderr)
        mounted = self.image.mount(check=False)
        self.assertGreaterEqual(mounted.returncode, 0, "died by a signal")
        if mounted.returncode:
            self.assertTrue(mounted.stderr.strip())
            return done.returncode, None
        lost = self.read_all()
        self.assertEqual(len(processes_of(self.image.path)), 1, "the daemon died")
        self.image.umount(check=False)
        self.image.clean_up()
        return done.returncode, lost

    def test_the_undamaged_copy(self):
        self.assertEqual(self.survives(), (0, 0))

    def test_not_an_image(self):
        self.image.path.write_bytes(random.Random(1).randbytes(8 * MIB))
        self.tools_refuse("(not a|no) varve")

    def test_empty_and_tiny_files(self):
        for size in (0, 1, 4095, 4096, 4097, 100_000):
            self.image.path.write_bytes(b"x" * size)
            self.tools_refuse()

    def test_a_shortened_image(self):
        size = self.image.path.stat().st_size
        for keep in (size - 1, size - BLOCK, size // 2, BLOCK):
            command("cp", "--sparse=always", self.good.path, self.image.path)
            os.truncate(self.image.path, keep)
            self.tools_refuse("small|size|short|truncated")

    def test_a_longer_image_is_fine(self):
        os.truncate(self.image.path, self.image.path.stat().st_size + 10 * MIB)
        self.image.mount()
        self.assertEqual(self.read_all(), 0)
        self.image.umount()

    def test_either_superblock_destroyed(self):
        first, second = self.places()
        for number in (0, self.last_block, first, second):
            for junk in (b"\0", b"\xff"):
                command("cp", "--sparse=always", self.good.path, self.image.path)
                self.patch(number * BLOCK, junk * BLOCK)
                self.image.mount()
                self.assertEqual(self.read_all(), 0)
                (self.image.dir / "new").write_text("x")
                self.image.umount()
                self.image.fsck("--data")  # the next checkpoint has written both

    def test_a_torn_superblock(self):
        block = self.block(0)
        self.patch(0, block[:512] + bytes(range(256)) * 14)
        self.image.mount()
        self.assertEqual(self.read_all(), 0)
        self.image.umount()

    # What a crash in the middle of its write leaves; "damaged" is what no crash can have made.
    def test_a_superblock_torn_by_a_crash(self):
        for copy, newer_first in ((0, True), (0, False), (1, True), (1, False)):
            older = self.block(self.places()[copy])
            self.image.mount()
            self.assertEqual(self.read_all(), 0)
            (self.image.dir / "new").write_text("x")
            self.image.umount()
            number = self.places()[copy]
            newer = self.block(number)
            self.assertNotIn("W111", command(BIN / "fsck.varve", "-n", self.image.path).stdout)
            self.assertNotEqual(older[:512], newer[:512])
            self.assertNotEqual(older[512:], newer[512:])
            self.patch(number * BLOCK, newer[:512] + older[512:] if newer_first else older[:512] + newer[512:])
            found = command(BIN / "fsck.varve", "-n", self.image.path)  # ends with 0
            self.assertIn("W111", found.stdout)

    def test_both_anchors_destroyed(self):
        for number in (0, self.last_block):
            self.patch(number * BLOCK, bytes(BLOCK))
        self.tools_refuse()

    def test_both_superblocks_destroyed(self):
        for number in self.places():
            self.patch(number * BLOCK, bytes(BLOCK))
        self.tools_refuse("superblock")
        command(BIN / "fsck.varve", "-y", self.image.path, check=False)
        self.image.fsck("--data")
        self.image.mount()
        self.assertEqual(self.read_all(), 0)
        self.image.umount()

    def test_the_first_megabyte_erased(self):
        """With it all superblocks of the area go. What the last block says is believed, and each message has the next step."""
        command(BIN / "varve", "label", self.image.path, "precious")
        self.patch(0, bytes(MIB))
        done = command(BIN / "varve", "probe", self.image.path)
        self.assertIn('LABEL="precious"', done.stdout)
        self.assertIn(f"fsck.varve -n {self.image.path}", done.stderr)
        exported = command(BIN / "varve", "probe", "--export", self.image.path)
        self.assertIn("ID_FS_TYPE=varve", exported.stdout)
        for words in (["status"], ["status", "-s"], ["doctor"], ["mount"]):
            place = [self.image.dir] if words == ["mount"] else []
            done = command(BIN / "varve", *words, self.image.path, *place, check=False)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            said = " ".join((done.stdout + done.stderr).split())
            self.assertIn(f"fsck.varve -n {self.image.path}", said)
            if words != ["mount"]:
                self.assertIn("precious", said)
        self.assertFalse(self.image.is_mounted())
        command(BIN / "fsck.varve", "-y", self.image.path, check=False)
        self.image.mount()
        self.assertEqual(self.read_all(), 0)
        self.image.umount()

    def test_what_something_else_has_taken_is_not_varve(self):
        self.patch(0, bytes(MIB))
        self.patch(0, b"\xeb\x58\x90mkfs.fat" + bytes(500) + b"\x55\xaa")
        for words in (["probe"], ["status"]):
            done = command(BIN / "varve", *words, self.image.path, check=False)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertRegex(done.stderr, "(?i)not a varve|no varve")

    def test_a_mount_of_damaged_metadata_names_fsck(self):
        dump = json.loads(command(BIN / "varve", "dump", "superblock", "--json", self.image.path).stdout)
        for tree in ("free_map", "inode_file", "reverse_map"):
            command("cp", "--sparse=always", self.good.path, self.image.path)
            self.patch(dump["first"][tree]["address"] * BLOCK, bytes(BLOCK))
            done = self.image.mount(check=False)
            if done.returncode:
                self.assertIn(f"fsck.varve -n {self.image.path}", done.stderr, tree)
            else:
                self.image.clean_up()
            self.assertTrue(done.returncode or tree != "free_map", "it cannot be mounted without")

    def test_unknown_features(self):
        self.change_superblocks(INCOMPAT_AT, (AREA | 1 << 40).to_bytes(8, "little"))
        self.tools_refuse("feature|newer")
        self.change_superblocks(INCOMPAT_AT, AREA.to_bytes(8, "little"))
        self.change_superblocks(RO_COMPAT_AT, (1 << 40).to_bytes(8, "little"))
        self.image.mount("ro")
        self.assertEqual(self.read_all(), 0)
        self.image.umount()
        if self.image.mount(check=False).returncode == 0:
            with self.assertRaises(OSError) as caught:
                (self.image.dir / "new").write_text("x")
            self.assertEqual(caught.exception.errno, errno.EROFS)
            self.image.umount()
        self.change_superblocks(RO_COMPAT_AT, bytes(8))
        self.change_superblocks(COMPAT_AT, (1 << 40).to_bytes(8, "little"))
        self.image.mount()
        self.assertEqual(self.read_all(), 0)
        self.image.umount()

    def test_a_newer_version(self):
        self.change_superblocks(VERSION_AT, (77).to_bytes(4, "little"))
        self.tools_refuse("version|newer")

    def used_blocks(self):
        with open(self.image.path, "rb") as file:
            number = 0
            while block := file.read(BLOCK):
                if any(block):
                    yield number
                number += 1

    def test_a_flipped_bit_anywhere(self):
        generator = random.Random(SEED)
        used = list(self.used_blocks())
        noticed = 0
        for number in generator.sample(used, min(FLIPS, len(used))):
            bit = generator.randrange(BLOCK * 8)
            block = self.block(number)
            with self.subTest(block=number, bit=bit):
                old = bytes(block)
                block[bit // 8] ^= 1 << bit % 8
                self.patch(number * BLOCK, block)
                status, lost = self.survives()
                noticed += status != 0 or lost != 0
            command("cp", "--sparse=always", self.good.path, self.image.path)
        self.assertGreater(noticed, 0)

    def test_blocks_that_were_lost_or_misdirected(self):
        generator = random.Random(SEED)
        used = list(self.used_blocks())
        for turn in range(20):
            victim, other = generator.sample(used, 2)
            junk = [bytes(BLOCK), generator.randbytes(BLOCK), bytes(self.block(other))][turn % 3]
            with self.subTest(block=victim, junk=("zeros", "noise", f"copy of {other}")[turn % 3]):
                self.patch(victim * BLOCK, junk)
                self.survives()
            command("cp", "--sparse=always", self.good.path, self.image.path)


if __name__ == "__main__":
    main()
