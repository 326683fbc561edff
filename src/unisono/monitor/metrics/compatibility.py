"""Metric names of kube-state-metrics that GPU dashboards use, with the same meaning.

As with kube-state-metrics, pods that have ended or have no node are included: a sum of GPUs has to
filter by phase. Only GPUs are reported, not every resource.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.monitor.cache import ClusterCache
from unisono.monitor.exposition import Family, Sample
from unisono.monitor.records import NodeRecord

_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


def kube_state_families(cache: ClusterCache) -> Iterator[Family]:
    """Yield them."""
    pods = sorted((one for one in cache.pods.values() if one.gpus), key=lambda one: one.key)
    nodes = [cache.nodes[name] for name in sorted(cache.nodes) if cache.nodes[name].gpus]
    for name, text in (
        ("kube_pod_container_resource_limits", "The limits of a container."),
        ("kube_pod_container_resource_requests", "The requests of a container."),
    ):
        yield Family(
            name,
            "gauge",
            text,
            [
                Sample(
                    {
                        "namespace": pod.namespace,
                        "pod": pod.name,
                        "uid": pod.uid,
                        "container": container,
                        "node": pod.node,
                        "resource": _RESOURCE,
                        "unit": "integer",
                    },
                    gpus,
                )
                for pod in pods
                for container, gpus in pod.gpus
            ],
        )
    yield Family(
        "kube_pod_status_phase",
        "gauge",
        "1 for the phase a pod is in.",
        [
            Sample(
                {"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid, "phase": phase},
                int(pod.phase == phase),
            )
            for pod in pods
            for phase in _PHASES
        ],
    )
    yield Family(
        "kube_node_status_allocatable",
        "gauge",
        "What a node can give out.",
        [Sample(_labels(one), one.allocatable) for one in nodes],
    )
    yield Family(
        "kube_node_status_capacity",
        "gauge",
        "What a node has.",
        [Sample(_labels(one), one.gpus) for one in nodes],
    )


# Dashboards know no other; GPUs of all makers are told under it.
_RESOURCE = "nvidia_com_gpu"


def _labels(node: NodeRecord) -> dict[str, str]:
    return {"node": node.name, "resource": _RESOURCE, "unit": "integer"}
