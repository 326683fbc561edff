"""Machines that are bought and not there yet: what that leaves to buy, and which gangs wait.

Short jobs may use the free nodes that a gang holds while its last machines are provisioned
(`NodeHolders`).
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from unisono.engine.model.names import ResourceName, WorkloadKey
from unisono.engine.model.overriding import override
from unisono.engine.model.provisioning import (
    NODES,
    NodeClaim,
    Offer,
    Offerings,
    PendingNodeClaims,
    Pool,
    Purchase,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.features import Feature


def with_purchase(offerings: Offerings, purchase: Purchase) -> Offerings:
    """Return what can be bought once a purchase counts: in limits and spending, and under way.

    Stock that is known shrinks, too. Machines that are taken over counted before.
    """
    machines = {machine.name: machine for machine in offerings.machines}
    used: dict[str, dict[str, int]] = {pool.name: dict(pool.used) for pool in offerings.pools}
    taken: dict[tuple[str, str, str], int] = {}
    new = [node_claim for node_claim in purchase.node_claims if not node_claim.taken_over]
    for node_claim in new:
        mine = used.setdefault(node_claim.pool, {})
        mine[NODES] = mine.get(NODES, 0) + 1
        for name, amount in (
            machines[node_claim.machine].capacity if node_claim.machine in machines else ()
        ):
            mine[name] = mine.get(name, 0) + amount
        offer = (node_claim.machine, node_claim.zone, node_claim.capacity_type)
        taken[offer] = taken.get(offer, 0) + 1
    pools = tuple(
        msgspec.structs.replace(pool, used=amounts(used[pool.name])) for pool in offerings.pools
    )
    offers = tuple(
        msgspec.structs.replace(one, stock=max(0, one.stock - taken.get(_place(one), 0)))
        if one.stock is not None
        else one
        for one in offerings.offers
    )
    busy = dict(offerings.under_way)
    for pool in {node_claim.pool for node_claim in purchase.node_claims}:
        busy[pool] = busy.get(pool, 0) + 1
    mine_now = PendingNodeClaims(
        workload=purchase.workload, node_claims=purchase.node_claims, ready_by=purchase.ready_by
    )
    return msgspec.structs.replace(
        offerings,
        pools=pools,
        offers=offers,
        under_way=tuple(sorted(busy.items())),
        spent_micro=offerings.spent_micro + sum(node_claim.price_micro for node_claim in new),
        coming=(*offerings.coming, mine_now),
        orphaned=without_node_claims(
            offerings.orphaned, {node_claim.node for node_claim in purchase.node_claims}
        ),
    )


def without_node_claims(
    orphaned: tuple[PendingNodeClaims, ...], names: Collection[str]
) -> tuple[PendingNodeClaims, ...]:
    """Return what is on its way for no workload once these machines are not."""
    left = (
        msgspec.structs.replace(
            one,
            node_claims=tuple(
                node_claim for node_claim in one.node_claims if node_claim.node not in names
            ),
        )
        for one in orphaned
    )
    return tuple(one for one in left if one.node_claims)


def _place(offer: Offer) -> tuple[str, str, str]:
    return offer.machine, offer.zone, offer.capacity_type


def after_arrival(offerings: Offerings, purchase: Purchase) -> Offerings:
    """Return what can be bought once a purchase is under way no more: its machines are there."""
    busy = dict(offerings.under_way)
    for pool in {node_claim.pool for node_claim in purchase.node_claims}:
        busy[pool] = max(0, busy.get(pool, 0) - 1)
    return msgspec.structs.replace(
        offerings,
        under_way=tuple(sorted(busy.items())),
        coming=tuple(one for one in offerings.coming if one.workload != purchase.workload),
    )


def after_return(offerings: Offerings, node_claim: NodeClaim) -> Offerings:
    """Return what can be bought once a machine was given back: its limits, its price, its stock."""
    machine = next((one for one in offerings.machines if one.name == node_claim.machine), None)
    has = (*(machine.capacity if machine is not None else ()), (NODES, 1))

    def without(pool: Pool) -> Pool:
        left = dict(pool.used)
        for name, amount in has:
            left[ResourceName(name)] = max(0, left.get(ResourceName(name), 0) - amount)
        return msgspec.structs.replace(pool, used=amounts(left))

    back = (node_claim.machine, node_claim.zone, node_claim.capacity_type)
    return msgspec.structs.replace(
        offerings,
        pools=tuple(
            without(pool) if pool.name == node_claim.pool else pool for pool in offerings.pools
        ),
        offers=tuple(
            msgspec.structs.replace(one, stock=one.stock + 1)
            if one.stock is not None and _place(one) == back
            else one
            for one in offerings.offers
        ),
        spent_micro=offerings.spent_micro - node_claim.price_micro,
        orphaned=without_node_claims(offerings.orphaned, {node_claim.node}),
    )


# --- gangs that hold nodes ------------------------------------------------------------------------

# Such a gang has started nothing: a job that is over before the last machine is expected may use
# the nodes it holds (`provisioning/opportunistic.py`). Spec provisioning §5.16.


class NodeHolders(Feature):
    """The gangs that hold nodes until their last machines come."""

    def __init__(self) -> None:
        self.all: dict[WorkloadKey, Running] = {}
        self.is_new = False  # the first one came, or the last one went: equivalence classes change

    @override
    def started(self, running: Running) -> None:
        """Take in a workload that has its nodes."""
        if self.is_on or running.admitted.ready_by is not None:
            self.changed(running)

    @override
    def changed(self, running: Running) -> None:
        """Take in whether a workload waits for machines and keeps nodes meanwhile."""
        admitted = running.admitted
        if (
            admitted.ready_by is None
            or admitted.evicting
            or not any(placed.rows.shape[0] for placed in running.placed_pods)
        ):
            if self.is_on:
                self._forget(admitted.workload.key)
            return
        self.is_new = self.is_new or not self.is_on
        self.is_on = True
        self.all[admitted.workload.key] = running

    @override
    def ended(self, running: Running) -> None:
        """Forget a workload that keeps no nodes any more."""
        self._forget(running.key)

    def _forget(self, key: WorkloadKey) -> None:
        if self.all.pop(key, None) is not None and not self.all:
            self.is_new = True
            self.is_on = False

    def subclass_of(self, workload: Workload) -> str:
        """Return what tells a workload apart while gangs hold nodes: how long it runs."""
        return f"+{workload.longest_ms}" if self.is_on else ""
