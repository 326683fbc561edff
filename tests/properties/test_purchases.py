"""Purchases among queues, nodes and victims: every plan is sound, and every gang whole.

Clusters are drawn with pools that have limits and little stock, nodes that are partly free, and
gangs of several sizes. Every plan passes the auditor; no gang starts before its machines would be
there; what is bought stays within limits, stock and the number of purchases at a time.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.provisioning_builders import GPU, machine, offer, offerings
from tests.support.quota_builders import group, job, pods, queue, snapshot
from unisono.engine.audit import audit
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan
from unisono.engine.model.policy import Backfill, Policy, Provisioning
from unisono.engine.model.provisioning import NODES, ZONE, Pool, ProvisioningOptions
from unisono.engine.model.resources import amounts
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.snapshots import snapshot as picture

SOLD = (("small", 1, 10), ("middle", 4, 36), ("large", 8, 80))


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Draw a cluster: two queues, some nodes, two pools over three types and two zones."""
    stocks = st.none() | st.integers(0, 6)
    offers = [
        offer(name, price, zone, draw(stocks)) for name, _, price in SOLD for zone in ("a", "b")
    ]
    pools = [
        Pool(
            name=name,
            weight=draw(st.sampled_from([0, 10])),
            limits=amounts({NODES: draw(st.integers(0, 8)), GPU: draw(st.integers(0, 48))}),
        )
        for name in ("p", "q")
    ]
    made = offerings([machine(name, gpus, gpus * 8) for name, gpus, _ in SOLD], offers, pools)
    nodes = tuple(
        Node(
            name=NodeName(f"n{number}"),
            labels=((ZONE, draw(st.sampled_from("ab"))), ("nvidia.com/gpu.product", "X")),
            allocatable=amounts({GPU: draw(st.integers(0, 8)), "cpu": 64_000, "pods": 50}),
        )
        for number in range(draw(st.integers(0, 3)))
    )
    gangs = tuple(
        job(
            f"j{number}",
            draw(st.sampled_from("xy")),
            pod_sets=(
                pods(
                    draw(st.integers(1, 6)),
                    {GPU: draw(st.sampled_from([1, 3, 4, 8])), "cpu": 1000},
                ),
            ),
            priority=draw(st.integers(0, 1)),
            created_at=Instant(number * 1000),
            buying=ProvisioningOptions(scope=draw(st.sampled_from(["", "any"]))),
        )
        for number in range(draw(st.integers(1, 5)))
    )
    quota = group({"f": {GPU: "64", "cpu": "999999"}})
    policy = Policy(
        provisioning=Provisioning(most_at_once=draw(st.integers(1, 4))),
        backfill=draw(st.none() | st.just(Backfill())),
    )
    queues = tuple(queue(name, groups=(quota,)) for name in "xy")
    return snapshot(*queues, waiting=gangs, nodes=nodes, offerings=made, policy=policy)


@given(worlds())
def test_every_plan_that_buys_is_sound(world: Snapshot) -> None:
    state = restore(world)
    bought: dict[str, int] = {}
    for _ in range(20):
        before = picture(state)
        made = plan(state, Instant(10_000))
        assert audit(before, made) == ()
        again = plan(state, Instant(10_000))
        assert again.admissions == made.admissions, "two plans"
        if world.policy.backfill is None:
            assert again.waits == made.waits, "two plans"
        else:  # the first took kept reservations: the second evaluates every gang anew
            assert _told(made) <= _told(again)
        for admit in made.admissions:
            wanted = sum(one.count for one in admit.admission.pod_sets)
            seated = sum(n for one in admit.admission.pod_sets for _, n in one.nodes)
            assert seated == wanted, "a gang is not whole"
            for pool in (
                {node_claim.pool for node_claim in admit.purchase.node_claims}
                if admit.purchase
                else ()
            ):
                bought[pool] = bought.get(pool, 0) + 1
        if not apply_plan(state, made):
            break
    assert all(count <= world.policy.provisioning.most_at_once for count in bought.values())
    for admitted in picture(state).admitted_workloads:
        names = {name for one in admitted.admission.pod_sets for name, _ in one.nodes}
        is_there = names <= {node.name for node in world.nodes}
        assert admitted.may_start == is_there, "it counts as running before its machines are there"


def _told(made: Plan) -> set[WorkloadKey]:
    return {wait.explanation.workload for wait in made.waits}
