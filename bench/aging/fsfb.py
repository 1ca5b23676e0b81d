"""FSFB on a filesystem that is full, on one that is ten times as large, and what there was copied to a new one."""

import errno

import room
import tree as trees
from image import MIB, Image, Unaged, copied

LEFT_OUT = (OSError, RuntimeError)


def goals(place, tree, total, fullness):
    """How many bytes are to be held next, until so much of what df counts is taken: what files take besides is not known before."""
    while (missing := room.missing(place.top, fullness, total)) >= MIB:
        yield tree.held + int(missing * 0.9)
        place.sync()  # what only the kernel has, df may not know


def a_round(place, tree, number):
    """Published are the seconds that the new folder takes, so what goes before it is done by then."""
    place.mark(f"delete {number}")
    before = tree.shrink()
    place.sync()
    place.mark(f"write {number}")
    tree.grow(number, before)
    place.sync()


def full(experiment, name, fullness):
    """The image, the bytes it held at first, and how many rounds it has stood."""
    options = experiment.options
    image, done = Image(experiment, name, options.size * MIB), 0
    with image.stand as place:
        tree = trees.Tree(place.top, options)
        place.mark("fill")
        tree.begin(goals(place, tree, room.available(place.top), fullness))
        most = tree.held
        image.cold_read(0)
        for number in range(1, options.rounds + 1):
            try:
                a_round(place, tree, number)
            except LEFT_OUT as error:
                experiment.leave_out(f"FSFB on {name}, {fullness:.0%} full: round {number} ended: {error}")
                break
            done = number
            if number % options.every == 0:
                image.cold_read(number)
    image.rounds = done
    return image, most, done


def fullest(experiment, name):
    """The same, as full as it can be and still be used: 95 % are too much for some."""
    options = experiment.options
    for step in range(7):
        fullness = options.fullness - 0.05 * step
        try:
            found = full(experiment, name, fullness)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            experiment.leave_out(f"FSFB on {name}, {fullness:.0%} full: {error}")
            continue
        if found[2] >= min(options.every, options.rounds):
            return found
    raise RuntimeError("it is full before it is used")


def empty(experiment, name, most, rounds):
    """The same operations on ten times the room, and the copies."""
    options = experiment.options
    image, unaged = Image(experiment, name, 10 * options.size * MIB), Unaged(experiment, name)
    with_copy = copied(range(0, rounds + 1, options.every), options.full)
    with image.stand as place:
        tree = trees.Tree(place.top, options)
        place.mark("fill")
        tree.begin([most])
        for number in range(rounds + 1):
            if number:
                a_round(place, tree, number)
            if number % options.every == 0:
                image.cold_read(number)
            if number in with_copy:
                with image.aside():
                    unaged.make(number, tree.copy)
    return image, unaged


def run(experiment, name):
    """{kind: image}"""
    experiment.progress(f"FSFB on {name}: full")
    image, most, done = fullest(experiment, name)
    experiment.progress(f"FSFB on {name}: empty, unaged")
    large, unaged = empty(experiment, name, most, done // experiment.options.every * experiment.options.every)
    return {"full": image, "empty": large, "unaged": unaged}
