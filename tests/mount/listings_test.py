#!/usr/bin/env python3
"""Listings of directories that change meanwhile: places in them, their ends, other readers."""

import ctypes
import struct

from harness import *
from system_calls import *


def make_files(directory, count):
    directory.mkdir()
    for i in range(count):
        os.close(os.open(directory / f"{i:06d}", os.O_CREAT | os.O_WRONLY))


class Listings(MountTest):
    def test_positions_in_a_directory_stay(self):
        top = self.dir / "d"
        top.mkdir()
        for i in range(3000):
            (top / f"{i:04d}").touch()
        stream = DirectoryStream(top)
        places = []
        while True:
            place = stream.place()
            name = stream.next_name()
            if name is None:
                break
            places.append((place, name))
        self.assertEqual(len(places), 3002)
        for place, name in places[::7]:  # change the directory; what stays keeps its place
            if name[0] != "." and int(name) % 2:
                (top / name).unlink()
        for i in range(3000, 3500):
            (top / f"{i:04d}").touch()
        gone = {name for _, name in places if not (top / name).exists()}
        for place, name in reversed(places):
            if name not in gone:
                stream.go_to(place)
                self.assertEqual(stream.next_name(), name)
        stream.close()

    def test_a_listing_ends_whatever_its_reader_does(self):
        def rename(name):
            os.rename(top / name, top / "other")
            os.rename(top / "other", top / name)
        def replace(name):
            (top / "new").touch()
            os.rename(top / "new", top / name)
        def add(name):
            (top / f"{name}.more").touch()
        for action, count in ((rename, 2000), (replace, 2000), (add, 35_000)):  # the last with wide positions
            top = self.dir / action.__name__
            make_files(top, count)
            seen = []
            with os.scandir(top) as listing:
                for entry in listing:
                    seen.append(entry.name)
                    self.assertLessEqual(len(seen), 2 * count, action.__name__)
                    action(entry.name)
            self.assertGreaterEqual(len(set(seen)), count)
        self.assertEqual(len(os.listdir(top)), 70_000)

    def test_a_name_that_is_given_to_another_file_meanwhile_is_listed_once(self):
        """What was written anew and renamed to its name is no reason for `rsync --delete` to delete that."""
        count = 6000  # many more than are fetched ahead
        for flags in (0, RENAME_EXCHANGE, RENAME_WHITEOUT) if IS_ROOT else (0, RENAME_EXCHANGE):
            top, apart = self.dir / f"names{flags}", self.dir / f"others{flags}"
            make_files(top, count)
            apart.mkdir()
            seen = []
            with os.scandir(top) as listing:
                for i, entry in enumerate(listing):
                    seen.append(entry.name)
                    if i >= count // 2:
                        continue
                    name, other = top / f"{count - 1 - i:06d}", apart / str(i)  # the reader has not come there
                    if flags == RENAME_WHITEOUT:
                        renameat2(name, other, flags)
                    else:
                        other.touch()
                        renameat2(other, name, flags)
            self.assertEqual(len(seen), count, f"flags {flags}")
            self.assertEqual(len(set(seen)), count, f"flags {flags}")

    def test_a_listing_that_starts_again_sees_what_is_new(self):
        top = self.dir / "d"
        make_files(top, 2000)
        stream = DirectoryStream(top)
        for count in (2000, 2001):
            names = 0
            while stream.next_name():
                names += 1
            self.assertEqual(names, count + 2)
            (top / f"new{count}").touch()
            stream.rewind()
        stream.close()

    def test_a_listing_goes_on_beside_another_one(self):
        # The kernel may not find the reader's place in a listing that it has kept meanwhile, and then takes the end of a
        # full page of it for the end of the directory.
        def next_names(directory):
            space = ctypes.create_string_buffer(1000)
            used = checked(libc.getdents64(directory, space, ctypes.c_size_t(len(space))))
            names, at = [], 0
            while at < used:
                size = struct.unpack_from("H", space, at + 16)[0]
                names.append(space[at + 19:at + size].split(b"\0")[0])
                at += size
            return names
        a_page = os.sysconf("SC_PAGE_SIZE") // 32  # names of eight bytes, with "." and ".."
        for count in (a_page - 3, a_page - 2, a_page - 1, 2 * a_page - 2, 4 * a_page - 2):
            top = self.dir / str(count)
            top.mkdir()
            for i in range(count):
                (top / f"{i:08}").touch()
            os.listdir(top)
            directory = os.open(top, os.O_RDONLY)
            names = next_names(directory)
            (top / "passing").touch()
            (top / "passing").unlink()
            self.assertEqual(len(os.listdir(top)), count)
            while more := next_names(directory):
                names += more
            os.close(directory)
            self.assertEqual(len(names), count + 2)
            self.assertEqual(len(set(names)), count + 2)


main()
