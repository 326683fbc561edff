"""Is what a plan buys offered, allowed by its pool, large enough, and within every limit?

Machines that do not exist yet are first added as nodes, so that labels, taints and room are checked
like those of any node. Spec provisioning §5.3 and §5.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Admit, Plan
from unisono.engine.model.provisioning import (
    CAPACITY_TYPE,
    NODE_POOL,
    NODES,
    REGION,
    ZONE,
    NodeClaim,
    Offer,
    Offerings,
    Purchase,
)
from unisono.engine.model.resources import amounts

OfferKey = tuple[str, str, str]  # machine, zone, capacity type


def with_bought(index: SnapshotIndex, offerings: Offerings | None, plan: Plan) -> SnapshotIndex:
    """Return an index in which the machines that a plan buys are nodes already.

    Only placement is checked with it: whatever waits was evaluated without these nodes.
    """
    bought = [admit.purchase for admit in plan.admissions if admit.purchase is not None]
    if not bought or offerings is None:
        return index
    later = copy(index)
    later.nodes = {**index.nodes, **dict(_nodes(offerings, bought))}
    return later


def _nodes(offerings: Offerings, bought: list[Purchase]) -> Iterator[tuple[NodeName, Node]]:
    machines = {machine.name: machine for machine in offerings.machines}
    pools = {pool.name: pool for pool in offerings.pools}
    regions = {offer.zone: offer.region for offer in offerings.offers}
    overhead = dict(offerings.overhead)
    for purchase in bought:
        for node_claim in purchase.node_claims:
            machine, pool = machines.get(node_claim.machine), pools.get(node_claim.pool)
            if machine is None or pool is None:
                continue
            labels = {
                **dict(machine.labels),
                **dict(pool.labels),
                NODE_POOL: pool.name,
                ZONE: node_claim.zone,
                REGION: regions.get(node_claim.zone, ""),
                CAPACITY_TYPE: node_claim.capacity_type,
            }
            has = {name: there - overhead.get(name, 0) for name, there in machine.allocatable}
            yield (
                node_claim.node,
                Node(
                    name=node_claim.node,
                    labels=tuple(sorted(labels.items())),
                    taints=pool.taints,
                    allocatable=amounts(has),
                    held_for=purchase.workload,
                ),
            )


def check_purchases(
    index: SnapshotIndex, offerings: Offerings | None, plan: Plan
) -> Iterator[Violation]:
    """Check everything that a plan buys."""
    bought = [admit for admit in plan.admissions if admit.purchase is not None]
    if not bought:
        return
    if offerings is None:
        yield _broken(bought[0], "nothing is for sale")
        return
    offers: dict[OfferKey, Offer] = {
        (one.machine, one.zone, one.capacity_type): one for one in offerings.offers
    }
    orphaned = {
        node_claim.node: node_claim for one in offerings.orphaned for node_claim in one.node_claims
    }
    names: set[NodeName] = set(index.nodes)
    taken: dict[OfferKey, int] = {}
    added: dict[str, dict[str, int]] = {}
    for admit in bought:
        assert admit.purchase is not None, "only those that buy were collected"
        if not admit.purchase.node_claims:
            yield _broken(admit, "a purchase of nothing")
        for node_claim in admit.purchase.node_claims:
            if node_claim.taken_over:  # bought before: limits and stock know it already
                yield from _check_orphan(admit, node_claim, orphaned)
                continue
            yield from _check_purchased(admit, node_claim, offers, names)
            names.add(node_claim.node)
            where: OfferKey = (node_claim.machine, node_claim.zone, node_claim.capacity_type)
            taken[where] = taken.get(where, 0) + 1
            _add(added, offerings, node_claim)
        yield from _check_pods(admit, admit.purchase)
    for sold, count in taken.items():
        stock = offers[sold].stock if sold in offers else None
        if stock is not None and count > stock:
            yield _broken(bought[-1], f"{count} × {sold} of {stock} that there are")
    for pool in offerings.pools:
        used = dict(pool.used)
        for name, limit in pool.limits if pool.name in added else ():
            total = used.get(name, 0) + added[pool.name].get(name, 0)
            if total > limit and added[pool.name].get(name, 0):
                yield _broken(bought[-1], f"pool {pool.name}: {name} {total} > {limit}")


def _broken(admit: Admit, message: str) -> Violation:
    return Violation(rule="purchase", workload=admit.workload, message=message)


def _check_purchased(
    admit: Admit, node_claim: NodeClaim, offers: dict[OfferKey, Offer], names: set[NodeName]
) -> Iterator[Violation]:
    offer = offers.get((node_claim.machine, node_claim.zone, node_claim.capacity_type))
    if offer is None:
        yield _broken(
            admit,
            f"{node_claim.machine} {node_claim.capacity_type} is not sold in {node_claim.zone}",
        )
    elif offer.price_micro != node_claim.price_micro:
        yield _broken(
            admit, f"{node_claim.machine} costs {offer.price_micro}, not {node_claim.price_micro}"
        )
    if node_claim.node in names:
        yield _broken(admit, f"there is a node {node_claim.node} already")
    if not any(pods for _, pods in node_claim.pods):
        yield _broken(admit, f"{node_claim.node} is bought for no pods")


def _check_orphan(
    admit: Admit, node_claim: NodeClaim, orphaned: dict[NodeName, NodeClaim]
) -> Iterator[Violation]:
    """A machine that is taken over was orphaned, and is taken over once."""
    there = orphaned.pop(node_claim.node, None)
    if there is None:
        yield _broken(admit, f"{node_claim.node} is not an orphaned machine")
    elif (there.pool, there.machine, there.zone) != (
        node_claim.pool,
        node_claim.machine,
        node_claim.zone,
    ):
        yield _broken(admit, f"{node_claim.node} is a {there.machine} in {there.zone}")
    if not any(pods for _, pods in node_claim.pods):
        yield _broken(admit, f"{node_claim.node} is taken over for no pods")


def _check_pods(admit: Admit, purchase: Purchase) -> Iterator[Violation]:
    """A machine runs exactly the pods that it was bought for."""
    assigned_pods: dict[NodeName, dict[str, int]] = {}
    for assigned in admit.admission.pod_sets:
        for name, pods in assigned.nodes:
            assigned_pods.setdefault(name, {})[assigned.name] = pods
    for node_claim in purchase.node_claims:
        if assigned_pods.get(node_claim.node) != dict(node_claim.pods):
            has = assigned_pods.get(node_claim.node)
            message = f"{node_claim.node} is bought for {dict(node_claim.pods)}, and has {has}"
            yield _broken(admit, message)


def _add(added: dict[str, dict[str, int]], offerings: Offerings, node_claim: NodeClaim) -> None:
    mine = added.setdefault(node_claim.pool, {})
    mine[NODES] = mine.get(NODES, 0) + 1
    for machine in offerings.machines:
        if machine.name == node_claim.machine:
            for name, amount in machine.capacity:
                mine[name] = mine.get(name, 0) + amount
