"""The files of FSFB."""

import random

KIB = 1 << 10


class Tree:
    """FSFB's files. With the same seed the same operations are done, wherever that is."""
    share = 0.05  # of the bytes goes with each round

    def __init__(self, top, options):
        self.top, self.random, self.count = top, random.Random(options.seed), options.folders
        self.data = self.random.randbytes(150 * KIB)
        self.folders, self.files, self.held = [""], [], 0  # files: (name, length)

    def folder(self, name):
        parent = self.random.choice(self.folders)
        name = f"{parent}/{name}" if parent else name
        (self.top / name).mkdir()
        self.folders.append(name)
        return name

    def write(self, top, name, length):
        with open(top / name, "wb") as file:
            file.write(self.data[:length])

    def file(self, folder, number):
        length = self.random.randint(1 * KIB, 150 * KIB)
        name = f"{folder}/f{number}" if folder else f"f{number}"
        self.write(self.top, name, length)
        self.files.append((name, length))
        self.held += length

    def remove(self):
        place = self.random.randrange(len(self.files))
        self.files[place], self.files[-1] = self.files[-1], self.files[place]
        name, length = self.files.pop()
        (self.top / name).unlink()
        self.held -= length

    def begin(self, goals):
        """Until so many bytes are held, one goal after the other."""
        for number in range(self.count):
            self.folder(f"d{number}")
        number = 0
        for goal in goals:
            while self.held < goal:
                self.file(self.random.choice(self.folders), number)
                number += 1

    def shrink(self):
        """A twentieth of the bytes goes. Returns how many were held before."""
        before = self.held
        while self.held > before * (1 - self.share):
            self.remove()
        return before

    def grow(self, number, goal):
        """As much comes in one new folder."""
        folder, count = self.folder(f"r{number}"), 0
        while self.held < goal:
            self.file(folder, count)
            count += 1

    def copy(self, top):
        """What there is, in the order of its names."""
        for name in sorted(self.folders[1:]):
            (top / name).mkdir(parents=True, exist_ok=True)
        for name, length in sorted(self.files):
            self.write(top, name, length)
