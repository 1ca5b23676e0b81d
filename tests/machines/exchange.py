"""Images that go from this machine to a guest and back: what one has written, the other one reads, recovers and checks."""

import os
import shutil
import subprocess
import sys

from debian import ROOT, output_of
from guest import FAILED, NOT_POSSIBLE, PASSED

NAME = "that is recovered on an x86-64 machine"
# Each runs in a process of its own, with a namespace of mounts of its own.
MAKE = "import atexit, machines_test; atexit.register(machines_test.clean_up_all); machines_test.make_image(machines_test.Path(sys.argv[1]))"
LOOK = "import atexit, machines_test; atexit.register(machines_test.clean_up_all); machines_test.look_at(machines_test.Path(sys.argv[1]))"


class Outside:
    """What this machine gives to a guest, and how it looks at what it gets. `programs` are Varve's for this machine."""

    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "guest/exchange/in").mkdir(parents=True)

    def _run(self, what, place):
        before = f"import sys; sys.path[0:0] = ['{ROOT}/tests/machines', '{ROOT}/tests/mount']; import own_mounts; own_mounts.enter(); "
        return subprocess.run([sys.executable, "-B", "-c", before + what, place], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={**os.environ, "VARVE_BIN": str(self.programs)})

    def folder_for_guest(self):
        """With an image, where this machine can make one."""
        given = self.folder / "guest/exchange/in"
        if not (given / "contents").exists() and os.geteuid() == 0:
            made = self._run(MAKE, given)
            if made.returncode:
                raise RuntimeError(f"no image for the guest: {made.stderr[-1500:]}")
        if shutil.which("zstd"):
            for image in (ROOT / "tests/images").glob("*.zst"):
                output_of("zstd", "-q", "-d", "-f", "--sparse", image, "-o", given / image.stem)
        return self.folder / "guest"

    def checks(self, disk):
        """The check of what the guest has left on its disk, if it left anything."""
        got = self.folder / "got"
        got.mkdir()
        for name in ("image", "contents"):
            subprocess.run(["debugfs", "-R", f"dump /exchange/out/{name} {got}/{name}", disk], capture_output=True)
        if not (got / "contents").exists() or not (got / "contents").stat().st_size:
            return []
        if os.geteuid():
            return [{"check": NAME, "result": NOT_POSSIBLE, "reason": "only root mounts it here", "seconds": 0}]
        done = self._run(LOOK, got)
        return [{"check": NAME, "result": FAILED if done.returncode else PASSED, "reason": done.stderr[-1500:] if done.returncode else "", "seconds": 0}]
