"""The load of `admissions`, brought by the program that drives Kueue's own scheduler test.

It ends workloads one after the other, each when the last has been stored, so that how long others
keep the API server busy counts; and it is done when the statuses of the queues say so. See
`bench/real/kueue.py` for how to build it.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import yaml

from bench.real.admissions import Run
from bench.real.ground import Ground
from unisono.sim.generators import CLASSES, CPU_PER_QUEUE

_COHORTS = 5
_QUEUES = 6
# As Kueue's own test does; the API server is the limit.
_FLAGS = ("--qps=1000", "--burst=2000", "--timeout=20m")


class NoRunner(Exception):
    """Why the load was not brought."""


def bring(place: Ground, share: float, *, command: str) -> Run:
    """Have the program bring a share of the load, and read what it recorded."""
    folder = place.directory / "runner"
    folder.mkdir()
    load = folder / "load.yaml"
    load.write_text(json.dumps(_load(share)))  # which is YAML, too
    line = [command, f"--generatorConfig={load}", f"--o={folder}", *_FLAGS]
    there = {**os.environ, "KUBECONFIG": str(place.plane.kubeconfig)}
    with (folder / "log").open("wb") as out:
        try:
            code = subprocess.run(line, stdout=out, stderr=out, env=there, check=False).returncode
        except OSError as error:
            raise NoRunner(f"{command}: {error.strerror}") from error
    if code != 0:
        said = (folder / "log").read_text().strip().splitlines() or ["it said nothing"]
        raise NoRunner(f"it ended with {code}: {said[-1]}")
    return _recorded(folder)


def _load(share: float) -> list[dict[str, object]]:
    lots = [replace(one, count=max(1, round(one.count * share))) for one in CLASSES]
    sets = [
        {
            "count": lot.count,
            "creationIntervalMs": round(lot.every_s * 1000),
            "workloads": [
                {
                    "className": lot.name,
                    "runtimeMs": round(lot.run_s * 1000),
                    "priority": lot.priority,
                    "request": str(lot.cpu),
                }
            ],
        }
        for lot in lots
    ]
    queues = {
        "className": "cq",
        "count": _QUEUES,
        "nominalQuota": str(CPU_PER_QUEUE),
        "borrowingLimit": "100",
        "reclaimWithinCohort": "Any",
        "withinClusterQueue": "LowerPriority",
        "workloadsSets": sets,
    }
    return [{"className": "cohort", "count": _COHORTS, "queuesSets": [queues]}]


def _recorded(folder: Path) -> Run:
    run = Run(waited={one.name: [] for one in CLASSES})
    with (folder / "wlStates.csv").open(newline="") as lines:
        for one in csv.DictReader(lines):
            run.waited[one["class name"]].append(int(one["ms to admitted"]) / 1000)
            run.evictions += int(one["num evictions"])
            if int(one["ms to finish"]) > 0:
                run.finished.add(f"{one['namespace']}/{one['name']}")
    summary = yaml.safe_load((folder / "summary.yaml").read_text())
    queues = summary["clusterQueueClasses"]["cq"]
    began, ended = (_instant(queues[name]) for name in ("firstEventTime", "lastEventTime"))
    run.ended = (ended - began).total_seconds()
    return run


def _instant(written: str) -> datetime:
    """Read a time as Go writes it, with up to nine digits behind the point."""
    seconds, _, fraction = written.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{seconds}.{fraction[:6]:0<6}+00:00")
