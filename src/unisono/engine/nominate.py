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
from unisono.engine.model.names import FlavorName, Instant, QueueName, ResourceName, WorkloadKey
from unisono.engine.model.provisioning import Purchase
from unisono.engine.model.workload import Admission, PodSetAssignment, Workload
from unisono.engine.placement.gang import PodSetPlacement
from unisono.engine.placement.node_search import NodeSearch, TerminatingPods, terminating_pods
from unisono.engine.placement.placement import placement_of
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
from unisono.engine.state.gang_request import GangRequest, shrunk
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.quota_tree import Cell, Node
from unisono.engine.state.transaction import Transaction

# Says of an assignment whether its nodes are pending an admission check (spec quota §12). Which
# nodes an autoscaler will bring is unknown, so such a workload reserves quota without a place; it
# is placed when they are there (`repair.py`).
NodesPending = Callable[[Assignment], bool]


# Flavors and counts that one equivalence class gets in a queue vary little; a bound all the same.
ADMISSIONS_KEPT = 64


@dataclass(slots=True, eq=False)
class Nominee:
    """A candidate with what it could get. Satisfies `ordering.heads.Head`.

    Four fields say what is judged and with which result; all others are empty unless they apply.
    """

    waiting: PendingWorkload
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
    waiting: PendingWorkload,
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
    workload = waiting.workload
    state.evaluating = workload.key
    begin = now if start is None else start
    replaced = state.running.get(workload.replaces) if workload.replaces else None
    mark = transaction.mark()
    if replaced is not None:
        transaction.remove(replaced.charges)  # its pods stay where they are
        allowed = flavors_kept(replaced.admitted.admission, waiting.request)
    nodes = None
    if state.nodes.has_nodes:
        kept = replaced.admitted.admission if replaced is not None else None
        excluded = state.reserved.excluded_nodes(workload, begin)
        search = NodeSearch(placement_of(state), waiting, kept, excluded)
        nodes = _node_options(state, cq, search, transaction, now, starts_now=start is None)
    victims = _victim_search(
        state, cq, workload, transaction, now, nodes=nodes, evicted=evicted, may_preempt=may_preempt
    )
    eligible = eligible_flavors_of(cq, waiting.request, state.config)
    best = _AssignmentSearch(cq, waiting.request, eligible, victims, nodes, allowed).best()
    if nodes is not None and nodes.come_later(best.assignment):
        nodes = None  # then it gets quota, and no place yet
    if not best.works:
        if best.lacks_nodes and nodes is not None:
            _add_kept_nodes(best.assignment, nodes, state, workload, begin)
        _add_backoff(best.assignment, victims)
    transaction.rollback(mark)
    return Nominee(
        waiting,
        cq,
        eligible,
        best.assignment,
        best.targets,
        goes_first=_goes_first(state, cq, workload),
        replaced=replaced,
        node_search=nodes.search if nodes is not None else None,
        placements=best.placements,
        lacks_nodes=best.lacks_nodes,
        waits_for_terminating=best.waits_for_terminating,
        affordable=best.affordable,
        buys=best.buys,
        opportunistic_on=best.opportunistic_on,
    )


def _goes_first(state: ClusterState, cq: ClusterQueueState, workload: Workload) -> bool:
    """Say whether a workload is a preemptor that no other candidate may overtake (§18.2a)."""
    if cq.pending.preemptor != workload.key:
        return False
    policy = state.policy
    return policy.anti_thrash and not policy.strict


@dataclass(slots=True)
class _NodeOptions:
    """The ways in which a candidate could come by nodes."""

    search: NodeSearch  # for nodes that are free
    pending: NodesPending | None  # None: its queue has no admission checks
    terminating: TerminatingPods | None  # None: it does not wait for them
    opportunistic: OpportunisticUse | None  # by gangs that hold nodes until their machines come
    can_buy: CouldBuy | None  # None: there is nothing to buy
    has_offerings: bool  # whether machines can be bought at all

    def come_later(self, assignment: Assignment) -> bool:
        """Say whether an admission check will bring the nodes of an assignment."""
        return self.pending is not None and self.pending(assignment)

    def fits_or_comes_later(self, assignment: Assignment) -> bool:
        """Say whether an assignment has a place, or needs none yet."""
        return self.come_later(assignment) or self.search.fits(assignment)


def _node_options(
    state: ClusterState,
    cq: ClusterQueueState,
    search: NodeSearch,
    transaction: Transaction,
    now: Instant,
    *,
    starts_now: bool,
) -> _NodeOptions:
    """Return the ways to nodes that the policy leaves open to the workload of a search."""
    workload, config = search.waiting.workload, state.config
    # With backfill it gets a reservation instead: that also counts on terminating pods.
    may_wait = state.policy.backfill is None
    # What it replaces keeps its nodes: it grows beside them, not on nodes that it had to return.
    may_borrow = starts_now and search.kept is None
    return _NodeOptions(
        search,
        _pending_by_checks(state, cq, workload) if cq.spec.checks else None,
        terminating_pods(state.nodes, transaction, now) if may_wait else None,
        opportunistic_use(state, workload, transaction, now) if may_borrow else None,
        could_buy(state, workload, search, now),
        config.offerings is not None,
    )


def _pending_by_checks(
    state: ClusterState, cq: ClusterQueueState, workload: Workload
) -> NodesPending:
    """Return a test whether the nodes of an assignment are pending a check of the queue."""
    config, checks = state.config, workload.checks
    return lambda found: config.nodes_come_later(cq.spec, found.flavors.values(), checks)


def _victim_search(
    state: ClusterState,
    cq: ClusterQueueState,
    workload: Workload,
    transaction: Transaction,
    now: Instant,
    *,
    nodes: _NodeOptions | None = None,
    evicted: frozenset[WorkloadKey] = frozenset(),
    may_preempt: bool = True,
) -> VictimSearch:
    """Return the search for victims that make room in the quota, and on nodes where there are."""
    find_place = only_capacity_counts = None
    if nodes is not None and nodes.pending is None:
        find_place, only_capacity_counts = nodes.search.fits, nodes.search.only_capacity_counts
    elif nodes is not None:
        find_place = nodes.fits_or_comes_later
    return VictimSearch(
        workload=workload,
        cq=cq,
        policy=state.policy,
        now=now,
        transaction=transaction,
        queue_at=state.cohort_trees.queue_at,
        usage_of=cq.pending.usage_of,
        evicted=evicted,
        may_preempt=may_preempt,
        find_place=find_place,
        only_capacity_counts=only_capacity_counts,
    )


def _add_kept_nodes(
    assignment: Assignment,
    nodes: _NodeOptions,
    state: ClusterState,
    workload: Workload,
    begin: Instant,
) -> None:
    """Name what keeps nodes from a workload that has none: reservations first, then holders."""
    if nodes.search.needs_excluded_nodes(assignment):
        reserved = state.reserved.facts(workload, begin)
        assignment.blockers = [*reserved, *assignment.blockers]
    use = nodes.opportunistic
    fact = use.too_long(nodes.search, assignment) if use is not None else None
    if fact is not None:
        assignment.blockers = [*assignment.blockers, fact]


def _add_backoff(assignment: Assignment, victims: VictimSearch) -> None:
    """Name the back-off of a workload that could preempt if it had not been preempted lately."""
    if victims.backs_off and assignment.verdict is not Verdict.NO_FIT:
        workload = victims.workload
        until = workload.may_preempt_at
        assert until is not None, "only a preempted workload backs off"
        backoff = PreemptionBackoff(until=until, preemptions=workload.preemptions)
        assignment.blockers.insert(0, backoff)


def affordable(
    state: ClusterState,
    cq: ClusterQueueState,
    waiting: PendingWorkload,
    transaction: Transaction,
    now: Instant,
) -> Assignment:
    """Return what quota alone would give a workload, as things are on the transaction."""
    victims = _victim_search(state, cq, waiting.workload, transaction, now, may_preempt=False)
    eligible = eligible_flavors_of(cq, waiting.request, state.config)
    assignments = _AssignmentSearch(cq, waiting.request, eligible, victims, None, None)
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
    request: GangRequest
    eligible: EligibleFlavors
    victims: VictimSearch
    nodes: _NodeOptions | None  # None: the cluster has none, and quota alone decides
    allowed: Allowed | None  # None: all flavors

    def best(self) -> _Outcome:
        """Try the full count, then the largest smaller one that works."""
        full = self._attempt_count(self.request.counts)
        if full.works or not self.request.shrinkable:
            return full
        full.assignment.shortages = None  # a smaller count may fit long before the full one does
        found = self._largest(lambda one: one.works)
        for_sale = self.nodes is not None and self.nodes.has_offerings
        if found is None and for_sale and not full.affordable:
            found = self._largest(lambda one: bool(one.affordable))  # there is quota for it
        return found or full

    def _largest(self, is_enough: Callable[[_Outcome], bool]) -> _Outcome | None:
        """Return what the largest count can get that is enough; smaller ones are if it is."""
        low, high = 1, self.request.most_steps
        found: _Outcome | None = None
        while low <= high:
            middle = (low + high) // 2
            smaller = self._attempt_count(shrunk(self.request, middle))
            if is_enough(smaller):
                found, high = smaller, middle - 1
            else:
                low = middle + 1
        return found

    def _attempt_count(self, counts: tuple[int, ...]) -> _Outcome:
        """Try a count; victims are preempted only for as many pods as then find a place."""
        found = self._attempt(counts)
        nodes = self.nodes
        while found.targets and nodes is not None and self.request.shrinkable:
            if found.buys or nodes.come_later(found.assignment):
                break
            given = self._counts_without(found.targets, found.assignment, nodes.search)
            if given == found.assignment.counts:
                break
            found = self._attempt(given)  # always fewer, so this ends
        return found

    def _counts_without(
        self, targets: list[Target], assignment: Assignment, node_search: NodeSearch
    ) -> tuple[int, ...]:
        """Return how many pods of each set find a place once the targets are evicted."""
        transaction = self.victims.transaction
        mark = transaction.mark()
        for target in targets:
            target.take(transaction)
        answer = node_search.place(assignment)
        transaction.rollback(mark)
        assert not isinstance(answer, GangDoesNotFit), "victims that do not suffice are not targets"
        return placed_counts(answer, self.request)

    def _attempt(self, counts: tuple[int, ...]) -> _Outcome:
        """Assign flavors and, with nodes, find places; a flavor whose nodes are full gives way."""
        assignment = self._assign(counts, frozenset())
        if assignment.verdict is Verdict.NO_FIT:
            return _Outcome(assignment)
        if assignment.verdict is not Verdict.FIT:
            return self._with_victims(assignment)
        nodes = self.nodes
        if nodes is None or nodes.come_later(assignment):
            return _Outcome(assignment)
        others = [assignment]  # for which victims may be sought, in order of preference
        misfits: list[Blocker] = []
        banned: frozenset[Banned] = frozenset()
        while True:
            answer = nodes.search.place(assignment)
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
            self._opportunistic(others, nodes)
            or self._after_terminating(others, nodes)
            or self._without_place(others, misfits, nodes)
        )

    def _opportunistic(self, assignments: list[Assignment], nodes: _NodeOptions) -> _Outcome | None:
        """Find a place on nodes that a gang holds, and needs only after this one has ended."""
        if nodes.opportunistic is None:
            return None
        for assignment in assignments:
            if assignment.verdict is Verdict.FIT:
                placements = nodes.opportunistic.place(nodes.search, assignment)
                if placements is not None:
                    return replace(
                        self._placed(assignment, placements),
                        opportunistic_on=nodes.opportunistic.holders,
                    )
        return None

    def _after_terminating(
        self, assignments: list[Assignment], nodes: _NodeOptions
    ) -> _Outcome | None:
        """Find a place that terminating pods will leave: then nothing is preempted for it."""
        if nodes.terminating is None:
            return None
        for assignment in assignments:
            if assignment.verdict is not Verdict.FIT:
                continue
            placements = nodes.terminating.place(nodes.search, assignment)
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
        counts = placed_counts(placements, self.request)
        if counts != assignment.counts:
            assignment = resized(assignment, self.eligible, counts)
        return _Outcome(assignment, placements=placements)

    def _with_victims(self, assignment: Assignment) -> _Outcome:
        """Find victims for the quota; perhaps there is no place even then."""
        if assignment.verdict is Verdict.NO_VICTIMS and len(assignment.needs_victims) == 1:
            return _Outcome(assignment)  # none for the one short cell: none for all cells together
        targets, nodes = self.victims.victims_for(assignment), self.nodes
        no_place = nodes.search.last_refusal if nodes is not None else None
        if targets or nodes is None or no_place is None:
            return _Outcome(assignment, targets)
        if nodes.can_buy is not None:
            targets = self.victims.victims_for(assignment, anywhere=True)
            evicted = [target.running.admitted.workload.key for target in targets]
            if nodes.can_buy(assignment, evicted):
                return _Outcome(assignment, targets, buys=bool(targets))
        blocker = msgspec.structs.replace(no_place, tried_preemption=True)
        assignment.blockers = [*assignment.blockers, blocker]
        return _Outcome(assignment, lacks_nodes=True)

    def _without_place(
        self, assignments: list[Assignment], misfits: list[Blocker], nodes: _NodeOptions
    ) -> _Outcome:
        """There is quota but no place: find victims for the place, if the rules allow it."""
        affordable = [replace(one) for one in assignments if one.verdict is Verdict.FIT]
        for assignment in assignments if self.victims.has_rules else ():
            if assignment.verdict is Verdict.FIT:  # quota fits: any user of it may be in the way
                assignment.needs_victims = dict.fromkeys(assignment.charges)
            targets = self.victims.victims_for(assignment)
            if targets:
                assignment.verdict = min(assignment.verdict, Verdict.PREEMPT)
                return _Outcome(assignment, targets, affordable=affordable)
        assignment = assignments[0]
        refusal = nodes.search.last_refusal
        if self.victims.has_rules and refusal is not None:
            # The last refusal was given with all candidates for preemption off their nodes.
            misfits[0] = msgspec.structs.replace(refusal, tried_preemption=True)
        assignment.verdict = Verdict.NO_FIT
        assignment.blockers = misfits
        assignment.shortages = None
        return _Outcome(assignment, lacks_nodes=True, affordable=affordable)

    def _assign(self, counts: tuple[int, ...], banned: frozenset[Banned]) -> Assignment:
        return assign(
            self.request,
            self.eligible,
            counts,
            fungibility=self.cq.spec.fungibility,
            preemption=self.victims,
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
    request, assignment = nominee.waiting.request, nominee.assignment
    return build_admission(nominee.cq.spec.name, request, assignment, nominee.placements)


def facts_of(nominee: Nominee) -> tuple[Blocker, ...]:
    """Return why the nominee does not fit now."""
    return tuple(nominee.assignment.blockers)


def build_admission(
    queue: QueueName,
    request: GangRequest,
    assignment: Assignment,
    placements: tuple[PodSetPlacement, ...],
) -> Admission:
    """Return flavors and counts from quota, nodes from placement, for every pod set."""
    taken: list[list[tuple[ResourceName, FlavorName]]] = [[] for _ in request.pod_sets]
    for (index, resource), flavor in assignment.flavors.items():
        taken[index].append((resource, flavor))
    placed_of = {placed.demand: placed for placed in placements}
    return Admission(
        queue=queue,
        pod_sets=tuple(
            PodSetAssignment(
                name=pod_set.name,
                # Reclaimable pods stay in the count; they are only not charged (spec quota §15).
                count=assignment.counts[index] + pod_set.count - request.counts[index],
                flavors=tuple(sorted(taken[index])),
                nodes=placed_of[pod_set.name].nodes if pod_set.name in placed_of else (),
                devices=placed_of[pod_set.name].devices if pod_set.name in placed_of else (),
            )
            for index, pod_set in enumerate(request.pod_sets)
        ),
    )


def placed_counts(placements: tuple[PodSetPlacement, ...], request: GangRequest) -> tuple[int, ...]:
    """Return how many pods of each set found a place."""
    got = {placed.demand: placed.pods for placed in placements}
    return tuple(got.get(pod_set.name, 0) for pod_set in request.pod_sets)
