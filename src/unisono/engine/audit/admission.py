"""May this workload start now, in that queue? (quota §5, §6, §12, §13, §15, backfill §9, §11)

Quota and flavors apart. Checked for admitted workloads and for preemptors: a workload that may
not start may not preempt either.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.snapshot_index import SnapshotIndex, started_by
from unisono.engine.audit.violation import Rule, Violation
from unisono.engine.model.dependency import Dependency
from unisono.engine.model.names import Instant, namespace_of
from unisono.engine.model.plan import Admit, Plan
from unisono.engine.model.queue import ClusterQueue
from unisono.engine.model.selection import selects
from unisono.engine.model.workload import Admission, Workload


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
    if workload.turn.hold:
        yield _broken("not-queueable", workload, f"its {workload.turn.hold} holds it back")
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
        if admitted.may_start and not admitted.ready and not admitted.evicting
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
