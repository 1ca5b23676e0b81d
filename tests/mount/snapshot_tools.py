"""What tests of snapshots share."""

from harness import *


def varve(*words, expect=0, **more):
    done = command(BIN / "varve", *words, check=False, timeout=300, **more)
    if done.returncode != expect:
        raise AssertionError(f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
    return done


def snapshot(*words, expect=0):
    return varve("snapshot", *words, expect=expect)


def listed(place):
    return json.loads(snapshot("list", "--json", place).stdout)


def kept_names(place):
    return [one["name"] for one in listed(place)["snapshots"]]


class SnapshotTest(MountTest):
    size = "256M"

    def names(self, place=None):
        return kept_names(place or self.dir)

    def settle(self):
        wait_until(lambda: not listed(self.dir)["giving_back"], "what deleted snapshots held is given back")

    def tree(self, root=None):
        """Everything that tar and rsync would look at, but access times."""
        found, root = {}, root or self.dir
        for path in sorted(root.rglob("*")):
            about = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            size = None if path.is_dir() else about.st_size
            found[str(path.relative_to(root))] = (about.st_mode, about.st_nlink, size, about.st_mtime_ns, content)
        return found

    def look_at(self, name):
        self.image.mount(f"snapshot={name}")
        try:
            return self.tree()
        finally:
            self.image.umount()

    def fill(self, seed):
        folder = self.dir / f"d{seed}"
        folder.mkdir()
        for i in range(20):
            fill_random(folder / f"f{i}", 100 * KIB + i, seed * 100 + i, sync=False)
        os.link(folder / "f0", folder / "linked")
        os.symlink("f1", folder / "symbolic")
        os.setxattr(folder / "f2", "user.of", str(seed).encode())
