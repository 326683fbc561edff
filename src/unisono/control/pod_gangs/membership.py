"""Which gang a pod is of, if it is not one of a job's (`kinds.core.pod_groups`).

label kueue.x-k8s.io/queue-name                  a gang of one, admitted by a queue
  … and kueue.x-k8s.io/pod-group-name            all pods of that name
spec.schedulingGroup, spec.workloadRef           scheduling.k8s.io
label scheduling.x-k8s.io/pod-group              coscheduling
annotation scheduling.k8s.io/group-name          Volcano
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.job_kinds import volcano
from unisono.control.view import View
from unisono.kinds.core.pod_groups import COSCHEDULING_LABEL, GROUP_NAME, VOLCANO_ANNOTATIONS
from unisono.kube.mapping import Kind

COSCHEDULING = Kind("scheduling.x-k8s.io/v1alpha1", "PodGroup")
UPSTREAM_GROUP = Kind("scheduling.k8s.io/v1beta1", "PodGroup")
UPSTREAM_WORKLOAD = Kind("scheduling.k8s.io/v1beta1", "Workload")
VOLCANO = volcano.POD_GROUP
GROUPS = (COSCHEDULING, UPSTREAM_GROUP, UPSTREAM_WORKLOAD, VOLCANO)

# The API puts it on pods that a queue has to admit.
MANAGED = "kueue.x-k8s.io/managed"
# On a pod that came after its gang had started and finds its own place.
SOLO = "unisono.dev/solo"
# On a Workload: the gang that it stands for.
GANG = names.GANG
BY_GANG = "gang"

_KUEUE_GROUP, _ALONE = "kueue-group", "pod"
_WORDS = {
    "coscheduling": COSCHEDULING,
    "group": UPSTREAM_GROUP,
    "workload": UPSTREAM_WORKLOAD,
    "volcano": VOLCANO,
}


class Gang(NamedTuple):
    """What pods name, as one text: it is the key that the controller works on."""

    word: str
    name: str
    part: str = ""
    replica: str = ""

    @property
    def text(self) -> str:
        """The gang as a key; what pods name may be any text.

        >>> Gang("workload", "a:b", "", "50%").text
        'workload:a%3Ab::50%25'
        """
        return ":".join(map(_quoted, self)).rstrip(":")

    @staticmethod
    def read(text: str) -> Gang:
        """Read a key; anything else is of no kind.

        >>> Gang.read("workload:a%3Ab::50%25")
        Gang(word='workload', name='a:b', part='', replica='50%')
        >>> Gang.read("a:b:c:d:e").kind
        """
        word, name, part, replica, *more = [*map(_unquoted, text.split(":")), "", "", ""]
        return Gang("" if any(more) else word, name, part, replica)

    @property
    def kind(self) -> Kind | None:
        """The kind of object that makes a gang of its pods; None if the pods do it themselves."""
        return _WORDS.get(self.word)

    @property
    def is_alone(self) -> bool:
        """Whether it is one pod by itself."""
        return self.word == _ALONE

    @property
    def is_kueue_group(self) -> bool:
        """Whether it is a group of Kueue's."""
        return self.word == _KUEUE_GROUP


def _quoted(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")


def _unquoted(part: str) -> str:
    return part.replace("%3A", ":").replace("%25", "%")


def gang_of(pod: Json) -> Gang | None:
    """Return the gang that a pod names, if it names one."""
    metadata, spec = pod["metadata"], pod["spec"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if labels.get(MANAGED) == "true":
        if group := labels.get(GROUP_NAME):
            return Gang(_KUEUE_GROUP, group)
        return Gang(_ALONE, metadata["name"])
    if name := (spec.get("schedulingGroup") or {}).get("podGroupName"):
        return Gang("group", name)
    if reference := spec.get("workloadRef"):
        replica = reference.get("podGroupReplicaKey") or ""
        return Gang("workload", reference["name"], reference.get("podGroup") or "", replica)
    if name := labels.get(COSCHEDULING_LABEL):
        return Gang("coscheduling", name)
    for key in VOLCANO_ANNOTATIONS:
        if name := annotations.get(key):
            return Gang("volcano", name)
    return None


def is_bare_and_ours(pod: Json) -> bool:
    """Say whether a pod without owner or gang names our scheduler: it is a job of one pod.

    Our own API puts it behind a gate if it has to have a queue. No policy of another API can: what
    the operator chose is not known there, so our controllers do it.
    """
    metadata, spec = pod["metadata"], pod["spec"]
    return (
        spec.get("schedulerName") == names.SCHEDULER
        and not spec.get("nodeName")
        and not metadata.get("ownerReferences")
        and names.WORKLOAD_ANNOTATION not in (metadata.get("annotations") or {})
        and GROUP_NAME not in (metadata.get("labels") or {})
        and gang_of(pod) is None
    )


def alone(pod: Json) -> Gang:
    """Return the gang that is one pod."""
    return Gang(_ALONE, pod["metadata"]["name"])


def is_solo(pod: Json) -> bool:
    """Say whether a pod finds its place by itself, though it names a gang."""
    return (pod["metadata"].get("annotations") or {}).get(SOLO) == "true"


def is_made_by_job(pod: Json, view: View) -> bool:
    """Say whether a pod was made for a workload: the controller of its job cares for its gang.

    A Deployment's pods have an owner, too, and are told their Workload; that one stands for pods.
    """
    metadata = pod["metadata"]
    name = (metadata.get("annotations") or {}).get(names.WORKLOAD_ANNOTATION)
    if not name or not any(one.get("controller") for one in metadata.get("ownerReferences") or ()):
        return False
    workload = view.peek(names.WORKLOAD, str(name), metadata["namespace"])
    return workload is None or GANG not in (workload["metadata"].get("annotations") or {})


def gangs_of(pod: Json) -> Iterable[str]:
    """Index pods by `namespace/gang`."""
    found = gang_of(pod)
    return (f"{pod['metadata']['namespace']}/{found.text}",) if found is not None else ()


def groups_named(kind: Kind, group: Json, pods: Iterable[Json]) -> Iterable[str]:
    """Yield the gangs of an object; of one with parts, those that pods name."""
    words = [word for word, known in _WORDS.items() if known == kind]
    name = group["metadata"]["name"]
    if kind != UPSTREAM_WORKLOAD:
        yield Gang(words[0], name).text
        return
    for pod in pods:
        found = gang_of(pod)
        if found is not None and found.word == words[0] and found.name == name:
            yield found.text


def is_of_a_job(pod: Json, workload: str) -> bool:
    """Say whether a pod is already one of another workload's."""
    named = (pod["metadata"].get("annotations") or {}).get(names.WORKLOAD_ANNOTATION)
    return bool(named) and named != workload
