"""Purchases that are not offered, above a limit, or for no pods, are caught."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.audit_plans import breaks, of, on, passes, world
from tests.support.provisioning_builders import machine, offer, offerings
from tests.support.quota_builders import admission, admit, plan, pods
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.plan import Plan
from unisono.engine.model.provisioning import NODES, NodeClaim, Offerings, Pool, Purchase
from unisono.engine.model.resources import amounts
from unisono.engine.model.snapshot import Snapshot

replace = msgspec.structs.replace
GANG = of(pods(2, {"gpu": 4}))
LIMITS = amounts({NODES: 2})


def _sold(**more: Any) -> Offerings:
    has = amounts({"gpu": 4, "pods": 10})
    large = replace(machine("large", 4), allocatable=has, capacity=has)
    pool = Pool(name="p", limits=LIMITS)
    return offerings([large], [offer("large", 100, **more)], [pool])


def _world(**more: Any) -> Snapshot:
    return replace(world(waiting=(GANG,)), offerings=_sold(**more))


def _lot(name: str, **more: Any) -> NodeClaim:
    made = NodeClaim(
        node=NodeName(name),
        pool="p",
        machine="large",
        zone="a",
        capacity_type="on-demand",
        price_micro=100,
        pods=(("main", 1),),
    )
    return replace(made, **more)


def _plan(*node_claims: NodeClaim, on_nodes: dict[str, int] | None = None) -> Plan:
    places = (
        on_nodes
        if on_nodes is not None
        else {str(node_claim.node): 1 for node_claim in node_claims}
    )
    made = on(admission(GANG), places)
    purchase = Purchase(workload=GANG.key, node_claims=node_claims, ready_by=Instant(0))
    return plan(admissions=(replace(admit(GANG, admission=made), purchase=purchase),))


def test_machines_for_all_pods_pass() -> None:
    passes(_world(), _plan(_lot("a"), _lot("b")))


@pytest.mark.parametrize(
    ("node_claims", "why"),
    [
        ((_lot("a"), _lot("b", price_micro=99)), "costs"),
        ((_lot("a"), _lot("b", zone="z")), "not sold in z"),
        ((_lot("a"), _lot("b", capacity_type="spot")), "not sold"),
        ((_lot("a"), _lot("b"), _lot("c", pods=())), "for no pods"),
    ],
)
def test_what_is_not_for_sale_is_not_bought(node_claims: tuple[NodeClaim, ...], why: str) -> None:
    made = _plan(*node_claims, on_nodes={"a": 1, "b": 1})
    assert why in breaks("purchase", _world(), made).message


def test_limits_and_stock_are_kept() -> None:
    made = _plan(_lot("a"), _lot("b"))
    used = replace(_sold().pools[0], used=amounts({NODES: 1}))
    full = replace(_world(), offerings=replace(_sold(), pools=(used,)))
    assert "nodes 3 > 2" in breaks("purchase", full, made).message
    assert "of 1 that there are" in breaks("purchase", _world(stock=1), made).message


def test_a_machine_runs_the_pods_it_was_bought_for() -> None:
    made = _plan(_lot("a", pods=(("main", 2),)), _lot("b"), on_nodes={"a": 1, "b": 1})
    assert "is bought for" in breaks("purchase", _world(), made).message


def test_nothing_is_bought_where_nothing_is_sold() -> None:
    without = replace(_world(), offerings=None)
    breaks("purchase", without, _plan(_lot("a"), _lot("b")))


def test_a_machine_too_small_is_seen_as_any_node_would_be() -> None:
    made = _plan(_lot("a", pods=(("main", 2),)), on_nodes={"a": 2})
    breaks("node-overfull", _world(), made)
