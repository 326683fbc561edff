"""What a seed means: a small cluster, gangs of all kinds, and what goes wrong when."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.faults.fault_rates import FaultRates
from tests.faults.jobs import JOB_KINDS, NEEDS_QUEUE, Gang, Wish
from tests.support.control_objects import GPU, KUEUE, node, priority
from unisono.kube.form import Json

PRIORITIES = {"low": 1, "high": 100}
# Things go wrong for so long; then all gangs have to come to a good end.
TROUBLE_S = 240.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is done to the cluster, and to what (drawn when its time comes)."""

    at: float
    what: str
    draw: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a seed decides beforehand."""

    surroundings: Sequence[Json]
    gangs: Sequence[tuple[float, Gang]]
    troubles: Sequence[Trouble]
    rates: FaultRates
    workers: int
    is_checked: bool


def plan_of(seed: int) -> Plan:
    """Draw a plan; what one part draws does not change another."""
    random_source = random.Random(f"faults {seed}")
    nodes = [
        node(f"n{number}", random_source.choice((4, 8)))
        for number in range(random_source.randint(2, 4))
    ]
    capacity = [int(one["status"]["allocatable"][GPU]) for one in nodes]
    queues = _queues(random_source, sum(capacity))
    classes = [priority(name, value) for name, value in PRIORITIES.items()]
    return Plan(
        surroundings=(*classes, *nodes, *_objects(queues)),
        gangs=_gangs(random.Random(f"gangs {seed}"), capacity, queues),
        troubles=(
            *_troubles(random.Random(f"troubles {seed}")),
            *_more_troubles(random.Random(f"more troubles {seed}")),
        ),
        rates=_fault_rates(random.Random(f"sky {seed}")),
        workers=random_source.choice((1, 2, 4, 16)),
        is_checked=seed % 8 == 0,
    )


# ---- queues ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Queue:
    name: str
    gpus: int
    spec: Json


def _queues(random_source: random.Random, capacity: int) -> list[_Queue]:
    count = random_source.randint(1, 3)
    cohort = random_source.choice(("", "all"))
    found = []
    for number in range(count):
        gpus = max(4, capacity // count if random_source.random() < 0.7 else capacity)
        quota: Json = {"name": GPU, "nominalQuota": str(gpus)}
        if cohort and random_source.random() < 0.3:
            quota["borrowingLimit"] = str(random_source.choice((0, 2, 4)))
        ample = [{"name": name, "nominalQuota": "10000G"} for name in ("cpu", "memory")]
        flavor = {"name": "f", "resources": [quota, *ample]}
        spec: Json = {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": [GPU, "cpu", "memory"], "flavors": [flavor]}],
            "preemption": {
                "withinClusterQueue": random_source.choice(("Never", "LowerPriority")),
                "reclaimWithinCohort": random_source.choice(("Never", "Any"))
                if cohort
                else "Never",
            },
        }
        if cohort:
            spec["cohortName"] = cohort
        found.append(_Queue(f"q{number}", gpus, spec))
    return found


def _objects(queues: Sequence[_Queue]) -> list[Json]:
    flavor = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {}}
    found = [flavor]
    for one in queues:
        found += [
            {
                "apiVersion": KUEUE,
                "kind": "ClusterQueue",
                "metadata": {"name": one.name},
                "spec": one.spec,
            },
            {
                "apiVersion": KUEUE,
                "kind": "LocalQueue",
                "metadata": {"name": f"l{one.name}", "namespace": "default"},
                "spec": {"clusterQueue": one.name},
            },
        ]
    return found


# ---- gangs -------------------------------------------------------------------------------------


def _gangs(
    random_source: random.Random, capacity: Sequence[int], queues: Sequence[_Queue]
) -> list[tuple[float, Gang]]:
    """Draw gangs, each of which could run if it had the cluster to itself."""
    found = []
    for number in range(random_source.randint(3, 6)):
        sort = random_source.choice(tuple(JOB_KINDS))
        queue = random_source.choice(queues)
        gpus = random_source.choice((1, 2, 4))
        room = min(queue.gpus // gpus, sum(gpus_ // gpus for gpus_ in capacity))
        is_queued = sort in NEEDS_QUEUE or random_source.random() < 0.8
        wish = Wish(
            name=f"{sort}{number}",
            pods=random_source.randint(1, min(4, room)),
            gpus=gpus,
            seconds=random_source.choice((5, 20, 60)),
            queue=f"l{queue.name}" if is_queued else "",
            priority=random_source.choice(("", "", *PRIORITIES)),
            fails_once=random_source.random() < 0.2,
        )
        found.append((random_source.uniform(0.0, TROUBLE_S / 2), JOB_KINDS[sort](wish)))
    return sorted(found, key=lambda pair: pair[0])


# ---- troubles ----------------------------------------------------------------------------------

TROUBLES = (
    "kill control",
    "kill control",
    "kill runner",
    "node not ready",
    "node deleted",
    "pod deleted",
    "pod deleted",
    "pod evicted",
    "pod failed",
    "job deleted",
    "job suspended",
    "job edited",
    "workload off",
    "workload deleted",
    "queue held",
    "queue drained",
    "quota cut",
)


def _troubles(random_source: random.Random) -> list[Trouble]:
    return [
        Trouble(
            random_source.uniform(1.0, TROUBLE_S),
            random_source.choice(TROUBLES),
            random_source.random(),
        )
        for _ in range(random_source.randint(2, 8))
    ]


# Drawn by themselves, so that the others come as they came before there were these.
MORE_TROUBLES = (
    "job orphaned",
    "job orphaned",
    "job replaced",
    "owner stripped",
    "clock set",
    "clock set",
)


def _more_troubles(random_source: random.Random) -> list[Trouble]:
    return [
        Trouble(
            random_source.uniform(1.0, TROUBLE_S),
            random_source.choice(MORE_TROUBLES),
            random_source.random(),
        )
        for _ in range(random_source.choice((0, 0, 1, 2, 3)))
    ]


def _fault_rates(random_source: random.Random) -> FaultRates:
    """Draw which faults there are in this run, and how many of them."""

    def some(*rates: float) -> float:
        return random_source.choice((0.0, *rates))

    return FaultRates(
        refuse=some(0.01, 0.05, 0.15),
        lose=some(0.01, 0.05),
        conflict=some(0.01, 0.05, 0.15),
        busy=some(0.01, 0.05),
        die_before=some(0.003, 0.01),
        die_after=some(0.003, 0.01),
        late=some(0.01, 0.05, 0.2),
        lost=some(0.005, 0.02),
        doubled=some(0.02, 0.2),
        delay=some(0.01, 0.05),
    )
