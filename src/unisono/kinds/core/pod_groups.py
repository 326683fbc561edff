"""Pods that stand for themselves: single ones with a queue, and groups of them.

    kueue.x-k8s.io/pod-group-name (label)               pods of one name are one gang
    kueue.x-k8s.io/pod-group-total-count (annotation)   how many pods the gang has
    kueue.x-k8s.io/pod-group-fast-admission             decide as soon as the first pod is there
    kueue.x-k8s.io/role-hash (annotation)               which pods of a group are alike

Pods of a group that ask for the same form one pod set; Kueue names it by a hash, which a person
cannot read, so without a role-hash ours is named after its first pod. Spec jobs §6, §7.1 and
gang-placement §7.
"""

from __future__ import annotations

import re

import msgspec

from unisono.engine.model.workload import PodSet
from unisono.kinds.core.pod_sets import TemplateSet, check_template_sets, pod_sets
from unisono.kinds.core.schema import Pod, PodTemplateSpec
from unisono.kinds.core.topology import GROUP as TOPOLOGY_GROUP
from unisono.kinds.core.topology import topology_request
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context, MemberHooks

QUEUE = "kueue.x-k8s.io/queue-name"
GROUP_NAME = "kueue.x-k8s.io/pod-group-name"
TOTAL_COUNT = "kueue.x-k8s.io/pod-group-total-count"
FAST_ADMISSION = "kueue.x-k8s.io/pod-group-fast-admission"
ROLE_HASH = "kueue.x-k8s.io/role-hash"
RETRIABLE = "kueue.x-k8s.io/retriable-in-group"

_COUNT = re.compile(r"[1-9][0-9]{0,8}")


def group_of(pod: Pod) -> str:
    """Return the name of the group that a pod belongs to; empty if it is none of a group."""
    return pod.metadata.labels.get(GROUP_NAME, "")


def check_pod(pod: Pod, notes: Notes) -> None:
    """Report what is wrong with a pod, and with what it says about its group."""
    check_template_sets((_set(pod, 1, pod.metadata.name),), notes)
    count = pod.metadata.annotations.get(TOTAL_COUNT)
    at = f"metadata.annotations[{TOTAL_COUNT}]"
    if count is not None and _COUNT.fullmatch(count) is None:
        notes.problem(at, f'"{count}" must be a number of pods, at least 1')
    if group_of(pod) and count is None:
        notes.problem(at, f"is required for a pod of a group ({group_of(pod)})")


def _workload(pod: Pod) -> str:
    """Name the workload: the group, or the pod itself if it names a queue."""
    if group := group_of(pod):
        return group
    return f"pod-{pod.metadata.name}" if pod.metadata.labels.get(QUEUE) else ""


def _total(pod: Pod) -> int:
    """Return how many pods the group has; 0 if the pod does not say it properly."""
    count = pod.metadata.annotations.get(TOTAL_COUNT, "")
    return int(count) if _COUNT.fullmatch(count) else 0


def _pod_sets(pods: tuple[Pod, ...], context: Context) -> tuple[PodSet, ...]:
    if not group_of(pods[0]):
        return pod_sets((_set(pods[0], 1, "main"),), context)
    if not _agree(pods, context.notes):
        return ()
    total, living = _total(pods[0]), [pod for pod in pods if pod.status.phase != "Failed"]
    if len(living) > total:
        at = f"metadata.annotations[{TOTAL_COUNT}]"
        context.notes.problem(at, f"is {total}; the group has {len(living)} pods")
        return ()
    roles: dict[object, list[Pod]] = {}
    for pod in living:
        roles.setdefault(_role(pod), []).append(pod)
    counts = {_name(alike[0]): len(alike) for alike in roles.values()}
    missing = total - len(living)
    if missing and len(roles) == 1 and _is_fast(pods[0]):
        counts = dict.fromkeys(counts, total)
    elif missing:
        context.notes.misconfigured(f"{len(living)} of the {total} pods of the group exist")
    first = [alike[0] for alike in roles.values()]
    return pod_sets((_set(pod, counts[_name(pod)], _name(pod)) for pod in first), context)


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


def _role(pod: Pod) -> object:
    """Return what makes pods alike: the role they were given, or all that decides about a place."""
    given = pod.metadata.annotations.get(ROLE_HASH)
    if given is not None:
        return given
    spec = pod.spec
    containers = tuple(
        (container.resources.requests, container.resources.limits, container.is_sidecar)
        for container in (*spec.init_containers, *spec.containers)
    )
    decisive = (
        containers,
        len(spec.init_containers),
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.resources,
        spec.overhead,
        spec.priority_class_name,
        spec.runtime_class_name,
        topology_request(pod.metadata.annotations),
        pod.metadata.annotations.get(TOPOLOGY_GROUP),
    )
    # Manifests hold mappings, which cannot be keys; their encoding, with sorted names, can.
    return msgspec.json.encode(decisive, order="deterministic")


def _name(pod: Pod) -> str:
    return pod.metadata.annotations.get(ROLE_HASH) or pod.metadata.name


def _set(pod: Pod, count: int, name: str) -> TemplateSet:
    # A pod is its own template: its spec stands where that of a template's would.
    template = PodTemplateSpec(metadata=pod.metadata, spec=pod.spec)
    return TemplateSet(name=name, count=count, template=template, path="")


def _priority_class(pods: tuple[Pod, ...]) -> str:
    return next((pod.spec.priority_class_name for pod in pods if pod.spec.priority_class_name), "")


def _is_finished(pods: tuple[Pod, ...]) -> bool:
    """All have succeeded, or none can go on and somebody said not to try again."""
    succeeded = sum(pod.status.phase == "Succeeded" for pod in pods)
    over = all(pod.status.phase in ("Succeeded", "Failed") for pod in pods)
    if not group_of(pods[0]):
        return over
    final = any(pod.metadata.annotations.get(RETRIABLE) == "false" for pod in pods)
    return 0 < _total(pods[0]) <= succeeded or (over and final)


def _reclaimable(pods: tuple[Pod, ...]) -> tuple[tuple[str, int], ...]:
    if not group_of(pods[0]):
        return ()
    names: dict[object, str] = {}
    done: dict[str, int] = {}
    for pod in pods:
        if pod.status.phase == "Failed":
            continue
        name = names.setdefault(_role(pod), _name(pod))
        if pod.status.phase == "Succeeded":
            done[name] = done.get(name, 0) + 1
    return tuple(done.items())


MEMBERS = MemberHooks(
    workload=_workload,
    pod_sets=_pod_sets,
    priority_class=_priority_class,
    is_finished=_is_finished,
    reclaimable=_reclaimable,
)
