#!/usr/bin/env python3
"""varve image: the metadata of a filesystem for a bug report, without data of files and, if that is asked for, without names."""

from snapshot_tools import *


class MetadataImage(SnapshotTest):
    size = "256M"
    secret = b"what is nobody else's business "

    def fill_all(self):
        self.fill(1)
        (self.dir / "confidential.txt").write_bytes(self.secret * 20000)
        os.symlink("confidential.txt", self.dir / "link")
        os.setxattr(self.dir / "confidential.txt", "user.note", self.secret)
        for i in range(2000):
            (self.dir / f"confidential{i}").touch()
        snapshot("create", self.dir, "confidential state")
        shutil.rmtree(self.dir / "d1")
        self.fill(2)

    def make(self, source, *options):
        self.count = getattr(self, "count", 0) + 1
        made = self.image.folder / f"bug{self.count}.img"
        self.said = varve("image", *options, source, made).stdout
        self.assertEqual(made.stat().st_size, 256 * MIB)
        self.assertLess(made.stat().st_blocks * 512, 16 * MIB, "it is mostly holes")
        self.assertEqual(made.stat().st_mode & 0o77, 0, "names are in it: nobody else reads it")
        return made

    def facts(self, path):
        done = command(BIN / "fsck.varve", "-n", "-f", "--data", "--json", path, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def look_into(self, made, has_names):
        self.assertIn("data of files is not there, and is not verified", command(BIN / "fsck.varve", "-n", "-f", "--data", made).stdout)
        facts = self.facts(made)
        self.assertFalse(facts["data_verified"])
        for words in (("dump", "superblock", made), ("dump", "inode", made, "1"), ("map", "--by", "age", made)):
            varve(*words)
        listing = varve("dump", "directory", made, "1").stdout
        self.assertEqual("confidential.txt" in listing, has_names)
        content = made.read_bytes()
        self.assertNotIn(self.secret[:12] * 2, content)
        self.assertEqual(b"confidential" in content, has_names)
        self.assertEqual(self.secret in content, has_names, "as a value of an extended attribute")
        said = varve("mount", made, self.image.folder / "other", expect=1).stderr
        self.assertIn("an image of metadata", said)
        return facts

    def test_of_a_mounted_filesystem(self):
        (self.image.folder / "other").mkdir()
        self.fill_all()
        plain = self.make(self.dir)
        self.assertIn("no data of files", self.said)
        other = self.make(self.dir, "--hash-names")
        self.image.umount()
        whole = self.facts(self.image.path)
        for made, has_names in ((plain, True), (other, False)):
            facts = self.look_into(made, has_names)
            for count in ("inodes", "entries", "extents", "data_blocks"):
                self.assertEqual(facts["statistics"][count], whole["statistics"][count], count)

    def test_of_one_that_was_not_unmounted(self):
        (self.image.folder / "other").mkdir()
        self.fill_all()
        varve("checkpoint", self.dir)
        for i in range(50):
            (self.dir / f"confidential late {i}").write_bytes(self.secret * 10)
        fsync_directory(self.dir)
        self.image.kill()
        self.image.umount()
        plain = self.make(self.image.path)
        self.assertIn("The log is in it", self.said)
        self.assertIn("chunk", varve("dump", "chain", plain).stdout)
        other = self.make(self.image.path, "--hash-names")
        self.assertIn("The log has been replayed before", self.said)
        self.image.mount()
        self.image.umount()
        whole = self.facts(self.image.path)
        for made, has_names in ((plain, True), (other, False)):
            facts = self.look_into(made, has_names)
            self.assertEqual(facts["statistics"]["inodes"], whole["statistics"]["inodes"])

    def test_beside_writers(self):
        (self.image.folder / "other").mkdir()
        self.fill_all()
        writer = subprocess.Popen(["sh", "-c", f"while :; do for i in 1 2 3 4 5 6 7 8; do echo $i >{self.dir}/w$i; done; sync -f {self.dir}; done"],
                                  start_new_session=True)
        try:
            made = self.make(self.dir)
        finally:
            end_session(writer)
        self.look_into(made, True)


if __name__ == "__main__":
    main()
