#!/usr/bin/env python3
"""The history of a git repository, one snapshot for each commit that is checked out: sent as a whole and in steps, and compared.

The repository is that of these tests if they are in one with a history, and else a made-up one. VARVE_HISTORY=n takes so many commits."""

from harness import *

COMMITS = int(os.environ.get("VARVE_HISTORY", 12))


def varve(*words, **more):
    return command(BIN / "varve", *words, timeout=600, **more)


def git(*words, **more):
    return command("git", "-c", "safe.directory=*", "-c", "user.name=test", "-c", "user.email=test@localhost", *words, timeout=300, **more).stdout


def files_of(root):
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        about = os.lstat(path)
        content = path.read_bytes() if stat.S_ISREG(about.st_mode) else os.readlink(path) if path.is_symlink() else None
        found[str(path.relative_to(root))] = (about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, about.st_nlink, content)
    return found


class History(MountTest):
    size = "1G"

    def setUp(self):
        if not IS_ROOT:
            self.skipTest("only root can give files to others, as receiving does")
        if not shutil.which("git"):
            self.skipTest("git is not installed")
        super().setUp()
        self.other = Image()
        self.other.mkfs(self.size)
        self.other.mount()

    def tearDown(self):
        if self._outcome_is_good():
            self.other.check_all()
        super().tearDown()

    def repository(self):
        """Its place and some of its commits, oldest first."""
        try:
            commits = git("-C", ROOT, "rev-list", "--first-parent", "--reverse", "HEAD").split()
            if len(commits) > 2:
                step = max(1, len(commits) // COMMITS)
                return ROOT, commits[step - 1::step]
        except AssertionError:
            pass
        return self.made_up()

    def made_up(self):
        place, dice = self.image.folder / "repository", random.Random(SEED)
        git("init", "-q", place)
        commits = []
        for number in range(COMMITS):
            for _ in range(30):
                path = place / f"d{dice.randrange(5)}/e{dice.randrange(3)}/f{dice.randrange(40)}"
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.exists() and dice.randrange(3) == 0:
                    path.unlink()
                else:
                    path.write_bytes(dice.randbytes(dice.randrange(30_000)))
            folder = place / f"d{dice.randrange(5)}"
            if folder.exists() and dice.randrange(3) == 0:
                folder.rename(place / f"renamed{number}")
            git("-C", place, "add", "-A")
            git("-C", place, "commit", "-q", "--allow-empty", "-m", f"commit {number}")
            commits.append(git("-C", place, "rev-parse", "HEAD").strip())
        return place, commits

    def send(self, target, name, base=None):
        """By a pipe, as people do."""
        words = [BIN / "varve", "send", *(["--from", base] if base else []), self.dir, name]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as sending:
            varve("receive", "--name", f"{target.name} {name}", target, stdin=sending.stdout)
            sending.stdout.close()
            self.assertEqual(sending.wait(HANG), 0)

    def test_each_commit_arrives_whole_and_as_a_step(self):
        source, commits = self.repository()
        work = self.dir / "work"
        git("clone", "-q", "--no-local", "--no-checkout", source, work)
        steps = self.other.dir / "steps"
        steps.mkdir()
        former = None
        for number, commit in enumerate(commits):
            git("-C", work, "checkout", "-q", "--force", "--detach", commit)
            git("-C", work, "clean", "-q", "-fdx")
            varve("snapshot", "create", self.dir, f"c{number}")
            wanted = files_of(self.dir)
            self.send(steps, f"c{number}", former)
            self.assertEqual(files_of(steps), wanted, commit)
            if number % 4 == 0 or commit == commits[-1]:
                whole = self.other.dir / "whole"
                whole.mkdir()
                self.send(whole, f"c{number}")
                self.assertEqual(files_of(whole), wanted, commit)
                shutil.rmtree(whole)
            former = f"c{number}"
        # Each step is still there in the snapshots of the receiver; and git finds nothing to complain of.
        self.assertEqual(git("-C", steps / "work", "status", "--porcelain"), "")
        git("-C", steps / "work", "fsck", "--full")
        self.other.remount()
        self.assertEqual(git("-C", self.other.dir / ".varve-snapshots" / f"steps {former}" / "steps/work", "rev-parse", "HEAD").strip(), commits[-1])
        varve("restore", work, "--from", "c0", "--delete")
        self.assertEqual(git("-C", work, "rev-parse", "HEAD").strip(), commits[0])
        self.assertEqual(git("-C", work, "status", "--porcelain"), "")


main()
