"""The decisions of one cycle: each is booked on a transaction before the next one is taken.

Which workload is evaluated, and when, is the matter of the loop (`engine/cycle.py`) and its source
of candidates; what is done about one nominee is here: admit it, preempt others for it, or return
the facts why it waits. Spec quota §6. This is the one place where an `Admit` is made, but for the
fast path's (`backfill/fast_path.py`), which decides whole cycles by numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from unisono.engine.backfill.counted_gang import CountedGang, Offer, offer_on
from unisono.engine.backfill.reservation_table import ReservationTable
from unisono.engine.model.explanation import (
    Blocker,
    ClaimedThisCycle,
    Explanation,
    GangDoesNotFit,
    LimitReached,
    PodsNotReady,
)
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Admit, Await, Outcome, Preempt, Wait
from unisono.engine.model.policy import Backfill
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.model.resources import Usage
from unisono.engine.model.workload import Admission, Workload
from unisono.engine.nominate import Nominee, admission_of, facts_of, nominate, placed_counts
from unisono.engine.ordering.limit_counters import LimitCounters
from unisono.engine.ordering.multifactor import MultifactorPriority
from unisono.engine.ordering.priority_order import multifactor_of
from unisono.engine.placement.node_search import waiting_for
from unisono.engine.preemption.victims import named, waiting_for_victims
from unisono.engine.provisioning.opportunistic import holders_used, set_aside
from unisono.engine.purchasing import Purchases
from unisono.engine.quota.assign import Verdict, resized
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState, CohortTree
from unisono.engine.state.nodes import TerminatingPod, placed_pods_of
from unisono.engine.state.occupancy import PlacedPods
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.quota_tree import Cell, Node, available
from unisono.engine.state.timeline import Timeline
from unisono.engine.state.transaction import Charges, Starting, Transaction

NO_RULES = PreemptionRules()


@dataclass(slots=True)
class _Claims:
    """What this cycle did to one cohort tree that is not true yet."""

    # Of victims: off the transaction, still running.
    leaving: list[Charges] = field(default_factory=list)
    # Of preemptors that wait for them: on the transaction, not running yet.
    coming: list[Charges] = field(default_factory=list)


@dataclass(slots=True)
class Decisions:
    """The decisions of one cycle so far.

    It is made with the first four fields; all others are what the cycle has decided, booked or
    looked up since.
    """

    state: ClusterState
    now: Instant
    transaction: Transaction
    timeline: Timeline  # pending and running workloads in time
    admissions: list[Admit] = field(default_factory=list)
    preemptions: list[Preempt] = field(default_factory=list)
    awaits: list[Await] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    victims: dict[WorkloadKey, None] = field(default_factory=dict)
    # Off the transaction already: of them those that others preempt, and slices that are replaced.
    taken: dict[WorkloadKey, None] = field(default_factory=dict)
    claims: dict[CohortTree, _Claims] = field(default_factory=dict)
    leaving: list[PlacedPods] = field(default_factory=list)  # pods of victims, still on their nodes
    touched: list[Node] = field(default_factory=list)  # queues that lost usage to the last decision
    starting: list[Starting] = field(default_factory=list)  # what each admission books
    # Starts of this cycle, as limits of accounts and QOS count them.
    limit_counts: LimitCounters = field(default_factory=LimitCounters)
    purchases: Purchases | None = None  # made so far; None before the first
    is_last: bool = False  # no decision follows: what it takes need not be booked
    # Backfill reservations that this cycle keeps to and adds to; None: the policy has no backfill.
    table: ReservationTable | None = None
    limits: MultifactorPriority | None = None  # None: the policy has no multifactor priority

    def __post_init__(self) -> None:
        """Find the limits that the policy asks for."""
        if self.state.priority_order.is_on:
            self.limits = multifactor_of(self.state)

    def over_limit(self, waiting: PendingWorkload) -> LimitReached | None:
        """Return the limit that a workload would break by starting beside this cycle's starts."""
        limits = self.limits
        return None if limits is None else limits.over_limit_of(waiting.key, self.limit_counts)

    def decide(self, nominee: Nominee) -> Wait | None:
        """Admit the nominee, or return why it waits; perhaps for victims that leave for it."""
        self._find_machines(nominee)
        verdict, targets = nominee.assignment.verdict, nominee.targets
        if verdict is Verdict.NO_FIT:
            return self._wait_for_quota(nominee)
        if verdict is not Verdict.FIT and not targets:
            return self._keep_quota(nominee)
        if not targets and (delays := self._delays(nominee)) is not None:
            return _wait(nominee, "retry", delays)
        if nominee.waiting.workload.replaces in self.victims:
            return _skip(nominee, overlapping=True)
        if any(target.running.admitted.workload.key in self.victims for target in targets):
            return self._share_victims(nominee)
        if targets:
            return self._preempt(nominee)
        if nominee.waits_for_terminating:
            return self._await(nominee)
        return self._admit(nominee)

    def _delays(self, nominee: Nominee) -> tuple[Blocker, ...] | None:
        """Return the reservation that a nominee would delay; None: it may start.

        The limit to start it with, where it left that open, is found with it: the longest that
        delays no reservation.
        """
        table = self.table
        if table is None:
            return None
        workload = nominee.waiting.workload
        limit = self.timeline.limit_of(workload)
        end = Instant(self.now + limit)
        if nominee.opportunistic_on and table.ends_before_first(end):
            return None  # on held nodes: what it uses is booked for their gang already
        if not table.allows(nominee, end):
            return table.would_delay(limit)
        most = longest_limit(self.state, workload, self.now)
        if most is not None and workload.least_limit_ms is not None:
            nominee.limit_ms = raise_limit(
                workload.least_limit_ms,
                most,
                lambda longer: table.allows(nominee, Instant(self.now + longer)),
            )
        return None

    def _find_machines(self, nominee: Nominee) -> None:
        """Let a nominee that has quota and no place have machines bought, if that is possible."""
        if not nominee.affordable or self.state.config.offerings is None:
            return
        if self.purchases is None:
            self.purchases = Purchases(self.state, self.transaction, self.now)
        self.purchases.buy_for(nominee, self.leaving)

    def _wait_for_quota(self, nominee: Nominee) -> Wait:
        """Nothing fits, not even with victims: step aside, or block a StrictFIFO queue."""
        outcome: Outcome = "stall" if nominee.cq.is_strict else "park"
        return _wait(nominee, outcome, facts_of(nominee), _unblocked_by(nominee))

    def _keep_quota(self, nominee: Nominee) -> Wait:
        """It may preempt and found no victims: later candidates must not take what it waits for.

        Not needed when the queue may always reclaim what is its own, or when backfill reserves. It
        holds for this cycle only: the claim goes with the transaction (spec quota §6).
        """
        if self.table is None and nominee.cq.spec.preemption.reclaim != "Any":
            self._book_claim(nominee, tuple(_quota_to_keep(nominee)))
        outcome: Outcome = "retry" if nominee.cq.is_strict else "park"
        # Each flavor-resource may have victims, but not all together: then anything counts.
        together = nominee.assignment.verdict is not Verdict.NO_VICTIMS
        unblocked_by = None if together else _unblocked_by(nominee)
        return _wait(nominee, outcome, facts_of(nominee), unblocked_by)

    def _share_victims(self, nominee: Nominee) -> Wait:
        """Its victims leave for another preemptor already: is there room for both, or are others?

        It is nominated again as if all victims of this cycle were gone, with the same flavors. If
        that needs further victims, they leave in this cycle, too: waiting for the first one's would
        cost a cycle for each preemptor (Kueue's RecomputeAssignmentUponPreemptionTargetsOverlap).
        """
        leaving = tuple(
            named(target)
            for target in nominee.targets
            if target.running.admitted.workload.key in self.victims
        )
        second = nominate(
            self.state,
            nominee.cq,
            nominee.waiting,
            self.transaction,
            self.now,
            evicted=frozenset(self.victims),
            allowed=nominee.assignment.flavors,
        )
        if second.assignment.verdict is not Verdict.FIT:
            if not second.targets or second.waiting.workload.replaces in self.victims:
                return _skip(nominee, overlapping=True)
            return self._preempt(second)
        self._book_claim(nominee, second.assignment.as_charges())
        waits_for = waiting_for_victims(leaving, facts_of(nominee), of_another=True)
        return _wait(nominee, "sticky", (waits_for,))

    def _preempt(self, nominee: Nominee) -> Wait:
        """Name the victims and claim what they leave; the preemptor itself starts in a later cycle.

        It never starts on quota or nodes that victims still hold (ADR 0004): their pods may need
        minutes to end. Until then the claim keeps both from every other candidate.
        """
        mark = self.transaction.mark()
        for target in nominee.targets:
            target.take(self.transaction)
        self._remove_replaced(nominee)
        chosen = nominee.assignment
        found = self._fits(nominee.charges) and (nominee.buys or self._find_place(nominee))
        if not found or nominee.assignment is not chosen:  # for fewer pods fewer might do
            self.transaction.rollback(mark)
            return _skip(nominee)
        leaving = [target.leaving() for target in nominee.targets]
        self.leaving.extend(placed for each in leaving for placed in each.placed_pods)
        tree = self._claims_of(nominee.cq)
        tree.leaving.extend(each.charges for each in leaving)
        self.touched.extend(target.running.cq.node for target in nominee.targets)
        if nominee.replaced is not None:
            tree.leaving.append(nominee.replaced.charges)
        self._book_claim(nominee, nominee.assignment.as_charges())
        admission = admission_of(nominee)
        self._occupy_nodes(nominee, admission)
        victims = tuple(named(target) for target in nominee.targets)
        self.taken.update(dict.fromkeys(victim.workload for victim in victims))
        self._note_replaced(nominee)
        self.victims.update(dict.fromkeys(victim.workload for victim in victims))
        made = Preempt(
            workload=nominee.key, admission=admission, victims=victims, buys=nominee.buys
        )
        self.preemptions.append(made)
        return _wait(nominee, "sticky", (waiting_for_victims(victims, facts_of(nominee)),))

    def _await(self, nominee: Nominee) -> Wait:
        """Keep the place that terminating pods are about to leave."""
        mark = self.transaction.mark()
        self._remove_replaced(nominee)
        awaited = self._find_place_after(nominee) if self._fits(nominee.charges) else []
        if not awaited:
            self.transaction.rollback(mark)
            return _skip(nominee)
        self.leaving.extend(placed for _, placed in awaited if placed not in self.leaving)
        self._book_claim(nominee, nominee.assignment.as_charges())
        admission = admission_of(nominee)
        self._occupy_nodes(nominee, admission)
        pods = [pod for pod, _ in awaited]
        names = tuple(pod.key for pod in pods)
        self.awaits.append(Await(workload=nominee.key, admission=admission, pods=names))
        return _wait(nominee, "sticky", (waiting_for(pods),))

    def _admit(self, nominee: Nominee) -> Wait | None:
        """Admit the nominee if it still fits; return why it waits if it does not.

        It was nominated before the decisions of this cycle took quota and nodes, so both are asked
        again, on the transaction.
        """
        rules = self.state.policy.pods_ready
        if rules is not None and rules.block_admission:
            unready = min(self.state.eviction_triggers.not_ready, default=None)
            if unready is None and self.admissions:
                unready = self.admissions[0].workload
            if unready is not None:
                return _wait(nominee, "retry", (PodsNotReady(waiting_for=unready),))
        mark = self.transaction.mark()
        self._remove_replaced(nominee)
        # With nothing booked, quota is as the nomination saw it.
        has_quota = not mark.bookings or (self._fits(nominee.charges) and self._fits_now(nominee))
        if not (has_quota and (nominee.purchase is not None or self._find_place_now(nominee))):
            self.transaction.rollback(mark)
            return _skip(nominee)
        admission = admission_of(nominee)
        if not self.is_last:
            self.transaction.add(nominee.charges.items())
            placed_pods = self._occupy_nodes(nominee, admission)
            self.starting.append(Starting(nominee.assignment.as_charges(), placed_pods))
        workload = nominee.waiting.workload
        self.admissions.append(
            Admit(
                workload=workload.key,
                admission=admission,
                # A list first: much cheaper than a generator for a handful of cells.
                charges=tuple(
                    [(cell.flavor_resource, amount) for cell, amount in nominee.charges.items()]
                ),
                borrow_level=nominee.level,
                checks_pass=_checks_pass(nominee),
                replaces=workload.replaces if nominee.replaced is not None else None,
                purchase=nominee.purchase,
                opportunistic_on=holders_used(nominee.opportunistic_on, admission),
                limit_ms=self._limit_of(nominee),
            )
        )
        if nominee.purchase is not None and self.purchases is not None:
            self.purchases.provisioner.take(nominee.purchase)
        if workload.replaces is not None:
            self.victims[workload.replaces] = None  # it ends here: it cannot be a victim again
            self._note_replaced(nominee)
        if self.table is not None:
            limit = nominee.limit_ms
            if limit is None:
                limit = self.timeline.limit_of(workload)
            self.table.started(Instant(self.now + limit), self.starting[-1])
        if self.limits is not None:
            self.limits.count(workload.key, self.limit_counts)
        return None

    # --- counted gangs (`backfill/counted_gang.py`) ----------------------------------------------

    def may_start_counted(self, counted: CountedGang) -> bool:
        """Say whether counting is all that is needed to start a gang, and whether it fits."""
        if not counted.is_best_fit or self.claims or self.leaving:
            return False
        return counted.capacity.total(self.transaction) >= counted.pods

    def offer_counted(
        self, waiting: PendingWorkload, cq: ClusterQueueState, counted: CountedGang
    ) -> Offer | None:
        """Say where a counted gang would go, and what that books."""
        chosen = counted.capacity.choose(counted.pods, self.transaction)
        if chosen is None:
            return None
        nodes = self.state.nodes
        admission, placed_pods = offer_on(nodes, chosen, waiting, cq, counted)
        # The plan is applied after the rollback: then the same rows are asked for again.
        nodes.occupancy.remember(placed_pods[0].nodes, *chosen, counted.pods)
        return admission, Starting(counted.cells, placed_pods)

    def admit_counted(
        self, waiting: PendingWorkload, counted: CountedGang, offer: Offer, *, later: bool
    ) -> None:
        """Admit a counted gang; `later`: put it on its nodes only when nodes are read."""
        admission, starting = offer
        self.transaction.add(starting.charges)
        for placed in starting.placed_pods:
            if later:
                self.transaction.occupy_later(placed)
            else:
                self.transaction.occupy(placed)
        self.starting.append(starting)
        self.admissions.append(
            Admit(workload=waiting.key, admission=admission, charges=counted.charges)
        )
        if self.limits is not None:
            self.limits.count(waiting.key, self.limit_counts)

    # --- steps ------------------------------------------------------------------------------------

    def _limit_of(self, nominee: Nominee) -> int | None:
        """Return the limit to start it with, if it left that open."""
        workload = nominee.waiting.workload
        if nominee.limit_ms is not None:
            return nominee.limit_ms
        if nominee.opportunistic_on:
            return workload.least_limit_ms
        return longest_limit(self.state, workload, self.now)

    def _find_place(self, nominee: Nominee) -> bool:
        """Find nodes on the transaction as it is: those of the nomination may be taken by now."""
        if nominee.node_search is None:
            return True
        answer = nominee.node_search.place(nominee.assignment)
        if isinstance(answer, GangDoesNotFit):
            return False
        counts = placed_counts(answer, nominee.waiting.request)
        if counts != nominee.assignment.counts:  # an elastic set settles for what is left
            nominee.assignment = resized(nominee.assignment, nominee.eligible, counts)
        nominee.placements = answer
        return True

    def _find_place_now(self, nominee: Nominee) -> bool:
        """Find nodes that are free now, not only once the cycle's victims have left."""
        if nominee.node_search is None or self.transaction.moved == 0:
            return True  # nothing moved since its nomination
        mark = self.transaction.mark()
        for placed in self.leaving:
            self.transaction.occupy(placed)
        set_aside(self.transaction, nominee.opportunistic_on)
        found = self._find_place(nominee)
        self.transaction.rollback(mark)
        return found

    def _find_place_after(self, nominee: Nominee) -> list[TerminatingPod]:
        """Find nodes without terminating pods; return the pods that have to leave first."""
        terminating = [
            each for each in self.state.nodes.terminating(self.now) if each[1] not in self.leaving
        ]
        mark = self.transaction.mark()
        for _, placed in terminating:
            self.transaction.vacate(placed)
        if not self._find_place(nominee):
            return []
        nodes = {name for found in nominee.placements for name, _ in found.nodes}
        here = [each for each in terminating if each[0].node in nodes]
        self.transaction.rollback(mark)
        for _, placed in here:
            self.transaction.vacate(placed)
        if self._find_place(nominee):
            return here
        # Pod rules: terminating pods on other nodes are in its way, too.
        self.transaction.rollback(mark)
        for _, placed in terminating:
            self.transaction.vacate(placed)
        return terminating if self._find_place(nominee) else []

    def _occupy_nodes(self, nominee: Nominee, admission: Admission) -> tuple[PlacedPods, ...]:
        if nominee.node_search is None:
            return ()
        if nominee.replaced is not None:
            # Its pods stay; they are counted anew below.
            for placed in nominee.replaced.placed_pods:
                self.transaction.vacate(placed)
        placed_pods = placed_pods_of(nominee.waiting.workload, admission)
        for placed in placed_pods:
            self.transaction.occupy(placed)
        return placed_pods

    def _note_replaced(self, nominee: Nominee) -> None:
        """Note that a replaced slice is off the transaction: it must not end once more."""
        if nominee.replaced is not None:
            self.taken[nominee.replaced.key] = None

    def _remove_replaced(self, nominee: Nominee) -> None:
        if nominee.replaced is not None:
            self.transaction.remove(nominee.replaced.charges)

    def _fits(self, charges: dict[Cell, int]) -> bool:
        for cell, amount in charges.items():  # noqa: SIM110  # a generator costs twice as much
            if amount and amount > available(cell):
                return False
        return True

    def _fits_now(self, nominee: Nominee) -> bool:
        """Say whether it fits while the cycle's victims are still running.

        Kueue admits on quota that victims have not given back yet; then a queue is above its
        limit until they have left. We let the workload wait for them instead.
        """
        claims = self.claims.get(nominee.cq.tree)
        if claims is None:
            return True
        mark = self.transaction.mark()
        for charges in claims.leaving:
            self.transaction.add(charges)
        for charges in claims.coming:
            self.transaction.remove(charges)
        fits = self._fits(nominee.charges)
        self.transaction.rollback(mark)
        return fits

    def _book_claim(self, nominee: Nominee, charges: Charges) -> None:
        """Keep quota for a workload that cannot start in this cycle."""
        self.transaction.add(charges)
        self._claims_of(nominee.cq).coming.append(charges)

    def _claims_of(self, cq: ClusterQueueState) -> _Claims:
        return self.claims.setdefault(cq.tree, _Claims())


def _skip(nominee: Nominee, *, overlapping: bool = False) -> Wait:
    """Another candidate of this cycle came first; evaluate again in the next."""
    fact = ClaimedThisCycle(queue=nominee.cq.spec.name, overlapping_victims=overlapping)
    return _wait(nominee, "retry", (fact,))


def _wait(
    nominee: Nominee,
    outcome: Outcome,
    blockers: tuple[Blocker, ...],
    unblocked_by: Usage | None = None,
) -> Wait:
    return Wait(
        outcome=outcome,
        explanation=Explanation(
            workload=nominee.key, queue=nominee.cq.spec.name, blockers=blockers
        ),
        unblocked_by=unblocked_by,
        watches_admitted=nominee.cq.spec.preemption != NO_RULES,
        lacks_nodes=nominee.lacks_nodes,
    )


def _unblocked_by(nominee: Nominee) -> Usage | None:
    """Return what has to be freed before another evaluation is worth it."""
    shortages = nominee.assignment.shortages
    return None if shortages is None else tuple(sorted(shortages.items()))


def _quota_to_keep(nominee: Nominee) -> Iterator[tuple[Cell, int]]:
    """Return what to keep free for a head that waits for victims (spec quota §6)."""
    borrows = nominee.level > 0
    for cell, wanted in nominee.charges.items():
        if borrows:
            yield cell, min(wanted, max(0, cell.nominal + cell.borrowing_limit - cell.usage))
        else:
            yield cell, max(0, min(wanted, cell.nominal - cell.usage))


def _checks_pass(nominee: Nominee) -> bool:
    """Say whether every admission check that applies to the chosen flavors is ready."""
    if not nominee.cq.spec.checks:
        return True
    chosen = set(nominee.assignment.flavors.values())
    ready = {c.name for c in nominee.waiting.workload.checks if c.state == "Ready"}
    return all(
        rule.name in ready
        for rule in nominee.cq.spec.checks
        if not rule.on_flavors or chosen.intersection(rule.on_flavors)
    )


# Slurm counts limits in minutes, too.
_STEP_MS = 60_000


def longest_limit(state: ClusterState, workload: Workload, now: Instant) -> int | None:
    """Return the longest limit that a workload could be started with; None if it is fixed.

    It must not run into an advance reservation, or beyond its deadline.
    """
    least = workload.least_limit_ms
    if least is None:
        return None
    if state.policy.reservations and state.reserved.concern(workload, now):
        return least
    most = workload.time_limit_ms
    if most is None:
        most = (state.policy.backfill or Backfill()).default_limit_ms
    if workload.deadline is not None:
        most = min(most, workload.deadline - now)
    return max(least, most)


def raise_limit(least: int, most: int, allows: Callable[[int], bool]) -> int:
    """Return the longest limit that is allowed, in whole minutes above the least, which is.

    >>> raise_limit(60_000, 600_000, lambda limit: limit <= 250_000)
    240000
    """
    if allows(most):
        return most
    low, high = 0, (most - least) // _STEP_MS + 1  # steps: the first is allowed, the last is not
    while high - low > 1:
        middle = (low + high) // 2
        if allows(least + middle * _STEP_MS):
            low = middle
        else:
            high = middle
    found = least + low * _STEP_MS
    # The caller keeps the nodes of the last limit that it tried: leave it with this one.
    allows(found)
    return found
