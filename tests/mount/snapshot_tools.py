"""What tests of snapshots share."""

from harness import *


def varve(*words, expect=0, **more):
    done = command(BIN / "varve", *words, check=False, timeout=300, **more)
    if done.returncode != expect:
        raise AssertionError(f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
    return done


def snapshot(*words, expect=0):
    return varve("snapshot", *words, expect=expect)


def listed(place):
    return json.loads(snapshot("list", "--json", place).stdout)


def kept_names(place):
    return [one["name"] for one in listed(place)["snapshots"]]
