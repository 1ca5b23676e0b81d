"""What a guest starts with: a tree of unpacked packages, the modules of its kernel, Varve's programs and its tests, as one initial RAM disk.

Nothing is mounted and nothing is installed. The parts are archives of cpio, which the kernel unpacks one after the other."""

import inspect
import os
import re
import shutil
import subprocess
from pathlib import Path

import debian
import guest
from debian import PLACE, ROOT, NotToBeHad, output_of

# All that tests/mount runs is here, but for the programs of which guests have no time.
TOOLS = ("python3 mount util-linux fuse3 kmod dash bash coreutils diffutils findutils grep sed tar gawk attr acl e2fsprogs procps libc-bin login "
         "base-files gzip strace").split()
MODULES = [*guest.MODULES, "rtc_pl031"]
USELESS = "usr/share/doc usr/share/man usr/share/locale usr/share/info usr/share/i18n usr/share/perl usr/share/zoneinfo usr/share/terminfo".split()
PROGRAMS = {  # and where they are installed
    "varve": ("usr/bin/varve",), "umount.fuse.varve": ("usr/sbin/umount.fuse.varve",),
    "mkfs.varve": ("usr/sbin/mkfs.varve", "usr/sbin/mkfs.fuse.varve"), "fsck.varve": ("usr/sbin/fsck.varve", "usr/sbin/fsck.fuse.varve"),
    "mount.varve": ("usr/sbin/mount.varve", "usr/sbin/mount.fuse.varve"),
}
STRIP = {"amd64": "strip", "arm64": "aarch64-linux-gnu-strip"}


def host_suite():
    """The release of this machine: guests have its libraries, so that programs built here run there."""
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    raise NotToBeHad("/etc/os-release names no release, and only Debian's can be made guests of")


def packages_of_libraries(programs):
    """Those that have the shared libraries of programs. Packages are called the same on each architecture, so this machine's answer serves."""
    names = set()
    for program in programs:
        names.update(re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", program)))
    found = set()
    for name in sorted(names):
        done = subprocess.run(["dpkg-query", "-S", f"*-linux-gnu/{name}"], capture_output=True, text=True)
        owners = {re.split(r"[:,]", line)[0] for line in done.stdout.splitlines()}
        if not owners and not name.startswith("ld-linux"):
            raise NotToBeHad(f"no package of this machine has {name}, which the programs need")
        found |= owners
    return sorted(found)


def archive(folder, out):
    """All of a folder as a part of an initial RAM disk, owned by root."""
    names = subprocess.run(["find", ".", "-print0"], cwd=folder, capture_output=True, check=True).stdout
    with open(out, "wb") as file:
        subprocess.run(["cpio", "--quiet", "-0", "-o", "-H", "newc", "-R", "0:0"], cwd=folder, input=names, stdout=file, check=True)
    return out


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def is_made_of(out, debs):
    """Whether a part need not be made again."""
    note = out.with_suffix(".of")
    return out.exists() and note.exists() and note.read_text() == _ingredients(debs)


def note_made_of(out, debs):
    out.with_suffix(".of").write_text(_ingredients(debs))


def _ingredients(debs):
    recipe = [inspect.getsource(step) for step in (base_part, configure, kernel_part, copy_modules)]
    return "\n".join([*(deb.name for deb in debs), repr((TOOLS, MODULES, USELESS)), *recipe])


def base_part(architecture, programs):
    """Debian's programs and libraries; made again when a package has changed."""
    release = debian.Release(host_suite(), architecture)
    release.update()
    debs = release.download([*TOOLS, *packages_of_libraries(programs)])
    out = PLACE / f"{architecture}-base.cpio"
    if is_made_of(out, debs):
        return out
    tree = fresh(PLACE / f"{architecture}-tree")
    debian.unpack(debs, tree)
    for useless in USELESS:
        shutil.rmtree(tree / useless, ignore_errors=True)
    configure(tree)
    archive(tree, out)
    shutil.rmtree(tree)
    note_made_of(out, debs)
    return out


def configure(tree):
    """What scripts of packages would have made."""
    for name in ("proc", "sys", "dev", "run", "tmp", "var/tmp", "root", "mnt", "etc", "opt"):
        (tree / name).mkdir(parents=True, exist_ok=True)
    if not (tree / "usr/bin/sh").exists():
        (tree / "usr/bin/sh").symlink_to("dash")
    if not (tree / "usr/bin/awk").exists():
        (tree / "usr/bin/awk").symlink_to("gawk")
    (tree / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/tmp:/bin/bash\n")
    (tree / "etc/group").write_text("root:x:0:\ndaemon:x:1:\ndisk:x:6:\nnogroup:x:65534:\n")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost guest\n")
    (tree / "etc/fuse.conf").write_text("user_allow_other\n")
    (tree / "etc/fstab").write_text("")
    (tree / "usr/bin/fusermount3").chmod(0o4755)
    mtab = tree / "etc/mtab"
    mtab.unlink(missing_ok=True)
    mtab.symlink_to("../proc/self/mounts")


def kernel_part(machine):
    """(its name, the file to boot, the part with modules)."""
    release = debian.Release(machine.suite, machine.architecture)
    release.update()
    packages = release.kernel_packages(machine.package)
    if not packages:
        raise NotToBeHad(f"{machine.package} of {machine.suite} names no kernel")
    place = PLACE / machine.name
    debs = release.download(packages, with_dependencies=False)
    part = place / "modules.cpio"
    if is_made_of(part, debs):
        return next((place / "modules/usr/lib/modules").iterdir()).name, place / "kernel", part
    tree = fresh(place / "tree")
    debian.unpack(debs, tree)
    name = next((tree / "usr/lib/modules").iterdir()).name
    kernel = next(path for path in (tree / "boot", tree / "usr/lib/modules" / name) for path in sorted(path.glob("vmlinu[xz]*")))
    shutil.copy(kernel, place / "kernel")
    output_of("depmod", "-b", tree, name)
    few = fresh(place / "modules")
    copy_modules(tree, few, name)
    archive(few, part)
    shutil.rmtree(tree)
    note_made_of(part, debs)
    return name, place / "kernel", part


def copy_modules(tree, few, name):
    folder = f"usr/lib/modules/{name}"
    (few / folder).mkdir(parents=True)
    for about in (tree / folder).glob("modules.*"):
        if about.name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
            shutil.copy(about, few / folder)
    for module in MODULES:  # those that are missing are part of the kernel, or not of this one
        done = subprocess.run(["modprobe", "-d", tree, "-S", name, "--show-depends", module], capture_output=True, text=True)
        for path in re.findall(r"^insmod (\S+)", done.stdout, re.MULTILINE):
            inside = path[path.index(f"modules/{name}/"):]
            (few / "usr/lib" / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, few / "usr/lib" / inside)
    (few / "lib").symlink_to("usr/lib")  # depmod looks there
    output_of("depmod", "-b", few, name)
    (few / "lib").unlink()


def varve_part(machine, programs, place):
    """Varve's programs, stripped, the tests of mounts, and the program that runs them as the first process."""
    tree = fresh(place / "varve")
    bin = tree / "srv/varve/bin"  # the tests want them in one folder
    bin.mkdir(parents=True)
    for name, links in PROGRAMS.items():
        shutil.copy(programs / name, bin)
        if (programs / name).read_bytes()[:4] == b"\x7fELF":
            output_of(STRIP[machine.architecture], bin / name)
        for link in links:
            (tree / link).parent.mkdir(parents=True, exist_ok=True)
            (tree / link).symlink_to(f"/srv/varve/bin/{name}")
    for folder in ("tests/mount", "tests/machines"):
        shutil.copytree(ROOT / folder, tree / "srv/varve" / folder, ignore=shutil.ignore_patterns("__pycache__", "*.cc", "results"))
    shutil.copytree(ROOT / "packaging", tree / "srv/varve/packaging")
    (tree / "init").write_text("#!/bin/sh\nexport PATH=/usr/sbin:/usr/bin LANG=C.UTF-8\nexec python3 -B /srv/varve/tests/machines/guest.py\n")
    (tree / "init").chmod(0o755)
    return archive(tree, place / "varve.cpio")


def initial_ram_disk(parts, out):
    with open(out, "wb") as file:
        for part in parts:
            shutil.copyfileobj(open(part, "rb"), file)
            file.write(bytes(-file.tell() % 512))
    return out


def scratch_disk(out, size, folder=None):
    """A disk with ext4 that takes no room until it is written to; with what a folder has."""
    out.unlink(missing_ok=True)
    with open(out, "wb") as file:
        os.truncate(file.fileno(), size)
    output_of("mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1,nodiscard", *(["-d", folder] if folder else []), out)
    return out
