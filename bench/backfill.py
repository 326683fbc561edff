"""One cycle with backfill: hundreds of gangs run, many more wait and get backfill reservations.

Gangs of one to 32 pods ask for one to eight GPUs (or CPUs) a pod on nodes that have eight, and for
a minute to a day of time: 24 shapes, and hardly two gangs with the same limit. A thousand came
first; the 300 of them that 500 nodes hold run, and every twentieth of those has just ended: there
is room for those that delay no reservation. Nothing is known from a cycle before. EASY makes one
reservation, conservative backfill one for every pending gang.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness import Finding, Note, Scale, row, seconds, target
from unisono.engine.cluster import new_cluster
from unisono.engine.cycle import plan
from unisono.engine.model.names import (
    CPU,
    FlavorName,
    Instant,
    LocalQueueKey,
    NodeName,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.queue import (
    ClusterQueue,
    Flavor,
    FlavorQuota,
    LocalQueue,
    ResourceGroup,
    ResourceQuota,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.snapshot import Namespace
from unisono.engine.model.workload import PodSet, Workload
from unisono.engine.state import changes
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.cluster import ClusterState

EASY, CONSERVATIVE = "EASY", "conservative"
# Every pending gang gets a reservation, however far away.
RULES = {EASY: Backfill(dates=1), CONSERVATIVE: Backfill(window_ms=10**12)}
GPU = ResourceName("nvidia.com/gpu")
UNITS: dict[ResourceName, int] = {GPU: 1, CPU: 1000}
A_NODE = 8
SMALL, ALL = (1, 1, 2, 4, 8), (1, 1, 2, 4, 8, 16, 32)  # pods of gangs that run, and that wait
NODES_A_GANG = 0.5
ENDED = 20  # every so many-th
LIMITS_S = {(EASY, 100_000): 0.3, (CONSERVATIVE, 10_000): 2.0}
QUEUE, DOOR, FLAVOR = QueueName("all"), LocalQueueKey("team/all"), FlavorName("nodes")


@dataclass(frozen=True)
class Sizes:
    """How many try to run first, and how many wait behind them."""

    running: int
    easy: tuple[int, ...]
    conservative: tuple[int, ...]


SIZES: dict[Scale, Sizes] = {
    "full": Sizes(1_000, (1_000, 10_000, 100_000), (1_000, 10_000)),
    "quick": Sizes(200, (300, 1_000), (300, 1_000)),
    "tiny": Sizes(10, (10, 20), (10, 20)),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Look at longer and longer queues."""
    sizes = SIZES[scale]
    for mode, lengths in ((EASY, sizes.easy), (CONSERVATIVE, sizes.conservative)):
        for resource in UNITS:
            for length in lengths:
                state = _cluster(mode, resource, sizes.running, length)
                gc.collect()
                made: list[Plan] = []
                taken = seconds(lambda s=state, m=made: m.append(plan(s, Instant(3_000))))  # type: ignore[misc]  # bound now
                measured = row(f"{mode}, {resource}", length, "waiting", [taken], "s")
                yield measured
                if length == max(lengths):
                    yield Note(
                        f"{mode}, {resource}: {len(state.running):,} run, "
                        f"{len(made[0].admissions):,} start, "
                        f"{len(made[0].reservations):,} have reservations"
                    )
                    limit = LIMITS_S.get(
                        (mode, length), next(v for k, v in LIMITS_S.items() if k[0] == mode)
                    )
                    yield target(f"pass, {mode}, {resource}", measured, limit, better="below")


def _cluster(mode: str, resource: ResourceName, running: int, waiting: int) -> ClusterState:
    state = new_cluster(Policy(backfill=RULES[mode]))
    nodes, unit, dice = int(running * NODES_A_GANG), UNITS[resource], random.Random(3)
    state.apply(changes.FlavorSet(Flavor(name=FLAVOR)))
    quota = ResourceQuota(resource=resource, nominal=nodes * A_NODE * unit)
    group = ResourceGroup(covered=(resource,), flavors=(FlavorQuota(FLAVOR, (quota,)),))
    queue = ClusterQueue(name=QUEUE, namespace_selector=LabelSelector(), groups=(group,))
    state.apply(changes.QueueSet(queue))
    state.apply(changes.LocalQueueSet(LocalQueue(key=DOOR, queue=QUEUE)))
    state.apply(changes.NamespaceSet(Namespace("team")))
    whole = amounts({resource: A_NODE * unit})
    for number in range(nodes):
        state.apply(changes.NodeSet(Node(name=NodeName(f"node-{number:05}"), allocatable=whole)))
    for number in range(running):
        state.apply(changes.WorkloadWaits(_gang(number, SMALL, resource, dice)))
    apply_plan(state, plan(state, Instant(2_000)))
    for number in range(running, running + waiting):
        state.apply(changes.WorkloadWaits(_gang(number, ALL, resource, dice)))
    for key in [*state.running][::ENDED]:
        state.apply(changes.WorkloadGone(key))
    return state


def _gang(
    number: int, sizes: tuple[int, ...], resource: ResourceName, dice: random.Random
) -> Workload:
    requests = amounts({resource: UNITS[resource] * dice.choice((1, 2, 4, 8))})
    return Workload(
        key=WorkloadKey(f"team/{number}"),
        uid=f"{number:06}",
        queue=DOOR,
        pod_sets=(PodSet(count=dice.choice(sizes), requests=requests),),
        created_at=Instant(number),
        time_limit_ms=dice.randrange(60, 86_400) * 1000,
    )
