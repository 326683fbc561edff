"""Nodes for gangs whose nodes an admission check has brought (`engine.repair` says which).

    QuotaReserved, no nodes ──all checks Ready──▶ a place for every pod ──▶ `checks` admits it

Somebody for whom there is no place yet is looked at again when nodes have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from unisono.control.actions import Json, Patch, Ref
from unisono.control.admission import record
from unisono.control.admission.checks import additions, open_checks, waits_for_seats
from unisono.control.admission.purchases import is_holding
from unisono.control.conditions import is_true
from unisono.control.scheduler.retry_index import Untried
from unisono.control.view import View
from unisono.engine.dry_run import refuse_broken_repair
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.selection import Labels
from unisono.engine.repair import place_reserved
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.core.selection import labels_of
from unisono.kube.form import Key


class Seating:
    """Finds nodes for those who have quota and none."""

    told_as = "GangSeated"

    def __init__(self, state: ClusterState, epoch: int) -> None:
        """Seat on a state."""
        self._state = state
        self._epoch = epoch
        self.untried = Untried(state)

    def heard(self, workload: Json | None, key: Key) -> None:
        """Note whether a workload may be without nodes."""
        self.untried.note(key, waits=workload is not None and _is_without(workload))

    def writes(
        self, view: View, hosts: Callable[[str], str], now: float
    ) -> Iterator[tuple[Patch, str]]:
        """Yield the patches that give gangs their nodes, each with what to tell people.

        The state has to hear of each patch before the next one is asked for.
        """
        for key, workload, own in self.untried.due(view):
            if open_checks(workload, view) or not waits_for_seats(workload, view):
                continue
            self.untried.tried(key)
            found = place_reserved(self._state, own, _selectors(workload))
            if isinstance(found, GangDoesNotFit):
                continue
            refuse_broken_repair(self._state, own, found)
            changes = record.seated(workload, found, hosts, now=now, epoch=self._epoch)
            nodes = {node for one in found.pod_sets for node, _ in one.nodes}
            yield Patch(Ref.to(workload), changes, "status"), f"its nodes are there: {len(nodes)}"


def _is_without(workload: Json) -> bool:
    status = workload.get("status") or {}
    if not is_holding(workload) or is_true(status.get("conditions"), "Admitted"):
        return False
    assignments = status["admission"].get("podSetAssignments") or ()
    return not any(one.get("topologyAssignment") for one in assignments)


def _selectors(workload: Json) -> dict[str, Labels]:
    """Return the labels that checks require of the nodes of each pod set."""
    sets = workload["status"]["admission"].get("podSetAssignments") or ()
    found = {one["name"]: additions(workload, one["name"]).node_selector for one in sets}
    return {name: labels_of(labels) for name, labels in found.items() if labels}
