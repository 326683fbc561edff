"""Small snapshots and plans for tests about quota, in the notation of the specification.

One flavor `f` and one resource `gpu` unless something else is said. Quotas are written as in
spec quota §19: "4/bl2/ll1" is nominal 4, borrowing limit 2, lending limit 1. Everything lives in
the namespace `ns`, and every queue has a local queue of its own name there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unisono.engine.model.names import (
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.plan import Admit, Plan, Preempt, PreemptionReason, Victim
from unisono.engine.model.queue import (
    ClusterQueue,
    Cohort,
    Flavor,
    FlavorQuota,
    LocalQueue,
    ResourceGroup,
    ResourceQuota,
)
from unisono.engine.model.resources import FlavorResource, amounts
from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import (
    Admission,
    AdmittedWorkload,
    PodSet,
    PodSetAssignment,
    Workload,
)
from unisono.engine.state.quota_tree import Cell, Node, charge, link, set_groups

GPU = ResourceName("gpu")
ACCOUNT = FlavorResource("f", GPU)
ANYTHING = LabelSelector()


def quota(text: str, resource: str = "gpu") -> ResourceQuota:
    """Read a quota such as "4/bl2/ll1"."""
    nominal, *limits = text.split("/")
    by_kind = {limit[:2]: int(limit[2:]) for limit in limits}
    return ResourceQuota(
        resource=ResourceName(resource),
        nominal=int(nominal),
        borrowing_limit=by_kind.get("bl"),
        lending_limit=by_kind.get("ll"),
    )


def group(quotas: Mapping[str, Mapping[str, str]], covered: Sequence[str] = ()) -> ResourceGroup:
    """Make a group from {flavor: {resource: quota}}; it covers what is listed, unless told."""
    listed = covered or sorted({each for flavor in quotas.values() for each in flavor})
    return ResourceGroup(
        covered=tuple(ResourceName(each) for each in listed),
        flavors=tuple(
            FlavorQuota(FlavorName(flavor), tuple(quota(text, name) for name, text in own.items()))
            for flavor, own in quotas.items()
        ),
    )


def pool(flavors: Sequence[str], text: str) -> ResourceGroup:
    """Make a group whose flavors share one quota of GPUs."""
    return ResourceGroup(
        covered=(GPU,),
        flavors=tuple(FlavorQuota(FlavorName(name)) for name in flavors),
        pool=(quota(text),),
    )


def queue(name: str, text: str = "4", cohort: str | None = None, **options: Any) -> ClusterQueue:
    """Make a ClusterQueue that takes workloads from every namespace."""
    options.setdefault("groups", (group({"f": {"gpu": text}}),))
    options.setdefault("namespace_selector", ANYTHING)
    return ClusterQueue(
        name=QueueName(name), cohort=CohortName(cohort) if cohort else None, **options
    )


def cohort(name: str, text: str = "0", parent: str | None = None, **options: Any) -> Cohort:
    """Make a cohort that owns quota itself."""
    options.setdefault("groups", (group({"f": {"gpu": text}}),))
    return Cohort(name=CohortName(name), parent=CohortName(parent) if parent else None, **options)


def pods(count: int, requests: Mapping[str, int], name: str = "main", **options: Any) -> PodSet:
    """Make a pod set."""
    return PodSet(name=name, count=count, requests=amounts(requests), **options)


def job(name: str, queue_name: str, gpus: int = 1, **options: Any) -> Workload:
    """Make a workload of one pod with so many GPUs, unless pod sets are given."""
    options.setdefault("pod_sets", (pods(1, {"gpu": gpus}),))
    return Workload(
        key=WorkloadKey(f"ns/{name}"),
        uid=name,
        queue=LocalQueueKey(f"ns/{queue_name}"),
        **options,
    )


def assignment(pod_set: PodSet, flavor: str = "f", count: int | None = None) -> PodSetAssignment:
    """Take everything that a pod set asks for from one flavor."""
    return PodSetAssignment(
        name=pod_set.name,
        count=pod_set.count if count is None else count,
        flavors=tuple((resource, FlavorName(flavor)) for resource, _ in pod_set.requests),
    )


def admission(workload: Workload, flavor: str = "f") -> Admission:
    """Admit a workload whole, on one flavor, in the queue of its local queue's name."""
    return Admission(
        queue=QueueName(workload.queue.partition("/")[2]),
        pod_sets=tuple(assignment(each, flavor) for each in workload.pod_sets),
    )


def running(workload: Workload, flavor: str = "f", **options: Any) -> AdmittedWorkload:
    """Let a workload hold what it asks for."""
    return AdmittedWorkload(workload=workload, admission=admission(workload, flavor), **options)


def admit(workload: Workload, flavor: str = "f", **options: Any) -> Admit:
    """Decide to admit a workload whole."""
    options.setdefault("admission", admission(workload, flavor))
    return Admit(workload=workload.key, **options)


def preempt(
    workload: Workload,
    *victims: str,
    reason: PreemptionReason = "InClusterQueue",
    flavor: str = "f",
    evicting: Sequence[str] = (),
) -> Preempt:
    """Decide that the victims, all for one reason, leave for a workload."""
    return Preempt(
        workload=workload.key,
        admission=admission(workload, flavor),
        victims=tuple(
            Victim(
                workload=WorkloadKey(f"ns/{name}"),
                reason=reason,
                already_evicting=name in evicting,
            )
            for name in victims
        ),
    )


def snapshot(*queues: ClusterQueue, **options: Any) -> Snapshot:
    """Make a snapshot in which every flavor and local queue that is needed exists."""
    names = {each.flavor for queue in queues for group in queue.groups for each in group.flavors}
    options.setdefault("flavors", tuple(Flavor(name=name) for name in sorted(names)))
    options.setdefault(
        "local_queues",
        tuple(LocalQueue(key=LocalQueueKey(f"ns/{each.name}"), queue=each.name) for each in queues),
    )
    return Snapshot(queues=queues, **options)


def plan(**options: Any) -> Plan:
    """Make a plan from version 0 at instant 0, unless told otherwise."""
    options.setdefault("based_on", 0)
    options.setdefault("now", Instant(0))
    return Plan(**options)


Places = Mapping[str, tuple[str, str | None]]  # name: (quota, name of the cohort above)


def tree(*, cohorts: Places | None = None, queues: Places | None = None) -> dict[str, Node]:
    """Grow a tree; a cohort that is only named as a parent owns nothing."""
    nodes: dict[str, Node] = {}
    places = [(name, place, False) for name, place in (cohorts or {}).items()]
    places += [(name, place, True) for name, place in (queues or {}).items()]
    for name, (text, _), is_queue in places:
        nodes[name] = Node(name, is_queue=is_queue)
        set_groups(nodes[name], (group({"f": {"gpu": text}}),))
    for name, (_, parent), _ in places:
        if parent is not None:
            above = nodes.setdefault(parent, Node(parent, is_queue=False))
            link(nodes[name], above)
    return nodes


def cell(node: Node, flavor_resource: FlavorResource = ACCOUNT) -> Cell:
    """Return the node's cell for the one flavor-resource of most tests."""
    return node.cell(flavor_resource)


def use(node: Node, amount: int) -> None:
    """Let a queue use so much more."""
    charge(cell(node), amount)


def numbers(nodes: Mapping[str, Node]) -> dict[str, tuple[int, int, int]]:
    """Return subtree, local and usage of every node."""
    return {
        name: (cell(node).subtree, cell(node).local, cell(node).usage)
        for name, node in nodes.items()
    }
