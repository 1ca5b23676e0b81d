"""Lengths of free pieces."""

import json
import re
import subprocess


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


def btrfs(text):
    """Of dump-super and dump-tree: what lies between the extents of block groups. Room that is in no group yet is not in it."""
    groups, used = [], []
    node = int(re.search(r"^nodesize\s+(\d+)", text, re.M)[1])
    for start, kind, length in re.findall(r"key \((\d+) (BLOCK_GROUP_ITEM|EXTENT_ITEM|METADATA_ITEM) (\d+)\)", text):
        if kind == "BLOCK_GROUP_ITEM":
            groups.append((int(start), int(length)))
        else:
            used.append((int(start), int(length) if kind == "EXTENT_ITEM" else node))
    used.sort()
    at = 0
    for start, length in sorted(groups):
        end = start
        while at < len(used) and used[at][0] < start + length:
            if used[at][0] > end:
                yield used[at][0] - end
            end = used[at][0] + used[at][1]
            at += 1
        if end < start + length:
            yield start + length - end


def varve(text, block=4096):
    """Of `varve map --json`: runs of cells in which nothing is live."""
    found = json.loads(text)
    run = 0
    for cell in found["cells"]:
        if cell["live"] == 0:
            run += cell["blocks"] * block
        elif run:
            yield run
            run = 0
    if run:
        yield run


def lengths(stand):
    """Of an unmounted filesystem; None: nothing can tell."""
    kind, loop = stand.fs.name, stand.image.loop
    of_btrfs = "btrfs inspect-internal dump-super $0 && btrfs inspect-internal dump-tree -t extent $0"
    commands = {"ext4": (["dumpe2fs", loop], ext4), "xfs": (["xfs_db", "-r", "-c", "freesp -d", loop], xfs),
                "btrfs": (["sh", "-c", of_btrfs, loop], btrfs)}
    if kind == "varve":  # cells of one block, up to 40 GiB
        commands["varve"] = ([stand.fs.bin / "varve", "map", "--json", "--columns", "10000", "--rows", "1000", loop], varve)
    if kind not in commands:
        return None
    command, parse = commands[kind]
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        return list(parse(done.stdout)) if done.returncode == 0 else None
    except (OSError, ValueError, TypeError):
        return None
