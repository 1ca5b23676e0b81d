"""A mount namespace of a test's own: several tests may run at a time, and none sees, fills or unmounts what another one has mounted.
With the test and its daemons all mounts are gone."""

import ctypes
import os
import subprocess
import tempfile

CLONE_NEWNS = 0x00020000


def enter():
    """Raises OSError where the kernel gives none."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), f"no mount namespace to be had: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rslave", "/"], check=True)
    with open("/proc/self/mounts", errors="replace") as mounts:  # or what others unmount meanwhile would live on here
        for place in [line.split()[1] for line in mounts if line.split()[2] in ("fuse.varve", "fuseblk.varve")]:
            subprocess.run(["umount", "-l", place.encode().decode("unicode_escape")], capture_output=True)


def can_mount():
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(["mount", "-t", "tmpfs", "none", place], capture_output=True)
        if done.returncode:
            return False
        subprocess.run(["umount", place], check=True)
        return True
