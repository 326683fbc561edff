"""Nodes for admitted gangs that lack some, before any new admission.

A gang that lost nodes gets replacements (`gangs/repair.py` says when, `engine.repair` which). One
with quota alone gets all of its places once an admission check has brought the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from unisono.control import names
from unisono.control.actions import Json, Note, Patch, Ref, Steps
from unisono.control.admission import placement, record
from unisono.control.admission.checks import additions, open_checks, waits_for_nodes
from unisono.control.admission.purchases import is_buying, is_holding, replacing
from unisono.control.conditions import is_true
from unisono.control.gangs.repair import REPAIRING, refused, unhealthy
from unisono.control.gangs.slots import is_active, set_of
from unisono.control.nodes import is_host_usable, node_name
from unisono.control.view import View
from unisono.engine.dry_run import refuse_broken_repair
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import NodeName, WorkloadKey
from unisono.engine.model.provisioning import Purchase
from unisono.engine.model.selection import Labels
from unisono.engine.model.workload import Admission
from unisono.engine.repair import place_reserved, repair, replacement
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.core.gpu_parts import device_of
from unisono.kinds.core.selection import labels_of
from unisono.kube.form import Key


class Repairs:
    """Finds other nodes for gangs that lost some."""

    told_as = "GangRepaired"

    def __init__(self, state: ClusterState, epoch: int) -> None:
        """Repair on a state."""
        self._state = state
        self._epoch = epoch
        self.retries = RetryIndex(state)

    def update(self, workload: Json | None, key: Key) -> None:
        """Note whether a workload is to be repaired."""
        self.retries.note(key, waits=workload is not None and is_repairing(workload))

    def writes(
        self, view: View, hosts: Callable[[str], str], now: float
    ) -> Iterator[tuple[Patch, str]]:
        """Yield the patches that give gangs other nodes, each with the message of its event.

        A gang is tried again only when nodes have changed. The state has to know each
        patch before the next one is asked for.
        """
        for key, workload, own in self.retries.due(view):
            unwelcome = refused(workload)
            lost = [
                host
                for host in unhealthy(workload)
                if host in unwelcome or not is_host_usable(host, view)
            ]
            if is_buying(workload):
                continue  # machines for them are on their way; look again
            self.retries.tried(key)
            found = self._nodes_for(own, lost, view)
            if found is None:
                continue
            admission, purchase = found
            changes = record.repaired(workload, admission, hosts, now=now, epoch=self._epoch)
            if purchase is not None:
                conditions = changes["status"]["conditions"]
                changes["status"]["conditions"] = replacing(conditions, purchase, now)
            yield (
                Patch(Ref.to(workload), changes, "status"),
                _sentence(workload, admission, hosts, lost),
            )

    def _nodes_for(
        self, key: WorkloadKey, lost: list[str], view: View
    ) -> tuple[Admission, Purchase | None] | None:
        """Return other nodes, or machines that are bought where there are none."""
        if not lost:  # all of them have come back
            return self._state.running[key].admitted.admission, None
        gone = frozenset(NodeName(node_name(host, view)) for host in lost)
        staying = _staying(key, gone, view)
        answer = repair(self._state, key, gone, staying)
        found: tuple[Admission, Purchase | None] | None
        if isinstance(answer, GangDoesNotFit):
            found = replacement(self._state, key, gone, staying)
        else:
            found = answer, None
        if found is not None:
            refuse_broken_repair(self._state, key, *found)
        return found


def _staying(
    key: WorkloadKey, gone: Collection[NodeName], view: View
) -> dict[tuple[str, NodeName], list[int]]:
    """Return the pods that still run on lost nodes; pods of a deleted node do not count."""
    found: dict[tuple[str, NodeName], list[int]] = {}
    for pod in view.by(names.POD, names.BY_WORKLOAD, key):
        node = NodeName(pod["spec"].get("nodeName") or "")
        if node in gone and is_active(pod) and view.get(names.NODE, node) is not None:
            device = device_of(pod["metadata"].get("annotations") or {})
            found.setdefault((set_of(pod), node), []).append(-1 if device is None else device)
    return found


def is_repairing(workload: Json) -> bool:
    """Say whether a workload waits for other nodes."""
    conditions = (workload.get("status") or {}).get("conditions")
    return placement.placement_of(conditions)[0] == REPAIRING


def _sentence(
    workload: Json, found: Admission, hosts: Callable[[str], str], lost: list[str]
) -> str:
    if not lost:
        return f"{', '.join(unhealthy(workload))} recovered"
    before = {host for host, _ in placement.hosts_of(workload)}
    new = {hosts(node) for one in found.pod_sets for node, _ in one.nodes} - before
    instead = ", ".join(sorted(new)) or "nodes that it uses already"
    return f"{', '.join(lost)} replaced by {instead}"


# ---- when to try again ---------------------------------------------------------------------------
#
# The workloads that lack nodes, and how nodes were when each was last tried.


class RetryIndex:
    """Admitted workloads that are tried again only when nodes have changed."""

    def __init__(self, state: ClusterState) -> None:
        """Begin with none."""
        self._state = state
        self._tried: dict[Key, int | None] = {}
        self._at: Key | None = None  # the one that was yielded last

    def note(self, key: Key, *, waits: bool) -> None:
        """Add a workload, to be tried anew; or remove it."""
        if waits:
            self._tried[key] = None
        else:
            self._tried.pop(key, None)

    def due(self, view: View) -> Iterator[tuple[Key, Json, WorkloadKey]]:
        """Yield the workloads that were not tried on the nodes as they are now."""
        for key in list(self._tried):
            workload = view.peek(names.WORKLOAD, key.name, key.namespace)
            own = WorkloadKey(f"{key.namespace}/{key.name}")
            if workload is None or own not in self._state.running:
                continue
            if self._tried[key] != self._state.nodes.occupancy.moves:
                self._at = key
                yield key, workload, own

    def tried(self, key: Key) -> None:
        """Remember how nodes are now."""
        self._tried[key] = self._state.nodes.occupancy.moves

    def gave_up(self, view: View, problem: str) -> Steps:
        """Pass over the workload that was yielded last until nodes change, and tell its owner."""
        key = self._at
        if key is None:
            return
        self.tried(key)
        workload = view.peek(names.WORKLOAD, key.name, key.namespace)
        if workload is not None:
            message = f"cannot find nodes: {problem}; retried when nodes change"
            yield Note(Ref.to(workload), "Quarantined", message, "Warning")


# ---- nodes after admission checks ----------------------------------------------------------------
#
#     QuotaReserved, no nodes ──all checks Ready──▶ a place for every pod ──▶ `checks` admits it
#     Admitted by quota alone ──the first node joins──▶ a place for every pod


class DelayedPlacement:
    """Finds nodes for gangs that have quota and no nodes."""

    told_as = "GangSeated"

    def __init__(self, state: ClusterState, epoch: int, *, of_admitted: bool = False) -> None:
        """Seat on a state; `of_admitted`: also what was admitted while there was no node."""
        self._state = state
        self._epoch = epoch
        self._of_admitted = of_admitted
        self.retries = RetryIndex(state)

    def update(self, workload: Json | None, key: Key) -> None:
        """Note whether a workload may be without nodes."""
        waits = workload is not None and _is_without(workload, of_admitted=self._of_admitted)
        self.retries.note(key, waits=waits)

    def writes(
        self, view: View, hosts: Callable[[str], str], now: float
    ) -> Iterator[tuple[Patch, str]]:
        """Yield the patches that give gangs their nodes, each with the message of its event.

        The state has to know each patch before the next one is asked for.
        """
        for key, workload, own in self.retries.due(view):
            is_admitted = is_true(workload["status"].get("conditions"), "Admitted")
            if is_admitted:
                if not self._state.nodes.table.row_of:
                    continue
            elif open_checks(workload, view) or not waits_for_nodes(workload, view):
                continue
            self.retries.tried(key)
            found = place_reserved(self._state, own, _selectors(workload))
            if isinstance(found, GangDoesNotFit):
                continue
            refuse_broken_repair(self._state, own, found)
            changes = record.placed(workload, found, hosts, now=now, epoch=self._epoch)
            nodes = {node for one in found.pod_sets for node, _ in one.nodes}
            yield Patch(Ref.to(workload), changes, "status"), f"assigned {len(nodes)} nodes"


def _is_without(workload: Json, *, of_admitted: bool) -> bool:
    status = workload.get("status") or {}
    is_admitted = is_true(status.get("conditions"), "Admitted")
    if not is_holding(workload) or (is_admitted and not of_admitted):
        return False
    assignments = status["admission"].get("podSetAssignments") or ()
    return not any(one.get("topologyAssignment") for one in assignments)


def _selectors(workload: Json) -> dict[str, Labels]:
    """Return the labels that checks require of the nodes of each pod set."""
    sets = workload["status"]["admission"].get("podSetAssignments") or ()
    found = {one["name"]: additions(workload, one["name"]).node_selector for one in sets}
    return {name: labels_of(labels) for name, labels in found.items() if labels}
