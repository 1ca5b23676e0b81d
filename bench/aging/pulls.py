"""Copies of a git repository that pull, on a filesystem that is full, on one that is ten times as large, and copied to a new one."""

import tempfile
from pathlib import Path

import repository
from image import MIB, Image, Unaged, copied
from room import fullness_of


def go_on(copies, number, options):
    """Published: until copies have failed for lack of room, and long after. The last pull is one that is measured."""
    if number % options.pulls_every or number < options.pulls:
        return True
    return number < options.most_pulls and not copies.dropped


def full(experiment, name, source):
    """The image, and the operations with the numbers of reads between them."""
    options = experiment.options
    image, number = Image(experiment, name, options.size * MIB), 0
    with image.stand as place:
        place.mark("fill")
        copies = repository.Copies(source, place.top)
        while fullness_of(place.top) < options.git_fullness:
            copies.clone()
            place.sync()
        copies.log.append(("read", number))
        image.cold_read(number)
        while go_on(copies, number, options):
            if not copies.turn():
                break
            number += 1
            if number % options.pulls_every == 0:
                copies.log.append(("read", number))
                image.cold_read(number)
    if copies.dropped:
        experiment.progress(f"git on {name}: {copies.dropped} copies had no room, and went, as published")
    else:
        experiment.leave_out(f"git on {name}: {number} pulls found room, so that no copy went (full in the end: {image.fullness[number]:.0%})")
    return image, copies.log


def empty(experiment, name, source, log):
    """The same on ten times the room, and the copies."""
    options = experiment.options
    image, unaged = Image(experiment, name, 10 * options.size * MIB), Unaged(experiment, name)
    with_copy = copied((which for verb, which in log if verb == "read"), options.full)
    with image.stand as place:
        place.mark("fill")
        again = repository.Copies(source, place.top)
        for verb, which in log:
            if verb != "read":
                again.do(verb, which)
                continue
            image.cold_read(which)
            if which in with_copy:
                with tempfile.TemporaryDirectory(prefix="varve-git-", dir="/var/tmp") as folder:
                    repository.copy_tree(place.top, folder)
                    with image.aside():
                        unaged.make(which, lambda top, folder=folder: repository.copy_tree(folder, top))
    return image, unaged


def run(experiment, name, source):
    """{kind: image}"""
    experiment.progress(f"git on {name}: full")
    image, log = full(experiment, name, source)
    experiment.progress(f"git on {name}: empty, unaged")
    large, unaged = empty(experiment, name, source, log)
    return {"full": image, "empty": large, "unaged": unaged}
