"""Varve for other processors: Debian's cross compilers with the headers and libraries of a tree of packages. This machine's packages stay as they are."""

import os
import re
import shutil
from dataclasses import dataclass

import debian
from debian import PLACE, ROOT, NotToBeHad, output_of
from guest_root import host_suite


@dataclass(frozen=True)
class Processor:
    name: str       # as Debian calls it
    cmake: str      # as CMake does
    triplet: str    # as compilers do
    why: str        # what it is tried for
    tests: tuple = ()  # programs of tests that are worth it; all without any

    @property
    def compiler(self):
        return f"{self.triplet}-g++"

    @property
    def emulator(self):
        return f"qemu-{self.cmake}-static"


PROCESSORS = (
    Processor("arm64", "aarch64", "aarch64-linux-gnu", "memory in a weaker order, `char` without a sign"),
    Processor("s390x", "s390x", "s390x-linux-gnu", "the other order of bytes", ("format_test", "check_test")),
)
ARM64 = PROCESSORS[0]


def libraries():
    """What packaging/apt-packages wants for a build, but for the tools and for Ceph, which takes hundreds of megabytes."""
    names = []
    for line in (ROOT / "packaging/apt-packages").read_text().splitlines():
        if line.startswith("build:"):
            names += [name for name in line.partition(":")[2].split() if name.endswith("-dev") and name != "librbd-dev"]
    return [*names, "libgtest-dev", "libgmock-dev", "libc6-dev", "linux-libc-dev"]


def sysroot(processor):
    release = debian.Release(host_suite(), processor.name)
    release.update()
    compiler = re.match(r"\d+", output_of(processor.compiler, "-dumpversion"))[0]
    debs = release.download([*libraries(), f"libstdc++-{compiler}-dev"])
    tree, contents = PLACE / processor.name / "sysroot", PLACE / processor.name / "sysroot.list"
    wanted = "\n".join(deb.name for deb in debs)
    if not contents.exists() or contents.read_text() != wanted:
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        debian.unpack(debs, tree)
        contents.write_text(wanted)
    return tree


def build(processor, targets):
    """The folder of the build, in which these are made. ninja knows what there is to do."""
    if not shutil.which(processor.compiler):
        raise NotToBeHad(f"{processor.compiler} is not installed (packaging/apt-install nightly)")
    place, tree = PLACE / processor.name / "build", sysroot(processor)
    # -O1 takes half the time of -O2, and nothing is measured here.
    output_of("cmake", "-G", "Ninja", "-S", ROOT, "-B", place, f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/tests/machines/cross.cmake", f"-DVARVE_SYSROOT={tree}",
              f"-DVARVE_TRIPLET={processor.triplet}", f"-DVARVE_PROCESSOR={processor.cmake}",
              f"-DCMAKE_CROSSCOMPILING_EMULATOR={processor.emulator};-L;{tree}", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
              "-DVARVE_PRECOMPILED=ON", "-DVARVE_TESTS=ON", "-DVARVE_BENCH=OFF", "-DVARVE_RBD=OFF",
              f"-DVARVE_WERROR={'ON' if os.environ.get('CI') else 'OFF'}")
    output_of("cmake", "--build", place, "-j", os.cpu_count(), "--target", *targets)
    return place


def programs(processor):
    """The folder with Varve's programs."""
    return build(processor, ["varve", "mkfs.varve", "fsck.varve"]) / "bin"
