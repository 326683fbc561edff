"""Placing a gang's pod sets one after the other: on what is there, then on what is bought.

The largest first; each uses what is left on free nodes and on machines already chosen, and
the rest is covered at the lowest price. Either all pods have a place in the end, or nothing counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from unisono.engine.model.node import HOSTNAME
from unisono.engine.model.provisioning import NODES, CapacityType, Packing
from unisono.engine.placement.demand import Demand
from unisono.engine.provisioning.candidates import Candidate, Candidates, headroom
from unisono.engine.provisioning.catalogue import label_in_the_way, slots_in, taint_in_the_way
from unisono.engine.provisioning.cover import Counts, MachineOffer, cover, cover_within
from unisono.engine.provisioning.order import Box, Filled, FreeNode, Order, has_gpus

# So many machine offers are combined; the rest are dearer and no larger than others.
MOST_OFFERS = 24


@dataclass(frozen=True, slots=True)
class Attempt:
    """Where, how and what to buy; empty: wherever, whatever."""

    zone: str
    sold: tuple[CapacityType, ...]
    model: str
    weight: int  # pools of at least this weight

    def usable(self, candidates: Candidates, demand: Demand) -> list[Candidate]:
        """Return what of a pod set's candidates may be bought."""
        model = self.model if has_gpus(demand) else ""
        return [
            one
            for one in candidates.among(demand, self.zone, model)
            if one.offering.offer.capacity_type in self.sold
            and one.offering.pool.weight >= self.weight
        ]


def at_least(order: Order, candidates: Candidates, demand: Demand, attempt: Attempt) -> int:
    """Return a lower bound of what a pod set costs in an attempt."""
    if order.free:
        return 0
    usable = attempt.usable(candidates, demand)
    pods = demand.needed
    return min(
        (one.offering.offer.price_micro * pods // min(one.slots, pods) for one in usable), default=0
    )


def fill(
    order: Order, candidates: Candidates, demands: tuple[Demand, ...], attempt: Attempt
) -> Filled | None:
    """Place all pods in one way; None if some are left over."""
    free = [Box(free=node.free, node=node) for node in order.free if _is_in(node, attempt)]
    boxes = sorted(free, key=_name)
    for demand in demands:
        if _is_on_one(demand):
            boxes, left = _on_one(demand, boxes, attempt)
        else:
            boxes, left = _on_what_is_there(demand, boxes, attempt)
        if left:
            more = _buy(order, candidates, demand, left, boxes, attempt)
            if more is None:
                return None
            boxes += more
    return Filled([box for box in boxes if box.pods], attempt.zone, attempt.model, 0)


def _is_in(node: FreeNode, attempt: Attempt) -> bool:
    """Say whether a node is where, and a machine on its way sold as, an attempt has it."""
    is_sold_so = node.node_claim is None or node.node_claim.capacity_type in attempt.sold
    return is_sold_so and attempt.zone in ("", node.zone)


def _name(box: Box) -> str:
    return box.node.name if box.node is not None else ""


def _is_on_one(demand: Demand) -> bool:
    """Say whether all pods have to be on one machine."""
    return demand.mode == "required" and demand.level in ("", HOSTNAME)


def _may_run_on(demand: Demand, box: Box, attempt: Attempt) -> bool:
    if box.node is not None:
        minds = has_gpus(demand) and attempt.model
        return demand.name in box.node.takes and (not minds or box.node.model == attempt.model)
    assert box.offering is not None, "a box is a node or a offering"
    constraint = demand.constraint
    return (
        taint_in_the_way(box.offering.pool.taints, constraint) is None
        and label_in_the_way(box.offering, constraint) is None
    )


def _on_what_is_there(demand: Demand, boxes: list[Box], attempt: Attempt) -> tuple[list[Box], int]:
    """Use room on chosen machines, the tightest first, then on free nodes; return the pods left."""
    left = demand.needed
    done: list[Box] = []
    open_: list[Box] = []
    for box in boxes:
        (open_ if _may_run_on(demand, box, attempt) else done).append(box)

    def tightest(box: Box) -> tuple[int, int, str]:
        # Nodes that hold many first: then fewer machines are needed beside them.
        slots = slots_in(box.free, demand)
        if box.node is None:
            return 0, slots, ""
        return 1 if box.node.node_claim is None else 2, -slots, _name(box)

    for box in sorted(open_, key=tightest):
        made, placed = box.place(demand, left)
        done += made
        left -= placed
    return done, left


def _on_one(demand: Demand, boxes: list[Box], attempt: Attempt) -> tuple[list[Box], int]:
    """Place all pods on one machine that is there, or none of them."""
    for index, box in enumerate(boxes):
        if _may_run_on(demand, box, attempt) and slots_in(box.free, demand) >= demand.needed:
            made, _ = box.place(demand, demand.needed)
            return [*boxes[:index], *made, *boxes[index + 1 :]], 0
    return boxes, demand.needed


def _buy(
    order: Order,
    candidates: Candidates,
    demand: Demand,
    pods: int,
    boxes: list[Box],
    attempt: Attempt,
) -> list[Box] | None:
    """Choose machines for pods; None if there are not enough."""
    minds = has_gpus(demand)
    usable = attempt.usable(candidates, demand)
    if _is_on_one(demand):
        usable = [one for one in usable if one.slots >= pods]
    packing, slack = order.packing(demand), order.policy.slack_milli
    bare = [one for one in usable if not one.offering.machine.model]
    if bare and not minds:  # machines with accelerators are kept for pods that need them
        made = _chosen(candidates, demand, pods, boxes, bare, packing, slack)
        if made is not None:
            return made
    return _chosen(candidates, demand, pods, boxes, usable, packing, slack)


def _chosen(
    candidates: Candidates,
    demand: Demand,
    pods: int,
    boxes: list[Box],
    usable: list[Candidate],
    packing: Packing,
    slack: int,
) -> list[Box] | None:
    planned = _planned(boxes)
    usable = _worthwhile(usable, pods, planned)
    if not usable:
        return None
    offers = tuple(
        MachineOffer(
            min(one.slots, pods), one.offering.offer.price_micro, _stock(one, pods, planned, boxes)
        )
        for one in usable
    )
    counts = cover(pods, offers, packing, slack)
    if counts is None or _breaks_limits(counts, usable, planned):
        counts = cover_within(pods, offers, [one.offering for one in usable], planned)
    if counts is None:
        return None
    made: list[Box] = []
    left = pods
    for index in sorted(range(len(usable)), key=lambda i: (-offers[i].slots, i)):
        if counts[index]:
            offering = usable[index].offering
            box = Box(
                free=dict(candidates.allocatable(offering)), count=counts[index], offering=offering
            )
            parts, placed = box.place(demand, left)
            made += parts
            left -= placed
    assert left == 0, "the machines were chosen to hold all pods"
    return made


def _stock(one: Candidate, pods: int, planned: dict[str, dict[str, int]], boxes: list[Box]) -> int:
    """Return how many of a offering may still be taken for so many pods."""
    offer = one.offering.offer
    taken = sum(
        box.count for box in boxes if box.offering is not None and box.offering.offer is offer
    )
    needed = -(-pods // one.slots)
    return max(0, min(needed, one.stock - taken, headroom(one.offering, planned)))


def _worthwhile(
    usable: list[Candidate], pods: int, planned: dict[str, dict[str, int]]
) -> list[Candidate]:
    """Leave out what is dearer and no larger than something of which there is enough."""
    ordered = sorted(
        usable,
        key=lambda one: (
            one.offering.offer.price_micro,
            -min(one.slots, pods),
            -one.offering.pool.weight,
            one.offering.offer.zone,
            one.offering.machine.name,
            one.offering.pool.name,
        ),
    )
    kept: list[Candidate] = []
    scarce: set[int] = set()  # offers with an end that another pool has already
    largest = 0  # among the cheaper ones of which there is enough
    for one in ordered:
        slots = min(one.slots, pods)
        if slots <= largest or id(one.offering.offer) in scarce:
            continue
        if one.is_scarce or one.offering.offer.stock is not None:
            scarce.add(id(one.offering.offer))
        kept.append(one)
        if _stock(one, pods, planned, []) * slots >= pods:
            largest = slots
    return kept[:MOST_OFFERS] if len(kept) <= MOST_OFFERS else _few(kept, pods)


def _few(kept: list[Candidate], pods: int) -> list[Candidate]:
    """Keep the candidates with the cheapest places, and the largest one."""
    by_place = sorted(
        range(len(kept)),
        key=lambda i: (kept[i].offering.offer.price_micro / min(kept[i].slots, pods), i),
    )
    chosen = sorted({*by_place[: MOST_OFFERS - 1], len(kept) - 1})
    return [kept[i] for i in chosen]


def _planned(boxes: list[Box]) -> dict[str, dict[str, int]]:
    """Return what chosen machines add to their pools."""
    planned: dict[str, dict[str, int]] = {}
    for box in boxes:
        if box.offering is not None:
            mine = planned.setdefault(box.offering.pool.name, {})
            mine[NODES] = mine.get(NODES, 0) + box.count
            for name, amount in box.offering.machine.capacity:
                mine[name] = mine.get(name, 0) + amount * box.count
    return planned


def _breaks_limits(
    counts: Counts, usable: list[Candidate], planned: dict[str, dict[str, int]]
) -> bool:
    """Say whether a pool would have more than it may, with all of the machines together."""
    totals = {name: dict(mine) for name, mine in planned.items()}
    for count, one in zip(counts, usable, strict=True):
        if count and headroom(one.offering, totals) < count:
            return True
        mine = totals.setdefault(one.offering.pool.name, {})
        mine[NODES] = mine.get(NODES, 0) + count
        for name, amount in one.offering.machine.capacity:
            mine[name] = mine.get(name, 0) + amount * count
    return False
