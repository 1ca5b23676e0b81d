"""Varve's programs for arm64: Debian's cross compiler with the headers and libraries of a tree of arm64 packages. This machine's packages stay as they are."""

import os
import re
import shutil

import debian
from debian import PLACE, ROOT, NotToBeHad, output_of
from guest_root import host_suite

COMPILER = "aarch64-linux-gnu-g++"


def libraries():
    """What packaging/apt-packages wants for a build, but for the tools and for Ceph, which takes hundreds of megabytes."""
    names = []
    for line in (ROOT / "packaging/apt-packages").read_text().splitlines():
        if line.startswith("build:"):
            names += [name for name in line.partition(":")[2].split() if name.endswith("-dev") and name != "librbd-dev"]
    return [*names, "libc6-dev", "linux-libc-dev"]


def sysroot():
    release = debian.Release(host_suite(), "arm64")
    release.update()
    compiler = re.match(r"\d+", output_of(COMPILER, "-dumpversion"))[0]
    debs = release.download([*libraries(), f"libstdc++-{compiler}-dev"])
    tree, contents = PLACE / "arm64/sysroot", PLACE / "arm64/sysroot.list"
    wanted = "\n".join(deb.name for deb in debs)
    if not contents.exists() or contents.read_text() != wanted:
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        debian.unpack(debs, tree)
        contents.write_text(wanted)
    return tree


def programs():
    """The folder with them. ninja knows what there is to do."""
    if not shutil.which(COMPILER):
        raise NotToBeHad(f"{COMPILER} is not installed (packaging/apt-install nightly)")
    build = PLACE / "arm64/build"  # -O1 takes half the time of -O2, and nothing is measured in guests
    output_of("cmake", "-G", "Ninja", "-S", ROOT, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/tests/machines/arm64.cmake", f"-DVARVE_SYSROOT={sysroot()}",
              "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1", "-DVARVE_TESTS=OFF", "-DVARVE_BENCH=OFF", "-DVARVE_RBD=OFF",
              f"-DVARVE_WERROR={'ON' if os.environ.get('CI') else 'OFF'}")
    output_of("cmake", "--build", build, "-j", os.cpu_count(), "--target", "varve", "mkfs.varve", "fsck.varve")
    return build / "bin"
