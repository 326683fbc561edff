"""Measure on a real control plane: `python -m bench.real`, or `make bench-real ARGS=...`.

Needs the programs that `make controlplane` builds. What is printed is in the terms of Kueue's own
scheduler test: workloads admitted a second, time to admission by class, processor time and memory
of the controller; and how much is written for each workload, which is what an API server limits.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.__main__ import measure
from bench.harness import Family, Scale
from bench.output import as_json, say, targets_table
from bench.real import admissions, gangs, kueue, restart, runner
from tests.real.binaries import NoControlPlane

FAMILIES = (
    Family("admissions", "the load of Kueue's scheduler test, quota alone", admissions.measure),
    Family("gangs", "Jobs become gangs beside kube-scheduler", gangs.measure),
    Family("restart", "a full cluster: memory, and a new leader", restart.measure),
)


_BYTECODE = Path(__file__).resolve().parents[2] / "build" / "bytecode"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks that were asked for."""
    parser = argparse.ArgumentParser(prog="bench.real", description=__doc__.partition("\n")[0])
    names = [family.name for family in FAMILIES]
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the load")
    parser.add_argument(
        "--kueue",
        metavar="COMMAND",
        help="also drive the load of admissions with Kueue itself (see bench/real/kueue.py)",
    )
    parser.add_argument(
        "--runner",
        metavar="PROGRAM",
        help="the program that drives Kueue's test drives the load of admissions (ditto)",
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    arguments = parser.parse_args(argv)
    _keep_bytecode()
    if unknown := [name for name in arguments.name if name not in names]:
        say(f"bench: there is no benchmark {unknown[0]!r}; there are {', '.join(names)}")
        return 2
    drives: admissions.Drives = admissions.ourselves
    if arguments.runner is not None:
        drives = partial(runner.bring, command=arguments.runner)
    families = [
        replace(family, measure=partial(admissions.measure, drives=drives))
        if family.name == "admissions"
        else family
        for family in FAMILIES
    ]
    chosen = [family for family in families if family.name in (arguments.name or names)]
    if arguments.kueue is not None:
        runs = partial(kueue.measure, command=arguments.kueue, drives=drives)
        chosen.append(Family("kueue", "the load of admissions, with Kueue itself", runs))
    as_table = arguments.output == "table"
    scale: Scale = "quick" if arguments.quick else "full"
    try:
        report = measure(chosen, scale, clock="wall", as_table=as_table)
    except (NoControlPlane, kueue.NoKueue, runner.NoRunner) as problem:
        say(f"bench: {problem}")
        return 1
    print(targets_table(report.results) if as_table else as_json(report))
    return 0


def _keep_bytecode() -> None:
    """Let controllers find their code compiled, as installed ones do (like the Makefile)."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(_BYTECODE))


if __name__ == "__main__":
    sys.exit(main())
