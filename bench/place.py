"""Find nodes for one gang: the table of spec placement §13.

cold         a pod shape that is asked for the first time: every node is evaluated
warm         place, take and give back, again and again: only nodes that changed are looked at
infeasible   the answer no, with its reasons
signature    which nodes a constraint allows that is new

Nodes have eight GPUs, in racks, blocks and zones, and are about half full (see `bench/floors.py`).
Pods take one GPU each and would like to be close together; of two sets, the second takes two each.
The cost of a gang must not depend on how many pods it has, and at most linearly on the nodes.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from bench.floors import GPUS, POOL, gang, node, placer_of, table_of
from bench.harness import (
    Finding,
    Note,
    Row,
    Scale,
    Target,
    exponent,
    figures,
    repeated,
    row,
    seconds,
    target,
)
from bench.worlds import GPU
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.selection import Toleration
from unisono.engine.placement.demand import Constraint
from unisono.engine.placement.gang import Gang, Placer, PodSetPlacement
from unisono.engine.placement.scoring import fragmented_gpus
from unisono.engine.state.node_table import Integers, NodeTable, Rows

SETS = (1, 2)


@dataclass(frozen=True)
class Sizes:
    """How many nodes, how many pods, how often; and on how many nodes memory is weighed."""

    nodes: tuple[int, ...]
    pods: tuple[int, ...]
    samples: int
    weighed: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes((1_000, 5_000, 20_000, 100_000), (8, 64, 512, 4_096), 40, 20_000),
    "quick": Sizes((1_000, 5_000), (8, 64, 512, 4_096), 10, 20_000),
    "tiny": Sizes((40, 80), (8, 64), 2, 40),
}


@dataclass(frozen=True)
class Promise:
    """Milliseconds that the specification allows on so many nodes."""

    one_set: float  # up to 512 pods
    many_pods: float  # 4,096
    two_sets: float
    warm: float


PROMISES = {
    1_000: Promise(0.3, 0.4, 0.6, 0.3),
    5_000: Promise(0.5, 0.6, 0.8, 0.3),
    20_000: Promise(0.8, 1.2, 3, 0.35),
    100_000: Promise(3, 5, 8, 0.4),
}
MOST_PODS = 512  # in the columns that promise one figure for all sizes of gangs
SIGNATURE_MS = 2  # on the most nodes
LATE = 3  # the 95th percentile, in medians
SLOWER = 1.1  # how much longer a no may take than a yes: "not slower", with room for noise
NODE_BYTES = 400
SHAPE_BYTES = 40  # a node
SHAPES_WEIGHED = 20


def measure(scale: Scale) -> Iterator[Finding]:
    """Place gangs of every size on clusters of every size."""
    sizes = SIZES[scale]
    rows: list[Row] = []
    for nodes in sizes.nodes:
        found = [*_on(nodes, sizes)]
        yield from found
        yield from _promised(nodes, found)
        rows += found
    yield from _pods_growth(rows, sizes)
    largest = max(rows, key=lambda each: (each.what == "a cold signature", each.n))
    yield target(largest.what, largest, SIGNATURE_MS, better="below")
    placed = [each for each in rows if each.what.startswith(("cold", "warm"))]
    late = max(each.p95 / each.median for each in placed)
    yield _ratio("p95 over median, the worst", len(placed), "rows", late, LATE)
    yield from _weights(sizes.weighed)


def _on(nodes: int, sizes: Sizes) -> Iterator[Row]:
    """Measure one cluster."""
    table = table_of(nodes)
    placer = placer_of(table)
    placer.place(gang(1))  # the order of nodes by topology is made once
    fresh = count(1)
    gc.collect()
    for sets in SETS:
        for pods in sizes.pods:
            if isinstance(placer.place(gang(pods, sets)), GangDoesNotFit):
                continue  # two large sets do not fit on the smallest cluster
            cold = partial(_cold, placer, pods, sets, fresh)
            warm = partial(_warm, placer, gang(pods, sets))
            what = f"{pods:,} pods, {sets} set{'s' if sets > 1 else ''}"
            yield row(f"cold, {what}", nodes, "nodes", repeated(cold, samples=sizes.samples), "ms")
            yield row(f"warm, {what}", nodes, "nodes", repeated(warm, samples=sizes.samples), "ms")
    too_many = nodes * GPUS + 1
    refuse = partial(_cold, placer, too_many, 1, fresh)
    yield row("cold, infeasible", nodes, "nodes", repeated(refuse, samples=sizes.samples), "ms")
    sign = partial(_sign, placer, fresh)
    yield row("a cold signature", nodes, "nodes", repeated(sign, samples=sizes.samples), "ms")
    column = table.column(GPU)
    assert column is not None, "the nodes have GPUs"
    whole = partial(seconds, partial(fragmented_gpus, table, column))
    taken = repeated(whole, samples=sizes.samples)
    yield row("fragmentation of the cluster", nodes, "nodes", taken, "ms")


def _cold(placer: Placer, pods: int, sets: int, fresh: Iterator[int]) -> float:
    """Place a shape for the first time; a few bytes of memory make it one of its own."""
    asked = gang(pods, sets, more_bytes=next(fresh))
    return seconds(lambda: placer.place(asked))


def _warm(placer: Placer, asked: Gang) -> float:
    """Place a gang, let its pods take their nodes, and give them back."""

    def once() -> None:
        placements = placer.place(asked)
        assert not isinstance(placements, GangDoesNotFit), "it fitted before"
        table = placer.feasibility.table
        booked = [_booking(placed, table) for placed in placements]
        for demand, (rows, counts) in zip(asked.demands, booked, strict=True):
            table.take(rows, counts, demand.requests)
        for demand, (rows, counts) in zip(asked.demands, booked, strict=True):
            table.give_back(rows, counts, demand.requests)

    return seconds(once)


def _booking(placed: PodSetPlacement, table: NodeTable) -> tuple[Rows, Integers]:
    rows = np.array([table.row_of[name] for name, _ in placed.nodes], np.intp)
    return rows, np.array([pods for _, pods in placed.nodes], np.int64)


def _sign(placer: Placer, fresh: Iterator[int]) -> float:
    """Ask which nodes a new constraint allows."""
    number = next(fresh)
    asked = Constraint(
        selector=((POOL, f"pool-{number % 4}"),),
        tolerations=(Toleration(key=f"team-{number}", operator="Exists"),),
    )
    return seconds(lambda: placer.feasibility.allowed(asked))


# --- promises ------------------------------------------------------------------------------------


def _promised(nodes: int, rows: list[Row]) -> Iterator[Target]:
    """Hold a cluster's rows against the specification; the slowest of a column counts."""
    promise = PROMISES.get(nodes)
    if promise is None:
        return
    columns = (
        ("cold", 1, range(MOST_PODS + 1), promise.one_set),
        ("cold", 1, range(MOST_PODS + 1, 1 << 20), promise.many_pods),
        ("cold", 2, range(1 << 20), promise.two_sets),
        ("warm", 1, range(MOST_PODS + 1), promise.warm),
    )
    for kind, sets, pods, limit in columns:
        column = [each for each in rows if _is_in(each, kind, sets, pods)]
        slowest = max(column, key=lambda each: each.median)
        yield target(slowest.what, slowest, limit, better="below")
    feasible = max(each.median for each in rows if _is_in(each, "cold", 1, range(MOST_PODS + 1)))
    refused = next(each for each in rows if each.what == "cold, infeasible")
    ratio = refused.median / feasible
    yield _ratio("infeasible against feasible", nodes, "nodes", ratio, SLOWER)


def _is_in(each: Row, kind: str, sets: int, pods: Iterable[int]) -> bool:
    """Say whether a row belongs to a column of the specification's table."""
    words = each.what.replace(",", "").split()
    if words[0] != kind or "pods" not in words:
        return False
    return int(words[1]) in pods and int(words[3]) == sets


def _pods_growth(rows: list[Row], sizes: Sizes) -> Iterator[Note]:
    """Fit the cost against the number of pods."""
    for nodes in sizes.nodes:
        fitted = []
        for kind in ("cold", "warm"):
            points = [
                (pods, each.median)
                for each in rows
                for pods in sizes.pods
                if each.n == nodes and _is_in(each, kind, 1, (pods,))
            ]
            fitted.append(f"{kind} {exponent(points):.2f}")
        yield Note(
            f"growth with pods, {min(sizes.pods)} to {max(sizes.pods):,} on {nodes:,} nodes: "
            f"exponent {', '.join(fitted)}"
        )


def _ratio(what: str, n: int, of: str, measured: float, limit: float) -> Target:
    return target(what, figures(what, n, of, [measured], "ratio"), limit, better="below")


# --- memory --------------------------------------------------------------------------------------


def _weights(nodes: int) -> Iterator[Finding]:
    """Weigh what the engine keeps of a node beyond its own description, and of a shape."""
    described = [node(number) for number in range(nodes)]
    tracemalloc.start()
    try:
        before = _allocated()
        table = NodeTable()
        for each in described:
            table.put(each)
        placer = placer_of(table)
        placer.place(gang(1))
        a_node = figures("a node", nodes, "nodes", [(_allocated() - before) / nodes], "B")
        before = _allocated()
        for number in range(1, SHAPES_WEIGHED + 1):
            placer.place(gang(1, more_bytes=number))
        kept = (_allocated() - before) / nodes / SHAPES_WEIGHED
    finally:
        tracemalloc.stop()
    a_shape = figures("a cached shape, per node", nodes, "nodes", [kept], "B")
    for measured, limit in ((a_node, NODE_BYTES), (a_shape, SHAPE_BYTES)):
        yield measured
        yield target(measured.what, measured, limit, better="below")


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
