#!/usr/bin/env python3
"""varve clean: by every strategy, on a mount that is in use and on an image that is not, with progress, reports and limits."""

from harness import *

import re
import threading

BLOCK = 4096


def strategies():
    text = command(BIN / "varve", "clean", "--help").stdout
    return re.findall(r"^  (\S+) ", text[text.index("Strategies:"):], re.MULTILINE)


class Clean(MountTest):
    size = "256M"

    def setUp(self):
        super().setUp()
        self.fragment()

    def fragment(self):
        """Files that are written in turns, then half of them removed: holes everywhere, files in pieces."""
        (self.dir / "d").mkdir()
        generator = random.Random(SEED)
        self.content = {}
        files = [open(self.dir / "d" / f"f{i}", "wb", buffering=0) for i in range(8)]
        for turn in range(12):
            for i, file in enumerate(files):
                data = generator.randbytes(16 * KIB)
                file.write(data)
                os.fdatasync(file.fileno())
                self.content[f"f{i}"] = self.content.get(f"f{i}", b"") + data
        for file in files:
            file.close()
        for i in range(40):
            fill_random(self.dir / f"g{i}", 2 * MIB, seed=i, sync=False)
        sync_filesystem(self.dir)  # what is removed before it is sealed leaves no holes
        for i in range(0, 40, 2):
            (self.dir / f"g{i}").unlink()
        sync_filesystem(self.dir)

    def compare(self):
        for name, data in self.content.items():
            self.assertEqual((self.dir / "d" / name).read_bytes(), data, name)

    def clean(self, *words, place=None, expect=0):
        done = command(BIN / "varve", "clean", *words, place or self.dir, check=False, timeout=300)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def report(self, *words, **more):
        return json.loads(self.clean("--json", *words, **more).stdout)

    def history(self, *words):
        return command(BIN / "varve", "history", *words, self.dir).stdout

    def test_history_of_rounds(self):
        self.assertEqual(self.history("--json"), "")
        report = self.report("--strategy", "copying", "--policy", "greedy")
        rounds = [json.loads(line) for line in self.history("--json").splitlines()]
        self.assertEqual([r["round"] for r in rounds], list(range(1, len(rounds) + 1)))
        self.assertEqual(sum(r["written_blocks"] for r in rounds), report["written_blocks"])
        self.assertEqual(sum(r["emptied_segments"] for r in rounds), report["emptied_segments"])
        self.assertTrue(all(r["policy"] == "greedy" and r["strategy"] == "copying" and sum(r["utilisation"]) > 0 for r in rounds))
        lines = self.history().splitlines()
        self.assertEqual(len(lines), 1 + len(rounds))
        self.assertIn("copying greedy/", lines[1])
        command(BIN / "varve", "tune", self.dir, "history=0")
        self.assertEqual(self.history("--json"), "")
        for wrong in ("history=-1", "history=many", "history=999999999"):
            done = command(BIN / "varve", "tune", self.dir, wrong, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("number of rounds up to 65536", done.stdout + done.stderr)

    def test_every_strategy_on_a_mount(self):
        for strategy in strategies():
            with self.subTest(strategy=strategy):
                report = self.report("--strategy", strategy)
                self.assertEqual(report["state"], "finished", report)
                self.assertEqual(report["request"]["strategy"], strategy)
                self.compare()

    def test_every_strategy_on_an_image(self):
        for strategy in strategies():
            self.image.umount()
            with self.subTest(strategy=strategy):
                report = self.report("--strategy", strategy, place=self.image.path)
                self.assertEqual(report["state"], "finished", report)
                command(BIN / "fsck.varve", "-n", "-f", "--data", self.image.path)
            self.image.mount()
            self.compare()

    def test_defragmenting_makes_pieces_fewer(self):
        serial = json.loads(command(BIN / "varve", "checkpoint", "--json", self.dir).stdout)["checkpoint"]
        self.assertGreater(serial, 1)  # a forecast changes nothing and sees what has been merged
        before = self.report("-s", "defragmenting", "--dry-run")["forecast"]["files"]
        self.assertGreater(before["fragments_before"], 60)
        report = self.report("-s", "defragmenting", self.dir / "d" / "f1", self.dir / "d" / "f2")
        self.assertEqual((report["files"]["seen"], report["files"]["moved"]), (2, 2))
        self.assertLess(report["files"]["fragments_after"], 12)
        alone = json.loads(command(BIN / "varve", "clean", "--json", "-s", "defragmenting", self.dir / "d" / "f3").stdout)
        self.assertEqual(alone["files"]["seen"], 1)
        self.assertGreater(alone["files"]["fragments_before"], alone["files"]["fragments_after"])
        done = command(BIN / "varve", "clean", "-s", "copying", self.dir / "d", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("copying does not go by files", done.stderr)
        text = self.clean("-s", "defragmenting").stdout
        self.assertRegex(text, r"Files +\d+ seen, \d+ moved; \d+ pieces, \d+ before")
        self.compare()

    def test_paths_inside_an_image(self):
        self.image.umount()
        report = self.report("-s", "defragmenting", "/d", place=self.image.path)
        self.assertEqual(report["files"]["seen"], 8)
        done = self.clean("-s", "defragmenting", "/nothing", place=self.image.path, expect=1)
        self.assertIn("/nothing", done.stderr)
        self.image.mount()
        self.compare()

    def test_compacting_ends_the_log_earlier(self):
        report = self.report("-s", "compacting")
        self.assertLess(report["now"]["end_segment"], report["before"]["end_segment"])
        self.assertIn("Log ends in", self.clean("-s", "compacting").stdout)
        self.compare()

    def test_enough_is_enough(self):
        for i in range(1, 40, 2):  # half of each goes, so that no checkpoint alone frees anything
            for at in range(0, 2 * MIB, 256 * KIB):
                command("fallocate", "-p", "-o", str(at), "-l", str(128 * KIB), self.dir / f"g{i}")
        sync_filesystem(self.dir)
        command(BIN / "varve", "checkpoint", self.dir)
        report = self.report("--free", "4M")
        self.assertEqual(report["reason"], "all that was asked for is done")
        freed = report["now"]["clean_segments"] - report["before"]["clean_segments"]
        self.assertGreaterEqual(freed * report["segment_blocks"] * BLOCK, 4 * MIB)
        self.assertGreater(report["now"]["garbage_blocks"] * BLOCK, 4 * MIB, "it was told when to stop")

    def test_dry_run(self):
        self.image.remount("cleaner=off")  # or files in pieces are put together meanwhile, on a busy machine
        command(BIN / "varve", "checkpoint", self.dir)
        before = self.image.status()["log"]["serial"]
        for strategy in strategies():
            text = self.clean("-s", strategy, "-n").stdout
            self.assertIn("Nothing was written", text)
        self.assertEqual(self.image.status()["log"]["serial"], before)
        self.image.umount()
        with open(self.image.path, "rb") as file:
            image = file.read()
        self.clean("-n", place=self.image.path)
        with open(self.image.path, "rb") as file:
            self.assertTrue(image == file.read(), "a dry run changed the image")
        self.image.mount()

    def test_nonsense(self):
        for words, says in ((("-s", "magic"), "unknown strategy 'magic'"), (("-p", "fancy"), "policy 'fancy'"),
                            (("--free", "much"), "--free"), (("--free", "0"), "--free"),
                            (("--free", "1M", "--all"), "--all"), (("-s", "copying", self.dir / "d"), "does not go by files")):
            done = self.clean(*words, expect=1)
            self.assertIn(says, done.stderr + done.stdout)
        self.assertIn("not in the filesystem", self.clean("-s", "defragmenting", "/proc/self", expect=1).stderr)
        self.assertIn("not a mounted Varve", self.clean(place="/tmp", expect=1).stderr)
        self.assertIn("no such file", self.clean(place="/nowhere", expect=1).stderr)

    def test_the_image_of_a_mount_is_the_mount(self):
        fill_random(self.dir / "f", MIB, seed=1)
        self.assertIn("Written", self.clean("-s", "compacting", place=self.image.path).stdout)
        self.assertTrue(same_random(self.dir / "f", MIB, seed=1))
        self.image.check_all()

    def test_interrupted(self):
        for i in range(60):
            fill_random(self.dir / f"h{i}", MIB, seed=i, sync=False)
        tool = subprocess.Popen([BIN / "varve", "clean", "-s", "compacting", self.dir], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)
        wait_until_interruptible(tool)
        tool.send_signal(signal.SIGINT)
        out, error = tool.communicate(timeout=HANG)
        self.assertIn(tool.returncode, (0, 130), out + error)  # 0: it was faster
        if tool.returncode:
            self.assertIn("nothing is lost", error)
        self.compare()
        self.assertEqual(self.report()["state"], "finished")

    def test_under_load(self):
        """Files are written, read and removed while it is cleaned by one strategy after the other, and tuned meanwhile."""
        stop = threading.Event()
        problems = []

        def load(number):
            generator = random.Random(number)
            path = self.dir / f"load{number}"
            try:
                while not stop.is_set():
                    data = generator.randbytes(generator.randrange(1, MIB))
                    path.write_bytes(data)
                    if path.read_bytes() != data:
                        problems.append(f"{path} differs")
            except OSError as error:
                problems.append(str(error))

        threads = [threading.Thread(target=load, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        try:
            for strategy in strategies():
                shown = command(BIN / "varve", "tune", "--json", self.dir, f"strategy={strategy}").stdout
                self.assertEqual(json.loads(shown)["strategy"], strategy)
                self.assertEqual(self.image.status()["cleaner"]["strategy"], strategy)
                self.clean("-s", strategy)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(problems, [])
        self.compare()

    def test_killed_while_it_cleans(self):
        for strategy in strategies():
            with subprocess.Popen([BIN / "varve", "clean", "-s", strategy, self.dir], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as tool:
                time.sleep(random.Random(SEED).random() / 5)
                self.image.kill()
                tool.wait(HANG)
            self.image.mount()
            self.compare()

    def test_strategy_of_a_mount(self):
        self.image.umount()
        self.image.mount("strategy=adaptive:power=battery")
        cleaner = self.image.status()["cleaner"]
        self.assertEqual(cleaner["strategy"], "adaptive:power=battery")
        self.assertIn("adaptive", command(BIN / "varve", "status", self.dir).stdout)
        self.image.umount()
        done = self.image.mount("strategy=magic", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("unknown strategy", done.stderr)
        self.image.mount()


main()
