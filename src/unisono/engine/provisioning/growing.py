"""Machines for pods that a running gang wants on top: as many as can be had, beside the others.

What runs is not touched, whatever becomes of this purchase. Where the gang says that a part would
do, as many pods as possible are bought for; the rest goes on waiting. New machines are in the zone
and of the model of those that the gang is on. Spec provisioning §5.16.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.explanation import CannotBuy
from unisono.engine.model.market import ZONE, Buying
from unisono.engine.model.selection import Labels
from unisono.engine.nominate import Nominee
from unisono.engine.placement.demand import Demand, narrowed
from unisono.engine.placement.gang import Gang
from unisono.engine.provisioning.order import has_gpus
from unisono.engine.provisioning.purchase import MODEL_LABEL, Bought, Shop
from unisono.engine.quota.assign import Assignment, resized
from unisono.engine.state.equivalence import shrunk


def buy_more(
    shop: Shop, nominee: Nominee, assignment: Assignment
) -> tuple[Assignment, Bought] | CannotBuy:
    """Buy for all new pods of an assignment, or for as many as there are machines for."""
    found = _try(shop, nominee, assignment)
    if isinstance(found, Bought):
        return assignment, found
    best: tuple[Assignment, Bought] | None = None
    low, high = 1, nominee.waiting.shape.most_steps
    while low <= high:
        middle = (low + high) // 2
        counts = shrunk(nominee.waiting.shape, middle)
        fewer = resized(assignment, nominee.menu, counts)
        some = _try(shop, nominee, fewer)
        if isinstance(some, Bought):
            best, high = (fewer, some), middle - 1
        else:
            low = middle + 1
    return best or found


def _try(shop: Shop, nominee: Nominee, assignment: Assignment) -> Bought | CannotBuy:
    assert nominee.seeker is not None, "the caller asked"
    gang = nominee.seeker.more(assignment)
    labels = _shared(shop, nominee)
    whole = tuple(_whole(demand, labels) for demand in gang.demands)
    answer = shop.buy(nominee.waiting.workload, Gang(key=gang.key, demands=whole))
    if isinstance(answer, CannotBuy):
        return answer
    return Bought(answer.purchase, nominee.seeker.beside(assignment, answer.spots))


def _whole(demand: Demand, labels: Labels) -> Demand:
    """Return a demand for all of its pods, next to those that run."""
    all_of_it = msgspec.structs.replace(demand, least=demand.most)
    return narrowed(all_of_it, labels) if has_gpus(demand) else all_of_it


def _shared(shop: Shop, nominee: Nominee) -> Labels:
    """Return what new machines have to share with the nodes that the gang is on."""
    assert nominee.replaced is not None, "only who runs grows"
    wish: Buying = nominee.waiting.workload.buying
    policy, table = shop.state.policy.provisioning, shop.state.nodes.table
    keys = [ZONE] if policy.same_zone and wish.scope != "any" else []
    if policy.same_model and not wish.mixed_models:
        keys.append(MODEL_LABEL)
    rows = [
        table.row_of[name]
        for one in nominee.replaced.holding.admission.pod_sets
        for name, _ in one.nodes
        if name in table.row_of
    ]
    nodes = [dict(node.labels) for row in rows if (node := table.nodes[row]) is not None]
    shared: dict[str, str] = {}
    for key in keys:
        values = {labels[key] for labels in nodes if labels.get(key)}
        if len(values) == 1:
            shared[key] = values.pop()
    return tuple(sorted(shared.items()))
