"""Preemption candidates: which workloads the rules of a queue let it preempt, and in which order.

Spec quota §8. A candidate must use a flavor-resource that the preemptor is short of, and the
preemptor's queue must have a rule that lets it go first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from unisono.engine.model.names import Instant, LocalQueueKey, WorkloadKey
from unisono.engine.model.plan import PreemptionReason
from unisono.engine.model.resources import FlavorResource
from unisono.engine.model.workload import Workload
from unisono.engine.preemption.shrinking import (
    Portion,
    given_up_already,
    most_given_up,
    what_goes,
    what_stays,
)
from unisono.engine.state.cluster_queue import ClusterQueueState, Running
from unisono.engine.state.quota_tree import Cell, Node, available
from unisono.engine.state.transaction import Booked, Transaction


@dataclass(slots=True, frozen=True)
class PreemptionRequest:
    """What a preemptor asks for, what it is short of, and which rules bind the search.

    A value that only `VictimSearch._request` makes; the rules of both searches read it.
    """

    workload: Workload
    cq: ClusterQueueState
    charges: dict[Cell, int]  # everything it would be charged
    short: tuple[FlavorResource, ...]  # the flavor-resources that have not enough
    now: Instant
    evicted: frozenset[WorkloadKey]  # victims of others, already counted as gone
    only_evicting: bool  # counts on evictions that are under way, and preempts nothing
    has_place: Callable[[], bool] | None  # whether there are nodes; None: nodes are not asked about
    only_capacity_counts: bool  # where there is a place, there is one with more capacity, too
    spares_fresh: bool  # what has not run for its queue's minimum is no candidate (§18.5)
    may_shrink: bool  # gangs that can do with fewer pods give up those instead of being evicted


@dataclass(slots=True, frozen=True)
class Target:
    """A chosen victim, and what it goes on with if it is shrunk and not evicted."""

    running: Running
    reason: PreemptionReason
    stays: Portion | None = None

    def take(self, transaction: Transaction) -> None:
        """Count what leaves as gone."""
        transaction.let_go(self.running)
        if self.stays is not None:
            transaction.bring_back(self.stays)

    def put_back(self, transaction: Transaction) -> None:
        """Count all of it as there again."""
        if self.stays is not None:
            transaction.let_go(self.stays)
        transaction.bring_back(self.running)

    def leaving(self) -> Booked:
        """Return what it holds now and will not hold then."""
        return self.running if self.stays is None else what_goes(self.running, self.stays)


QueueAt = Callable[[Node], ClusterQueueState]
UsageOf = Callable[[LocalQueueKey], int]


def own_candidates(request: PreemptionRequest) -> Iterator[Running]:
    """Yield workloads of the preemptor's own queue that its rules let it preempt."""
    rule = request.cq.spec.preemption.within_queue
    if rule == "Never":
        return
    mine = request.workload
    for running in _in_question(request, request.cq):
        theirs = running.admitted.workload
        lower = mine.priority > theirs.priority
        newer = (
            rule == "LowerOrNewerEqualPriority"
            and mine.priority == theirs.priority
            and mine.position_time < theirs.position_time
        )
        if (lower or newer) and _counts(request, running):
            yield running


def foreign_candidates(request: PreemptionRequest, cq: ClusterQueueState) -> Iterator[Running]:
    """Yield workloads of another queue of the tree that may be reclaimed."""
    rule = request.cq.spec.preemption.reclaim
    if rule == "Never" or cq.blocker is not None or not cq.spec.preemption.may_be_reclaimed:
        return
    mine, takes_any = request.workload.priority, rule == "Any"
    for running in _in_question(request, cq):
        if (takes_any or mine > running.admitted.workload.priority) and _counts(request, running):
            yield running


def _in_question(request: PreemptionRequest, cq: ClusterQueueState) -> Iterable[Running]:
    """Return the admitted workloads of a queue; without preemption, those that are leaving."""
    admitted = cq.running.values()
    if not request.only_evicting:
        return admitted
    return [one for one in admitted if one.admitted.evicting or one.admitted.keeps is not None]


def _counts(request: PreemptionRequest, running: Running) -> bool:
    """Say whether a candidate uses what is short and may be preempted at all."""
    admitted, short = running.admitted, request.short
    if request.evicted and admitted.workload.key in request.evicted:
        return False
    if not request.charges and request.has_place is not None:
        # Its queue counts nothing, so only nodes can be short.
        return admitted.evicting or may_disturb(request, running)
    for cell, amount in running.charges:
        if amount > 0 and cell.flavor_resource in short:
            return admitted.evicting or admitted.keeps is not None or may_disturb(request, running)
    return False


def may_disturb(request: PreemptionRequest, running: Running) -> bool:
    """Say whether a candidate may be evicted or shrunk."""
    admitted = running.admitted
    if request.only_evicting or admitted.workload.key == request.workload.replaces:
        return False
    label = running.cq.spec.preemption.victims_have
    if label is not None and not all(label in one.labels for one in admitted.workload.pod_sets):
        return False
    protected_ms = running.cq.spec.preemption.min_runtime_ms if request.spares_fresh else 0
    return protected_ms == 0 or request.now - admitted.running_since >= protected_ms


def whole(request: PreemptionRequest, running: Running, reason: PreemptionReason) -> Target:
    """Return a candidate as a victim with all that it may be asked for."""
    if running.admitted.evicting or may_disturb(request, running):
        return Target(running, reason)
    given_up = given_up_already(running.admitted)  # that much it gives up anyway, and not more
    return Target(running, reason, what_stays(running, given_up))


def most_to_give(request: PreemptionRequest, running: Running) -> int:
    """Return how many pods a candidate can give up without being evicted."""
    admitted = running.admitted
    given_up = given_up_already(admitted)
    if admitted.evicting or not request.may_shrink or not may_disturb(request, running):
        return given_up
    return max(given_up, most_given_up(admitted))


def could_suffice(request: PreemptionRequest, candidates: Sequence[Running]) -> bool:
    """Rule out hopeless searches: availability grows by no more than what all candidates use."""
    for cell, wanted in request.charges.items():
        flavor_resource, missing = cell.flavor_resource, wanted - available(cell)
        if flavor_resource not in request.short:
            continue
        for running in candidates:
            if missing <= 0:
                break  # the rest only adds to that
            for held, amount in running.charges:
                if held.flavor_resource == flavor_resource:
                    missing -= amount
        if missing > 0:
            return False
    return True


def has_place_without(
    request: PreemptionRequest, transaction: Transaction, candidates: Sequence[Running]
) -> bool:
    """Say whether there would be a place without all candidates.

    If not, no eviction helps, and none is made.
    """
    if request.has_place is None:
        return True
    clearing = transaction.clear_nodes(candidates)
    found = request.has_place()
    transaction.fill_nodes(clearing)
    return found


def importance(
    running: Running, request: PreemptionRequest, usage_of: UsageOf | None
) -> tuple[bool, bool, int, int, int, str]:
    """Sort key: least important first. Ends in the identity, so the order is total."""
    admitted = running.admitted
    own = running.cq is request.cq
    # Within one queue, a local queue that used more lately gives way first, before priority.
    recent = usage_of(admitted.workload.queue) if usage_of and own else 0
    return (
        not admitted.evicting,
        own,
        -recent,
        admitted.workload.priority,
        -admitted.reserved_at,
        admitted.workload.uid,
    )


def within_quota(node: Node, flavor_resources: Iterable[FlavorResource]) -> bool:
    """Say whether the node uses no more than its subtree owns of any of these flavor-resources."""
    for flavor_resource in flavor_resources:
        cell = node.cells.get(flavor_resource)
        if cell is not None and cell.usage > cell.subtree:
            return False
    return True
