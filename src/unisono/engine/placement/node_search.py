"""The search for nodes on behalf of one workload, as things are on the transaction right now.

With `kept` the workload is an elastic slice that takes over from a running one: the pods that run
stay where they are, and only the new ones are placed, on the same nodes first. A search may also
count on terminating pods of others to be gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from unisono.engine.model.explanation import GangDoesNotFit, WaitingForPods
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import NodePod
from unisono.engine.model.selection import Requirement
from unisono.engine.model.workload import Admission, first_pods, joined_pods
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.gang import Gang, PodSetPlacement
from unisono.engine.placement.placement import ClusterPlacement
from unisono.engine.quota.assign import Assignment
from unisono.engine.state.advance_reservations import ExcludedNodes
from unisono.engine.state.node_table import NAME_FIELD
from unisono.engine.state.nodes import OVERDUE_MS, NodeState, TerminatingPod
from unisono.engine.state.occupancy import PlacedPods
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.transaction import Transaction

_Places = dict[str, tuple[tuple[NodeName, int], ...]]


@dataclass(slots=True)
class NodeSearch:
    """Everything a search needs; the last refusal is kept for the explanation."""

    placement: ClusterPlacement
    waiting: PendingWorkload
    kept: Admission | None = None  # of the elastic slice it grows out of: those pods stay
    excluded: ExcludedNodes | None = None  # nodes that are reserved for others while it would run
    last_refusal: GangDoesNotFit | None = None

    def place(self, assignment: Assignment) -> tuple[PodSetPlacement, ...] | GangDoesNotFit:
        """Find nodes for what an assignment grants."""
        gang = self.gang(assignment)
        answer = self._grow(gang) if self.kept is not None else self.placement.place(gang)
        self.last_refusal = answer if isinstance(answer, GangDoesNotFit) else None
        return answer

    def gang(self, assignment: Assignment) -> Gang:
        """Return what an assignment has to find nodes for."""
        request = self.waiting.request
        counts = assignment.counts
        least = tuple(min(count, low) for count, low in zip(counts, request.minimums, strict=True))
        return self.placement.gang_of(
            self.waiting.workload, least, counts, assignment.flavors, self.excluded
        )

    def fits(self, assignment: Assignment) -> bool:
        """Say whether there is a place for all that an assignment needs."""
        return not isinstance(self.place(assignment), GangDoesNotFit)

    def only_capacity_counts(self, assignment: Assignment) -> bool:
        """Say whether more capacity never hurts: equal pods, anywhere, and no rules about them.

        Then they have a place if nodes have room for so many of them, and else none.
        """
        gang, occupancy = self.gang(assignment), self.placement.nodes.occupancy
        if self.kept is not None or len(gang.demands) != 1 or gang.min_total is not None:
            return False
        demand = gang.demands[0]
        return (
            demand.is_plain
            and demand.mode != "required"
            and demand.slice_size <= 1
            and not occupancy.pod_index.has_rules
            and not occupancy.table.devices
        )

    def needs_excluded_nodes(self, assignment: Assignment) -> bool:
        """Say whether there would be a place, if only nothing were reserved for others."""
        if self.excluded is None:
            return False
        anywhere = NodeSearch(self.placement, self.waiting, self.kept)
        return anywhere.fits(assignment)

    def _grow(self, gang: Gang) -> tuple[PodSetPlacement, ...] | GangDoesNotFit:
        """Place only the pods that are new; those that run already do not move."""
        there = self._there(gang)
        wanted = self._more(gang, there)
        answer: tuple[PodSetPlacement, ...] | GangDoesNotFit = ()
        if wanted.demands:
            # New pods join those that run, where there is room: fewer nodes for the whole gang.
            near = tuple(_on(demand, there.get(demand.name, ())) for demand in wanted.demands)
            answer = self.placement.place(Gang(key=gang.key, demands=near))
            if isinstance(answer, GangDoesNotFit):
                answer = self.placement.place(wanted)
        return answer if isinstance(answer, GangDoesNotFit) else self._joined(gang, there, answer)

    def more(self, assignment: Assignment) -> Gang:
        """Return what an assignment has to find nodes for beside the pods that run already."""
        gang = self.gang(assignment)
        return self._more(gang, self._there(gang))

    def beside(
        self, assignment: Assignment, new: tuple[PodSetPlacement, ...]
    ) -> tuple[PodSetPlacement, ...]:
        """Return where all pods of an assignment are, those that run already and the new ones."""
        gang = self.gang(assignment)
        return self._joined(gang, self._there(gang), new)

    def _there(self, gang: Gang) -> _Places:
        assert self.kept is not None, "only a slice that replaces another one grows"
        most = {demand.name: demand.most for demand in gang.demands}
        return {
            assigned.name: first_pods(assigned.nodes, most.get(assigned.name, 0))
            for assigned in self.kept.pod_sets
        }

    def _more(self, gang: Gang, there: _Places) -> Gang:
        beside = (self._beside(demand, there.get(demand.name, ())) for demand in gang.demands)
        return Gang(key=gang.key, demands=tuple(demand for demand in beside if demand.most))

    def _joined(
        self, gang: Gang, there: _Places, new: tuple[PodSetPlacement, ...]
    ) -> tuple[PodSetPlacement, ...]:
        assert self.kept is not None, "only a slice that replaces another one grows"
        most = {demand.name: demand.most for demand in gang.demands}
        devices = {
            assigned.name: assigned.devices[: most.get(assigned.name, 0)]
            for assigned in self.kept.pod_sets
        }
        found = {placed.demand: (placed.nodes, placed.devices) for placed in new}
        return tuple(
            PodSetPlacement(
                name,
                *joined_pods(
                    (there.get(name, ()), devices.get(name, ())), found.get(name, ((), ()))
                ),
            )
            for name in most
        )

    def _beside(self, demand: Demand, there: tuple[tuple[NodeName, int], ...]) -> Demand:
        """Return what is left to place of a demand, in the domain that it is bound to."""
        running = sum(count for _, count in there)
        constraint = demand.constraint
        if there and demand.mode == "required" and demand.level:
            domain = self.placement.nodes.domain(there[0][0], demand.levels, demand.level)
            selector = tuple(sorted({**dict(constraint.selector), **domain}.items()))
            constraint = msgspec.structs.replace(constraint, selector=selector)
        return msgspec.structs.replace(
            demand,
            least=max(0, demand.least - running),
            most=max(0, demand.most - running),
            constraint=constraint,
        )


def placed_without(
    placed_pods: Sequence[PlacedPods],
    transaction: Transaction,
    node_search: NodeSearch,
    assignment: Assignment,
) -> tuple[PodSetPlacement, ...] | None:
    """Find nodes as if some pods were gone; None without such pods, or if that does not help."""
    if not placed_pods:
        return None
    mark = transaction.mark()
    for placed in placed_pods:
        transaction.vacate(placed)
    before = node_search.last_refusal
    answer = node_search.place(assignment)
    transaction.rollback(mark)
    if isinstance(answer, GangDoesNotFit):
        node_search.last_refusal = before  # the explanation counts all pods that are there
        return None
    return answer


def _on(demand: Demand, there: tuple[tuple[NodeName, int], ...]) -> Demand:
    """Return a demand that stays on the nodes where its pods run already."""
    here = Requirement(NAME_FIELD, "In", tuple(name for name, _ in there))
    terms = demand.constraint.affinity or ((),)
    affinity = tuple((*term, here) for term in terms)
    constraint = msgspec.structs.replace(demand.constraint, affinity=affinity)
    return msgspec.structs.replace(demand, constraint=constraint)


# --- waiting for terminating pods -----------------------------------------------------------------

# Instead of preempting (spec placement §14, scenario 15).
#
# A pod of others that is being deleted still holds its node. If the policy allows waiting, a gang
# that finds no place now, and would find one without such pods, waits for them. Its place is kept
# as that of a preemptor is; nothing starts before they are gone, and an overdue pod is not counted
# on any longer.


@dataclass(slots=True)
class TerminatingPods:
    """Pods of others that will be gone soon enough, and the transaction to try placements on."""

    transaction: Transaction
    pods: list[TerminatingPod]

    def place(
        self, node_search: NodeSearch, assignment: Assignment
    ) -> tuple[PodSetPlacement, ...] | None:
        """Find nodes as if the pods were gone; None if that does not help."""
        placed_pods = [placed for _, placed in self.pods]
        return placed_without(placed_pods, self.transaction, node_search, assignment)


def terminating_pods(nodes: NodeState, transaction: Transaction, now: Instant) -> TerminatingPods:
    """Return the pods that a gang may wait for now."""
    return TerminatingPods(transaction, nodes.terminating(now))


def waiting_for(pods: list[NodePod]) -> WaitingForPods:
    """Name the pods that a gang waits for, and the instant until which it does."""
    latest = max(pod.leaves_at or 0 for pod in pods) + OVERDUE_MS
    return WaitingForPods(pods=tuple(pod.key for pod in pods), until=Instant(latest))
