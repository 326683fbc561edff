"""May this workload start now, in that queue, with these counts and flavors?

In that queue, now: spec quota §5, §6, §12, §13, §15, backfill §9, §11. Counts and flavors: quota
§7. Whether quota is left is checked in `quota`. Checked for admitted workloads and for preemptors:
a workload that may not start may not preempt either.
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
from unisono.engine.model.names import PODS, FlavorName, Instant, ResourceName, namespace_of
from unisono.engine.model.plan import Admit, Plan
from unisono.engine.model.queue import ClusterQueue, Flavor
from unisono.engine.model.selection import meets, selects, tolerates
from unisono.engine.model.workload import Admission, Dependency, PodSet, PodSetAssignment, Workload


def check_candidates(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check every workload that the plan starts, now or after its victims have left."""
    for decided in started_by(plan):
        workload = index.waiting.get(decided.workload)
        if workload is None:
            continue
        yield from _check_workload(workload, plan.now)
        yield from _check_queue(index, workload, decided.admission)
        if isinstance(decided, Admit):
            yield from _check_checks(index, workload, decided)
            yield from _check_slice(index, workload, decided)
    yield from _check_pods_ready(index, plan)
    yield from _check_arrays(index, plan)
    yield from _check_dependencies(index, plan)


def _broken(rule: Rule, workload: Workload, message: str) -> Violation:
    return Violation(rule=rule, workload=workload.key, message=message)


def _check_workload(workload: Workload, now: Instant) -> Iterator[Violation]:
    if not workload.active:
        yield _broken("not-queueable", workload, "it is deactivated")
    if workload.gated_by:
        yield _broken("not-queueable", workload, f"it is gated by {workload.gated_by}")
    if workload.submit_options.hold:
        yield _broken(
            "not-queueable", workload, f"its {workload.submit_options.hold} holds it back"
        )
    if workload.on_hold:
        yield _broken("not-queueable", workload, "it is on hold")
    if workload.requeue_at is not None and workload.requeue_at > now:
        message = f"it is on hold until {workload.requeue_at}, and now is {now}"
        yield _broken("not-queueable", workload, message)
    if workload.begin_at is not None and workload.begin_at > now:
        message = f"it is not to begin before {workload.begin_at}, and now is {now}"
        yield _broken("not-queueable", workload, message)
    if workload.deadline is not None and now + (workload.time_limit_ms or 0) > workload.deadline:
        yield _broken("not-queueable", workload, f"it cannot end by {workload.deadline}")
    if workload.misconfigured:
        yield _broken("not-queueable", workload, f"misconfigured: {workload.misconfigured}")
    for check in workload.checks:
        if check.state in ("Retry", "Rejected"):
            yield _broken("not-queueable", workload, f"check {check.name} says {check.state}")


def _check_queue(
    index: SnapshotIndex, workload: Workload, admission: Admission
) -> Iterator[Violation]:
    local_queue = index.local_queues.get(workload.queue)
    if local_queue is None:
        yield _broken("queue-closed", workload, f"no local queue {workload.queue}")
    else:
        if local_queue.stop != "None":
            message = f"local queue {workload.queue} is stopped ({local_queue.stop})"
            yield _broken("queue-closed", workload, message)
        if local_queue.queue != admission.queue:
            message = f"{workload.queue} leads to {local_queue.queue}, not to {admission.queue}"
            yield _broken("wrong-queue", workload, message)
    queue = index.queues.get(admission.queue)
    if queue is None:
        yield _broken("queue-closed", workload, f"no queue {admission.queue}")
        return
    if why := index.why_closed(queue):
        yield _broken("queue-closed", workload, f"queue {queue.name}: {why}")
    yield from _check_namespace(index, workload, queue)


def _check_namespace(
    index: SnapshotIndex, workload: Workload, queue: ClusterQueue
) -> Iterator[Violation]:
    namespace = namespace_of(workload.key)
    selector = queue.namespace_selector
    if selector is None or not selects(selector, index.namespace_labels(namespace)):
        message = f"queue {queue.name} does not select namespace {namespace}"
        yield _broken("namespace", workload, message)


def _check_checks(index: SnapshotIndex, workload: Workload, admit: Admit) -> Iterator[Violation]:
    """Compare `checks_pass` with the checks that apply to the flavors assigned."""
    queue = index.queues.get(admit.admission.queue)
    if queue is None:
        return
    flavors = {flavor for each in admit.admission.pod_sets for _, flavor in each.flavors}
    states = {check.name: check.state for check in workload.checks}
    applying = [
        rule.name
        for rule in queue.checks
        if not rule.on_flavors or flavors.intersection(rule.on_flavors)
    ]
    open_checks = [name for name in applying if states.get(name) != "Ready"]
    if admit.checks_pass and open_checks:
        yield _broken("checks", workload, f"not ready yet: {', '.join(open_checks)}")
    if not admit.checks_pass and not applying:
        yield _broken("checks", workload, f"waits for checks, but {queue.name} has none for it")


def _check_slice(index: SnapshotIndex, workload: Workload, admit: Admit) -> Iterator[Violation]:
    """An elastic slice ends its predecessor and keeps that one's flavors and nodes (§15)."""
    if admit.replaces is not None and admit.replaces != workload.replaces:
        message = f"ends {admit.replaces}, but grew out of {workload.replaces}"
        yield _broken("slice", workload, message)
        return
    old = index.admitted_workloads.get(workload.replaces) if workload.replaces is not None else None
    if old is None:
        return
    if admit.replaces is None and not old.evicting:
        yield _broken("slice", workload, f"{workload.replaces} would go on beside it")
    old_flavors = {each.name: dict(each.flavors) for each in old.admission.pod_sets}
    old_nodes = {each.name: dict(each.nodes) for each in old.admission.pod_sets}
    for assignment in admit.admission.pod_sets:
        there = old_nodes.get(assignment.name, {})
        running = sum(pods for node, pods in there.items() if node in index.nodes)
        staying = sum(min(pods, there.get(node, 0)) for node, pods in assignment.nodes)
        if staying < min(running, sum(pods for _, pods in assignment.nodes)):
            message = f"{assignment.name}: {running} pods run, and {staying} of them stay in place"
            yield _broken("slice", workload, message)
        for resource, flavor in assignment.flavors:
            before = old_flavors.get(assignment.name, {}).get(resource, flavor)
            if before != flavor:
                message = f"{assignment.name} had {resource} from {before}, now from {flavor}"
                yield _broken("slice", workload, message)


def _check_pods_ready(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """With blockAdmission, nothing is admitted while an admitted workload is not ready."""
    if index.policy.pods_ready is None or not index.policy.pods_ready.block_admission:
        return
    unready = [
        admitted.workload.key
        for admitted in index.admitted_workloads.values()
        if admitted.may_start and not admitted.ready
    ]
    for admit in plan.admissions:
        if unready:
            yield Violation(
                rule="pods-not-ready",
                workload=admit.workload,
                message=f"admitted while the pods of {unready[0]} are not ready",
            )
        if admit.checks_pass:
            unready.append(admit.workload)


def _check_arrays(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check that no array runs more workloads than its limit (spec backfill §9)."""
    for admit in plan.admissions:
        workload = index.waiting.get(admit.workload)
        if workload is None or not workload.array:
            continue
        starting = {one.workload for one in plan.admissions}
        ending = {one.replaces for one in plan.admissions}
        running = [
            admitted.workload.key
            for admitted in index.admitted_workloads.values()
            if admitted.workload.array == workload.array and admitted.workload.key not in ending
        ]
        with_it = [
            other.key
            for other in index.waiting.values()
            if other.array == workload.array and other.key in starting
        ]
        if len(running) + len(with_it) > workload.array_limit:
            message = f"{len(running)} of {workload.array} run and {len(with_it)} start"
            yield Violation(
                rule="array",
                workload=workload.key,
                message=f"{message}; at most {workload.array_limit} may",
            )


def _check_dependencies(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check that no workload starts before its dependencies are satisfied (spec backfill §11).

    Read off results and admitted workloads; whether a job of the same name is pending again is not
    checked.
    """
    for admit in plan.admissions:
        workload = index.waiting.get(admit.workload)
        if workload is None or not workload.depends:
            continue
        met = [_is_met(index, each, plan.now) for each in workload.depends]
        if not (any(met) if workload.depends_on_any else all(met)):
            each = workload.depends[met.index(False)]
            message = f"{each.kind}:{each.on} is not satisfied"
            yield Violation(rule="dependency", workload=workload.key, message=message)


def _is_met(index: SnapshotIndex, each: Dependency, now: Instant) -> bool:
    if each.kind == "singleton":
        return True  # left to the planner: it compares names
    running = [one for one in index.admitted_workloads.values() if _job(one.workload) == each.on]
    result = index.results.get(each.on)
    if each.kind == "after":
        starts = [one.running_since for one in running]
        if not starts and result is not None:
            starts = [result.ended_at if result.started_at is None else result.started_at]
        return any(start + each.delay_ms <= now for start in starts)
    if running or result is None:
        return False
    return each.kind == "afterany" or result.succeeded == (each.kind == "afterok")


def _job(workload: Workload) -> str:
    return workload.job or workload.key


# --- counts and flavors ---------------------------------------------------------------------------

# Not whether they are the best: only whether the pods may run like that and are charged for
# everything they ask for.


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
