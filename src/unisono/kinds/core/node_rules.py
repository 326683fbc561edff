"""Whether one node is one of those that a pod accepts, whatever runs there.

For what has a pod on every node that its template accepts (DaemonSets). Everything else asks the
engine, which judges whole gangs and all nodes at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from unisono.engine.model.selection import AffinityTerm, label_map, meets, tolerates
from unisono.kinds.core.nodes import Node as NodeManifest
from unisono.kinds.core.nodes import node_of
from unisono.kinds.core.schema import PodSpec
from unisono.kinds.core.selection import NODE_NAME_FIELD, affinity_terms, tolerations_of
from unisono.kinds.decode import decode

NEW = ("NoSchedule", "NoExecute")  # what keeps a new pod away
RUNNING = ("NoExecute",)  # what sends a running one away


def accepts_node(
    spec: Mapping[str, Any], node: Mapping[str, Any], effects: Collection[str] = NEW
) -> bool:
    """Say whether a pod accepts a node: selector, required affinity, and taints of some effects.

    >>> node = {"metadata": {"name": "n", "labels": {"gpu": "yes"}}, "spec": {}, "status": {}}
    >>> (
    ...     accepts_node({"nodeSelector": {"gpu": "yes"}}, node),
    ...     accepts_node({"nodeSelector": {"gpu": "no"}}, node),
    ... )
    (True, False)
    """
    pod, _ = decode(PodSpec, dict(spec), ignore_unknown=True)
    manifest, _ = decode(NodeManifest, node, ignore_unknown=True)
    if not isinstance(pod, PodSpec) or not isinstance(manifest, NodeManifest):
        return False
    found = node_of(manifest, {})
    labels = {**label_map(found.labels), NODE_NAME_FIELD: str(found.name)}
    if any(labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    terms = affinity_terms(pod.affinity)
    if terms and not any(_holds(term, labels) for term in terms):
        return False
    tolerations = tolerations_of(pod.tolerations)
    return all(
        any(tolerates(one, taint) for one in tolerations)
        for taint in found.taints
        if taint.effect in effects
    )


def _holds(term: AffinityTerm, labels: dict[str, str]) -> bool:
    return all(meets(requirement, labels) for requirement in term)
