"""The cluster that the reference numbers of turns were measured on, and workloads for it.

Four nodes of 32 cores, 256 GiB and 8 GPUs; six users in four accounts; weights and factors as
in spec priority §9. One queue without limits, so that turns alone decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.engine.cluster import restore
from unisono.engine.model.multifactor import (
    Association,
    MultifactorRules,
    Partition,
    Qos,
    SubmitOptions,
    Weights,
)
from unisono.engine.model.names import Instant, LocalQueueKey, NodeName, QueueName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.policy import Policy
from unisono.engine.model.queue import ClusterQueue, LocalQueue
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import PodSet, Workload
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.state.cluster import ClusterState

GIB = 2**30
NODES = tuple(
    Node(
        name=NodeName(f"gpu{number}"),
        allocatable=amounts({"cpu": 32_000, "memory": 256 * GIB, "nvidia.com/gpu": 8, "pods": 110}),
    )
    for number in range(1, 5)
)
TREE = (
    Association(account="prod", shares=40),
    Association(account="research", shares=60),
    Association(account="nlp", parent="research", shares=10),
    Association(account="vision", parent="research", shares=30),
    Association(account="prod", user="mail"),
    Association(account="prod", user="news"),
    Association(account="nlp", user="lp"),
    Association(account="vision", user="games"),
    Association(account="vision", user="man", shares=3),
)
MORE_OF_THE_TREE = (
    Association(account="ta", shares=20),
    Association(account="tb", shares=20),
    Association(account="ta", user="backup"),
    Association(account="ta", user="www", shares=3),
    Association(account="tb", user="irc", shares=2),
    Association(account="tb", user="list", shares=2),
)
QOS = (
    Qos(name="low", priority=10),
    Qos(name="normal", priority=50),
    Qos(name="high", priority=100),
)
PARTITIONS = (
    Partition(name="main", is_default=True, job_factor=10),
    Partition(name="urgent", job_factor=40, tier=10),
)
WEIGHTS = Weights(
    age=1000,
    association=100,
    fair_share=10_000,
    job_size=500,
    partition=2000,
    qos=3000,
    tres=(("cpu", 100.0), ("mem", 200.0), ("gres/gpu", 700.0)),
)


def multifactor_rules(**changed: Any) -> MultifactorRules:
    """Return the rules of the reference cluster."""
    settings: dict[str, Any] = {
        "weights": WEIGHTS,
        "max_age_ms": 3600 * 1000,
        "associations": TREE,
        "qos": QOS,
        "partitions": PARTITIONS,
        "default_qos": "normal",
    }
    return MultifactorRules(**(settings | changed))


def usage_of(accounts: Accounts, used: Mapping[tuple[str, str], float]) -> list[float]:
    """Return what every association used, given what users did."""
    usage = [0.0] * len(accounts.specs)
    for (account, user), amount in used.items():
        number = accounts.find(account, user)
        assert number is not None, f"there is no {user} in {account}"
        for above in accounts.path(number):
            usage[above] += amount
    return usage


def job(name: str, *, gpu: int = 0, cpu: int = 1, pods: int = 1, **options: Any) -> Workload:
    """Make a workload; 1 GiB a core, as on the reference cluster. The rest is about its turn."""
    settings = {field: options.pop(field) for field in list(options) if field in _TURN_FIELDS}
    requests = {"cpu": cpu * 1000, "memory": cpu * GIB, "nvidia.com/gpu": gpu}
    options.setdefault("queue", LocalQueueKey("ns/q"))
    return Workload(
        key=WorkloadKey(f"ns/{name}"),
        uid=name,
        pod_sets=(PodSet(count=pods, requests=amounts(requests)),),
        submit_options=SubmitOptions(**settings),
        **options,
    )


_TURN_FIELDS = frozenset(SubmitOptions.__struct_fields__)


def cluster(rules: MultifactorRules, *, queues: int = 1, now: int = 0, **more: Any) -> ClusterState:
    """Return the reference cluster, empty."""
    names = ["q", *(f"q{number}" for number in range(2, queues + 1))]
    world = Snapshot(
        now=Instant(now),
        policy=Policy(multifactor=rules),
        queues=tuple(
            ClusterQueue(name=QueueName(name), unlimited=True, namespace_selector=LabelSelector())
            for name in names
        ),
        local_queues=tuple(
            LocalQueue(key=LocalQueueKey(f"ns/{name}"), queue=QueueName(name)) for name in names
        ),
        nodes=NODES,
        **more,
    )
    return restore(world)
