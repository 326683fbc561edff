"""What the auditor keeps between plans: admitted workloads and pods, and the sums of both.

Most of an audit is adding up admitted workloads, and from one plan to the next nearly all of them
are the very same values. Only the others are added up again. Nothing comes from the planner: the
numbers are those that `index` reads off snapshots, and now and then they are all computed anew.
"""

from __future__ import annotations

from collections.abc import Callable

from unisono.engine.audit.pods_on_nodes import (
    PodsOnNodes,
    owner_of_pod,
    placed_pod,
    placed_pods_of,
)
from unisono.engine.audit.quota_tree import Charge, QuotaUsage, Tree
from unisono.engine.model.names import NodeName, WorkloadKey
from unisono.engine.model.node import Node, NodePod
from unisono.engine.model.queue import ClusterQueue, Cohort
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import AdmittedWorkload

# After this many plans everything is recomputed, so that a wrong sum would not stay wrong.
RECOUNT_AFTER = 1000

_Configuration = tuple[tuple[ClusterQueue, ...], tuple[Cohort, ...]]


class AuditCache:
    """The admitted workloads and other pods of the last snapshot, added up."""

    def __init__(self) -> None:
        """Begin empty."""
        self._reset(((), ()))

    def _reset(self, configured: _Configuration) -> None:
        self._configured = configured
        self._age = 0
        self.tree = Tree(*configured)
        self.usage = QuotaUsage(self.tree)
        self.pods_on_nodes = PodsOnNodes()
        self.admitted_workloads: dict[WorkloadKey, AdmittedWorkload] = {}
        self._charges: dict[WorkloadKey, Charge] = {}
        self._pods: dict[str, NodePod] = {}
        self._listed: tuple[Node, ...] = ()
        self.nodes: dict[NodeName, Node] = {}

    def update(self, snapshot: Snapshot, charge: Callable[[AdmittedWorkload], Charge]) -> None:
        """Bring the sums up to date; `charge` says what an admitted workload uses."""
        configured = (snapshot.queues, snapshot.cohorts)
        self._age += 1
        if configured != self._configured or self._age > RECOUNT_AFTER:
            self._reset(configured)
        self._update_admitted(snapshot, charge)
        self._update_pods(snapshot)
        if snapshot.nodes != self._listed:
            self._listed = snapshot.nodes
            self.nodes = {node.name: node for node in snapshot.nodes}

    def _update_admitted(
        self, snapshot: Snapshot, charge: Callable[[AdmittedWorkload], Charge]
    ) -> None:
        now = {admitted.workload.key: admitted for admitted in snapshot.admitted_workloads}
        before = self.admitted_workloads
        gone = [key for key, admitted in before.items() if now.get(key) is not admitted]
        released = [self._charges.pop(key) for key in gone]
        for key in gone:
            self.pods_on_nodes.remove(key)
        charged = []
        for key, admitted in now.items():
            if before.get(key) is not admitted:
                self._charges[key] = charge(admitted)
                charged.append(self._charges[key])
                placements = placed_pods_of(admitted.workload, admitted.admission, is_new=False)
                self.pods_on_nodes.add(key, placements)
        self.admitted_workloads = now
        if charged or released:
            self.usage = self.usage.after(charged=charged, released=released)

    def _update_pods(self, snapshot: Snapshot) -> None:
        now = {pod.key: pod for pod in snapshot.pods}
        for key, pod in self._pods.items():
            if now.get(key) is not pod:
                self.pods_on_nodes.remove(owner_of_pod(key))
        for key, pod in now.items():
            if self._pods.get(key) is not pod:
                self.pods_on_nodes.add(owner_of_pod(key), [placed_pod(pod)])
        self._pods = now
