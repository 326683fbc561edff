"""Clusters to measure on: queues in flat cohorts or one deep tree, filled, with a backlog.

Everything is made from numbers and a seed, so that two runs measure the same thing. Every queue
has one local queue in a namespace of its own and one flavor with CPU, memory and GPUs; only GPUs
are ever short. The backlog is a mix of 48 shapes and two priorities, eight kinds in a queue: what
shares a verdict is decided once, so figures depend on it, and benchmarks vary it.

    flat   cohorts of fifty queues each
    deep   one tree with four levels of cohorts: fifty queues in a leaf cohort, five cohorts in
           the next, and so on; every queue of the cluster is in it
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from unisono.engine.cluster import new_cluster
from unisono.engine.cycle import plan
from unisono.engine.model.names import (
    CPU,
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.policy import Policy
from unisono.engine.model.queue import (
    ClusterQueue,
    Cohort,
    Flavor,
    FlavorQuota,
    LocalQueue,
    PreemptionRules,
    ResourceGroup,
    ResourceQuota,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.workload import (
    Admission,
    AdmittedWorkload,
    PodSet,
    PodSetAssignment,
    Workload,
)
from unisono.engine.state import changes
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.cluster import ClusterState

Form = Literal["flat", "deep"]

FLAVOR = FlavorName("h100")
GPU = ResourceName("nvidia.com/gpu")
MEMORY = ResourceName("memory")
GIB = 1 << 30
PLENTY = 1 << 60  # of CPU and memory: only GPUs are ever short

QUEUES_IN_COHORT = 50
COHORTS_IN_COHORT = 5
LEVELS = 4

# A queue owns 65 GPUs: two gangs of 32 fill it but for one GPU, which a small workload holds. When
# that one ends, nothing of the backlog fits, because all of it asks for two or more.
GPUS_OWNED = 65
PRIORITIES = (0, 100)  # of the backlog
HELD_PRIORITY = 1000
KINDS_IN_QUEUE = 8
NO_PREEMPTION = PreemptionRules()
# What Kueue's documentation recommends for teams that lend to each other.
PREEMPTION = PreemptionRules(within_queue="LowerPriority", reclaim="Any")


@dataclass(frozen=True)
class Layout:
    """How many queues there are, which cohorts they form, and which own GPUs."""

    queues: int
    form: Form = "flat"
    cohort_size: int = QUEUES_IN_COHORT
    gpus: int = GPUS_OWNED  # of every queue
    lender_gpus: int = 0  # of queue 0, in addition
    cohort_gpus: int = 0  # of every leaf cohort
    rules: PreemptionRules = NO_PREEMPTION


def queue_name(index: int) -> QueueName:
    """Name a queue."""
    return QueueName(f"team-{index:05}")


def door_of(index: int) -> LocalQueueKey:
    """Name the local queue of a queue."""
    return LocalQueueKey(f"team-{index:05}/default")


def empty_cluster(layout: Layout, policy: Policy | None = None) -> ClusterState:
    """Configure a cluster in which nothing runs or waits."""
    state = new_cluster(policy)
    state.apply(changes.FlavorSet(Flavor(name=FLAVOR)))
    for cohort in _cohorts(layout):
        state.apply(changes.CohortSet(cohort))
    for index in range(layout.queues):
        queue = ClusterQueue(
            name=queue_name(index),
            cohort=_leaf(index // layout.cohort_size),
            groups=(_quota(layout.gpus + (0 if index else layout.lender_gpus)),),
            namespace_selector=LabelSelector(),
            preemption=layout.rules,
        )
        state.apply(changes.QueueSet(queue))
        state.apply(changes.LocalQueueSet(LocalQueue(key=door_of(index), queue=queue_name(index))))
    state.refresh()
    return state


def _quota(gpus: int) -> ResourceGroup:
    limits = {CPU: PLENTY, MEMORY: PLENTY, GPU: gpus}
    listed = tuple(ResourceQuota(resource=name, nominal=many) for name, many in limits.items())
    return ResourceGroup(covered=(*limits,), flavors=(FlavorQuota(FLAVOR, listed),))


def _leaf(index: int) -> CohortName:
    return CohortName(f"cohort-{LEVELS}-{index}")


def _cohorts(layout: Layout) -> Iterator[Cohort]:
    """Yield the cohorts that have a parent or quota; others need not be configured."""
    count = -(-layout.queues // layout.cohort_size)
    for level in range(LEVELS, 0, -1):
        for index in range(count):
            yield Cohort(
                name=CohortName(f"cohort-{level}-{index}"),
                parent=_parent(level, index) if layout.form == "deep" else None,
                groups=(_quota(layout.cohort_gpus),) if level == LEVELS else (),
            )
        if layout.form == "flat":
            return
        # However many there are, the tree has one root.
        count = -(-count // COHORTS_IN_COHORT) if level > 2 else 1


def _parent(level: int, index: int) -> CohortName | None:
    if level == 1:
        return None
    return CohortName(f"cohort-{level - 1}-{0 if level == 2 else index // COHORTS_IN_COHORT}")


# --- workloads -----------------------------------------------------------------------------------


def pods(count: int, gpus: int, cores: int = 8, memory_gib: int = 64) -> PodSet:
    """Describe pods with so many GPUs each, and the CPUs and memory that go with a GPU."""
    wanted = {CPU: 1000 * cores * gpus, MEMORY: memory_gib * GIB * gpus, GPU: gpus}
    return PodSet(count=count, requests=amounts(wanted))


SHAPES = tuple(
    pods(count, gpus, cores, memory_gib)
    for count in (1, 2, 4, 8)
    for gpus in (2, 4, 8)
    for cores in (8, 16)
    for memory_gib in (64, 128)
)


def workload(
    number: int, queue: int, pod_set: PodSet, priority: int = 0, *, prefix: str = "train"
) -> Workload:
    """Make a workload; numbers order their arrival."""
    door = door_of(queue)
    return Workload(
        key=WorkloadKey(f"{door.partition('/')[0]}/{prefix}-{number:07}"),
        uid=f"{number:08x}-6f1c-4d7e-9b1a-0c5e2f7a{prefix[:4]}",
        queue=door,
        pod_sets=(pod_set,),
        priority=priority,
        created_at=Instant(1000 * number),
    )


def backlog(
    count: int,
    queues: int,
    *,
    kinds: int = KINDS_IN_QUEUE,
    seed: int = 1,
    prefix: str = "train",
) -> list[Workload]:
    """Make waiting workloads, dealt round to the queues; a team does so many kinds of work."""
    dice = random.Random(seed)
    work = [
        [(shape, dice.choice(PRIORITIES)) for shape in dice.sample(SHAPES, kinds)]
        for _ in range(queues)
    ]
    return [
        workload(number, number % queues, *dice.choice(work[number % queues]), prefix=prefix)
        for number in range(count)
    ]


def admitted_workload(held: Workload, queue: int, now: Instant = Instant(0)) -> AdmittedWorkload:
    """Let a workload hold what it asks for."""
    return AdmittedWorkload(
        workload=held,
        admission=Admission(
            queue=queue_name(queue),
            pod_sets=tuple(
                PodSetAssignment(
                    name=pod_set.name,
                    count=pod_set.count,
                    flavors=tuple((resource, FLAVOR) for resource, _ in pod_set.requests),
                )
                for pod_set in held.pod_sets
            ),
        ),
        reserved_at=now,
    )


def small_holder(queue: int) -> WorkloadKey:
    """Name the workload that holds a full queue's last GPU."""
    return workload(3 * queue, queue, SHAPES[0], prefix="held").key


def fill(state: ClusterState, queues: Iterable[int]) -> None:
    """Let queues of `GPUS_OWNED` be in full use, by workloads that outrank the backlog."""
    for queue in queues:
        for place, pod_set in enumerate((pods(1, 1), pods(4, 8), pods(4, 8))):
            held = workload(3 * queue + place, queue, pod_set, HELD_PRIORITY, prefix="held")
            state.apply(changes.WorkloadHolds(admitted_workload(held, queue)))


def submit(state: ClusterState, workloads: Iterable[Workload]) -> None:
    """Let workloads wait."""
    for each in workloads:
        state.apply(changes.WorkloadWaits(each))


def full_cluster(layout: Layout, pending: int, *, kinds: int = KINDS_IN_QUEUE) -> ClusterState:
    """Make a cluster in full use with a backlog, after all has been decided that can be."""
    state = empty_cluster(layout)
    fill(state, range(layout.queues))
    submit(state, backlog(pending, layout.queues, kinds=kinds))
    settle(state)
    return state


def cycle(state: ClusterState) -> bool:
    """Decide one cycle and file it; say whether it changed anything."""
    return apply_plan(state, plan(state, state.now))


def settle(state: ClusterState) -> int:
    """Run cycles until one changes nothing; return how many there were."""
    cycles = 1
    while cycle(state):
        cycles += 1
    return cycles
