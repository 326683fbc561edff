"""Other nodes for gangs that lost some (`repairing.py` says when, `engine.repair` says which)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref
from unisono.control.admission import record
from unisono.control.admission.purchases import is_buying, replacing
from unisono.control.gangs.repair import REPAIRING, refused, unhealthy
from unisono.control.gangs.slots import is_living, set_of
from unisono.control.scheduler.retry_index import Untried
from unisono.control.usable import is_host_usable, node_name
from unisono.control.view import View
from unisono.engine.dry_run import refuse_broken_repair
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import NodeName, WorkloadKey
from unisono.engine.model.provisioning import Purchase
from unisono.engine.model.workload import Admission
from unisono.engine.repair import repair, replacement
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.core.gpu_parts import device_of
from unisono.kube.form import Key


class Repairs:
    """Finds other nodes for those who lost some."""

    told_as = "GangRepaired"

    def __init__(self, state: ClusterState, epoch: int) -> None:
        """Repair on a state."""
        self._state = state
        self._epoch = epoch
        self.untried = Untried(state)

    def heard(self, workload: Json | None, key: Key) -> None:
        """Note whether a workload is to be repaired."""
        self.untried.note(key, waits=workload is not None and is_repairing(workload))

    def writes(
        self, view: View, hosts: Callable[[str], str], now: float
    ) -> Iterator[tuple[Patch, str]]:
        """Yield the patches that give gangs other nodes, each with what to tell people.

        Somebody is looked at again only when nodes have changed. The state has to hear of each
        patch before the next one is asked for.
        """
        for key, workload, own in self.untried.due(view):
            unwelcome = refused(workload)
            lost = [
                host
                for host in unhealthy(workload)
                if host in unwelcome or not is_host_usable(host, view)
            ]
            if is_buying(workload):
                continue  # machines for them are on their way; look again
            self.untried.tried(key)
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
            return self._state.running[key].holding.admission, None
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
    """Return who still runs on lost nodes; whose node is no more will be gone as well."""
    found: dict[tuple[str, NodeName], list[int]] = {}
    for pod in view.by(names.POD, names.BY_WORKLOAD, key):
        node = NodeName(pod["spec"].get("nodeName") or "")
        if node in gone and is_living(pod) and view.get(names.NODE, node) is not None:
            device = device_of(pod["metadata"].get("annotations") or {})
            found.setdefault((set_of(pod), node), []).append(-1 if device is None else device)
    return found


def is_repairing(workload: Json) -> bool:
    """Say whether a workload waits for other nodes."""
    conditions = (workload.get("status") or {}).get("conditions")
    return record.placement_of(conditions)[0] == REPAIRING


def _sentence(
    workload: Json, found: Admission, hosts: Callable[[str], str], lost: list[str]
) -> str:
    if not lost:
        return f"{', '.join(unhealthy(workload))} came back"
    before = {host for host, _ in record.hosts_of(workload)}
    new = {hosts(node) for one in found.pod_sets for node, _ in one.nodes} - before
    instead = ", ".join(sorted(new)) or "nodes that it has already"
    return f"{', '.join(lost)} replaced by {instead}"
