"""Pods that stand for themselves: single ones, and Kueue's groups of them.

    kueue.x-k8s.io/pod-group-name (label)               pods of one name are one gang
    kueue.x-k8s.io/pod-group-total-count (annotation)   how many pods the gang has
    kueue.x-k8s.io/pod-group-fast-admission             decide as soon as the first pod is there
    kueue.x-k8s.io/role-hash (annotation)               which pods of a group are alike

Pods of a group that ask for the same form one pod set; Kueue names it by a hash, which a person
cannot read, so without a role-hash ours is named after its first pod. A single pod counts if it
names a queue, or if its schedulerName is ours to serve. Spec placement §7.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from unisono.engine.model.workload import PodSet
from unisono.kinds.core.links import VOLCANO_QUEUE
from unisono.kinds.core.pod_sets import check_template_sets, pod_sets
from unisono.kinds.core.roles import ROLE_HASH, alike, set_of_pods
from unisono.kinds.core.schema import Pod
from unisono.kinds.notes import Notes
from unisono.kinds.registry import OUR_SCHEDULERS, Context, MemberHooks

QUEUE = "kueue.x-k8s.io/queue-name"
GROUP_NAME = "kueue.x-k8s.io/pod-group-name"
TOTAL_COUNT = "kueue.x-k8s.io/pod-group-total-count"
FAST_ADMISSION = "kueue.x-k8s.io/pod-group-fast-admission"
RETRIABLE = "kueue.x-k8s.io/retriable-in-group"

_COUNT = re.compile(r"[1-9][0-9]{0,8}")


def group_of(pod: Pod) -> str:
    """Return the name of the group that a pod belongs to; empty if it is none of a group."""
    return pod.metadata.labels.get(GROUP_NAME, "")


def check_pod(pod: Pod, notes: Notes) -> None:
    """Report what is wrong with a pod, and with what it says about its group."""
    check_template_sets((set_of_pods((pod,), pod.metadata.name, 1),), notes)
    count = pod.metadata.annotations.get(TOTAL_COUNT)
    at = f"metadata.annotations[{TOTAL_COUNT}]"
    if count is not None and _COUNT.fullmatch(count) is None:
        notes.problem(at, f'"{count}" must be a number of pods, at least 1')
    if group_of(pod) and count is None:
        notes.problem(at, f"is required for a pod of a group ({group_of(pod)})")


def _workload(pod: Pod) -> str:
    """Name the workload: the group, or the pod itself if it is to be scheduled here."""
    if group := group_of(pod):
        return group
    if pod.metadata.labels.get(QUEUE) or pod.spec.scheduler_name in OUR_SCHEDULERS:
        return f"pod-{pod.metadata.name}"
    return ""


def _total(pod: Pod) -> int:
    """Return how many pods the group has; 0 if the pod does not say it properly."""
    count = pod.metadata.annotations.get(TOTAL_COUNT, "")
    return int(count) if _COUNT.fullmatch(count) else 0


def _pod_sets(pods: tuple[Pod, ...], context: Context) -> tuple[PodSet, ...]:
    if not group_of(pods[0]):
        return pod_sets((set_of_pods(pods[:1], "main", 1),), context)
    if not _agree(pods, context.notes):
        return ()
    total, living = _total(pods[0]), _living(pods)
    if len(living) > total:
        at = f"metadata.annotations[{TOTAL_COUNT}]"
        context.notes.problem(at, f"is {total}; the group has {len(living)} pods")
        return ()
    roles = alike(living)
    counts = [len(role) for role in roles]
    missing = total - len(living)
    if missing and len(roles) == 1 and _is_fast(pods[0]):
        counts = [total]
    elif missing:
        context.notes.misconfigured(f"{len(living)} of the {total} pods of the group exist")
    sets = (
        set_of_pods(role, _name(role), count) for role, count in zip(roles, counts, strict=True)
    )
    return pod_sets(sets, context)


def _living(pods: Sequence[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.status.phase != "Failed"]


def _is_fast(pod: Pod) -> bool:
    return pod.metadata.annotations.get(FAST_ADMISSION) == "true"


def _agree(pods: tuple[Pod, ...], notes: Notes) -> bool:
    """Report pods of a group that say different things about it."""
    agreed = True
    for what, values in (
        ("the total count", {pod.metadata.annotations.get(TOTAL_COUNT, "") for pod in pods}),
        ("the queue", {pod.metadata.labels.get(QUEUE, "") for pod in pods}),
    ):
        if len(values) > 1:
            listed = ", ".join(f'"{value}"' for value in sorted(values))
            notes.problem("metadata", f"the pods of the group disagree about {what}: {listed}")
            agreed = False
    return agreed


def _name(role: Sequence[Pod]) -> str:
    return role[0].metadata.annotations.get(ROLE_HASH) or role[0].metadata.name


def _priority_class(pods: tuple[Pod, ...]) -> str:
    return next((pod.spec.priority_class_name for pod in pods if pod.spec.priority_class_name), "")


def _is_finished(pods: tuple[Pod, ...]) -> bool:
    """All have succeeded, or none can go on and a retry was ruled out."""
    succeeded = sum(pod.status.phase == "Succeeded" for pod in pods)
    over = all(pod.status.phase in ("Succeeded", "Failed") for pod in pods)
    if not group_of(pods[0]):
        return over
    final = any(pod.metadata.annotations.get(RETRIABLE) == "false" for pod in pods)
    return 0 < _total(pods[0]) <= succeeded or (over and final)


def _reclaimable(pods: tuple[Pod, ...]) -> tuple[tuple[str, int], ...]:
    if not group_of(pods[0]):
        return ()
    done = (
        (_name(role), sum(pod.status.phase == "Succeeded" for pod in role))
        for role in alike(_living(pods))
    )
    return tuple((name, count) for name, count in done if count)


def _queue(pods: tuple[Pod, ...]) -> str:
    return pods[0].metadata.annotations.get(VOLCANO_QUEUE, "")


MEMBERS = MemberHooks(
    workload=_workload,
    pod_sets=_pod_sets,
    priority_class=_priority_class,
    is_finished=_is_finished,
    reclaimable=_reclaimable,
    queue=_queue,
    scheduler=lambda pods: pods[0].spec.scheduler_name,
)
