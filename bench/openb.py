"""Fill the Alibaba GPU cluster of 2023 by every scoring, and compare with what was published.

Pods come one after the other, in a seeded order, until 1.3 times the cluster's GPUs were asked for;
none leaves, and one that does not fit is dropped. Counted is how
much of all GPUs is allocated, and how much is fragmented, when so many percent have been asked for.
`python -m bench openb --seeds 10 --pods gpuspec33` takes other orders and other lists of pods.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from bench.device_mix import Fragments, pod_mix
from bench.device_table import MILLI, DeviceTable, SharedNode, SharedPod
from bench.devices import DevicePlacer, DeviceScoring
from bench.harness import Finding, Note, Row, Scale, Target, figures, row, seconds, target
from bench.traces import NO_TRACES, openb_folder, read_nodes, read_pods, read_published

FIRST_SEED = 42
MARKS = (90, 95, 100, 130)  # percent of the cluster's GPUs that have been asked for
DEMAND = MARKS[-1]
# What the published policies are called there.
PUBLISHED: dict[DeviceScoring, str] = {"fgd": "FGD", "best-fit": "BestFit", "random": "Random"}
APART = 0.5  # points: our own order of arrivals is not theirs
BEST_FIT_PERCENT, FGD_PERCENT = 93.1, 95.4  # published, at 130 percent
RUN_S: dict[DeviceScoring, float] = {"best-fit": 5, "fgd": 20}


@dataclass(frozen=True)
class Sizes:
    """How many orders of arrival, and every how many-th node and pod."""

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
    nodes = read_nodes(folder)[:: sizes.every]
    pods = read_pods(folder, _Choice.pods)
    seeds = range(FIRST_SEED, FIRST_SEED + (_Choice.seeds or sizes.seeds))
    gpus = sum(node.gpus for node in nodes)
    orders = [arrivals(pods, gpus * MILLI, seed) for seed in seeds]
    yield Note(f"list {_Choice.pods}: {len(nodes):,} nodes, {gpus:,} GPUs, {len(pods):,} pods")
    for scoring in get_args(DeviceScoring):
        runs = [
            fill(nodes, pods, order, scoring, seed)
            for seed, order in zip(seeds, orders, strict=True)
        ]
        rows = [*_rows(scoring, runs, gpus)]
        yield from rows
        yield from _comparison(folder, scoring, rows, scale)


def _rows(scoring: DeviceScoring, runs: Sequence[Filled], gpus: int) -> Iterator[Row]:
    for mark in MARKS:
        found = [run.allocated[mark] for run in runs]
        yield figures(f"{scoring}: GPUs allocated", mark, "% asked for", found, "%")
    found = [run.fragmented[DEMAND] for run in runs]
    yield figures(f"{scoring}: GPUs fragmented", DEMAND, "% asked for", found, "%")
    yield row(f"{scoring}: one run", gpus, "GPUs", [run.took_s for run in runs], "s")


def _comparison(
    folder: Path, scoring: DeviceScoring, rows: Sequence[Row], scale: Scale
) -> Iterator[Finding]:
    """Set the figures beside the published ones, which are of the whole cluster."""
    *_, at_end, _, taken = rows
    if scoring in RUN_S:
        yield target(taken.what, taken, RUN_S[scoring], scale=scale, better="below")
    if scoring in PUBLISHED:
        published = read_published(folder, "alloc_pct", _Choice.pods, PUBLISHED[scoring])
        listed = ", ".join(f"{published[mark]} at {mark} %" for mark in MARKS)
        yield Note(f"{scoring}: published mean of ten seeds {listed}")
        yield Target(
            what=f"{scoring}: points from published",
            at=f"{DEMAND} {at_end.of}",
            limit=APART,
            better="below",
            measured=abs(at_end.median - published[DEMAND]),
            unit="%",
            met=abs(at_end.median - published[DEMAND]) < APART if scale == "full" else None,
        )
    elif _Choice.pods == "default":
        wanted = BEST_FIT_PERCENT if scoring == "leftover" else FGD_PERCENT
        yield target(at_end.what, at_end, wanted, scale=scale, better="above")


def arrivals(pods: Sequence[SharedPod], capacity_milli: int, seed: int) -> list[SharedPod]:
    """Return pods in the order in which they come, until 1.3 times the capacity is asked for.

    A list that asks for less is stretched with clones of its pods; of one that asks for more, pods
    are left out. Both at random.
    """
    dice = random.Random(seed)
    order = list(pods)
    dice.shuffle(order)
    limit = capacity_milli * DEMAND // 100
    asked = sum(pod.total_milli for pod in order)
    while asked > limit:
        asked -= order.pop().total_milli
    while asked < limit:
        clone = dice.choice(pods)
        order.append(clone)
        asked += clone.total_milli
    dice.shuffle(order)
    return order


def fill(
    nodes: Sequence[SharedNode],
    pods: Sequence[SharedPod],
    order: Sequence[SharedPod],
    scoring: DeviceScoring,
    seed: int,
) -> Filled:
    """Place pods in order; what is typical is known from the whole list."""
    mix = pod_mix(pods)
    table = DeviceTable(nodes)
    placer = DevicePlacer(table, mix, scoring, random.Random(seed).randrange)
    fragments = Fragments(table, mix)
    capacity = int(table.device_free.sum())
    allocated: dict[int, float] = {}
    fragmented: dict[int, float] = {}

    def note(mark: int) -> None:
        allocated[mark] = 100 - 100 * int(table.device_free.sum()) / capacity
        fragmented[mark] = 100 * fragments.cluster_milli() / capacity

    def place_all() -> None:
        asked = 0
        marks = list(MARKS)
        for pod in order:
            seat = placer.place(pod)
            if seat is not None:
                table.take(seat)
            asked += pod.total_milli
            while marks and 100 * asked >= marks[0] * capacity:
                note(marks.pop(0))
        for mark in marks:  # a pruned list may end just short of its last mark
            note(mark)

    taken = seconds(place_all)
    return Filled(allocated, fragmented, taken)
