"""Orphaned NodeClaims: machines on their way are taken before any is bought, by one gang only."""

from __future__ import annotations

import msgspec

from tests.support.provisioning_builders import GPU, machine, offer, offerings
from tests.support.quota_builders import group, job, pods, queue, snapshot
from unisono.engine.audit import audit
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.explain.purchases import purchase_sentence
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.plan import Plan
from unisono.engine.model.provisioning import (
    CapacityType,
    NodeClaim,
    Offerings,
    PendingNodeClaims,
    Pool,
    ProvisioningOptions,
    Purchase,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Workload
from unisono.engine.state.apply_plan import apply_plan

NOW = Instant(10_000)


def orphaned(*names: str, sold: CapacityType = "on-demand", zone: str = "a") -> PendingNodeClaims:
    """Machines that boot for a gang that gave up."""
    node_claims = tuple(
        NodeClaim(
            node=NodeName(name),
            pool="p",
            machine="large",
            zone=zone,
            capacity_type=sold,
            price_micro=80,
            pods=(),
        )
        for name in names
    )
    return PendingNodeClaims(
        workload=WorkloadKey("default/gone"), node_claims=node_claims, ready_by=Instant(40_000)
    )


def world(*gangs: Workload, left: PendingNodeClaims, **of_pool: int) -> Snapshot:
    """Offerings of one type in two zones, and what is on its way."""
    offers = [offer("large", 80, zone) for zone in "ab"]
    offers.append(msgspec.structs.replace(offers[0], capacity_type="spot", price_micro=30))
    pool = Pool(name="p", limits=amounts(of_pool), used=amounts({"nodes": len(left.node_claims)}))
    sells: Offerings = offerings([machine("large", 8, 64)], offers, [pool], orphaned=(left,))
    quota = group({"f": {GPU: "64", "cpu": "999999"}})
    return snapshot(queue("x", groups=(quota,)), waiting=gangs, offerings=sells)


def gang(name: str, size: int, **more: object) -> Workload:
    """Pods of eight GPUs each."""
    made = job(name, "x", pod_sets=(pods(size, {GPU: 8, "cpu": 1000}),))
    return msgspec.structs.replace(made, **more)


def decided(seen: Snapshot) -> Plan:
    """Decide one cycle; the auditor agrees."""
    made = plan(restore(seen), NOW)
    assert audit(seen, made) == ()
    return made


def only_purchase(made: Plan) -> Purchase:
    """Return what the admitted gang buys."""
    (admit,) = made.admissions
    assert admit.purchase is not None
    return admit.purchase


def test_what_is_on_its_way_comes_first_and_only_the_rest_is_bought() -> None:
    bought = only_purchase(decided(world(gang("j", 3), left=orphaned("m1", "m2"))))
    assert [node_claim.node for node_claim in bought.node_claims if node_claim.taken_over] == [
        "m1",
        "m2",
    ]
    assert len(bought.node_claims) == 3
    assert {node_claim.zone for node_claim in bought.node_claims} == {"a"}
    assert "2 × large on-demand in a (already being provisioned)" in purchase_sentence(bought)


def test_limits_know_it_already_and_it_comes_sooner() -> None:
    bought = only_purchase(decided(world(gang("j", 2), left=orphaned("m1", "m2"), nodes=2)))
    assert {node_claim.node for node_claim in bought.node_claims} == {"m1", "m2"}
    assert bought.ready_by == 40_000


def test_only_one_takes_a_machine() -> None:
    seen = world(gang("j", 2), gang("k", 2), left=orphaned("m1", "m2"))
    state = restore(seen)
    taken: list[str] = []
    for _ in range(4):
        made = plan(state, NOW)
        for admit in made.admissions:
            assert admit.purchase is not None
            taken += [
                node_claim.node
                for node_claim in admit.purchase.node_claims
                if node_claim.taken_over
            ]
        if not apply_plan(state, made):
            break
    assert sorted(taken) == ["m1", "m2"]
    assert state.config.offerings is not None
    assert state.config.offerings.orphaned == ()


def test_spot_has_to_be_allowed_here_too() -> None:
    spot = orphaned("m1", "m2", sold="spot")
    assert not any(
        node_claim.taken_over
        for node_claim in only_purchase(decided(world(gang("j", 2), left=spot))).node_claims
    )
    asked = gang("j", 2, buying=ProvisioningOptions(spot="true"))
    assert all(
        node_claim.taken_over
        for node_claim in only_purchase(decided(world(asked, left=spot))).node_claims
    )


def test_the_auditor_accepts_orphaned_machines() -> None:
    seen = world(gang("j", 2), left=orphaned("m1", "m2"))
    made = decided(seen)
    without = msgspec.structs.replace(seen, offerings=offerings([machine("large", 8, 64)], []))
    assert any("orphaned" in one.message for one in audit(without, made))
