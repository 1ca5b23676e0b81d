"""Overwrites in lots: 16 blocks here and there, then an fdatasync, as programs do that want to keep what they write."""

import os
import random

import workloads
from stage import Missing
from workloads import BLOCK, MIB

LOT = 16


def overwrites(run, share, text, next_block):
    """What was free at first is used up in the first third."""
    size = int(run.size * share) // MIB * MIB
    room = os.statvfs(run.top)
    if size > room.f_bavail * room.f_frsize:
        raise Missing(f"{share:.0%} of the device are more than this filesystem has room for")
    fd = run.filled("file", size)
    yield None
    total = run.count(1.2 * run.size / BLOCK / LOT)
    data = random.Random(run.seed).randbytes(BLOCK)
    for when, most in (("early", total // 3), ("late", total - total // 3)):
        done = 0
        for _ in run.some(most):
            for _ in range(LOT):
                run.timed(os.pwrite, fd, data, next_block() * BLOCK)
            run.timed(os.fdatasync, fd)
            done += LOT
        yield f"{text}, {when}", done
    os.close(fd)
    run.fs.remount()
    yield None
    part = min(size, 64 * MIB)
    workloads.read_all(run, "file", part)
    yield f"cold read after {text}", part // BLOCK


def zipf(share):
    def work(run):
        chosen = workloads.Zipf(int(run.size * share) // MIB * MIB // BLOCK, run.seed)
        yield from overwrites(run, share, f"Zipf, {share:.0%} full", chosen.next)
    return work


def uniform(share):
    def work(run):
        chosen, blocks = random.Random(run.seed), int(run.size * share) // MIB * MIB // BLOCK
        yield from overwrites(run, share, f"uniform, {share:.0%} full", lambda: chosen.randrange(blocks))
    return work


WORKLOADS = {**workloads.WORKLOADS, "zipf70": zipf(0.7), "uniform70": uniform(0.7)}
