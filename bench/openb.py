"""Fill the Alibaba GPU cluster of 2023 by every scoring, and compare with what was published.

Pods come one after the other, in a seeded order, until 1.3 times the cluster's GPUs were asked for;
none leaves, and one that does not fit is dropped. Counted is how
much of all GPUs is allocated, and how much is fragmented, when so many percent have been asked for.
The engine chooses node and device, on its own tables; `unisono sim run --fill` is the
same with queues and quota around it.
`python -m bench openb --seeds 10 --pods gpuspec33` takes other orders and other lists of pods.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from bench.harness import (
    Better,
    Finding,
    Note,
    Row,
    Scale,
    Target,
    figures,
    not_run,
    row,
    seconds,
    target,
)
from bench.traces import NO_TRACES, openb_folder, pod_list, read_published
from unisono.engine.model.names import CPU
from unisono.engine.model.node import Node
from unisono.engine.model.resources import WHOLE_GPU, share_in, share_of
from unisono.engine.placement.demand import Demand, constraint_for
from unisono.engine.placement.feasibility import Feasibility
from unisono.engine.placement.shared_gpus import SharedGpuRanking
from unisono.engine.state.devices import free_by_device
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.occupancy import Occupancy, PlacedPods, PodIndex
from unisono.engine.state.pod_mix import SharedPodMix
from unisono.sim.clusters import GPU, MODEL, capacity_of, read_cluster
from unisono.sim.fragmentation import fragmentation, nodes_allowing, typical_pods
from unisono.sim.jobs import Jobs
from unisono.sim.trace import Trace
from unisono.sim.traces.published import read_openb_fill

Filling = Literal["leftover", "spare", "fgd", "binpack", "random"]

FIRST_SEED = 42
MARKS = (90, 95, 100, 130)  # percent of the cluster's GPUs that have been asked for
DEMAND = MARKS[-1]
# What the published policies are called there.
PUBLISHED: dict[Filling, str] = {"fgd": "FGD", "binpack": "BestFit", "random": "Random"}
APART = 0.5  # points: our own order of arrivals is not theirs
BEST_FIT_PERCENT, FGD_PERCENT = 93.1, 95.4  # published, at 130 percent
PART_OF_IT = "a smaller cluster"
RUN_S: dict[Filling, float] = {"binpack": 5, "fgd": 20}


@dataclass(frozen=True)
class Sizes:
    """How many orders of arrival, and every how many-th node."""

    seeds: int
    every: int


SIZES: dict[Scale, Sizes] = {"full": Sizes(3, 1), "quick": Sizes(1, 6), "tiny": Sizes(1, 60)}


class _Choice:
    """What the command line chose; one for the whole process."""

    seeds: int | None = None
    pods: str = "default"


def choose(*, seeds: int | None, pods: str) -> None:
    """Take another number of seeds, or another list of pods, from now on."""
    _Choice.seeds, _Choice.pods = seeds, pods


@dataclass(frozen=True)
class Filled:
    """What one run found: percent of all GPUs, by mark."""

    allocated: dict[int, float]
    fragmented: dict[int, float]
    took_s: float


def measure(scale: Scale) -> Iterator[Finding]:
    """Fill the cluster by every scoring."""
    folder = openb_folder()
    if folder is None:
        yield Note(NO_TRACES)
        return
    sizes = SIZES[scale]
    nodes = read_cluster(folder / "openb_node_list_gpu_node.csv")[:: sizes.every]
    seeds = range(FIRST_SEED, FIRST_SEED + (_Choice.seeds or sizes.seeds))
    milli = capacity_of(nodes).gpu_milli
    pods = pod_list(folder, _Choice.pods)
    orders = [read_openb_fill(pods, gpu_milli=milli, seed=seed) for seed in seeds]
    yield Note(f"list {_Choice.pods}: {len(nodes):,} nodes, {milli // WHOLE_GPU:,} GPUs")
    for scoring in get_args(Filling):
        runs = [fill(nodes, order, scoring, s) for s, order in zip(seeds, orders, strict=True)]
        rows = [*_rows(scoring, runs, milli // WHOLE_GPU)]
        yield from rows
        yield from _comparison(folder, scoring, rows, scale)


def _rows(scoring: Filling, runs: Sequence[Filled], gpus: int) -> Iterator[Row]:
    for mark in MARKS:
        found = [run.allocated[mark] for run in runs]
        yield figures(f"{scoring}: GPUs allocated", mark, "% asked for", found, "%", better="above")
    found = [run.fragmented[DEMAND] for run in runs]
    yield figures(f"{scoring}: GPUs fragmented", DEMAND, "% asked for", found, "%")
    yield row(f"{scoring}: one run", gpus, "GPUs", [run.took_s for run in runs], "s")


def _comparison(
    folder: Path, scoring: Filling, rows: Sequence[Row], scale: Scale
) -> Iterator[Finding]:
    """Set the figures beside the published ones, which are of the whole cluster."""
    *_, at_end, _, taken = rows
    if scoring in RUN_S:
        yield target(taken.what, taken, RUN_S[scoring], better="below")
    if scoring in PUBLISHED:
        published = read_published(folder, "alloc_pct", _Choice.pods, PUBLISHED[scoring])
        listed = ", ".join(f"{published[mark]} at {mark} %" for mark in MARKS)
        yield Note(f"{scoring}: published mean of ten seeds {listed}")
        apart = abs(at_end.median - published[DEMAND])
        found = figures(f"{scoring}: points from published", DEMAND, at_end.of, [apart], "%")
        yield _judged(found, APART, "below", scale)
    elif _Choice.pods == "default":
        wanted = BEST_FIT_PERCENT if scoring == "leftover" else FGD_PERCENT
        yield _judged(at_end, wanted, "above", scale)


def _judged(found: Row, limit: float, better: Better, scale: Scale) -> Target:
    """Compare with what was published: of the whole cluster, of which a part is another one."""
    if scale == "full":
        return target(found.what, found, limit, better=better)
    return not_run(
        found.what,
        at=f"{found.n} {found.of}",
        limit=limit,
        unit=found.unit,
        better=better,
        why=PART_OF_IT,
    )


class Filler:
    """A cluster that takes one pod after the other."""

    def __init__(
        self, nodes: Sequence[Node], trace: Trace, scoring: Filling, dice: random.Random
    ) -> None:
        make = Jobs(trace, tuple(nodes)).make
        sets = [make(row).pod_sets[0] for row in range(len(trace))]
        self.demands = [
            Demand(
                name="pod",
                least=1,
                most=1,
                requests=pod_set.requests,
                constraint=constraint_for(pod_set, ()),
                mode="preferred",
            )
            for pod_set in sets
        ]
        self.table = NodeTable()
        for node in nodes:
            self.table.put(node)
        self.columns = self.table.open_devices(share_of(GPU))
        self._occupancy = Occupancy(self.table, PodIndex())
        self._feasibility = Feasibility(self.table)
        self._dice = dice if scoring == "random" else None
        mix = SharedPodMix()
        mix.fix(pod_set.requests for pod_set in sets)
        self._shared_ranking = SharedGpuRanking(self._feasibility, mix)
        if scoring != "random":
            self._shared_ranking.score_by(scoring)
        self._rows = np.arange(len(self.table))
        self._shapes = typical_pods(trace)
        models = [dict(node.labels).get(MODEL, "") for node in nodes]
        self._allowed = nodes_allowing(self._shapes, models)

    def place(self, demand: Demand) -> bool:
        """Give a pod its seat; say whether there was one."""
        seat = self._any_seat(demand) if self._dice else self._shared_ranking.best(demand)
        if seat is None:
            return False
        name = self.table.names(np.array([seat[0]]))[0]
        self._occupancy.occupy(PlacedPods(((name, 1),), demand.requests, devices=seat[1]))
        return True

    def _any_seat(self, demand: Demand) -> tuple[int, tuple[int, ...]] | None:
        assert self._dice is not None, "random filling needs dice"
        caps = self._feasibility.pods_on(demand.constraint, demand.requests, self._rows)
        rows = np.flatnonzero(caps)
        if not rows.shape[0]:
            return None
        chosen = int(rows[self._dice.randrange(rows.shape[0])])
        part = share_in(demand.requests)
        if part is None:
            return chosen, ()
        device_free = free_by_device(self.table.free, self.columns, np.array([chosen]))[0]
        devices = np.flatnonzero(device_free >= part[1])
        return chosen, (int(devices[self._dice.randrange(devices.shape[0])]),)

    def idle_milli(self) -> int:
        """Return how much of all GPUs is free."""
        return int(free_by_device(self.table.free, self.columns, self._rows).sum())

    def fragmented_milli(self) -> float:
        """Return how much of it typical pods could not use where it is, as published."""
        cpu = self.table.column(CPU)
        assert cpu is not None, "all nodes have CPUs"
        free = free_by_device(self.table.free, self.columns, self._rows)
        cpu_free = self.table.free_of(cpu)[self._rows]
        found = fragmentation(
            self._shapes, cpu_free=cpu_free, gpu_free=free, allowed_nodes=self._allowed
        )
        return float(found.sum())


def fill(nodes: Sequence[Node], trace: Trace, scoring: Filling, seed: int) -> Filled:
    """Place pods in order; what is typical is known from the whole list."""
    filler = Filler(nodes, trace, scoring, random.Random(seed))
    capacity = filler.idle_milli()
    allocated: dict[int, float] = {}
    fragmented: dict[int, float] = {}

    def note(mark: int) -> None:
        allocated[mark] = 100 - 100 * filler.idle_milli() / capacity
        fragmented[mark] = 100 * filler.fragmented_milli() / capacity

    def place_all() -> None:
        asked, marks = 0, list(MARKS)
        for demand, milli in zip(filler.demands, trace.job_gpu_milli.tolist(), strict=True):
            filler.place(demand)
            asked += milli
            while marks and 100 * asked >= marks[0] * capacity:
                note(marks.pop(0))
        for mark in marks:  # a pruned list may end just short of its last mark
            note(mark)

    taken = seconds(place_all)
    return Filled(allocated, fragmented, taken)
