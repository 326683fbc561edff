"""Are the counts and flavors of an assignment ones that spec quota §7 allows?

Not whether they are the best: only whether the pods may run like that and are charged for
everything they ask for.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.snapshot_index import (
    SnapshotIndex,
    charged_pods,
    group_of,
    requests_per_pod,
    started_by,
)
from unisono.engine.audit.violation import Rule, Violation
from unisono.engine.model.names import PODS, FlavorName, ResourceName
from unisono.engine.model.plan import Plan
from unisono.engine.model.queue import ClusterQueue, Flavor
from unisono.engine.model.selection import meets, tolerates
from unisono.engine.model.workload import Admission, PodSet, PodSetAssignment, Workload


def check_assignments(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check the assignment of every workload that the plan starts, now or later."""
    for decided in started_by(plan):
        workload = index.waiting.get(decided.workload)
        queue = index.queues.get(decided.admission.queue)
        if workload is None or queue is None:
            continue
        names = [assignment.name for assignment in decided.admission.pod_sets]
        wanted = [pod_set.name for pod_set in workload.pod_sets]
        if sorted(names) != sorted(wanted):
            message = f"pod sets {', '.join(wanted)}; assigned {', '.join(names)}"
            yield _broken("pod-sets", workload, message)
            continue
        yield from _check_counts(index, workload, decided.admission)
        assignments = {each.name: each for each in decided.admission.pod_sets}
        for pod_set in workload.pod_sets:
            yield from _check_pod_set(index, queue, workload, pod_set, assignments[pod_set.name])
        yield from _check_groups(workload, queue, assignments)


def _broken(rule: Rule, workload: Workload, message: str) -> Violation:
    return Violation(rule=rule, workload=workload.key, message=message)


def _check_counts(
    index: SnapshotIndex, workload: Workload, admission: Admission
) -> Iterator[Violation]:
    """All counts come from one step of partial admission; an elastic slice is partial if it may."""
    given = {assignment.name: assignment.count for assignment in admission.pod_sets}
    wanted_total = min(workload.min_total or 0, sum(each.count for each in workload.pod_sets))
    if sum(given.values()) < wanted_total:
        message = f"{sum(given.values())} pods start, the gang needs {workload.min_total}"
        yield _broken("count", workload, message)
    if given == {pod_set.name: pod_set.count for pod_set in workload.pod_sets}:
        return
    if workload.replaces in index.admitted_workloads and not any(
        each.min_count is not None for each in workload.pod_sets
    ):
        yield _broken("count", workload, f"an elastic slice got {given}")
    elif not _is_possible_count(index, workload, given):
        wanted = {each.name: (each.min_count, each.count) for each in workload.pod_sets}
        yield _broken("count", workload, f"(minimum, count) is {wanted}, assigned is {given}")


def _is_possible_count(index: SnapshotIndex, workload: Workload, given: dict[str, int]) -> bool:
    """Say whether partial admission, by quota or by nodes, can yield these counts.

    Quota reduces all pod sets in step. Placement gives every set what fits, down to its minimum
    (spec placement §8.7).
    """
    if not index.has_nodes:
        return is_partial_count(workload.pod_sets, given)
    return all(
        (each.count if each.min_count is None else each.min_count) <= given[each.name] <= each.count
        for each in workload.pod_sets
    )


def is_partial_count(pod_sets: tuple[PodSet, ...], given: dict[str, int]) -> bool:
    """Say whether some step of partial admission leaves each set with this many pods.

    In step s of S, a set that can spare p pods gives up floor(p s / S) of them. So every set has a
    first and a last step that leave it with its count, and one step fits all sets if these ranges
    intersect. Trying the steps one by one would take too long: there may be two thousand million.

    >>> sets = (PodSet(name="w", count=10, min_count=5), PodSet(name="e", count=6, min_count=3))
    >>> is_partial_count(sets, {"w": 9, "e": 5}), is_partial_count(sets, {"w": 10, "e": 5})
    (True, False)
    """
    spare = {
        each.name: 0 if each.min_count is None else each.count - each.min_count for each in pod_sets
    }
    steps = sum(spare.values())
    first, last = 0, steps
    for each in pod_sets:
        pods, gone = spare[each.name], each.count - given.get(each.name, -1)
        if not 0 <= gone <= pods:
            return False
        if pods:
            first = max(first, -(-gone * steps // pods))
            last = min(last, -(-(gone + 1) * steps // pods) - 1)
    return first <= last and given.keys() == spare.keys()


def _check_pod_set(
    index: SnapshotIndex,
    queue: ClusterQueue,
    workload: Workload,
    pod_set: PodSet,
    assignment: PodSetAssignment,
) -> Iterator[Violation]:
    flavors = dict(assignment.flavors)
    pods = charged_pods(workload, pod_set.name, assignment.count)
    for resource, per_pod in requests_per_pod(pod_set).items():
        covered = group_of(queue.groups, resource) is not None
        wanted = pods * per_pod
        needs_quota = index.policy.undeclared == "Block" and not queue.unlimited
        if not covered and resource != PODS and wanted and needs_quota:
            message = f"{pod_set.name} wants {wanted} {resource}; {queue.name} has no quota for it"
            yield _broken("uncovered", workload, message)
        if covered and wanted and resource not in flavors:
            message = f"{pod_set.name} wants {wanted} {resource} and got no flavor for it"
            yield _broken("flavor", workload, message)
    for resource, name in flavors.items():
        yield from _check_resource(queue, workload, pod_set, resource, name)
    for name in sorted(set(flavors.values())):
        flavor = index.flavors.get(name)
        if flavor is None:
            yield _broken("flavor", workload, f"{pod_set.name}: no flavor {name}")
        elif why := _why_mismatch(index, queue, pod_set, flavor):
            yield _broken("flavor-mismatch", workload, f"{pod_set.name} on {name}: {why}")


def _check_resource(
    queue: ClusterQueue,
    workload: Workload,
    pod_set: PodSet,
    resource: ResourceName,
    flavor: FlavorName,
) -> Iterator[Violation]:
    group = group_of(queue.groups, resource)
    if group is None:
        message = f"{pod_set.name}: {flavor} for {resource}, which {queue.name} does not cover"
        yield _broken("flavor", workload, message)
    elif flavor not in [each.flavor for each in group.flavors]:
        message = f"{pod_set.name}: {queue.name} has no {resource} of flavor {flavor}"
        yield _broken("flavor", workload, message)


def _check_groups(
    workload: Workload, queue: ClusterQueue, assignments: dict[str, PodSetAssignment]
) -> Iterator[Violation]:
    """One flavor serves all resources of a group, in all pod sets that belong together."""
    together: dict[str, list[PodSet]] = {}
    for pod_set in workload.pod_sets:
        # A pod set without a group is on its own; "/" keeps it apart from group names.
        together.setdefault(pod_set.group or f"/{pod_set.name}", []).append(pod_set)
    for pod_sets in together.values():
        for group in queue.groups:
            flavors = {
                flavor
                for pod_set in pod_sets
                for resource, flavor in assignments[pod_set.name].flavors
                if resource in group.covered
            }
            if len(flavors) > 1:
                names = " and ".join(pod_set.name for pod_set in pod_sets)
                message = f"{names}: {' and '.join(sorted(flavors))} for one group of resources"
                yield _broken("flavor", workload, message)


def _why_mismatch(
    index: SnapshotIndex, queue: ClusterQueue, pod_set: PodSet, flavor: Flavor
) -> str:
    """Say why pods of the set cannot use the flavor's nodes, or nothing."""
    for taint in flavor.node_taints:
        if taint.effect != "PreferNoSchedule" and not any(
            tolerates(toleration, taint)
            for toleration in (*pod_set.tolerations, *flavor.tolerations)
        ):
            return f"taint {taint.key}={taint.value}:{taint.effect} is not tolerated"
    labels = dict(flavor.node_labels)
    for key, value in pod_set.node_selector:
        if key in labels and labels[key] != value:
            return f"it selects {key}={value}, the flavor has {labels[key]}"
    # Only keys that the flavor has are compared. A term that names none of them says
    # nothing about the flavor, and one such term is enough, because terms are alternatives.
    if pod_set.affinity and not any(
        all(meets(clause, labels) for clause in term if clause.key in labels)
        for term in pod_set.affinity
    ):
        return "no term of its node affinity matches"
    if flavor.topology and pod_set.topology is None:
        # Nodes with a topology are for pods that request one, unless there are no others (§14).
        names = [each.flavor for group in queue.groups for each in group.flavors]
        if not all(name in index.flavors and index.flavors[name].topology for name in names):
            return "the flavor is only for pods with a topology request"
    return ""
