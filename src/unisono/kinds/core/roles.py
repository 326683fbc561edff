"""Which pods of a group are alike: those that one pod set can stand for.

Pods are alike if everything that decides about their place is equal: what they ask for, which nodes
they accept, what they demand of their neighbours, and those of their labels that some rule among
them looks at. Other labels (an index, a pod's own name) may differ; the set then has the labels
that all of its pods share. Spec placement §7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from unisono.kinds.core.neighbours import host_ports, label_keys
from unisono.kinds.core.pod_sets import TemplateSet
from unisono.kinds.core.schema import Pod, PodTemplateSpec
from unisono.kinds.core.topology import GROUP, topology_request

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
