"""Which machines there are to try: kernels of Debian's, by the names that `tests/machines/run` takes."""

from dataclasses import dataclass

import debian


@dataclass(frozen=True)
class Machine:
    name: str
    architecture: str      # as Debian calls it
    suite: str
    package: str           # stands for the newest kernel of its kind
    why: str               # what it is tried for
    refused: str = ""      # why it cannot be tried at all


MACHINES = (
    Machine("5.10", "amd64", "bullseye", "linux-image-amd64", "the oldest that is promised (Debian 11)"),
    Machine("6.1", "amd64", "bookworm", "linux-image-amd64", "Debian 12"),
    Machine("6.12", "amd64", "trixie", "linux-image-amd64", "Debian 13"),
    Machine("backports", "amd64", "trixie-backports", "linux-image-amd64", "the newest of Debian's"),
    Machine("arm64-6.1", "arm64", "bookworm", "linux-image-arm64", "another processor"),
    Machine("arm64-6.12", "arm64", "trixie", "linux-image-arm64", "another processor"),
    Machine("arm64-6.12-16k", "arm64", "trixie", "linux-image-arm64-16k", "pages of 16 KiB"),
    Machine("arm64-backports-16k", "arm64", "trixie-backports", "linux-image-arm64-16k", "pages of 16 KiB on the newest kernel"),
    Machine("armhf-6.12", "armhf", "trixie", "linux-image-armmp", "32 bits",
            refused="CMake refuses a build of Varve for machines of 32 bits (cmake/word_size.cmake)"),
)


def machine(name):
    for known in MACHINES:
        if known.name == name:
            return known
    raise debian.NotToBeHad(f"no machine is called {name}; there are {', '.join(m.name for m in MACHINES)}")
