"""Limits of multifactor priority count what the same cycle starts, also by counting."""

from __future__ import annotations

from tests.support.priority_builders import job, multifactor_rules
from unisono.engine.audit import audit
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.model.multifactor import Limits, Qos
from unisono.engine.model.names import (
    CPU,
    PODS,
    FlavorName,
    LocalQueueKey,
    NodeName,
    QueueName,
    ResourceName,
)
from unisono.engine.model.node import Node
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
from unisono.engine.model.snapshot import Snapshot

MEMORY = ResourceName("memory")
PLENTY: dict[ResourceName, int] = {CPU: 1_000_000, MEMORY: 1 << 50}


def test_a_limit_counts_gangs_that_were_started_by_counting() -> None:
    one_job = Qos(name="normal", limits=Limits(group_jobs=1))
    quota = tuple(ResourceQuota(resource=name, nominal=most) for name, most in PLENTY.items())
    flavor = FlavorQuota(flavor=FlavorName("cpus"), resources=quota)
    world = Snapshot(
        policy=Policy(
            multifactor=multifactor_rules(partitions=(), qos=(one_job,)), backfill=Backfill(dates=1)
        ),
        flavors=(Flavor(name=FlavorName("cpus")),),
        queues=(
            ClusterQueue(
                name=QueueName("q"),
                groups=(ResourceGroup(covered=(CPU, MEMORY), flavors=(flavor,)),),
                namespace_selector=LabelSelector(),
            ),
        ),
        local_queues=(LocalQueue(key=LocalQueueKey("ns/q"), queue=QueueName("q")),),
        nodes=(Node(name=NodeName("n"), allocatable=amounts({**PLENTY, PODS: 110})),),
        waiting=tuple(job(name, account="prod", user="mail") for name in ("a", "b")),
    )
    made = plan(restore(world), world.now)
    assert audit(world, made) == ()
    assert len(made.admissions) == 1
