"""Nomination: what a queue's head could get, judged on its own (spec quota §6.3 and §7).

All heads are nominated on the same picture, before any of them is decided. A nomination is a full
assignment that fits, one that fits once named victims have left, or the facts why there is none.
With `minCount`, fewer pods are considered only when the full count finds neither room nor victims.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unisono.engine.ledger import Ledger
from unisono.engine.model.explanation import Blocker, PreemptionBackoff
from unisono.engine.model.names import FlavorName, Instant, ResourceName, WorkloadKey
from unisono.engine.model.workload import Admission, PodSetAssignment
from unisono.engine.order.lines import Waiting
from unisono.engine.preempt.candidates import Target
from unisono.engine.preempt.victims import VictimSearch
from unisono.engine.quota.assign import Allowed, Assignment, Verdict, assign
from unisono.engine.quota.flavors import Menu
from unisono.engine.quota.shape import Shape
from unisono.engine.quota.tree import Cell, Node
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.queue_book import QueueBook, Running

# Flavors and counts that one shape gets in one queue vary little; a bound all the same.
WRITINGS_KEPT = 64


@dataclass(slots=True, eq=False)
class Nominee:
    """The head of a queue with what it could get. Satisfies `order.heads.Head`."""

    waiting: Waiting
    book: QueueBook
    menu: Menu
    assignment: Assignment
    targets: list[Target] = field(default_factory=list)
    goes_first: bool = False
    replaced: Running | None = None  # the elastic slice it grows out of, which ends with it

    @property
    def node(self) -> Node:
        """The queue's place in the tree."""
        return self.book.node

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
        return self.waiting.workload.uid

    @property
    def key(self) -> WorkloadKey:
        """Its name."""
        return self.waiting.workload.key


def nominate(
    state: ClusterState,
    book: QueueBook,
    waiting: Waiting,
    ledger: Ledger,
    now: Instant,
    *,
    gone: frozenset[WorkloadKey] = frozenset(),
    allowed: Allowed | None = None,
) -> Nominee:
    """Judge one head. `gone` and `allowed` narrow a second look within the same cycle."""
    workload, shape, policy = waiting.workload, waiting.shape, state.policy
    search = VictimSearch(
        workload=workload,
        book=book,
        policy=policy,
        now=now,
        ledger=ledger,
        book_of=state.forest.book_at,
        usage_of=book.lines.usage_of,
        gone=gone,
    )
    replaced = state.running.get(workload.replaces) if workload.replaces else None
    mark = ledger.mark()
    if replaced is not None:
        ledger.remove(replaced.charges)
        allowed = _flavors_of(replaced.holding.admission, shape)
    menu = state.menu(book, shape)
    assignment, targets = _best(book, shape, menu, search, allowed)
    ledger.rollback(mark)
    if not targets and assignment.verdict < Verdict.FIT:
        if search.backs_off and assignment.verdict is not Verdict.NO_FIT:
            until = workload.may_preempt_at
            assert until is not None, "only a preempted workload backs off"
            fact = PreemptionBackoff(until=until, preemptions=workload.preemptions)
            assignment.blockers.insert(0, fact)
    sticky = book.lines.sticky == workload.key
    return Nominee(
        waiting,
        book,
        menu,
        assignment,
        targets,
        goes_first=sticky and policy.anti_thrash and not policy.strict,
        replaced=replaced,
    )


def _best(
    book: QueueBook,
    shape: Shape,
    menu: Menu,
    search: VictimSearch,
    allowed: Allowed | None,
) -> tuple[Assignment, list[Target]]:
    """Try the full count, then the largest smaller one that works."""
    full, targets = _attempt(book, shape, menu, shape.counts, search, allowed)
    if full.verdict is Verdict.FIT or targets or not shape.shrinkable:
        return full, targets
    full.shortages = None  # a smaller count may fit long before the full one does
    low, high = 1, shape.shrinkable
    found: tuple[Assignment, list[Target]] | None = None
    while low <= high:
        middle = (low + high) // 2
        counts = shrunk(shape, middle)
        smaller, victims = _attempt(book, shape, menu, counts, search, allowed)
        if smaller.verdict is Verdict.FIT or victims:
            found, high = (smaller, victims), middle - 1
        else:
            low = middle + 1
    return found or (full, [])


def shrunk(shape: Shape, steps: int) -> tuple[int, ...]:
    """Return the counts after `steps` of all possible pods were taken off, spread evenly."""
    return tuple(
        count - (count - least) * steps // shape.shrinkable
        for count, least in zip(shape.counts, shape.minimums, strict=True)
    )


def _attempt(
    book: QueueBook,
    shape: Shape,
    menu: Menu,
    counts: tuple[int, ...],
    search: VictimSearch,
    allowed: Allowed | None,
) -> tuple[Assignment, list[Target]]:
    assignment = assign(
        shape,
        menu,
        counts,
        fungibility=book.spec.fungibility,
        preemption=search,
        queue=book.spec.name,
        allowed=allowed,
    )
    if assignment.verdict in (Verdict.FIT, Verdict.NO_FIT):
        return assignment, []
    return assignment, search.victims_for(assignment)


def admission_of(nominee: Nominee) -> Admission:
    """Write the assignment down as it will stand on the workload."""
    assignment, written = nominee.assignment, nominee.menu.written
    key = (assignment.counts, *assignment.flavors.values())
    admission = written.get(key)
    if admission is None:
        if len(written) >= WRITINGS_KEPT:
            written.clear()
        admission = written[key] = _write(nominee)
    return admission


def _write(nominee: Nominee) -> Admission:
    shape, assignment = nominee.waiting.shape, nominee.assignment
    taken: list[list[tuple[ResourceName, FlavorName]]] = [[] for _ in shape.pod_sets]
    for (index, resource), flavor in assignment.flavors.items():
        taken[index].append((resource, flavor))
    return Admission(
        queue=nominee.book.spec.name,
        pod_sets=tuple(
            PodSetAssignment(
                name=pod_set.name,
                # Reclaimable pods stay in the count; they are only not charged (spec quota §15).
                count=assignment.counts[index] + pod_set.count - shape.counts[index],
                flavors=tuple(sorted(taken[index])),
            )
            for index, pod_set in enumerate(shape.pod_sets)
        ),
    )


def _flavors_of(admission: Admission, shape: Shape) -> Allowed:
    """Return the flavors an elastic slice must stay on."""
    by_name = {assigned.name: dict(assigned.flavors) for assigned in admission.pod_sets}
    return {
        (index, resource): flavor
        for index, pod_set in enumerate(shape.pod_sets)
        for resource, flavor in by_name.get(pod_set.name, {}).items()
    }


def facts_of(nominee: Nominee) -> tuple[Blocker, ...]:
    """Return why the nominee does not fit now."""
    return tuple(nominee.assignment.blockers)
