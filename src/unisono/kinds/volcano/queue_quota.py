"""Volcano's queues as cluster queues and cohorts of the one quota tree.

A Queue `NAME` stands for the ClusterQueue `volcano/NAME`:

    dequeueStrategy: fifo  StrictFIFO: a job that does not fit holds up those behind it
    state Closed, Closing  no workload is admitted
    weight                 the weight in fair sharing

Without a tree, `capability` is its nominal quota, of one flavor that stands for every node. There
is a tree as soon as a queue has `deserved`, `guarantee`, or a parent that is not `root`, as
Volcano's plugin `capacity` makes one. Then every queue is in the cohort of its parent:

    deserved     nominal quota: what it gets back from queues that borrowed it
    capability   the most that it may use, borrowed or not
    guarantee    what it lends to no one

A queue with others below it is a cohort, too, that has what its children's shares leave of its own.
The root lends what the cluster has: without limits, since nodes are the limit, but where something
is guaranteed, so that others stay clear of it. What no queue lists is not limited.

A workload may preempt others of its queue that have a lower priority, and where there is a tree,
take back from other queues what its own queue deserves, whatever the priority. As with Volcano,
only pods labelled volcano.sh/preemptable=true are ever victims, and nothing is taken back from
queues that say `reclaimable: false`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from unisono.engine.model import queue as engine
from unisono.engine.model.names import CohortName, QueueName, ResourceName
from unisono.engine.model.resources import UNLIMITED
from unisono.engine.model.selection import LabelSelector
from unisono.kinds.core.nodes import Node
from unisono.kinds.quantity import Quantity
from unisono.kinds.volcano.queue_tree import QueueTree, parent_of
from unisono.kinds.volcano.queues import ANY_NODE, ROOT, Queue

PREEMPTABLE = "volcano.sh/preemptable"
_PREFIX = "volcano/"


class QueueQuota(NamedTuple):
    """What a set of Volcano queues stands for."""

    queues: tuple[engine.ClusterQueue, ...]
    cohorts: tuple[engine.Cohort, ...] = ()

    @property
    def needs_flavor(self) -> bool:
        """Say whether any of them counts something, for which there has to be a flavor."""
        in_queues = any(one.groups for one in self.queues)
        return in_queues or any(one.groups for one in self.cohorts)


def quota_of(queues: Iterable[Queue], totals: Mapping[str, int] = {}) -> QueueQuota:
    """Return the cluster queues and cohorts; `totals` is what all nodes have, if it is known."""
    tree = QueueTree.of(queues)
    if not any(_is_in_tree(one) for one in tree.queues.values()):
        return QueueQuota(tuple(_alone(one) for one in tree.queues.values()))
    shares = _Shares(tree)
    made = tuple(shares.queue(name) for name in tree.queues)
    inner = [name for name in tree.children if name == ROOT or name in tree.queues]
    cohorts = tuple(
        shares.root(totals) if name == ROOT else shares.cohort(name)
        for name in sorted({ROOT, *inner})
    )
    return QueueQuota(made, cohorts)


def totals_of(nodes: Iterable[Node]) -> dict[str, int]:
    """Return what all nodes have together."""
    found: dict[str, int] = {}
    for node in nodes:
        for name, quantity in node.status.allocatable.items():
            found[name] = found.get(name, 0) + quantity.amount(name)
    return found


def _is_in_tree(queue: Queue) -> bool:
    spec = queue.spec
    return bool(spec.deserved or spec.guarantee.resource or spec.parent not in ("", ROOT))


def _alone(queue: Queue) -> engine.ClusterQueue:
    """Return a queue that shares with no other."""
    quotas = tuple(
        engine.ResourceQuota(resource=ResourceName(name), nominal=quantity.amount(name))
        for name, quantity in sorted(queue.spec.capability.items())
    )
    return _made(queue, quotas, None)


def _made(
    queue: Queue, quotas: tuple[engine.ResourceQuota, ...], cohort: CohortName | None
) -> engine.ClusterQueue:
    spec = queue.spec
    return engine.ClusterQueue(
        name=QueueName(f"{_PREFIX}{queue.metadata.name}"),
        cohort=cohort,
        groups=_groups(quotas),
        strategy="StrictFIFO" if spec.dequeue_strategy == "fifo" else "BestEffortFIFO",
        namespace_selector=LabelSelector(),
        stop="Hold" if queue.status.state in ("Closed", "Closing") else "None",
        preemption=engine.PreemptionRules(
            within_queue="LowerPriority",
            reclaim="Any" if cohort is not None else "Never",
            victims_have=(PREEMPTABLE, "true"),
            may_be_reclaimed=spec.reclaimable is not False,
        ),
        weight_milli=spec.weight * engine.MILLI,
        terminating=queue.metadata.deletion_timestamp is not None,
        unlimited=True,
    )


def _groups(quotas: tuple[engine.ResourceQuota, ...]) -> tuple[engine.ResourceGroup, ...]:
    if not quotas:
        return ()
    covered = tuple(quota.resource for quota in quotas)
    flavors = (engine.FlavorQuota(ANY_NODE.name, quotas),)
    return (engine.ResourceGroup(covered=covered, flavors=flavors),)


class _Shares:
    """What the queues of a tree have of every resource that any of them lists."""

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        lists: list[Mapping[str, Quantity]] = []
        for one in tree.queues.values():
            lists += (one.spec.deserved, one.spec.guarantee.resource, one.spec.capability)
        self._resources = sorted({name for amounts in lists for name in amounts})

    def queue(self, name: str) -> engine.ClusterQueue:
        """Return a queue; one with others below it has no quota of its own, they share it."""
        queue = self._tree.queues[name]
        is_inner = bool(self._tree.children.get(name))
        above = name if is_inner else _known_parent(queue, self._tree)
        quotas = tuple(
            engine.ResourceQuota(resource=ResourceName(resource), nominal=0)
            if is_inner
            else self._quota(queue, resource, self._nominal(name, resource))
            for resource in self._resources
        )
        return _made(queue, quotas, _cohort_name(above))

    def cohort(self, name: str) -> engine.Cohort:
        """Return what a queue shares among those below it."""
        queue = self._tree.queues[name]
        quotas = tuple(
            self._quota(queue, resource, self._left(name, resource)) for resource in self._resources
        )
        return engine.Cohort(
            name=_cohort_name(name),
            parent=_cohort_name(_known_parent(queue, self._tree)),
            groups=_groups(quotas),
            weight_milli=queue.spec.weight * engine.MILLI,
        )

    def root(self, totals: Mapping[str, int]) -> engine.Cohort:
        """Return what the cluster lends."""
        guaranteed = {
            name for one in self._tree.queues.values() for name in one.spec.guarantee.resource
        }
        own = self._tree.queues.get(ROOT)
        most = own.spec.capability if own is not None else {}
        quotas = []
        for resource in self._resources:
            total = UNLIMITED
            if resource in most:
                total = most[resource].amount(resource)
            elif resource in guaranteed and resource in totals:
                total = totals[resource]
            if total < UNLIMITED:
                total = max(0, total - self._of_children(ROOT, resource))
            quotas.append(engine.ResourceQuota(resource=ResourceName(resource), nominal=total))
        return engine.Cohort(name=_cohort_name(ROOT), groups=_groups(tuple(quotas)))

    def _nominal(self, name: str, resource: str) -> int:
        spec = self._tree.queues[name].spec
        both = (spec.deserved.get(resource), spec.guarantee.resource.get(resource))
        return max((one.amount(resource) for one in both if one is not None), default=0)

    def _of_children(self, name: str, resource: str) -> int:
        return sum(self._nominal(child, resource) for child in self._tree.children.get(name, ()))

    def _left(self, name: str, resource: str) -> int:
        return max(0, self._nominal(name, resource) - self._of_children(name, resource))

    def _quota(self, queue: Queue, resource: str, nominal: int) -> engine.ResourceQuota:
        whole = self._nominal(queue.metadata.name, resource)
        most = queue.spec.capability.get(resource)
        kept = queue.spec.guarantee.resource.get(resource)
        limit = None if most is None else max(0, most.amount(resource) - whole)
        lends = None if kept is None else max(0, whole - kept.amount(resource))
        return engine.ResourceQuota(
            resource=ResourceName(resource),
            nominal=nominal,
            borrowing_limit=limit,
            lending_limit=lends,
        )


def _known_parent(queue: Queue, tree: QueueTree) -> str:
    """Return the queue above; the root for one that is missing, or goes round in a circle."""
    parent = parent_of(queue)
    is_known = parent in tree.queues and ROOT in tree.above(queue.metadata.name)
    return parent if is_known else ROOT


def _cohort_name(name: str) -> CohortName:
    return CohortName(f"{_PREFIX}{name}")
