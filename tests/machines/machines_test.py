"""Tests of mounts that only make sense in a guest, which has a kernel of its own. tests/machines/guest.py runs them."""

import hashlib

import semantics_test
from harness import *

EXCHANGE = Path(os.environ.get("VARVE_TEST_DIR", "/var/tmp")) / "exchange"  # what the machine outside puts there, and takes out


class FewNames(semantics_test.Semantics):
    """Without KVM each name takes some milliseconds."""
    many = 2000


class Kernel(MountTest):
    size = "256M"

    def write_and_check(self):
        fill_random(self.dir / "file", 20 * MIB, 7)
        self.image.remount()
        self.assertTrue(same_random(self.dir / "file", 20 * MIB, 7))

    def test_io_uring(self):
        self.assertEqual(self.image.status()["backend"], "io_uring")
        self.write_and_check()

    def test_io_uring_forbidden(self):
        switch = Path("/proc/sys/kernel/io_uring_disabled")
        if not os.environ.get("VARVE_GUEST"):
            self.skipTest("it is a switch of the whole machine")
        if not switch.exists():
            self.skipTest("the kernel has no sysctl io_uring_disabled")
        self.addCleanup(switch.write_text, switch.read_text())
        self.image.umount()
        switch.write_text("2")
        self.image.mount()
        self.assertEqual(self.image.status()["backend"], "threads")
        self.write_and_check()


GOLDEN = {"v1-filled": "cb89fff8ea568ba0", "v1-area-used": "287ee8eac8a83bd9", "v1-area-empty": "44136fa355b3678a", "v1-empty": "44136fa355b3678a"}  # sums of contents()


def contents(top):
    """What is in a tree, so that two machines can compare it: names, kinds, owners, modes, attributes, and sums of contents."""
    found, top = {}, top.resolve(strict=True)
    for path in sorted(Path(place) / name for place, folders, others in os.walk(top) for name in folders + others):
        about = path.lstat()
        name = str(path.relative_to(top))
        found[name] = [stat.S_IFMT(about.st_mode), stat.S_IMODE(about.st_mode), about.st_uid, about.st_gid, about.st_mtime_ns,
                       sorted((key, os.getxattr(path, key, follow_symlinks=False).hex()) for key in os.listxattr(path, follow_symlinks=False))]
        if path.is_symlink():
            found[name].append(os.readlink(path))
        elif path.is_file():
            found[name] += [about.st_size, hashlib.sha256(path.read_bytes()).hexdigest()]
    return json.loads(json.dumps(found))


def fill_tree(top, seed):
    """Files of many sizes, holes, attributes, links, many names in one directory, and bytes above 127 in names."""
    generator = random.Random(seed)
    for number in range(40):
        folder = top / f"folder {number % 7}" / ("unter" if number % 3 else "für")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"file {number}"
        path.write_bytes(generator.randbytes(generator.choice((0, 1, 100, 4095, 4097, 16384, 70_000, 500_000))))
        os.setxattr(path, "user.number", str(number).encode() * generator.randrange(1, 200))
        os.chmod(path, generator.choice((0o600, 0o644, 0o4755)))
    with open(top / "holes", "wb") as file:
        for at in range(0, 20 * MIB, 3 * MIB + 5000):
            os.pwrite(file.fileno(), generator.randbytes(9000), at)
        os.posix_fallocate(file.fileno(), 25 * MIB, MIB)
    many = top / "many"
    many.mkdir()
    for number in range(1500):
        (many / f"n{generator.randrange(1 << 40):x}").touch()
    os.symlink("folder 1/für", top / "symbolic")
    os.link(top / "holes", top / "hard")
    os.mkfifo(top / "pipe")


class Images(unittest.TestCase):
    """An image goes from one machine to the other, with a list of what is in it."""

    def setUp(self):
        self.addCleanup(clean_up_all)

    def test_of_the_other_machine(self):
        given = EXCHANGE / "in"
        if not (given / "image").exists():
            self.skipTest("no image was given")
        look_at(given)

    def test_golden(self):
        """Images of earlier versions hold the same on every machine."""
        given = EXCHANGE / "in"
        if not (given / "v1-filled").exists():
            self.skipTest("no golden images were given")
        for name, wanted in GOLDEN.items():
            image = Image(given / name)
            image.fsck("--data")
            image.mount()
            self.assertEqual(hashlib.sha256(json.dumps(contents(image.dir), sort_keys=True).encode()).hexdigest()[:16], wanted, name)
            (image.dir / "new").write_bytes(b"new" * 10_000)
            image.check_all()

    def test_for_the_other_machine(self):
        made = EXCHANGE / "out"
        made.mkdir(parents=True, exist_ok=True)
        make_image(made)


def make_image(folder):
    """An image with a snapshot, and with a log that has to be replayed; and what is in it."""
    image = Image(folder / "image")
    image.mkfs("256M")
    image.mount()
    fill_tree(image.dir, 1)
    first = contents(image.dir)
    command(BIN / "varve", "snapshot", "create", image.dir, "first")
    (image.dir / "later").mkdir()
    fill_tree(image.dir / "later", 2)
    (image.dir / "hard").unlink()
    os.truncate(image.dir / "holes", 10 * MIB + 77)
    sync_filesystem(image.dir)
    fsync_directory(image.dir)
    (folder / "contents").write_text(json.dumps({"first": first, "now": contents(image.dir)}))
    image.kill()


def look_at(folder):
    """Recovers and compares an image that make_image() has made on another machine, works on it, and has the log replayed once more."""
    wanted = json.loads((folder / "contents").read_text())
    image = Image(folder / "image")
    image.mount()
    compare(contents(image.dir), wanted["now"])
    compare(contents(image.dir / ".varve-snapshots/first"), wanted["first"])
    fill_random(image.dir / "written here", 3 * MIB, 1)
    (image.dir / "many").rename(image.dir / "renamed here")
    fsync_directory(image.dir)
    image.kill()
    image.mount()
    assert same_random(image.dir / "written here", 3 * MIB, 1)
    assert len(os.listdir(image.dir / "renamed here")) == 1500
    image.check_all()


def compare(found, wanted):
    different = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
    assert not different, "; ".join(f"{name}: {found.get(name)} instead of {wanted.get(name)}" for name in different[:5])
