"""Suites that report each assertion, as suites.py wants them."""

import os
import re


def assertions(name, status, output):
    """The results of one script; `known` breakages and TODO are the suite's own."""
    results = {}
    plan = re.search(r"^1\.\.(\d+)", output, re.M)
    for good, number, rest in re.findall(r"^(ok|not ok) (\d+)(.*)$", output, re.M):
        skipped = "# SKIP" in rest.upper() or "# TODO" in rest.upper()
        results[f"{name} {number}"] = "skipped" if skipped else "passed" if good == "ok" else "failed"
    if not plan or int(plan[1]) != len(results) or (status and not results):
        results[f"{name} plan"] = "failed"
    return results


def pjdfstest(run):
    results = {}
    for script in sorted((run.folder / "tests").rglob("*.t")):
        name = str(script.relative_to(run.folder / "tests"))
        if run.wants(name):
            results.update(assertions(name, *run.call("sh", script)))
    return results


def git(run):
    """Git's own tests, with their repositories on the mount."""
    results = {}
    for script in sorted((run.folder / "t").glob("t[0-9]*.sh")):
        if run.wants(script.name):
            environment = {**os.environ, "TEST_OUTPUT_DIRECTORY": str(run.image.folder)}
            status, output = run.call("sh", script.name, f"--root={run.image.dir}", cwd=script.parent, env=environment)
            results.update(assertions(script.stem, status, output))
    return results


# --- SQLite: one result per assertion -----------------------------------------------------------------------------------------

def sqlite(run):
    """SQLite's own tests, with their databases on the mount. They refuse to run as root."""
    user = [] if os.geteuid() else ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    status, output = run.call(*user, run.program("testfixture"), run.folder / "test" / "veryquick.test", timeout=7200)
    results = {name: "passed" for name in re.findall(r"^(\S+)\.\.\. Ok$", output, re.M)}
    results.update({name: "failed" for name in re.findall(r"^! (\S+) expected:", output, re.M)})
    total = re.search(r"^(\d+) errors out of (\d+) tests", output, re.M)
    if not total or (status and total[1] == "0"):
        results["end"] = "failed"
    return results
