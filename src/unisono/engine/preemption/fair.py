"""Fair-sharing preemption: the queue furthest above its share gives way (spec quota §9).

The preemptor's usage is booked first. Then the tree is descended along the highest dominant shares
to a target queue, and its candidates are judged by how the two sides' shares compare just below
their lowest common ancestor.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unisono.engine.model.plan import PreemptionReason
from unisono.engine.model.policy import FairStrategy
from unisono.engine.preemption.candidates import (
    PreemptionRequest,
    QueueAt,
    Target,
    UsageOf,
    could_suffice,
    foreign_candidates,
    has_place_without,
    importance,
    own_candidates,
    whole,
    within_quota,
)
from unisono.engine.preemption.reprieve import reprieve
from unisono.engine.quota.share import Share, dominant_share, is_borrowing
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.quota_tree import Node, available, borrows_with
from unisono.engine.state.transaction import Transaction


def fair_victims(
    request: PreemptionRequest,
    transaction: Transaction,
    queue_at: QueueAt,
    usage_of: UsageOf | None,
    strategies: tuple[FairStrategy, ...],
    *,
    verify: bool,
) -> list[Target]:
    """Return the victims whose eviction lets the request fit; none if that would be unfair."""
    pool = _Candidates(request, usage_of)
    pool.fill(list(own_candidates(request)))
    if request.cq.spec.preemption.reclaim != "Never":
        for node in request.cq.node.root().queues():
            if node is not request.cq.node and not within_quota(node, request.short):
                pool.fill(list(foreign_candidates(request, queue_at(node))))
    preemptible = [running for candidates in pool.queues.values() for running in candidates]
    if not preemptible or not could_suffice(request, preemptible):
        return []
    if not has_place_without(request, transaction, preemptible):
        return []
    mark = transaction.mark()
    transaction.add(request.charges.items())
    targets, spared = _first_strategy(request, transaction, pool, strategies[0])
    fitting = _fits_booked(request)
    if not fitting and len(strategies) > 1:
        retry = _Candidates(request, usage_of)
        retry.fill(spared)
        _second_strategy(request, transaction, retry, targets)
        fitting = _fits_booked(request)
    if fitting and targets:
        transaction.remove(request.charges.items())
        targets = reprieve(request, transaction, targets, allow_borrowing=True)
        if verify:  # reprieve changed the shares, so that a victim may no longer be fair game
            transaction.add(request.charges.items())
            fitting = all(_is_justified(request, transaction, t, strategies) for t in targets)
    transaction.rollback(mark)
    return targets if fitting else []


@dataclass(slots=True)
class _Candidates:
    """Candidates by queue, least important first, and the parts of the tree that are done with."""

    request: PreemptionRequest
    usage_of: UsageOf | None
    queues: dict[Node, list[Running]] = field(default_factory=dict)  # reversed: pop() is first
    pruned: set[Node] = field(default_factory=set)  # asked for membership only, never iterated

    def fill(self, candidates: list[Running]) -> None:
        ordered = sorted(candidates, key=self._key, reverse=True)
        for running in ordered:
            self.queues.setdefault(running.cq.node, []).append(running)

    def _key(self, running: Running) -> tuple[bool, bool, int, int, int, str]:
        return importance(running, self.request, self.usage_of)

    def next_queue(self) -> Node | None:
        """Return the queue that should give way next; None when no candidate is left."""
        own = self.request.cq.node
        root = own.root()
        if root is own:
            return own if self.queues.get(own) else None
        ancestors = set(own.path())
        while root not in self.pruned:
            found = self._descend(root, own, ancestors)
            if found is not None:
                return found
        return None

    def _descend(self, cohort: Node, own: Node, ancestors: set[Node]) -> Node | None:
        best_queue: tuple[Share, Node] | None = None
        best_cohort: tuple[Share, Node] | None = None
        for _, child in sorted(cohort.children.items()):
            if child in self.pruned:
                continue
            if child.is_queue:
                has_candidates = bool(self.queues.get(child))
                if not has_candidates or (child is not own and not is_borrowing(child)):
                    self.pruned.add(child)
                    continue
                share = dominant_share(child)
                if best_queue is None or share > best_queue[0]:
                    best_queue = (share, child)
                elif share == best_queue[0] and self._first(child) < self._first(best_queue[1]):
                    best_queue = (share, child)
                continue
            if child not in ancestors and not is_borrowing(child):
                self.pruned.add(child)
                continue
            share = dominant_share(child)
            if best_cohort is None or share > best_cohort[0]:
                best_cohort = (share, child)
        if best_cohort is not None and (best_queue is None or best_cohort[0] >= best_queue[0]):
            return self._descend(best_cohort[1], own, ancestors)
        if best_queue is None:
            self.pruned.add(cohort)
            return None
        return best_queue[1]

    def _first(self, queue: Node) -> tuple[bool, bool, int, int, int, str]:
        return self._key(self.queues[queue][-1])


def _first_strategy(
    request: PreemptionRequest, transaction: Transaction, pool: _Candidates, strategy: FairStrategy
) -> tuple[list[Target], list[Running]]:
    """Take victims by the first strategy; return them and those it spared."""
    targets: list[Target] = []
    spared: list[Running] = []
    own = request.cq.node
    nominal = not any(
        borrows_with(own.cell(flavor_resource), 0) for flavor_resource in request.short
    )
    while (queue := pool.next_queue()) is not None:
        candidates = pool.queues[queue]
        if queue is own or nominal:
            reason: PreemptionReason = "InClusterQueue" if queue is own else "InCohortReclamation"
            running = candidates.pop()
            targets.append(whole(request, running, reason))
            targets[-1].take(transaction)
            if _fits_booked(request):
                break
            continue
        mine, theirs = _sides(own, queue)
        own_share, old_share = dominant_share(mine), dominant_share(theirs)
        taken = False
        trial = Transaction()  # shares are about quota: nodes need not be cleared to compare them
        while candidates and not taken:
            running = candidates.pop()
            target = whole(request, running, "InCohortFairSharing")
            target.take(trial)
            taken = _is_fair(strategy, own_share, old_share, dominant_share(theirs))
            trial.rollback()
            if taken:
                target.take(transaction)
                targets.append(target)
            else:
                spared.append(running)
        if taken and _fits_booked(request):
            break
    return targets, spared


def _second_strategy(
    request: PreemptionRequest, transaction: Transaction, pool: _Candidates, targets: list[Target]
) -> None:
    """Give each queue one more chance: its current share alone decides (S2-b)."""
    own = request.cq.node
    while (queue := pool.next_queue()) is not None:
        mine, theirs = _sides(own, queue)
        if dominant_share(mine) < dominant_share(theirs):
            running = pool.queues[queue].pop()
            targets.append(whole(request, running, "InCohortFairSharing"))
            targets[-1].take(transaction)
            if _fits_booked(request):
                return
        pool.pruned.add(queue)


def _is_fair(strategy: FairStrategy, own: Share, old: Share, new: Share) -> bool:
    return own <= new if strategy == "LessThanOrEqualToFinalShare" else own < old


def _is_justified(
    request: PreemptionRequest,
    transaction: Transaction,
    target: Target,
    strategies: tuple[FairStrategy, ...],
) -> bool:
    """Check a victim against the shares after reprieve (spec quota §18.3)."""
    if target.reason != "InCohortFairSharing":
        return True
    mine, theirs = _sides(request.cq.node, target.running.cq.node)
    new = dominant_share(theirs)
    mark = transaction.mark()
    target.put_back(transaction)
    old = dominant_share(theirs)
    transaction.rollback(mark)
    own = dominant_share(mine)
    return any(_is_fair(strategy, own, old, new) for strategy in strategies)


def _sides(one: Node, other: Node) -> tuple[Node, Node]:
    """Return the two nodes just below the lowest common ancestor."""
    above = {node: index for index, node in enumerate(one.path())}
    path = list(one.path())
    previous = other
    for node in other.path():
        if node in above:
            return path[above[node] - 1], previous
        previous = node
    raise AssertionError(f"{one.name} and {other.name} are not in one tree")


def _fits_booked(request: PreemptionRequest) -> bool:
    """Say whether the request fits, its own usage being booked already."""
    if not all(available(cell) >= 0 for cell, wanted in request.charges.items() if wanted):
        return False
    return request.has_place is None or request.has_place()
