"""The configured objects, by name, and what is wrong with them.

Pure look-ups: which queue cannot admit and why, which local queue leads nowhere, which cohorts
form a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from unisono.engine.model.explanation import (
    Blocker,
    NamespaceNotSelected,
    QueueInactive,
    QueueMissing,
    QueueStopped,
)
from unisono.engine.model.names import (
    CohortName,
    FlavorName,
    LocalQueueKey,
    QueueName,
    namespace_of,
)
from unisono.engine.model.node import Topology
from unisono.engine.model.policy import Policy
from unisono.engine.model.provisioning import Offerings
from unisono.engine.model.queue import ClusterQueue, Cohort, Flavor, LocalQueue
from unisono.engine.model.selection import Labels, label_map, selects
from unisono.engine.model.snapshot import AdmissionCheck
from unisono.engine.model.workload import CheckState
from unisono.engine.state import changes

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"  # the API server puts it on every namespace


@dataclass(slots=True)
class Config:
    """Everything that is configured rather than submitted."""

    policy: Policy
    flavors: dict[FlavorName, Flavor] = field(default_factory=dict)
    cohorts: dict[CohortName, Cohort] = field(default_factory=dict)
    queues: dict[QueueName, ClusterQueue] = field(default_factory=dict)
    local_queues: dict[LocalQueueKey, LocalQueue] = field(default_factory=dict)
    namespaces: dict[str, Labels] = field(default_factory=dict)
    checks: dict[str, AdmissionCheck] = field(default_factory=dict)
    topologies: dict[str, Topology] = field(default_factory=dict)
    offerings: Offerings | None = None  # what can be bought; None: nothing
    edition: int = 0  # grows with every change of a shared object

    def set_shared(self, change: changes.Shared) -> None:
        """Take in an object that any number of queues may refer to."""
        self.edition += 1
        match change:
            case changes.FlavorSet(flavor):
                self.flavors[flavor.name] = flavor
            case changes.FlavorGone(name):
                self.flavors.pop(name, None)
            case changes.NamespaceSet(namespace):
                self.namespaces[namespace.name] = namespace.labels
            case changes.NamespaceGone(name):
                self.namespaces.pop(name, None)
            case changes.CheckSet(check):
                self.checks[check.name] = check
            case changes.CheckGone(name):
                self.checks.pop(name, None)
            case changes.TopologySet(topology):
                self.topologies[topology.name] = topology
            case changes.TopologyGone(name):
                self.topologies.pop(name, None)

    def cyclic_cohorts(self) -> frozenset[CohortName]:
        """Return cohorts whose chain of parents never ends."""
        endless: dict[CohortName, bool] = {}
        for start in self.cohorts:
            trail: list[CohortName] = []
            name: CohortName | None = start
            while name is not None and name not in endless and name not in trail:
                trail.append(name)
                cohort = self.cohorts.get(name)
                name = cohort.parent if cohort else None
            verdict = name is not None and endless.get(name, True)
            for passed in trail:
                endless[passed] = verdict
        return frozenset(name for name, bad in endless.items() if bad)

    def nodes_come_later(
        self, queue: ClusterQueue, flavors: Iterable[FlavorName], checks: tuple[CheckState, ...]
    ) -> bool:
        """Say whether a check brings the nodes of some flavors, and has not agreed yet."""
        given = frozenset(flavors)
        agreed = {check.name for check in checks if check.state == "Ready"}
        for rule in queue.checks:
            check = self.checks.get(rule.name)
            if check is not None and check.brings_nodes and rule.name not in agreed:
                if not rule.on_flavors or not given.isdisjoint(rule.on_flavors):
                    return True
        return False

    def queue_blocker(
        self, queue: ClusterQueue, cyclic: frozenset[CohortName]
    ) -> QueueInactive | QueueStopped | None:
        """Say why a queue admits nothing, if so (spec quota §1, condition Active)."""
        if queue.terminating:
            return QueueInactive(queue=queue.name, why="Terminating")
        if queue.cohort in cyclic:
            return QueueInactive(queue=queue.name, why="CohortCycle", detail=queue.cohort or "")
        for group in queue.groups:
            for quota in group.flavors:
                flavor = self.flavors.get(quota.flavor)
                if flavor is None:
                    return QueueInactive(
                        queue=queue.name, why="FlavorNotFound", detail=quota.flavor
                    )
                if flavor.topology and flavor.topology not in self.topologies:
                    return QueueInactive(
                        queue=queue.name, why="TopologyNotFound", detail=flavor.topology
                    )
        for check in queue.checks:
            found = self.checks.get(check.name)
            if found is None or not found.active:
                why = "AdmissionCheckNotFound" if found is None else "AdmissionCheckInactive"
                return QueueInactive(
                    queue=queue.name,
                    why=why,  # type: ignore[arg-type]  # one of two literals above
                    detail=check.name,
                )
        if queue.stop != "None":
            drain = queue.stop == "HoldAndDrain"
            return QueueStopped(queue=queue.name, local=False, drain=drain)
        return None

    def local_blocker(self, key: LocalQueueKey) -> Blocker | None:
        """Say why workloads of a local queue cannot be queued."""
        local = self.local_queues.get(key)
        if local is None:
            return QueueMissing(local_queue=key)
        queue = self.queues.get(local.queue)
        if queue is None:
            return QueueMissing(local_queue=key, queue=local.queue)
        if local.stop != "None":
            return QueueStopped(queue=key, local=True, drain=local.stop == "HoldAndDrain")
        namespace = namespace_of(key)
        labels = {
            NAMESPACE_NAME_LABEL: namespace,
            **label_map(self.namespaces.get(namespace, ())),
        }
        selector = queue.namespace_selector
        if selector is None or not selects(selector, labels):
            return NamespaceNotSelected(queue=queue.name, namespace=namespace)
        return None
