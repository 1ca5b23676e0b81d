"""What tests of send and receive share."""

from snapshot_tools import *

import array

GETFLAGS, SETFLAGS = 0x80086601, 0x40086602


class SendTest(MountTest):
    size = "256M"

    def setUp(self):
        if not IS_ROOT:
            self.skipTest("only root can give files to others, as receiving does")
        super().setUp()
        self.other = Image()
        self.other.mkfs(self.size)
        self.other.mount()
        self.stream = self.image.folder / "stream"
        os.umask(0o022)

    def tearDown(self):
        if self._outcome_is_good():
            self.other.check_all()
        super().tearDown()

    def snapshot(self, name):
        varve("snapshot", "create", self.dir, name)

    def send(self, name, base=None, place=None):
        with open(self.stream, "wb") as out:
            words = [BIN / "varve", "send", *(["--from", base] if base else []), place or self.dir, name]
            done = subprocess.run([str(word) for word in words], stdout=out, stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.stream.stat().st_size

    def receive(self, target=None, expect=0, *words):
        with open(self.stream, "rb") as stream:
            return varve("receive", target or self.other.dir, *words, expect=expect, stdin=stream)

    def names(self, directory):
        return kept_names(directory)

    def tree(self, root):
        """All that a stream promises."""
        found, first = {}, {}
        for path in [root, *sorted(root.rglob("*"))]:
            about = os.lstat(path)
            name = "." if path == root else str(path.relative_to(root))
            xattrs = {key: os.getxattr(path, key, follow_symlinks=False) for key in os.listxattr(path, follow_symlinks=False)
                      if key != "trusted.varve.received"}
            parts = content = flags = size = None
            if stat.S_ISREG(about.st_mode):
                content, size = path.read_bytes(), about.st_size
                with open(path, "rb") as file:
                    parts = []
                    while True:
                        try:
                            begin = os.lseek(file.fileno(), parts[-1][1] if parts else 0, os.SEEK_DATA)
                            parts.append((begin, os.lseek(file.fileno(), begin, os.SEEK_HOLE)))
                        except OSError:
                            break
                    word = array.array("L", [0])
                    fcntl.ioctl(file.fileno(), GETFLAGS, word)
                    flags = word[0]
            target = os.readlink(path) if path.is_symlink() else None
            device = about.st_rdev if stat.S_ISCHR(about.st_mode) or stat.S_ISBLK(about.st_mode) else None
            links = 0 if path.is_dir() else about.st_nlink
            found[name] = (about.st_mode, about.st_uid, about.st_gid, links, size, about.st_mtime_ns, xattrs, content, parts, flags, target,
                           device, first.setdefault(about.st_ino, name), about.st_blocks if content is not None else None)
        return found
