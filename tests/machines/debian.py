"""Debian's packages of any release and architecture, by this machine's own apt, and without touching what is installed.

apt keeps a state of its own for each release and architecture below build/machines/apt. How it reaches the mirror is this machine's business."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build/machines"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


_updated = set()


class NotToBeHad(Exception):
    """A release, a package or a program that is missing here; the text says which."""


def output_of(*words, **options):
    """What a command prints. It fails with its last lines."""
    done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words[:3]))} ... ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def mirrors():
    """(that of releases, that of security updates or None) as this machine's apt has them."""
    known = output_of("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian").splitlines()
    releases = [uri for uri in known if "security" not in uri]
    if not releases:
        raise NotToBeHad("apt knows no Debian mirror here (apt-get update first?)")
    return releases[0], next((uri for uri in known if "security" in uri), None)


class Release:
    """A release of Debian for one architecture."""

    def __init__(self, suite, architecture):
        self.suite, self.architecture = suite, architecture
        self.state = PLACE / "apt" / f"{suite}-{architecture}"
        self.archives = PLACE / "archives"
        for folder in (self.state / "lists/partial", self.state / "none/partial", self.archives / "partial"):
            folder.mkdir(parents=True, exist_ok=True)
        (self.state / "status").touch()
        self._write_sources()
        self.options = [f"-oDir::Etc::sourcelist={self.state}/sources.list", "-oDir::Etc::sourceparts=/dev/null", f"-oDir::State={self.state}",
                        f"-oDir::State::status={self.state}/status", f"-oDir::Cache={self.state}", f"-oDir::Cache::archives={self.archives}",
                        f"-oAPT::Architecture={architecture}", f"-oAPT::Architectures={architecture}", "-oAPT::Install-Recommends=false",
                        "-oAPT::Sandbox::User=root", "-oAcquire::Languages=none"]

    def _write_sources(self):
        main, security = mirrors()
        stable = self.suite.split("-")[0]
        lines = [f"deb [signed-by={KEYS}] {main} {suite} main" for suite in dict.fromkeys((stable, self.suite))]
        if security and stable == self.suite:
            lines.append(f"deb [signed-by={KEYS}] {security} {stable}-security main")
        (self.state / "sources.list").write_text("\n".join(lines) + "\n")

    def update(self):
        """Fetches the lists of packages, once in a run."""
        if self.state in _updated:
            return
        _updated.add(self.state)
        try:
            output_of("apt-get", *self.options, "-qq", "-oAPT::Update::Error-Mode=any", "update")
        except RuntimeError as error:
            raise NotToBeHad(f"apt cannot fetch the lists of {self.suite} for {self.architecture}: {str(error).splitlines()[-1]}") from None

    def dependencies(self, package):
        """Names that the newest version of a package depends on, without alternatives."""
        words = ["apt-cache", *self.options, "-t", self.suite, "show", "--no-all-versions", package]
        try:
            text = output_of(*words)
        except RuntimeError:
            raise NotToBeHad(f"{self.suite} has no {package} for {self.architecture}") from None
        found = re.search(r"^Depends: (.*)$", text, re.MULTILINE)
        return [re.match(r"\s*([^\s(|:]+)", part)[1] for part in found[1].split(",")] if found else []

    def kernel_packages(self, package):
        """The packages with files of the kernel that a meta package like linux-image-amd64 stands for: one in Debian 13, three in later ones."""
        found = [name for name in self.dependencies(package) if re.match(r"linux-(image|binary|modules)-\d", name)]
        for name in list(found):
            found += [below for below in self.kernel_packages(name) if below not in found]
        return found

    def download(self, packages, with_dependencies=True):
        """Their .deb files, fetched if they are not there yet."""
        if not with_dependencies:
            uris = output_of("apt-get", *self.options, "-t", self.suite, "--print-uris", "download", *packages)
        else:
            install = ["apt-get", *self.options, "-t", self.suite, "-y", "-qq", "install"]
            uris = output_of(*install, f"-oDir::Cache::archives={self.state}/none", "--print-uris", *packages)
        names = re.findall(r"^'[^']*' (\S+\.deb) ", uris, re.MULTILINE)
        missing = [name for name in names if not (self.archives / name).exists()]
        if missing and with_dependencies:
            output_of(*install, "--download-only", *packages)
        elif missing:
            output_of("apt-get", *self.options, "-t", self.suite, "-qq", "download", *packages, cwd=self.archives)
        return [self.archives / name for name in names]


def unpack(debs, folder):
    """Unpacks packages without configuring them. /bin, /lib and /sbin are links into /usr, as Debian has them."""
    for name in ("bin", "lib", "lib64", "sbin"):
        (folder / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"usr/{name}")
    for deb in debs:
        files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-p", "--keep-directory-symlink", "-C", folder], stdin=files.stdout, check=True)
        files.stdout.close()
        if files.wait():
            raise RuntimeError(f"{deb} cannot be unpacked")
