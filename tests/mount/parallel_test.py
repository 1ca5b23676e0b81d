#!/usr/bin/env python3
"""Thirty-two callers on one directory and on one file."""

import threading

from harness import *

CALLERS = 32


class Parallel(MountTest):
    def in_parallel(self, work):
        """Runs work(number) in CALLERS threads; re-raises the first failure."""
        failures = []

        def guarded(number):
            try:
                work(number)
            except BaseException as error:
                failures.append((number, error, traceback.format_exc()))
        threads = [threading.Thread(target=guarded, args=(n,), daemon=True) for n in range(CALLERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)
            self.assertFalse(thread.is_alive(), "a caller hangs")
        if failures:
            self.fail(f"caller {failures[0][0]}: {failures[0][2]}")

    def test_one_directory(self):
        rounds = 60

        def work(number):
            for i in range(rounds):
                path = self.dir / f"{number}.{i}"
                path.write_bytes(f"{number} {i}".encode() * 50)
                os.rename(path, self.dir / f"r{number}.{i}")
                os.link(self.dir / f"r{number}.{i}", self.dir / f"l{number}.{i}")
                os.listdir(self.dir) if i % 20 == 0 else None
                if i % 2:
                    os.unlink(self.dir / f"r{number}.{i}")
        self.in_parallel(work)

        def check():
            names = set(os.listdir(self.dir))
            want = {f"l{n}.{i}" for n in range(CALLERS) for i in range(rounds)}
            want |= {f"r{n}.{i}" for n in range(CALLERS) for i in range(0, rounds, 2)}
            self.assertEqual(names, want)
            for n in range(CALLERS):
                for i in range(rounds):
                    path = self.dir / f"l{n}.{i}"
                    self.assertEqual(path.read_bytes(), f"{n} {i}".encode() * 50)
                    self.assertEqual(path.stat().st_nlink, 1 if i % 2 else 2)
        check()
        self.image.remount()
        check()

    def test_the_same_names(self):
        """All callers create, replace and remove the same few names: each call succeeds or says a permitted reason."""
        def work(number):
            generator = random.Random(SEED + number)
            for i in range(150):
                name, other = (self.dir / f"n{generator.randrange(6)}" for _ in range(2))
                try:
                    match generator.randrange(6):
                        case 0:
                            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                        case 1:
                            os.unlink(name)
                        case 2:
                            os.rename(name, other)
                        case 3:
                            os.link(name, other)
                        case 4:
                            name.write_bytes(bytes([number]) * 5000)
                        case 5:
                            name.read_bytes()
                except (FileNotFoundError, FileExistsError):
                    pass
        self.in_parallel(work)
        for name in os.listdir(self.dir):
            self.assertRegex(name, "^n[0-5]$")
            self.assertGreaterEqual((self.dir / name).stat().st_nlink, 1)

    def test_directories_move_around(self):
        """Renames of directories into each other never make a loop or lose one."""
        for i in range(8):
            (self.dir / f"d{i}").mkdir()

        def anywhere(generator):
            path = self.dir
            while generator.random() < 0.6:
                try:
                    below = [n for n in os.listdir(path)]
                except (FileNotFoundError, NotADirectoryError):
                    break
                if not below:
                    break
                path = path / generator.choice(below)
            return path

        def work(number):
            generator = random.Random(SEED + number)
            for _ in range(60):
                source, target = anywhere(generator), anywhere(generator)
                try:
                    os.rename(source, target / source.name)
                except OSError as error:
                    self.assertIn(error.errno, (2, 16, 17, 20, 22, 39, 18), error)
        self.in_parallel(work)
        found = [d for _, dirs, _ in os.walk(self.dir) for d in dirs]
        self.assertEqual(sorted(found), [f"d{i}" for i in range(8)])

    def test_one_file_each_its_own_part(self):
        path = self.dir / "file"
        path.touch()
        part = 300_000  # not a whole number of blocks: neighbours share one

        def work(number):
            fd = os.open(path, os.O_RDWR)
            data = random.Random(number).randbytes(part)
            order = list(range(0, part, 10_000))
            random.Random(SEED + number).shuffle(order)
            for at in order:
                os.pwrite(fd, data[at:at + 10_000], number * part + at)
                if at % 7 == 0:
                    os.fsync(fd)
                self.assertEqual(os.pread(fd, 10_000, number * part + at), data[at:at + 10_000])
            os.close(fd)
        self.in_parallel(work)
        for _ in range(2):
            with open(path, "rb") as file:
                for number in range(CALLERS):
                    self.assertEqual(file.read(part), random.Random(number).randbytes(part), f"part {number}")
            self.image.remount()

    def test_one_file_appended_by_all(self):
        path = self.dir / "log"

        def work(number):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            for i in range(100):
                os.write(fd, f"{number:03d} {i:04d}\n".encode())
            os.close(fd)
        self.in_parallel(work)
        lines = path.read_text().splitlines()
        self.assertEqual(sorted(lines), sorted(f"{n:03d} {i:04d}" for n in range(CALLERS) for i in range(100)))

    def test_reading_while_truncated_and_written(self):
        path = self.dir / "file"
        path.write_bytes(b"a" * MIB)

        def work(number):
            generator = random.Random(SEED + number)
            fd = os.open(path, os.O_RDWR)
            for _ in range(100):
                if number % 8 == 0:
                    os.ftruncate(fd, generator.randrange(2 * MIB))
                elif number % 8 < 3:
                    os.pwrite(fd, b"a" * generator.randrange(100_000), generator.randrange(MIB))
                else:
                    self.assertFalse(os.pread(fd, 100_000, generator.randrange(MIB)).strip(b"a\0"))
            os.close(fd)
        self.in_parallel(work)


if __name__ == "__main__":
    main()
