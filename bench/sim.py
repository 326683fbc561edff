"""The simulator: jobs per processor second with EASY backfilling, through the whole engine.

Jobs are drawn after the model of Lublin and Feitelson for 256 nodes of one CPU; a load above 1 lets
the queue grow for as long as jobs arrive. Beside it, alternating in the same run, stand

    plain      tests/support/simulations.py: the bare rules on a number of free processors, with
               no queues, quotas, nodes, explanations or plans: what the bookkeeping costs
    one node   ours again, with all CPUs on one node
    AccaSim    a published simulator in Python, in a process of its own: on the same nodes, and on
               one node of 256 CPUs, which suits it better

Processor time is counted, whatever clock the run was asked for: the peer reports nothing else.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time

import msgspec

from bench.accasim import VERSION, NotRun, accasim_folder, run_accasim
from bench.harness import (
    Finding,
    Note,
    Peer,
    Row,
    Scale,
    Target,
    figures,
    growth_target,
    not_run,
    row,
    target,
    times_peer,
)
from bench.traces import swf_file
from tests.support.simulations import schedule
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import amounts
from unisono.sim.generators import lublin
from unisono.sim.loop import simulate
from unisono.sim.setup import POLICIES, with_overrun
from unisono.sim.trace import Trace
from unisono.sim.traces.swf import read_swf

PROCESSORS = 256
CAPACITY = 0.8  # the load at which promises are made
JOBS_A_SECOND = 10_000
OF_PLAIN = 0.25  # of what the bare rules simulate: all the rest is bookkeeping
MOST_GROWTH = 1.1
ACCASIM = Peer(name="AccaSim", version=VERSION)
TIMES_ACCASIM, TIMES_ACCASIM_OVERLOADED = 10, 20
KTH = "KTH-SP2-1996-2.1-cln.swf.gz"


@dataclass(frozen=True)
class Case:
    """How many jobs, at which load, how often; the slow peer may be left out."""

    jobs: int
    load: float
    samples: int = 3
    slow_peer: bool = True


SIZES: dict[Scale, tuple[Case, ...]] = {
    "full": (
        Case(1_000, CAPACITY),
        Case(3_000, CAPACITY),
        Case(10_000, CAPACITY),
        Case(100_000, CAPACITY, samples=1, slow_peer=False),
        Case(10_000, 1.5, samples=1, slow_peer=False),
        Case(10_000, 3.0, samples=1, slow_peer=False),
    ),
    "quick": (Case(300, CAPACITY), Case(1_000, CAPACITY), Case(1_000, 3.0, slow_peer=False)),
    "tiny": (Case(20, CAPACITY, samples=1), Case(40, CAPACITY, samples=1)),
}
Runner = Callable[[Trace], float]  # processor seconds


def measure(scale: Scale) -> Iterator[Finding]:
    """Simulate more and more jobs, then a machine that is asked for too much, then a real log."""
    folder: Path | NotRun
    try:
        if scale == "tiny":
            raise NotRun("a tiny run")
        folder = accasim_folder(install=scale == "full")
    except NotRun as reason:
        folder = reason
    taken: list[Row] = []
    for case in SIZES[scale]:
        trace = with_overrun(lublin(jobs=case.jobs, load=case.load), "raise")
        for found in _compared(trace, f"load {case.load}", case, folder, scale):
            yield found
            if isinstance(found, Row) and found.what == f"ours, load {CAPACITY}, all jobs":
                taken.append(found)
    yield growth_target(f"growth, load {CAPACITY}", taken, MOST_GROWTH)
    yield from _real(scale, folder)


def _real(scale: Scale, folder: Path | NotRun) -> Iterator[Finding]:
    path = swf_file(KTH)
    if path is None:
        yield Note(f"{KTH}: not here; name the folder that has swf/ in UNISONO_TRACES")
    elif scale == "full":
        trace = with_overrun(read_swf(path), "raise")
        case = Case(len(trace), CAPACITY, samples=1, slow_peer=False)
        yield from _compared(trace, "KTH-SP2", case, folder, scale)


def _compared(
    trace: Trace, name: str, case: Case, folder: Path | NotRun, scale: Scale
) -> Iterator[Finding]:
    """Let every simulator run the same jobs, one after the other."""
    machine = trace.processors
    one = (processor_node(machine),)
    runners: dict[str, Runner] = {
        "ours": partial(_ours, processors(machine)),
        "ours, one node": partial(_ours, one),
        "plain": _plain,
    }
    troubles: dict[str, NotRun] = {}
    if isinstance(folder, NotRun):
        troubles["AccaSim, one node"] = folder
    else:
        runners["AccaSim, one node"] = partial(_accasim, folder, nodes=1, cpus=machine)
        if case.slow_peer:
            runners["AccaSim, same nodes"] = partial(_accasim, folder, nodes=machine, cpus=1)
    taken: dict[str, list[float]] = {simulator: [] for simulator in runners}
    for _ in range(case.samples):
        for simulator, runner in [*runners.items()]:
            gc.collect()
            try:
                taken[simulator].append(runner(trace))
            except NotRun as reason:
                troubles[simulator] = reason
                del runners[simulator]
    rates: dict[str, Row] = {}
    for simulator, spent in taken.items():
        if spent:
            jobs = len(trace)
            per_second = [jobs / s for s in spent]
            rates[simulator] = figures(f"{simulator}, {name}", jobs, "jobs", per_second, "1/s")
            yield rates[simulator]
            yield row(f"{simulator}, {name}, all jobs", jobs, "jobs", spent, "s")
    yield from _targets(rates, name, case, scale)
    for simulator, why in troubles.items():
        yield not_run(
            f"beside {simulator}, {name}",
            at=f"{len(trace):,} jobs",
            limit=_times(case),
            unit="1/s",
            peer=ACCASIM,
            why=str(why),
        )


def _times(case: Case) -> float:
    return TIMES_ACCASIM if case.load <= 1 else TIMES_ACCASIM_OVERLOADED


def _targets(rates: dict[str, Row], name: str, case: Case, scale: Scale) -> Iterator[Target]:
    ours = rates["ours"]
    bare = Peer(name="the bare rules", value=rates["plain"].median)
    yield times_peer(f"beside the bare rules, {name}", ours, bare, OF_PLAIN)
    if name == f"load {CAPACITY}" and case.jobs == max(one.jobs for one in SIZES[scale]):
        yield target("jobs a second of processor time", ours, JOBS_A_SECOND, better="above")
    for simulator, theirs in rates.items():
        if simulator.startswith("AccaSim"):
            same = rates["ours, one node"] if simulator.endswith("one node") else ours
            peer = msgspec.structs.replace(ACCASIM, value=theirs.median)
            yield times_peer(f"beside {simulator}, {name}", same, peer, _times(case))


def processors(count: int) -> tuple[Node, ...]:
    """Make nodes of one CPU each."""
    one = amounts({"cpu": 1000})
    return tuple(Node(name=NodeName(f"node-{i:05}"), allocatable=one) for i in range(count))


def processor_node(count: int) -> Node:
    """Make one node that has all CPUs, and takes a pod on each."""
    has = amounts({"cpu": 1000 * count, "pods": count})
    return Node(name=NodeName("node"), allocatable=has)


def _ours(nodes: tuple[Node, ...], trace: Trace) -> float:
    before = process_time()
    simulate(trace, nodes, POLICIES["easy"])
    return process_time() - before


def _plain(trace: Trace) -> float:
    before = process_time()
    schedule(trace, "easy")
    return process_time() - before


def _accasim(folder: Path, trace: Trace, *, nodes: int, cpus: int) -> float:
    return run_accasim(folder, trace, nodes, cpus).cpu_s
