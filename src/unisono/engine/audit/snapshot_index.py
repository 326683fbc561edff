"""The snapshot, indexed by name, with what most rules ask of it.

Which flavor-resource usage is charged to (spec quota §2), what a workload uses (§3), and whether a
queue is active. Sums are kept from one plan to the next (`AuditCache`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from unisono.engine.audit.pods_on_nodes import PodsOnNodes, owner_of_pod, placed_pod, placed_pods_of
from unisono.engine.audit.quota_tree import Charge, QuotaUsage, Tree, queue_node
from unisono.engine.audit.shrinking import released_part
from unisono.engine.model.names import (
    PODS,
    FlavorName,
    Instant,
    NodeName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.node import Node, NodePod
from unisono.engine.model.plan import Admit, Await, Plan, Preempt
from unisono.engine.model.queue import ClusterQueue, Cohort, ResourceGroup
from unisono.engine.model.resources import FlavorResource, pool_name
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Admission, AdmittedWorkload, PodSet, Workload

# --- sums that are kept between plans -------------------------------------------------------------

# Most of an audit is adding up admitted workloads, and from one plan to the next nearly all of them
# are the very same values. Only the others are added up again. Nothing comes from the planner: the
# numbers are those that `index` reads off snapshots, and now and then they are all computed anew.


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


# --- the snapshot by name -------------------------------------------------------------------------


NAMESPACE_LABEL = "kubernetes.io/metadata.name"


class SnapshotIndex:
    """Everything in the snapshot by its name, and what its admitted workloads use."""

    def __init__(self, snapshot: Snapshot, cache: AuditCache | None = None) -> None:
        """Index the snapshot once; `cache` holds the sums of the snapshot before."""
        self.policy = snapshot.policy
        self.version = snapshot.version
        self.now = snapshot.now
        self.flavors = {flavor.name: flavor for flavor in snapshot.flavors}
        self.queues = {queue.name: queue for queue in snapshot.queues}
        self.local_queues = {queue.key: queue for queue in snapshot.local_queues}
        self.namespaces = {each.name: dict(each.labels) for each in snapshot.namespaces}
        self.checks = {check.name: check for check in snapshot.checks}
        self.topologies = {topology.name: topology.levels for topology in snapshot.topologies}
        self.pods = snapshot.pods
        self._sells = snapshot.offerings is not None and bool(snapshot.offerings.pools)
        self.results = {result.job: result for result in snapshot.results}
        self.waiting = {workload.key: workload for workload in snapshot.waiting}
        cache = cache if cache is not None else AuditCache()
        cache.update(snapshot, self.held)
        self.nodes = cache.nodes
        self.admitted_workloads = cache.admitted_workloads
        self.pods_on_nodes = cache.pods_on_nodes
        self.tree = cache.tree
        self.usage = cache.usage

    @property
    def has_nodes(self) -> bool:
        """Say whether placement is part of the decision; without nodes quota alone decides."""
        return bool(self.nodes) or self._sells or self.policy.placement.needs_nodes

    def held(self, admitted: AdmittedWorkload) -> Charge:
        """Return what a workload is charged for now."""
        return self.charge(admitted.workload, admitted.admission)

    def charge(self, workload: Workload, admission: Admission) -> Charge:
        """Return what a workload is, or would be, charged for; nothing in a queue that is gone."""
        queue = self.queues.get(admission.queue)
        groups = () if queue is None else queue.groups
        amounts: dict[FlavorResource, int] = {}
        pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
        for assignment in admission.pod_sets:
            if queue is None or assignment.name not in pod_sets:
                continue
            pods = charged_pods(workload, assignment.name, assignment.count)
            per_pod = requests_per_pod(pod_sets[assignment.name])
            for resource, flavor in assignment.flavors:
                flavor_resource = flavor_resource_of(groups, resource, flavor)
                amount = pods * per_pod.get(resource, 0)
                if flavor_resource is not None and amount > 0:
                    amounts[flavor_resource] = amounts.get(flavor_resource, 0) + amount
        return Charge(admission.queue, amounts)

    def charges(self, decided: Iterable[Admit | Preempt | Await]) -> list[Charge]:
        """Return the charges of the workloads that a plan starts; none for unknown workloads."""
        return [
            self.charge(self.waiting[each.workload], each.admission)
            for each in decided
            if each.workload in self.waiting
        ]

    def replaced(self, workload: Workload) -> list[Charge]:
        """Return the charge of the slice that the workload replaces, if it still holds quota."""
        old = (
            self.admitted_workloads.get(workload.replaces)
            if workload.replaces is not None
            else None
        )
        return [] if old is None else [self.held(old)]

    def victims(self, preemptions: Iterable[Preempt]) -> dict[WorkloadKey, AdmittedWorkload]:
        """Return what the known victims release, each once, in the order of the plan."""
        return {
            victim.workload: released_part(self.admitted_workloads[victim.workload], victim.keeps)
            for preemption in preemptions
            for victim in preemption.victims
            if victim.workload in self.admitted_workloads
        }

    def namespace_labels(self, name: str) -> dict[str, str]:
        """Return a namespace's labels; Kubernetes gives every namespace a label with its name."""
        return {NAMESPACE_LABEL: name, **self.namespaces.get(name, {})}

    def why_closed(self, queue: ClusterQueue) -> str:
        """Say why a queue is inactive (spec quota §1, condition Active), or nothing."""
        if queue.stop != "None":
            return f"it is stopped ({queue.stop})"
        return self.why_broken(queue)

    def why_broken(self, queue: ClusterQueue) -> str:
        """Say what is wrong with the configuration of a queue, or nothing."""
        if queue.terminating:
            return "it is being deleted"
        if self.tree.is_in_cycle(queue_node(queue.name)):
            return "its cohorts form a cycle"
        for rule in queue.checks:
            check = self.checks.get(rule.name)
            if check is None or not check.active:
                return f"admission check {rule.name} is {'inactive' if check else 'missing'}"
        for name in (each.flavor for group in queue.groups for each in group.flavors):
            flavor = self.flavors.get(name)
            if flavor is None:
                return f"flavor {name} does not exist"
            if flavor.topology and flavor.topology not in self.topologies:
                return f"topology {flavor.topology} of flavor {name} does not exist"
        return ""


Decided = Admit | Preempt | Await


def started_by(plan: Plan) -> tuple[Decided, ...]:
    """List the workloads that the plan starts, now or after evictions."""
    return (*plan.admissions, *plan.preemptions, *plan.awaits)


def admitted_at(admitted: AdmittedWorkload) -> Instant:
    """Return when a workload was admitted; without checks, that is when quota was reserved."""
    return admitted.reserved_at if admitted.admitted_at is None else admitted.admitted_at


def requests_per_pod(pod_set: PodSet) -> dict[ResourceName, int]:
    """Return the requests of one pod, which is also one of the resource `pods`."""
    return {**dict(pod_set.requests), PODS: 1}


def charged_pods(workload: Workload, pod_set: str, count: int) -> int:
    """Return how many pods of a set are charged: reclaimable ones are not."""
    return max(0, count - dict(workload.reclaimable).get(pod_set, 0))


def group_of(groups: Iterable[ResourceGroup], resource: ResourceName) -> ResourceGroup | None:
    """Return the one group that covers a resource."""
    return next((group for group in groups if resource in group.covered), None)


def flavor_resource_of(
    groups: Iterable[ResourceGroup], resource: ResourceName, flavor: FlavorName
) -> FlavorResource | None:
    """Return the flavor-resource of a flavor's resource, or None if the queue does not meter it.

    A resource or a flavor that the queue no longer lists is still charged, to the flavor's own
    flavor-resource: it is over-use that drains (spec quota §18.8).
    """
    group = group_of(groups, resource)
    listed = {} if group is None else {each.flavor: each.resources for each in group.flavors}
    if group is None or flavor not in listed:
        return FlavorResource(flavor, resource)
    quotas = listed[flavor] if group.pool is None else group.pool
    if all(quota.resource != resource for quota in quotas):
        return None
    return FlavorResource(flavor if group.pool is None else pool_name(listed), resource)
