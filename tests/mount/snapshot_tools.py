"""What tests of snapshots share."""

from harness import *


def snapshot(*words, expect=0):
    done = command(BIN / "varve", "snapshot", *words, check=False, timeout=300)
    if done.returncode != expect:
        raise AssertionError(f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
    return done


def listed(place):
    return json.loads(snapshot("list", "--json", place).stdout)
