"""Nomination: what a candidate could get, judged on its own (spec quota §6.3 and §7).

Quota and nodes are asked together: a flavor whose nodes are full gives way to the next one, and
victims count only if the gang then really has a place.

Heads are nominated on the same picture, before any of them is decided. A nomination is a full
assignment that fits, one that fits once named victims have left, or the facts why there is none.
With `minCount`, fewer pods are considered only when the full count finds neither place nor victims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from unisono.engine.model.explanation import Blocker, GangDoesNotFit, PreemptionBackoff
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.provisioning import Purchase
from unisono.engine.model.workload import Admission, Workload
from unisono.engine.placement.admission import build_admission, placed_counts
from unisono.engine.placement.gang import PodSetPlacement
from unisono.engine.placement.node_search import NodeSearch
from unisono.engine.placement.placement import placement_of
from unisono.engine.placement.terminating import TerminatingPods, terminating_pods
from unisono.engine.preemption.candidates import Target
from unisono.engine.preemption.victims import VictimSearch
from unisono.engine.provisioning.opportunistic import OpportunisticUse, opportunistic_use
from unisono.engine.provisioning.purchase import CouldBuy, could_buy
from unisono.engine.quota.assign import (
    Allowed,
    Assignment,
    Banned,
    Verdict,
    assign,
    flavors_kept,
    next_ban,
    resized,
)
from unisono.engine.quota.flavors import EligibleFlavors, eligible_flavors_of
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState, Running
from unisono.engine.state.equivalence import Shape, shrunk
from unisono.engine.state.pending_queue import Waiting
from unisono.engine.state.quota_tree import Cell, Node
from unisono.engine.state.transaction import Transaction

# Says of an assignment whether its nodes are pending an admission check (spec quota §12). Which
# nodes an autoscaler will bring is unknown, so such a workload reserves quota without a place; it
# is placed when they are there (`repair.py`).
NodesPending = Callable[[Assignment], bool]


def _never_pending(assignment: Assignment) -> bool:
    """Say that no admission check brings nodes: the gang needs those that are there."""
    return False


# Flavors and counts that one equivalence class gets in a queue vary little; a bound all the same.
ADMISSIONS_KEPT = 64


@dataclass(slots=True, eq=False)
class Nominee:
    """A candidate with what it could get. Satisfies `ordering.heads.Head`."""

    waiting: Waiting
    cq: ClusterQueueState
    eligible: EligibleFlavors
    assignment: Assignment
    targets: list[Target] = field(default_factory=list)
    goes_first: bool = False
    replaced: Running | None = None  # the elastic slice it grows out of, which ends with it
    node_search: NodeSearch | None = None  # finds nodes; None while there are none
    placements: tuple[PodSetPlacement, ...] = ()
    lacks_nodes: bool = False  # there was quota, but no place
    waits_for_terminating: bool = False  # its place is free once terminating pods have left
    affordable: list[Assignment] = field(
        default_factory=list
    )  # assignments with quota and without a place
    purchase: Purchase | None = None  # machines that have to come for it first
    buys: bool = False  # victims make room in its quota only; then machines are bought
    # Gangs that hold nodes which it may use until they start (`provisioning/opportunistic.py`).
    opportunistic_on: list[Running] = field(default_factory=list)
    limit_ms: int | None = None  # to start it with, where it left that open (backfill)

    @property
    def node(self) -> Node:
        """The queue's place in the tree."""
        return self.cq.node

    @property
    def charges(self) -> dict[Cell, int]:
        """What admission would cost."""
        return self.assignment.charges

    @property
    def level(self) -> int:
        """From how far away it borrows."""
        return self.assignment.level

    @property
    def priority(self) -> int:
        """Its priority."""
        return self.waiting.workload.priority

    @property
    def time(self) -> Instant:
        """The instant that decides among equals."""
        return self.waiting.workload.position_time

    @property
    def uid(self) -> str:
        """Its identity, which ends every tie."""
        return self.waiting.workload.tie

    @property
    def key(self) -> WorkloadKey:
        """Its name."""
        return self.waiting.workload.key


def nominate(
    state: ClusterState,
    cq: ClusterQueueState,
    waiting: Waiting,
    transaction: Transaction,
    now: Instant,
    *,
    evicted: frozenset[WorkloadKey] = frozenset(),
    allowed: Allowed | None = None,
    start: Instant | None = None,
    may_preempt: bool = True,
) -> Nominee:
    """Nominate one candidate. Nothing that is tried stays on the transaction.

    `evicted` are victims of this cycle, which are not preempted once more; `allowed` are the only
    flavors of a second attempt. `start` is when it would start, if not now: it must not run into
    an advance reservation.
    """
    workload, policy = waiting.workload, state.policy
    state.evaluating = workload.key
    replaced = state.running.get(workload.replaces) if workload.replaces else None
    kept = replaced.holding.admission if replaced is not None else None
    begin = now if start is None else start
    node_search = None
    if state.nodes.has_nodes:
        node_search = NodeSearch(
            placement_of(state), waiting, kept, state.reserved.excluded_nodes(workload, begin)
        )
    nodes_pending: NodesPending = _never_pending
    if node_search is not None and cq.spec.checks:
        nodes_pending = _pending_by_checks(state, cq, workload)
    search = VictimSearch(
        workload=workload,
        cq=cq,
        policy=policy,
        now=now,
        transaction=transaction,
        queue_at=state.cohort_trees.queue_at,
        usage_of=cq.pending.usage_of,
        gone=evicted,
        displaces=may_preempt,
        find_place=_find_place(node_search, nodes_pending),
        only_room_counts=node_search.only_room_counts
        if node_search is not None and nodes_pending is _never_pending
        else None,
    )
    mark = transaction.mark()
    if replaced is not None:
        transaction.remove(replaced.charges)  # its pods stay where they are
        allowed = flavors_kept(replaced.holding.admission, waiting.shape)
    eligible = eligible_flavors_of(cq, waiting.shape, state.config)
    # With backfill it gets a reservation instead: that also counts on terminating pods.
    may_wait = node_search is not None and policy.backfill is None
    terminating = terminating_pods(state.nodes, transaction, now) if may_wait else None
    can_buy = could_buy(state, workload, node_search, now)
    starts_now = start is None and node_search is not None and kept is None
    held = opportunistic_use(state, workload, transaction, now) if starts_now else None
    has_market = node_search is not None and state.config.market is not None
    assignments = _AssignmentSearch(
        cq,
        waiting.shape,
        eligible,
        search,
        node_search,
        allowed,
        terminating,
        nodes_pending,
        can_buy,
        held,
        has_market,
    )
    best = assignments.best()
    if nodes_pending(best.assignment):
        node_search = None
    if best.lacks_nodes and not best.works and node_search is not None:
        if node_search.needs_excluded_nodes(best.assignment):
            reserved = state.reserved.facts(workload, begin)
            best.assignment.blockers = [*reserved, *best.assignment.blockers]
        fact = held.too_long(node_search, best.assignment) if held is not None else None
        if fact is not None:
            best.assignment.blockers = [*best.assignment.blockers, fact]
    transaction.rollback(mark)
    assignment = best.assignment
    if not best.targets and assignment.verdict < Verdict.FIT:
        if search.backs_off and assignment.verdict is not Verdict.NO_FIT:
            until = workload.may_preempt_at
            assert until is not None, "only a preempted workload backs off"
            backoff = PreemptionBackoff(until=until, preemptions=workload.preemptions)
            assignment.blockers.insert(0, backoff)
    is_preemptor = cq.pending.preemptor == workload.key
    return Nominee(
        waiting,
        cq,
        eligible,
        assignment,
        best.targets,
        goes_first=is_preemptor and policy.anti_thrash and not policy.strict,
        replaced=replaced,
        node_search=node_search,
        placements=best.placements,
        lacks_nodes=best.lacks_nodes,
        waits_for_terminating=best.waits_for_terminating,
        affordable=best.affordable,
        buys=best.buys,
        opportunistic_on=best.opportunistic_on,
    )


def _pending_by_checks(
    state: ClusterState, cq: ClusterQueueState, workload: Workload
) -> NodesPending:
    """Return a test whether the nodes of an assignment are pending a check of the queue."""
    config, checks = state.config, workload.checks
    return lambda found: config.nodes_come_later(cq.spec, found.flavors.values(), checks)


def _find_place(
    node_search: NodeSearch | None, nodes_pending: NodesPending
) -> Callable[[Assignment], bool] | None:
    """Return a test whether an assignment has a place, or needs none yet; None without nodes."""
    if node_search is None or nodes_pending is _never_pending:
        return None if node_search is None else node_search.fits
    return lambda assignment: nodes_pending(assignment) or node_search.fits(assignment)


def affordable(
    state: ClusterState,
    cq: ClusterQueueState,
    waiting: Waiting,
    transaction: Transaction,
    now: Instant,
) -> Assignment:
    """Return what quota alone would give a workload, as things are on the transaction."""
    search = VictimSearch(
        workload=waiting.workload,
        cq=cq,
        policy=state.policy,
        now=now,
        transaction=transaction,
        queue_at=state.cohort_trees.queue_at,
        usage_of=cq.pending.usage_of,
        displaces=False,
        find_place=None,
    )
    eligible = eligible_flavors_of(cq, waiting.shape, state.config)
    assignments = _AssignmentSearch(cq, waiting.shape, eligible, search, None, None, None)
    return assignments.best().assignment


@dataclass(slots=True)
class _Outcome:
    """What one count of pods could get."""

    assignment: Assignment
    targets: list[Target] = field(default_factory=list)
    placements: tuple[PodSetPlacement, ...] = ()
    lacks_nodes: bool = False
    waits_for_terminating: bool = False
    affordable: list[Assignment] = field(default_factory=list)
    buys: bool = False
    opportunistic_on: list[Running] = field(default_factory=list)

    @property
    def works(self) -> bool:
        return self.assignment.verdict is Verdict.FIT or bool(self.targets)


@dataclass(slots=True)
class _AssignmentSearch:
    """Tries counts and flavors until both quota and nodes fit."""

    cq: ClusterQueueState
    shape: Shape
    eligible: EligibleFlavors
    search: VictimSearch
    node_search: NodeSearch | None
    allowed: Allowed | None
    terminating: TerminatingPods | None  # None: it does not wait for them
    nodes_pending: NodesPending = _never_pending  # whether nodes come with a check
    can_buy: CouldBuy | None = None  # None: there is nothing to buy
    held: OpportunisticUse | None = None  # of nodes that gangs hold until their machines come
    has_market: bool = False  # whether machines can be bought at all

    def best(self) -> _Outcome:
        """Try the full count, then the largest smaller one that works."""
        full = self._attempt_count(self.shape.counts)
        if full.works or not self.shape.shrinkable:
            return full
        full.assignment.shortages = None  # a smaller count may fit long before the full one does
        found = self._largest(lambda one: one.works)
        if found is None and self.has_market and not full.affordable:
            found = self._largest(lambda one: bool(one.affordable))  # there is quota for it
        return found or full

    def _largest(self, is_enough: Callable[[_Outcome], bool]) -> _Outcome | None:
        """Return what the largest count can get that is enough; smaller ones are if it is."""
        low, high = 1, self.shape.most_steps
        found: _Outcome | None = None
        while low <= high:
            middle = (low + high) // 2
            smaller = self._attempt_count(shrunk(self.shape, middle))
            if is_enough(smaller):
                found, high = smaller, middle - 1
            else:
                low = middle + 1
        return found

    def _attempt_count(self, counts: tuple[int, ...]) -> _Outcome:
        """Try a count; victims are preempted only for as many pods as then find a place."""
        found = self._attempt(counts)
        while found.targets and self.node_search is not None and self.shape.shrinkable:
            if found.buys or self.nodes_pending(found.assignment):
                break
            given = self._counts_without(found.targets, found.assignment)
            if given == found.assignment.counts:
                break
            found = self._attempt(given)  # always fewer, so this ends
        return found

    def _counts_without(self, targets: list[Target], assignment: Assignment) -> tuple[int, ...]:
        """Return how many pods of each set find a place once the targets are evicted."""
        assert self.node_search is not None, "the caller asked"
        mark = self.search.transaction.mark()
        for target in targets:
            target.take(self.search.transaction)
        answer = self.node_search.place(assignment)
        self.search.transaction.rollback(mark)
        assert not isinstance(answer, GangDoesNotFit), "victims that do not suffice are not targets"
        return placed_counts(answer, self.shape)

    def _attempt(self, counts: tuple[int, ...]) -> _Outcome:
        """Assign flavors and, with nodes, find places; a flavor whose nodes are full gives way."""
        assignment = self._assign(counts, frozenset())
        if assignment.verdict is Verdict.NO_FIT:
            return _Outcome(assignment)
        if assignment.verdict is not Verdict.FIT:
            return self._with_victims(assignment)
        if self.node_search is None or self.nodes_pending(assignment):
            return _Outcome(assignment)
        others = [assignment]  # for which victims may be sought, in order of preference
        misfits: list[Blocker] = []
        banned: frozenset[Banned] = frozenset()
        while True:
            answer = self.node_search.place(assignment)
            if not isinstance(answer, GangDoesNotFit):
                return self._placed(assignment, answer)
            misfits.append(answer)
            more = next_ban(self.eligible, assignment, banned)
            if more is None:
                break
            banned = banned | {more}
            assignment = self._assign(counts, banned)
            if assignment.verdict is Verdict.NO_FIT:
                break
            others.append(assignment)
            if assignment.verdict is not Verdict.FIT:
                break
        return (
            self._opportunistic(others)
            or self._after_terminating(others)
            or self._without_place(others, misfits)
        )

    def _opportunistic(self, assignments: list[Assignment]) -> _Outcome | None:
        """Find a place on nodes that a gang holds, and needs only after this one has ended."""
        if self.held is None or self.node_search is None:
            return None
        for assignment in assignments:
            if assignment.verdict is Verdict.FIT:
                placements = self.held.place(self.node_search, assignment)
                if placements is not None:
                    return replace(
                        self._placed(assignment, placements), opportunistic_on=self.held.lenders
                    )
        return None

    def _after_terminating(self, assignments: list[Assignment]) -> _Outcome | None:
        """Find a place that terminating pods will leave: then nothing is preempted for it."""
        if self.terminating is None or self.node_search is None:
            return None
        for assignment in assignments:
            if assignment.verdict is not Verdict.FIT:
                continue
            placements = self.terminating.place(self.node_search, assignment)
            if placements is not None:
                placed = self._placed(assignment, placements)
                return _Outcome(
                    placed.assignment,
                    placements=placements,
                    lacks_nodes=True,
                    waits_for_terminating=True,
                )
        return None

    def _placed(self, assignment: Assignment, placements: tuple[PodSetPlacement, ...]) -> _Outcome:
        """Settle for as many pods as found a place (elastic sets may get fewer than requested)."""
        counts = placed_counts(placements, self.shape)
        if counts != assignment.counts:
            assignment = resized(assignment, self.eligible, counts)
        return _Outcome(assignment, placements=placements)

    def _with_victims(self, assignment: Assignment) -> _Outcome:
        """Find victims for the quota; perhaps there is no place even then."""
        if assignment.verdict is Verdict.NO_VICTIMS and len(assignment.needs_victims) == 1:
            return _Outcome(assignment)  # none for the one short cell: none for all cells together
        targets = self.search.victims_for(assignment)
        no_place = self.node_search.last_refusal if self.node_search is not None else None
        if targets or no_place is None:
            return _Outcome(assignment, targets)
        if self.can_buy is not None:
            targets = self.search.victims_for(assignment, anywhere=True)
            victims = [target.running.holding.workload.key for target in targets]
            if self.can_buy(assignment, victims):
                return _Outcome(assignment, targets, buys=bool(targets))
        blocker = msgspec.structs.replace(no_place, tried_preemption=True)
        assignment.blockers = [*assignment.blockers, blocker]
        return _Outcome(assignment, lacks_nodes=True)

    def _without_place(self, assignments: list[Assignment], misfits: list[Blocker]) -> _Outcome:
        """There is quota but no place: find victims for the place, if the rules allow it."""
        affordable = [replace(one) for one in assignments if one.verdict is Verdict.FIT]
        for assignment in assignments if self.search.has_rules else ():
            if assignment.verdict is Verdict.FIT:  # quota fits: any user of it may be in the way
                assignment.needs_victims = dict.fromkeys(assignment.charges)
            targets = self.search.victims_for(assignment)
            if targets:
                assignment.verdict = min(assignment.verdict, Verdict.PREEMPT)
                return _Outcome(assignment, targets, affordable=affordable)
        assignment = assignments[0]
        if (
            self.search.has_rules
            and self.node_search is not None
            and self.node_search.last_refusal is not None
        ):
            # The last refusal was given with all candidates for preemption off their nodes.
            misfits[0] = msgspec.structs.replace(
                self.node_search.last_refusal, tried_preemption=True
            )
        assignment.verdict = Verdict.NO_FIT
        assignment.blockers = misfits
        assignment.shortages = None
        return _Outcome(assignment, lacks_nodes=True, affordable=affordable)

    def _assign(self, counts: tuple[int, ...], banned: frozenset[Banned]) -> Assignment:
        return assign(
            self.shape,
            self.eligible,
            counts,
            fungibility=self.cq.spec.fungibility,
            preemption=self.search,
            queue=self.cq.spec.name,
            allowed=self.allowed,
            banned=banned,
        )


def admission_of(nominee: Nominee) -> Admission:
    """Return the assignment as the workload's admission; equal ones are shared."""
    if nominee.placements:
        return _build(nominee)
    assignment, written = nominee.assignment, nominee.eligible.written
    key = (assignment.counts, *assignment.flavors.values())
    admission = written.get(key)
    if admission is None:
        if len(written) >= ADMISSIONS_KEPT:
            written.clear()
        admission = written[key] = _build(nominee)
    return admission


def _build(nominee: Nominee) -> Admission:
    shape, assignment = nominee.waiting.shape, nominee.assignment
    return build_admission(nominee.cq.spec.name, shape, assignment, nominee.placements)


def facts_of(nominee: Nominee) -> tuple[Blocker, ...]:
    """Return why the nominee does not fit now."""
    return tuple(nominee.assignment.blockers)
