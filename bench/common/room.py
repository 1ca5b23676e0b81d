"""How full a filesystem is, by what df says of it."""

import os


def available(top):
    """Bytes."""
    stat = os.statvfs(top)
    return stat.f_bavail * stat.f_frsize


def missing(top, share, total):
    """Bytes until that share of `total` is taken, which was available when it was empty."""
    return int(total * share) - (total - available(top))


def fullness_of(top):
    stat = os.statvfs(top)
    return 1 - stat.f_bavail / stat.f_blocks
