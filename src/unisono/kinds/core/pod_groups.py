"""Pods that form a group, or stand for themselves: which group, and which of its pods are alike.

A pod says in the words of one of these APIs which group it belongs to; the first counts. The object
is always one of the pod's own namespace.

    kueue.x-k8s.io/pod-group-name (label)           Kueue: pods of one name are one gang
    spec.schedulingGroup.podGroupName               scheduling.k8s.io, Kubernetes 1.36 and later
    spec.workloadRef {name, podGroup, replicaKey}   scheduling.k8s.io, Kubernetes 1.35
    label scheduling.x-k8s.io/pod-group             coscheduling
    annotation scheduling.k8s.io/group-name         Volcano (or scheduling.volcano.sh/group-name)

Kueue has no object for a group; its pods say more about it:

    kueue.x-k8s.io/pod-group-total-count (annotation)   how many pods the gang has
    kueue.x-k8s.io/pod-group-fast-admission             decide as soon as the first pod is there
    kueue.x-k8s.io/role-hash (annotation)               which pods of a group are alike

Pods are alike, and one pod set stands for them, if everything that decides about their place is
equal: what they ask for, which nodes they accept, what they demand of the pods around them, and
those of their labels that some rule among them looks at. Other labels (an index, a pod's own name)
may differ; the set then has the labels that all of its pods share. Kueue names such a set by a
hash, which a person cannot read, so without a role-hash ours is named after its first pod. A single
pod counts if it names a queue, or if its schedulerName is ours to serve. Spec placement §1.1, §2,
§3 and §7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from unisono.engine.model.workload import PodSet
from unisono.kinds.core.pod_rules import host_ports, label_keys
from unisono.kinds.core.pod_sets import TemplateSet, check_template_sets, pod_sets
from unisono.kinds.core.schema import Pod, PodTemplateSpec
from unisono.kinds.core.topology import GROUP, topology_request
from unisono.kinds.notes import Notes
from unisono.kinds.registry import OUR_SCHEDULERS, Context, MemberHooks

# ---- which group ---------------------------------------------------------------------------------

UPSTREAM_GROUP = "PodGroup.scheduling.k8s.io"
UPSTREAM_WORKLOAD = "Workload.scheduling.k8s.io"
COSCHEDULING_GROUP = "PodGroup.scheduling.x-k8s.io"
VOLCANO_GROUP = "PodGroup.scheduling.volcano.sh"

COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
VOLCANO_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
VOLCANO_TASK = "volcano.sh/task-spec"


class GroupLink(NamedTuple):
    """The object that makes a gang of pods, and which of its parts if it has several."""

    kind: str  # KIND.GROUP
    name: str
    part: str = ""  # the group inside a Workload
    replica: str = ""  # every value is a gang of its own

    @property
    def workload(self) -> str:
        """The name of the workload that the gang becomes."""
        word = self.kind.partition(".")[0].lower()
        return "-".join(part for part in (word, self.name, self.part, self.replica) if part)


def group_link(pod: Pod) -> GroupLink | None:
    """Return the group that a pod names, if it names one."""
    spec, annotations = pod.spec, pod.metadata.annotations
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        return GroupLink(UPSTREAM_GROUP, spec.scheduling_group.pod_group_name)
    if spec.workload_ref is not None:
        ref = spec.workload_ref
        return GroupLink(UPSTREAM_WORKLOAD, ref.name, ref.pod_group, ref.pod_group_replica_key)
    if label := pod.metadata.labels.get(COSCHEDULING_LABEL):
        return GroupLink(COSCHEDULING_GROUP, label)
    for key in VOLCANO_ANNOTATIONS:
        if annotation := annotations.get(key):
            return GroupLink(VOLCANO_GROUP, annotation)
    return None


def task_of(pod: Pod) -> str:
    """Return the task of a Volcano job that a pod has a part in; empty if it does not say."""
    return pod.metadata.annotations.get(VOLCANO_TASK) or pod.metadata.labels.get(VOLCANO_TASK, "")


# ---- which pods are alike ------------------------------------------------------------------------

ROLE_HASH = "kueue.x-k8s.io/role-hash"


def alike(
    pods: Sequence[Pod],
    *,
    keys: Iterable[str] = (),
    apart: Callable[[Pod], object] = lambda pod: None,
) -> list[list[Pod]]:
    """Return the pods in groups of equal ones, by first appearance.

    `keys` are labels that rules of other pods look at; `apart` keeps pods apart that differ in it.
    """
    looked_at = sorted({*keys, *(key for pod in pods for key in label_keys(pod.spec))})
    groups: dict[object, list[Pod]] = {}
    for pod in pods:
        groups.setdefault((_role(pod, looked_at), apart(pod)), []).append(pod)
    return list(groups.values())


def _role(pod: Pod, looked_at: Sequence[str]) -> object:
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
        host_ports(spec),
        topology_request(pod.metadata.annotations),
        pod.metadata.annotations.get(GROUP),
        [pod.metadata.labels.get(key) for key in looked_at],
    )
    # Manifests hold mappings, which cannot be keys; their encoding, with sorted names, can.
    return msgspec.json.encode(decisive, order="deterministic")


def set_of_pods(pods: Sequence[Pod], name: str, count: int) -> TemplateSet:
    """Return the set that equal pods make: the first is the template, with what all share."""
    first = pods[0]
    shared = dict(first.metadata.labels)
    for pod in pods[1:]:
        labels = pod.metadata.labels
        shared = {key: value for key, value in shared.items() if labels.get(key) == value}
    metadata = msgspec.structs.replace(first.metadata, labels=shared)
    # A pod is its own template: its spec stands where that of a template's would.
    template = PodTemplateSpec(metadata=metadata, spec=first.spec)
    return TemplateSet(name=name, count=count, template=template, path="")


# ---- Kueue's groups, and single pods -------------------------------------------------------------

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
