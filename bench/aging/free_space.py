"""Lengths of free pieces, where a filesystem has a tool that tells them."""

import re
import subprocess

KIB = 1024
CLASSES = ["< 32 KiB", "< 256 KiB", "< 2 MiB", "≥ 2 MiB"]
BOUNDS = [32 * KIB, 256 * KIB, 2048 * KIB]


def ext4(text):
    """Of dumpe2fs: the free blocks of each group. Pieces that go on in the next group are two."""
    size = int(re.search(r"^Block size:\s+(\d+)", text, re.M)[1])
    for blocks in re.findall(r"^  Free blocks: (.*)$", text, re.M):
        for piece in filter(None, blocks.split(", ")):
            first, _, last = piece.partition("-")
            yield (int(last or first) - int(first) + 1) * size


def xfs(text, block=4096):
    """Of xfs_db's freesp -d: a line for each piece (group, block, length)."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and all(word.isdigit() for word in words):
            yield int(words[2]) * block


def lengths(stand):
    """None: nobody can tell."""
    kind, loop = stand.fs.name, stand.image.loop
    commands = {"ext4": (["dumpe2fs", loop], ext4), "xfs": (["xfs_db", "-r", "-c", "freesp -d", loop], xfs)}
    if kind not in commands:
        return None
    command, parse = commands[kind]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return None
    return list(parse(done.stdout)) if done.returncode == 0 else None


def by_size(pieces):
    """{class: percent of the free bytes}"""
    total = sum(pieces) or 1
    out = dict.fromkeys(CLASSES, 0.0)
    for length in pieces:
        place = sum(length >= bound for bound in BOUNDS)
        out[CLASSES[place]] += 100 * length / total
    return out
