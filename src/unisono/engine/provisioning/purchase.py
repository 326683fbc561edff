"""From a gang that has quota and no place to machines that are bought for it.

What is bought has names at once, so that an admission on machines that do not exist yet is an
admission like any other: quota and free nodes are taken from this moment on, and nothing starts
before the last machine is there. Spec provisioning §5.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import msgspec

from unisono.engine.model.explanation import CannotBuy, PoolRefusal
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.provisioning import ZONE, NodeClaim, Offerings, Purchase
from unisono.engine.model.workload import Workload
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.gang import Gang, PodSetPlacement
from unisono.engine.placement.node_search import NodeSearch
from unisono.engine.placement.placement import placement_of
from unisono.engine.provisioning.candidates import ends_too_soon, spot_is_fine
from unisono.engine.provisioning.catalogue import (
    Catalogue,
    Offering,
    allocatable_of,
    label_in_the_way,
    slots_in,
    taint_in_the_way,
    topology_in_the_way,
)
from unisono.engine.provisioning.order import Filled, FreeNode, Order, Refused
from unisono.engine.provisioning.planner import alternatives_to, choose, ready_by
from unisono.engine.quota.assign import Assignment
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.purchases import with_purchase

MODEL_LABEL = "nvidia.com/gpu.product"
# Free nodes that are looked at for one gang; it did not fit on them, so there are not many.
MOST_FREE = 4096
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as Kubernetes names things: no words by chance
_SUFFIX = 8
_Named = tuple[NodeClaim | None, tuple[NodeName, dict[str, int]]]


# Says whether there are machines for an assignment once these victims are gone.
CouldBuy = Callable[[Assignment, Collection[WorkloadKey]], bool]


@dataclass(frozen=True, slots=True)
class Bought:
    """Machines for a gang, and where each of its pods goes."""

    purchase: Purchase
    placements: tuple[PodSetPlacement, ...]


@dataclass(slots=True)
class Provisioner:
    """Chooses machines for gangs, given nodes and offerings as one cycle sees them."""

    state: ClusterState
    catalogue: Catalogue
    now: Instant

    def buy(self, workload: Workload, gang: Gang) -> Bought | CannotBuy:
        """Choose machines for a gang, all or none."""
        demands = _needed(gang)
        order = Order(
            demands=demands,
            now=self.now,
            policy=self.state.policy.provisioning,
            buying=workload.buying,
            free=tuple(self._free_nodes(gang.key, demands)),
            ends_at=self._end_of(workload),
            beside=_others(workload, demands),
        )
        order = replace(order, free=(*order.free, *orphaned_nodes(order, self.catalogue)))
        answer = choose(order, self.catalogue)
        if isinstance(answer, Refused):
            return _cannot(answer, demands)
        named = list(self._named(workload, answer))
        node_claims = tuple(node_claim for node_claim, _ in named if node_claim is not None)
        purchase = Purchase(
            workload=workload.key,
            node_claims=node_claims,
            ready_by=self._ready_by(node_claims),
            alternatives=alternatives_to(order, self.catalogue, answer),
        )
        placements = tuple(
            PodSetPlacement(
                demand.name,
                tuple(_placed_on(named, demand)),
            )
            for demand in demands
        )
        return Bought(purchase, placements)

    def _ready_by(self, node_claims: tuple[NodeClaim, ...]) -> Instant:
        """Return when the last machine is there, mostly; those on their way come sooner."""
        if any(not node_claim.taken_over for node_claim in node_claims):
            return ready_by(self.catalogue, self.now)
        names = {node_claim.node for node_claim in node_claims}
        taken = [
            one.ready_by
            for one in self.catalogue.source.orphaned
            if names & {node_claim.node for node_claim in one.node_claims}
        ]
        return max(taken, default=self.now)

    def take(self, purchase: Purchase) -> None:
        """Count a purchase before the next one is made."""
        self.catalogue = Catalogue(with_purchase(self.catalogue.source, purchase))

    def _end_of(self, workload: Workload) -> Instant | None:
        limit = workload.longest_ms
        return None if limit is None else Instant(self.now + self.catalogue.source.soon_ms + limit)

    def _free_nodes(self, key: str, demands: tuple[Demand, ...]) -> Iterator[FreeNode]:
        placement, table = placement_of(self.state), self.state.nodes.table
        takes: dict[int, set[str]] = {}
        for demand in demands:
            for row in placement.rows_with_capacity(demand)[:MOST_FREE]:
                takes.setdefault(int(row), set()).add(demand.name)
        for row in sorted(takes):
            node = table.nodes[row]
            if node is not None and node.held_for in ("", key):
                labels = dict(node.labels)
                yield FreeNode(
                    name=node.name,
                    zone=labels.get(ZONE, ""),
                    model=labels.get(MODEL_LABEL, ""),
                    free=_free(table, row),
                    takes=frozenset(takes[row]),
                )

    def _named(self, workload: Workload, filled: Filled) -> Iterator[_Named]:
        """Give every machine its name: what it is bought for, when, and its number."""
        number = 0
        for box in filled.boxes:
            if box.node is not None:
                node_claim = box.node.node_claim
                if node_claim is not None:
                    pods = tuple(sorted(box.pods.items()))
                    node_claim = msgspec.structs.replace(node_claim, pods=pods, taken_over=True)
                yield node_claim, (box.node.name, box.pods)
                continue
            assert box.offering is not None, "a box is a node or a offering"
            for _ in range(box.count):
                number += 1
                why = f"{workload.key}|{workload.uid}|{self.now}|{self.state.version}|{number}"
                node_claim = NodeClaim(
                    node=NodeName(f"{box.offering.pool.name}-{_digest(why)}"),
                    pool=box.offering.pool.name,
                    machine=box.offering.machine.name,
                    zone=box.offering.offer.zone,
                    capacity_type=box.offering.offer.capacity_type,
                    price_micro=box.offering.offer.price_micro,
                    pods=tuple(sorted(box.pods.items())),
                )
                yield node_claim, (node_claim.node, box.pods)


def could_buy(
    state: ClusterState, workload: Workload, node_search: NodeSearch | None, now: Instant
) -> CouldBuy | None:
    """Return what says whether machines could be bought for a workload that lacks quota, too.

    Nothing is preempted for quota that would then find no nodes; a feasible purchase counts as
    nodes. It is made when the victims are gone, so that machines on their way to victims count as
    well. None: nothing is for sale. Spec provisioning §5.16.
    """
    offerings = state.config.offerings
    if offerings is None or node_search is None or node_search.kept is not None:
        return None

    def answer(assignment: Assignment, victims: Collection[WorkloadKey]) -> bool:
        provisioner = Provisioner(state, Catalogue(orphaning(offerings, victims)), now)
        return not isinstance(provisioner.buy(workload, node_search.gang(assignment)), CannotBuy)

    return answer


def _placed_on(named: list[_Named], demand: Demand) -> Iterator[tuple[NodeName, int]]:
    for _, (node, pods) in named:
        if pods.get(demand.name):
            yield node, pods[demand.name]


def _needed(gang: Gang) -> tuple[Demand, ...]:
    """Return what has to start together; those above the minimum come when there is room."""
    least = sum(demand.needed for demand in gang.demands)
    whole = least < (gang.min_total or 0) or not least
    return tuple(
        msgspec.structs.replace(demand, least=demand.most) if whole else demand
        for demand in gang.demands
        if whole or demand.needed
    )


def _others(workload: Workload, demands: tuple[Demand, ...]) -> int:
    """Return how many pods a gang has besides those that machines are bought for now."""
    all_pods = sum(pod_set.count for pod_set in workload.pod_sets)
    return max(0, all_pods - sum(demand.needed for demand in demands))


def _free(table: NodeTable, row: int) -> dict[str, int]:
    return {str(name): int(table.free[column][row]) for name, column in table.resources.items()}


def _digest(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:12], "big")
    letters = []
    for _ in range(_SUFFIX):
        number, index = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[index])
    return "".join(letters)


def _cannot(refused: Refused, demands: tuple[Demand, ...]) -> CannotBuy:
    demand = next(one for one in demands if one.name == refused.demand)
    return CannotBuy(
        code=refused.code,
        pod_set=demand.name,
        pods=demand.needed,
        each=tuple((name, amount) for name, amount in demand.requests if amount),
        pools=tuple(
            PoolRefusal(pool=name, code=why.code, detail=why.detail) for name, why in refused.pools
        ),
        alternatives=refused.alternatives,
        retry_at=refused.retry_at,
    )


_Place = tuple[str, str, str, str]


def orphaned_nodes(order: Order, catalogue: Catalogue) -> Iterator[FreeNode]:
    """Yield orphaned machines as free nodes for the demands that may use them."""
    node_claims = [
        node_claim for one in catalogue.source.orphaned for node_claim in one.node_claims
    ]
    if not node_claims:
        return
    offerings = {_place_of_offering(offering): offering for offering in catalogue.offerings}
    for node_claim in sorted(node_claims, key=lambda one: one.node):
        offering = offerings.get(
            (node_claim.pool, node_claim.machine, node_claim.zone, node_claim.capacity_type)
        )
        if offering is None or ends_too_soon(order, offering):
            continue  # its pool sells no such machines any more
        free = allocatable_of(offering, catalogue.source.overhead)
        takes = frozenset(
            demand.name
            for demand in order.demands
            if slots_in(free, demand) and _may_use(order, offering, demand)
        )
        if takes:
            yield FreeNode(
                node_claim.node, node_claim.zone, offering.machine.model, free, takes, node_claim
            )


def _may_use(order: Order, offering: Offering, demand: Demand) -> bool:
    return (
        topology_in_the_way(demand) is None
        and taint_in_the_way(offering.pool.taints, demand.constraint) is None
        and label_in_the_way(offering, demand.constraint) is None
        and spot_is_fine(order, offering, demand)
    )


def _place_of_offering(offering: Offering) -> _Place:
    return (
        offering.pool.name,
        offering.machine.name,
        offering.offer.zone,
        offering.offer.capacity_type,
    )


def orphaning(offerings: Offerings, keys: Collection[WorkloadKey]) -> Offerings:
    """Return what can be bought once the machines that are coming for these gangs are orphaned."""
    gone = tuple(one for one in offerings.coming if one.workload in keys)
    if not gone:
        return offerings
    return msgspec.structs.replace(
        offerings,
        coming=tuple(one for one in offerings.coming if one.workload not in keys),
        orphaned=(*offerings.orphaned, *gone),
    )
