"""Which group a pod says that it belongs to, in the words of each API.

    spec.schedulingGroup.podGroupName               scheduling.k8s.io, Kubernetes 1.36 and later
    spec.workloadRef {name, podGroup, replicaKey}   scheduling.k8s.io, Kubernetes 1.35
    label scheduling.x-k8s.io/pod-group             coscheduling
    annotation scheduling.k8s.io/group-name         Volcano (or scheduling.volcano.sh/group-name)

The object is always one of the pod's own namespace. The first of these that a pod has counts; a
pod in a Kueue group (`pod_groups`) has none. Spec placement §1.1, §2 and §3.
"""

from __future__ import annotations

from typing import NamedTuple

from unisono.kinds.core.schema import Pod

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
