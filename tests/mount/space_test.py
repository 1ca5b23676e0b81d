#!/usr/bin/env python3
"""Full disks: ENOSPC comes when it should, deleting always works, and what is nearly full keeps working."""

import errno

from harness import *


def until_full(directory, prefix, piece, generator):
    """Writes files until ENOSPC; returns bytes written."""
    written = 0
    for i in range(100_000):
        try:
            with open(directory / f"{prefix}{i}", "wb", buffering=0) as file:
                size = generator.randrange(1, 2 * piece)
                data = generator.randbytes(size)
                while data:
                    done = file.write(data)
                    data = data[done:]
                    written += done
                if i % 10 == 0 or piece >= MIB // 2:
                    os.fsync(file.fileno())
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
            return written
    raise AssertionError("never full")


class Space(MountTest):
    size = "256M"

    def test_fill_and_delete_twenty_times(self):
        generator = random.Random(SEED)
        empty = os.statvfs(self.dir).f_bavail * 4096
        self.assertGreater(empty, 180 * MIB)
        keep = self.dir / "keep"
        fill_random(keep, 10 * MIB, 1)
        for turn in range(20):
            piece = {3: 20_000, 10: 5_000_000}.get(turn, 1_000_000)
            written = until_full(self.dir, "f", piece, generator)
            if piece >= 1_000_000:
                self.assertGreater(written, 0.85 * (empty - 10 * MIB), f"turn {turn}: full too early")
            self.assertLess(os.statvfs(self.dir).f_bavail * 4096, 0.1 * empty + 4 * MIB, "full, but df says otherwise")
            self.assertTrue(same_random(keep, 10 * MIB, 1))
            with open(keep, "r+b", buffering=0) as file:  # overwriting needs no new room
                os.pwrite(file.fileno(), os.pread(file.fileno(), 4096, 8192), 8192)
                os.fsync(file.fileno())
            for name in os.listdir(self.dir):
                if name != "keep":
                    os.unlink(self.dir / name)
            wait_until(lambda: os.statvfs(self.dir).f_bavail * 4096 > empty - 14 * MIB,
                       f"turn {turn}: the room comes back")
            if turn % 7 == 6:
                self.image.remount()
        self.assertTrue(same_random(keep, 10 * MIB, 1))

    def test_nothing_but_writing_fails_when_full(self):
        generator = random.Random(SEED)
        (self.dir / "d").mkdir()
        (self.dir / "a").write_text("a")
        until_full(self.dir / "d", "f", MIB, generator)
        until_full(self.dir / "d", "s", 4096, generator)
        os.chmod(self.dir / "a", 0o600)
        os.rename(self.dir / "a", self.dir / "b")
        os.utime(self.dir / "b")
        os.truncate(self.dir / "b", 0)
        os.unlink(self.dir / "b")
        sync_filesystem(self.dir, check=False)  # it tells once more that there was no room
        self.image.remount()
        for name in os.listdir(self.dir / "d"):
            os.unlink(self.dir / "d" / name)
        os.rmdir(self.dir / "d")
        (self.dir / "again").write_text("room")

    def test_fallocated_room_is_kept(self):
        with open(self.dir / "reserved", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 100 * MIB)
        until_full(self.dir, "f", MIB, random.Random(SEED))
        fill = random.Random(3)
        with open(self.dir / "reserved", "r+b", buffering=0) as file:
            for _ in range(100):
                self.assertEqual(file.write(fill.randbytes(MIB)), MIB)
            os.fsync(file.fileno())
        self.assertTrue(same_random(self.dir / "reserved", 100 * MIB, 3))
        with self.assertRaises(OSError) as caught:
            with open(self.dir / "more", "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 500 * MIB)
        self.assertEqual(caught.exception.errno, errno.ENOSPC)


class NearlyFull(MountTest):
    size = "512M"

    def overwrite_at_random(self, path, size, total, chunk):
        """Returns how many bytes reach the device for each that is written."""
        generator = random.Random(SEED)
        block = generator.randbytes(MIB)
        before, done = self.image.status()["traffic"], 0
        with open(path, "r+b", buffering=0) as file:
            while done < total:
                offset = generator.randrange(size // chunk) * chunk
                at = generator.randrange(0, MIB - chunk)
                os.pwrite(file.fileno(), block[at:at + chunk], offset)
                done += chunk
                if done % (16 * MIB) < chunk:
                    os.fsync(file.fileno())
        return (self.image.status()["traffic"]["device_bytes_written"] - before["device_bytes_written"]) / done

    def test_420_mib_on_512_mib_overwritten(self):
        """F2FS and NILFS2 cannot even hold it."""
        size = 420 * MIB
        path = self.dir / "file"
        fill_random(path, size)
        times = float(os.environ.get("VARVE_OVERWRITE_TIMES", "1.5"))
        cost = self.overwrite_at_random(path, size, int(times * size), 4096)
        print(f"{cost:.1f} bytes to the device for each")
        self.assertLess(cost, 12)
        sync_filesystem(self.dir)
        marks = random.Random(9)
        with open(path, "r+b", buffering=0) as file:
            for i in range(200):
                os.pwrite(file.fileno(), bytes([i % 251]) * 4096, marks.randrange(size // 4096) * 4096)
            os.fsync(file.fileno())
        self.image.remount()
        marks = random.Random(9)
        last = {marks.randrange(size // 4096): i for i in range(200)}
        with open(path, "rb") as file:
            for block, i in last.items():
                self.assertEqual(os.pread(file.fileno(), 4096, block * 4096), bytes([i % 251]) * 4096)

    def test_hot_and_cold(self):
        """90 % of the writes to an eighth of the file, at 60 % full."""
        size = 300 * MIB
        path = self.dir / "file"
        fill_random(path, size)
        generator = random.Random(SEED)
        block = generator.randbytes(32 * KIB)
        with open(path, "r+b", buffering=0) as file:
            for i in range(24_000):
                span = size // 8 if generator.random() < 0.9 else size
                os.pwrite(file.fileno(), block, generator.randrange(span // len(block)) * len(block))
                if i % 500 == 0:
                    os.fsync(file.fileno())
        self.assertEqual(path.stat().st_size, size)


if __name__ == "__main__":
    main(1500)
