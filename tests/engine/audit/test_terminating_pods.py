"""Waiting for pods that do not leave, not soon enough, or need not, is caught."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.support.audit_plans import breaks, machine, of, on, passes, world
from tests.support.quota_builders import admission, pods
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import NodePod
from unisono.engine.model.plan import Await, Plan
from unisono.engine.model.policy import Placement, Policy
from unisono.engine.model.resources import amounts
from unisono.engine.model.snapshot import Snapshot

replace = msgspec.structs.replace
GANG = of(pods(1, {"gpu": 8}))
PATIENT = Policy(placement=Placement(wait_for_leaving_ms=60_000))


def cluster(*, uses: int = 6, leaves_at: int | None = 30_000, policy: Policy = PATIENT) -> Snapshot:
    """Two nodes; on the first a pod that is being deleted."""
    leaving = NodePod(
        key="ns/leaving",
        node=NodeName("n1"),
        requests=amounts({"gpu": uses}),
        leaves_at=None if leaves_at is None else Instant(leaves_at),
    )
    other = NodePod(key="ns/other", node=NodeName("n2"), requests=amounts({"gpu": 8}))
    made = world(machine("n1"), machine("n2"), waiting=(GANG,), pods=(leaving, other))
    return replace(made, policy=policy)


def waiting(node: str = "n1", pods: tuple[str, ...] = ("ns/leaving",), **options: Any) -> Plan:
    """Let the gang wait for pods to leave a node."""
    awaiting = Await(workload=GANG.key, admission=on(admission(GANG), {node: 1}), pods=pods)
    return Plan(based_on=0, now=Instant(0), awaits=(awaiting,), **options)


def test_a_place_that_will_soon_be_free_may_be_waited_for() -> None:
    passes(cluster(), waiting())


def test_only_pods_that_terminate_soon_on_its_nodes_count() -> None:
    breaks("await", cluster(leaves_at=None), waiting())
    breaks("await", cluster(leaves_at=60_001), waiting())
    breaks("await", cluster(leaves_at=-60_000), waiting())
    breaks("await", cluster(policy=Policy()), waiting())
    breaks("await", cluster(), waiting(pods=()))
    breaks("await", cluster(), waiting(pods=("ns/leaving", "ns/other")))
    breaks("await", cluster(), waiting(pods=("ns/missing",)))


def test_they_have_to_be_in_the_way_and_enough() -> None:
    assert "room" in breaks("await", cluster(uses=0), waiting()).message
    breaks("node-overfull", cluster(), waiting("n2"))
