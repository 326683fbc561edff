"""Classical preemption: priorities and reclaiming, through hierarchical cohorts (spec quota §8).

Candidates of other queues come in two classes. *Hierarchy* candidates use what the preemptor's own
side of the tree is entitled to: they may always be taken. *Priority* candidates may be taken only
if the preemptor's queue does not borrow, or if `borrowWithinCohort` lets it while borrowing.
Victims are removed one by one until the preemptor fits; then those that turned out needless are
dropped (`reprieve.py`). Gangs that can do with fewer pods are asked for those first: as long as
that is enough, nothing is evicted (`shrinking.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from unisono.engine.model.plan import PreemptionReason
from unisono.engine.model.resources import FlavorResource
from unisono.engine.preemption.candidates import (
    PreemptionRequest,
    QueueAt,
    Target,
    UsageOf,
    could_suffice,
    foreign_candidates,
    has_place_without,
    importance,
    may_disturb,
    most_to_give,
    own_candidates,
    within_quota,
)
from unisono.engine.preemption.reprieve import fits, reprieve
from unisono.engine.preemption.shrinking import given_up_already, what_stays
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.quota_tree import Cell, Node, available, borrows_with, local_available
from unisono.engine.state.transaction import Transaction

_HIERARCHY, _PRIORITY, _OWN = 0, 1, 2
# Without so many there is mostly room for a gang.
FEW = 32


@dataclass(slots=True, frozen=True)
class _Candidate:
    running: Running
    rank: int  # _HIERARCHY, _PRIORITY or _OWN
    reason: PreemptionReason
    ancestor: Node | None = None  # the lowest cohort that has both queues below it
    only_without_borrowing: bool = False


_Offer = tuple[_Candidate, Target]


def victims_gap(request: PreemptionRequest, cell: Cell, queue_at: QueueAt) -> int:
    """Return how much has to be freed of a flavor-resource before a search for victims can succeed.

    All that candidates use may not be enough: then at least the rest must come free. If it would
    be, something else was in the way, and any release is worth another attempt.
    """
    gap = request.charges[cell] - available(cell)
    preemptible = chain(own_candidates(request), _borrowers(request, queue_at))
    while gap > 1 and (running := next(preemptible, None)) is not None:
        gap -= sum(
            amount
            for held, amount in running.charges
            if held.flavor_resource == cell.flavor_resource
        )
    return max(1, gap)


def classical_victims(
    request: PreemptionRequest,
    transaction: Transaction,
    queue_at: QueueAt,
    usage_of: UsageOf | None,
) -> list[Target]:
    """Return the victims whose eviction lets the request fit; none if there are no such."""
    candidates = [
        _Candidate(running, _OWN, "InClusterQueue") for running in own_candidates(request)
    ]
    preemptible = [candidate.running for candidate in candidates]
    if request.cq.spec.preemption.reclaim != "Never":
        if _cohort_may_help(request, preemptible):
            candidates.extend(_from_cohort(request, queue_at))
            preemptible = [candidate.running for candidate in candidates]
        elif request.has_place is not None:
            # None of them can be a victim, but the explanation counts nodes without all of them.
            others = _borrowers(request, queue_at)
            if not preemptible and request.only_capacity_counts and could_suffice(request, ()):
                _has_place_without_some(request.has_place, transaction, others)
                return []
            preemptible.extend(others)
    if not preemptible or not could_suffice(request, preemptible):
        return []
    if not has_place_without(request, transaction, preemptible) or not candidates:
        return []
    candidates.sort(key=lambda c: _place(c, request, usage_of))
    offers = _offers(request, candidates)
    for allow_borrowing in _attempts(request, candidates):
        mark = transaction.mark()
        targets = _attempt(request, transaction, offers, allow_borrowing=allow_borrowing)
        transaction.rollback(mark)
        if targets:
            return targets
    return []


def _has_place_without_some(
    has_place: Callable[[], bool], transaction: Transaction, others: Iterator[Running]
) -> None:
    """Ask for a place without more and more of the others, until there is one or none is left.

    Where only capacity counts, there is a place without all of them if there is one without some.
    """
    gone, more = list[Running](), FEW
    while some := [*islice(others, more)]:
        gone += some
        clearing = transaction.clear_nodes(gone)
        found = has_place()
        transaction.fill_nodes(clearing)
        if found:
            return
        more *= 4


def _offers(request: PreemptionRequest, candidates: list[_Candidate]) -> list[_Offer]:
    """List possible victims: first those that leave anyway, then pods that gangs can do without.

    Whole gangs come last, so that as few as possible are evicted.
    """
    leaving, fewer, rest = [], [], []
    for candidate in candidates:
        admitted, reason = candidate.running.admitted, candidate.reason
        if admitted.evicting:
            leaving.append((candidate, Target(candidate.running, reason)))
            continue
        already = given_up_already(admitted)
        if already:
            stays = what_stays(candidate.running, already)
            leaving.append((candidate, Target(candidate.running, reason, stays)))
        if (most := most_to_give(request, candidate.running)) > already:
            stays = what_stays(candidate.running, most)
            fewer.append((candidate, Target(candidate.running, reason, stays)))
        if may_disturb(request, candidate.running):
            rest.append((candidate, Target(candidate.running, reason)))
    return [*leaving, *fewer, *rest]


def _cohort_may_help(request: PreemptionRequest, own: list[Running]) -> bool:
    """Say whether victims in other queues could matter, without looking at any of them.

    Where none of them may be taken while the preemptor's queue borrows, they are of use only if it
    need not: if it did not borrow with all that it wants and without its own candidates.
    """
    if request.cq.spec.preemption.borrow.policy != "Never" or _is_entitled(request):
        return True
    left: dict[FlavorResource, int] = {}
    for running in own:
        for held, amount in running.charges:
            left[held.flavor_resource] = left.get(held.flavor_resource, 0) + amount
    return not any(
        wanted and borrows_with(cell, wanted - left.get(cell.flavor_resource, 0))
        for cell, wanted in request.charges.items()
    )


def _is_entitled(request: PreemptionRequest) -> bool:
    """Say whether the preemptor's side has room at some level for what it asks there."""
    wanted = {cell.flavor_resource: amount for cell, amount in request.charges.items()}
    node = request.cq.node
    while node.parent is not None:
        if _holds(node, wanted):
            return True
        wanted = _beyond_local(node, wanted)
        node = node.parent
    return False


def _place(
    candidate: _Candidate, request: PreemptionRequest, usage_of: UsageOf | None
) -> tuple[bool, int, tuple[bool, bool, int, int, int, str]]:
    evicting = candidate.running.admitted.evicting
    return not evicting, candidate.rank, importance(candidate.running, request, usage_of)


def _from_cohort(request: PreemptionRequest, queue_at: QueueAt) -> Iterator[_Candidate]:
    """Climb towards the root and collect from each ancestor's other branches."""
    wanted = {cell.flavor_resource: amount for cell, amount in request.charges.items()}
    entitled = _holds(request.cq.node, wanted)
    rest = _beyond_local(request.cq.node, wanted)
    below = request.cq.node
    ancestor = below.parent
    while ancestor is not None:
        rank = _HIERARCHY if entitled else _PRIORITY
        for node in _over_quota(ancestor, below, request.short):
            for running in foreign_candidates(request, queue_at(node)):
                yield _classify(request, running, rank, ancestor)
        entitled = entitled or _holds(ancestor, rest)
        rest = _beyond_local(ancestor, rest)
        below, ancestor = ancestor, ancestor.parent


def _borrowers(request: PreemptionRequest, queue_at: QueueAt) -> Iterator[Running]:
    """Yield the candidates of `_from_cohort`, whatever their condition."""
    if request.cq.spec.preemption.reclaim == "Never":
        return
    below = request.cq.node
    ancestor = below.parent
    while ancestor is not None:
        for node in _over_quota(ancestor, below, request.short):
            yield from foreign_candidates(request, queue_at(node))
        below, ancestor = ancestor, ancestor.parent


def _classify(
    request: PreemptionRequest, running: Running, rank: int, ancestor: Node
) -> _Candidate:
    """Say under which condition a cohort candidate may be taken, and what to call it."""
    rule = request.cq.spec.preemption.borrow
    priority = running.admitted.workload.priority
    threshold = rule.max_priority_threshold
    while_borrowing = (
        rule.policy != "Never"
        and priority < request.workload.priority
        and (threshold is None or priority <= threshold)
    )
    if rank == _PRIORITY and while_borrowing:
        return _Candidate(running, rank, "InCohortReclaimWhileBorrowing", ancestor)
    restricted = rank == _PRIORITY
    return _Candidate(
        running, rank, "InCohortReclamation", ancestor, only_without_borrowing=restricted
    )


def _over_quota(
    ancestor: Node, visited: Node, flavor_resources: tuple[FlavorResource, ...]
) -> Iterator[Node]:
    """Yield queues below an ancestor that use more than their side owns."""
    pending = [node for node in ancestor.children.values() if node is not visited]
    while pending:
        node = pending.pop()
        if within_quota(node, flavor_resources):
            continue
        if node.is_queue:
            yield node
        else:
            pending.extend(node.children.values())


def _holds(node: Node, wanted: dict[FlavorResource, int]) -> bool:
    """Say whether the node's own subtree has room for all that is wanted."""
    return not any(
        borrows_with(node.cell(flavor_resource), amount)
        for flavor_resource, amount in wanted.items()
    )


def _beyond_local(node: Node, wanted: dict[FlavorResource, int]) -> dict[FlavorResource, int]:
    """Return what is left to ask of the parent."""
    return {
        flavor_resource: max(0, amount - local_available(node.cell(flavor_resource)))
        for flavor_resource, amount in wanted.items()
    }


def _attempts(request: PreemptionRequest, candidates: list[_Candidate]) -> tuple[bool, ...]:
    """Return which attempts to make: True lets the preemptor's queue borrow."""
    # Kueue's order: a queue that may borrow tries that first, which needs fewer victims. A queue
    # that must not preempt while borrowing, and has only priority candidates, tries without first:
    # the attempt with borrowing could use none of them.
    from_cohort = [c for c in candidates if c.rank != _OWN]
    forbidden = request.cq.spec.preemption.borrow.policy == "Never"
    cells = [request.cq.node.cell(flavor_resource) for flavor_resource in request.short]
    under_nominal = all(cell.usage < cell.nominal for cell in cells)
    if not from_cohort or (forbidden and not under_nominal):
        return (True,)
    if forbidden and not any(c.rank == _HIERARCHY for c in from_cohort):
        return (False, True)
    return (True, False)


def _attempt(
    request: PreemptionRequest,
    transaction: Transaction,
    offers: list[_Offer],
    *,
    allow_borrowing: bool,
) -> list[Target]:
    """Take victims in order until the request fits, then drop those that were not needed."""
    targets: dict[Running, Target] = {}
    for candidate, target in offers:
        if candidate.ancestor is not None:
            if allow_borrowing and candidate.only_without_borrowing:
                continue
            # Checked for each victim anew: those before it may have brought its side of the tree
            # back within its own quota, of which nothing may be reclaimed.
            if _now_protected(candidate, request.short):
                continue
        if (less := targets.pop(candidate.running, None)) is not None:
            less.put_back(transaction)
        target.take(transaction)
        targets[candidate.running] = target
        if fits(request, allow_borrowing=allow_borrowing):
            return reprieve(
                request, transaction, [*targets.values()], allow_borrowing=allow_borrowing
            )
    return []


def _now_protected(candidate: _Candidate, flavor_resources: tuple[FlavorResource, ...]) -> bool:
    """Say whether earlier removals brought the candidate's side back within its quota."""
    for node in candidate.running.cq.node.path():
        if node is candidate.ancestor:
            return False
        if within_quota(node, flavor_resources):
            return True
    return False
