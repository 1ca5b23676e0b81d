"""A part is one workload on one filesystem on one model: what it is run with, and the file that keeps its figures."""

import json
import os
import time
from dataclasses import dataclass

MODELS = ["sd-cheap", "sd-a1", "hdd-laptop", "ssd-page"]
# Workload: MiB of the device, times as much work, seconds of the device for each stage. F2FS has room for its sections on 8 GiB.
WORK = {"sync4k": (8192, 4, 60), "sqlite": (8192, 4, 60), "log": (8192, 4, 60), "untar": (8192, 1, 400), "postmark": (8192, 1, 400),
        "stream": (8192, 0.16, 400), "zipf70": (1024, 1, 600), "uniform70": (1024, 1, 600)}


@dataclass(frozen=True)
class Part:
    model: str
    workload: str
    filesystem: str

    def __str__(self):
        return f"{self.model}.{self.workload}.{self.filesystem}"

    def options(self, run):
        """All that its figures depend on."""
        size, scale, budget = WORK[self.workload]
        return {"model": self.model, "workload": self.workload, "filesystem": self.filesystem, "size": size, "scale": scale, "budget": budget,
                "seed": run.seed, "dirty": run.dirty, "cpu": run.cpu}


def wanted(options):
    """One model after the other, and the quick parts first."""
    return [Part(model, workload, name) for model in options.models for workload in options.workloads for name in options.filesystems]


class Store:
    def __init__(self, folder):
        self.folder = folder

    def file(self, part, options):
        return self.folder / f"{part}.{options.seed}.json"

    def read(self, part, options):
        """None where it was not run, or otherwise than wanted now."""
        file = self.file(part, options)
        kept = json.loads(file.read_text()) if file.exists() else {}
        return kept if kept.get("options") == part.options(options) else None

    def has(self, part, options):
        """What has failed is run again."""
        kept = self.read(part, options)
        return kept is not None and "failed" not in kept

    def keep(self, part, options, said):
        file = self.file(part, options)
        text = json.dumps({"options": part.options(options), "date": time.strftime("%Y-%m-%d", time.gmtime()), **said}, indent=1)
        new = file.with_suffix(f".{os.getpid()}")  # another run may keep its parts in the same folder
        new.write_text(text + "\n")
        new.replace(file)

    def results(self, parts, options):
        """{model: {row: {filesystem: figures}}}, and why others are not among them."""
        results, left_out = {}, []
        for part in parts:
            kept = self.read(part, options) or {"failed": "not run"}
            for row, figures in kept.get("rows", {}).items():
                results.setdefault(part.model, {}).setdefault(row, {})[part.filesystem] = figures
            for word in ("missing", "failed"):
                if word in kept:
                    left_out.append(f"{part}: {kept[word].splitlines()[0] if kept[word] else word}")
        return results, left_out
