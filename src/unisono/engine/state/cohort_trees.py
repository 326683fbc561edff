"""The cohort trees: which queue hangs where, kept in step with the configuration.

Edits only mark nodes as stale; `relink` then moves what moved and says which queues must be looked
at again. Loading ten thousand queues therefore costs ten thousand edits, not their square. What an
admitted workload is charged follows from its queue's place in them (`charges_of`).
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.model.names import PODS, CohortName, FlavorName, QueueName, ResourceName
from unisono.engine.model.queue import ClusterQueue, Cohort, ResourceGroup
from unisono.engine.model.resources import FlavorResource, pool_name
from unisono.engine.model.workload import Admission, Workload
from unisono.engine.state.cluster_queue import ClusterQueueState, CohortTree, Running
from unisono.engine.state.config import Config
from unisono.engine.state.quota_tree import Cell, Node, charge, link, set_groups
from unisono.engine.state.transaction import Charges


class CohortTrees:
    """Nodes and states of all queues and cohorts."""

    def __init__(self, config: Config) -> None:
        self.queues: dict[QueueName, ClusterQueueState] = {}
        self._config = config
        self._cohorts: dict[CohortName, Node] = {}
        self._queue_of: dict[Node, ClusterQueueState] = {}
        self.stale: dict[Node, None] = {}  # what `relink` has to check

    def queue_at(self, node: Node) -> ClusterQueueState:
        """Return the ClusterQueue of a node."""
        return self._queue_of[node]

    def cohort(self, name: CohortName) -> Node:
        """Return a cohort's node; a cohort that is only named is an empty one (spec quota §1)."""
        node = self._cohorts.get(name)
        if node is None:
            node = self._cohorts[name] = Node(name, is_queue=False)
        return node

    def set_queue(self, queue: ClusterQueue) -> None:
        """Add a queue or change it."""
        cq = self.queues.get(queue.name) or self._new_queue(queue)
        self._mark(cq.node)
        cq.spec = queue
        cq.node.weight_milli = queue.weight_milli
        set_groups(cq.node, queue.groups)
        for running in cq.running.values():
            recharge(running)

    def orphan(self, name: QueueName) -> ClusterQueueState:
        """Keep account of admitted workloads whose queue is not there (yet, or any more)."""
        cq = self.queues.get(name)
        if cq is None:
            cq = self._new_queue(ClusterQueue(name=name, terminating=True))
            cq.blocker = self._config.queue_blocker(cq.spec, frozenset())
        return cq

    def drop_queue(self, name: QueueName) -> None:
        """Forget a queue that is not used."""
        cq = self.queues.pop(name)
        self._mark(cq.node)
        link(cq.node, None)
        cq.tree.asleep.pop(cq, None)
        del self._queue_of[cq.node]

    def set_cohort(self, cohort: Cohort) -> None:
        """Add a cohort or change it."""
        node = self.cohort(cohort.name)
        self._mark(node)
        node.weight_milli = cohort.weight_milli
        set_groups(node, cohort.groups)

    def clear_cohort(self, name: CohortName) -> None:
        """Take a cohort's own quota and parent away; queues may still name it."""
        self.set_cohort(Cohort(name=name))

    def mark_everything(self) -> None:
        """Check every queue again at the next `relink`."""
        self.stale.update(dict.fromkeys(self._queue_of))

    def relink(self) -> Iterator[ClusterQueueState]:
        """Move nodes to where the configuration wants them; yield queues to evaluate again."""
        if not self.stale:
            return
        cyclic = self._config.cyclic_cohorts()
        self._move(
            {node: self._wanted_parent(name, cyclic) for name, node in [*self._cohorts.items()]}
        )
        self._move(
            {
                node: self.cohort(cq.spec.cohort) if cq.spec.cohort else None
                for node in self.stale
                if (cq := self._queue_of.get(node)) is not None
            }
        )
        stale, self.stale = self.stale, {}
        for root in dict.fromkeys(node.root() for node in stale):
            tree = CohortTree()
            for node in root.queues():
                cq = self._queue_of.get(node)
                if cq is not None:
                    cq.tree = tree
                    cq.blocker = self._config.queue_blocker(cq.spec, cyclic)
                    yield cq

    def _wanted_parent(self, name: CohortName, cyclic: frozenset[CohortName]) -> Node | None:
        cohort = self._config.cohorts.get(name)
        if cohort is None or cohort.parent is None or name in cyclic:
            return None
        return self.cohort(cohort.parent)

    def _move(self, parents: dict[Node, Node | None]) -> None:
        """Unhang everything that moves before hanging it anew: no cycle may exist in between."""
        moving = {node: parent for node, parent in parents.items() if node.parent is not parent}
        for node in moving:
            self._mark(node)  # the tree it leaves has changed as well
            link(node, None)
        for node, parent in moving.items():
            link(node, parent)

    def _mark(self, node: Node) -> None:
        """Note that a node, and the tree it is in now, changed."""
        self.stale[node.root()] = None
        self.stale[node] = None

    def _new_queue(self, queue: ClusterQueue) -> ClusterQueueState:
        node = Node(queue.name, is_queue=True)
        cq = self.queues[queue.name] = ClusterQueueState(queue, node, CohortTree())
        self._queue_of[node] = cq
        return cq


def recharge(running: Running) -> list[tuple[Cell, int]]:
    """Charge an admitted workload anew; return what it no longer uses, by flavor-resource.

    Its queue may count differently now (a pool, say), or the workload may use less.
    """
    admitted, cq = running.admitted, running.cq
    charges = charges_of(admitted.workload, admitted.admission, cq.spec, cq.node)
    if charges == running.charges:
        return []
    before = dict(running.charges)
    after = dict(charges)
    running.charges = charges
    freed = []
    for cell in {**before, **after}:
        difference = after.get(cell, 0) - before.get(cell, 0)
        charge(cell, difference)
        if difference < 0:
            freed.append((cell, -difference))
    return freed


# --- charges --------------------------------------------------------------------------------------

# What an admitted workload is charged, from its recorded admission (spec quota §2–§3).


def charges_of(
    workload: Workload, admission: Admission, queue: ClusterQueue, node: Node
) -> Charges:
    """Return what an admitted workload uses, one entry a cell.

    A flavor that the queue no longer lists is still charged, to a cell without quota: the usage
    counts as borrowed until it drains (spec quota §18.8).
    """
    group_of = {resource: group for group in queue.groups for resource in group.covered}
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    done = dict(workload.reclaimable)
    totals: dict[Cell, int] = {}
    for assigned in admission.pod_sets:
        pod_set = pod_sets.get(assigned.name)
        if pod_set is None:
            continue
        wanted = {**dict(pod_set.requests), PODS: 1}
        count = max(0, assigned.count - done.get(assigned.name, 0))
        for resource, flavor in assigned.flavors:
            amount = wanted.get(resource, 0) * count
            flavor_resource = flavor_resource_of(flavor, resource, group_of.get(resource))
            if amount and flavor_resource is not None:
                cell = node.cell(flavor_resource)
                totals[cell] = totals.get(cell, 0) + amount
    return tuple(totals.items())


def flavor_resource_of(
    flavor: FlavorName, resource: ResourceName, group: ResourceGroup | None
) -> FlavorResource | None:
    """Return the flavor-resource of a flavor's resource; None if the queue does not meter it."""
    listed = next((q for q in group.flavors if q.flavor == flavor), None) if group else None
    if group is None or listed is None:
        return FlavorResource(flavor, resource)
    if group.pool is not None:
        metered = any(quota.resource == resource for quota in group.pool)
        pool = pool_name(quota.flavor for quota in group.flavors)
        return FlavorResource(pool, resource) if metered else None
    metered = any(quota.resource == resource for quota in listed.resources)
    return FlavorResource(flavor, resource) if metered else None
