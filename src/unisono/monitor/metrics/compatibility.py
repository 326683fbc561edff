"""Metric names of Kueue and kube-state-metrics that GPU dashboards use, with the same meaning.

As with kube-state-metrics, pods that have ended or have no node are included: a sum of GPUs has to
filter by phase. Only GPUs are reported, not every resource.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.monitor.cache import ClusterCache
from unisono.monitor.exposition import Family, Sample
from unisono.monitor.metrics.queues import QueueCounters
from unisono.monitor.records import NodeRecord

_GPU = "nvidia.com/gpu"


def kueue_families(cache: ClusterCache, tally: QueueCounters) -> Iterator[Family]:
    """Yield them."""
    queues = [cache.queues[name] for name in sorted(cache.queues)]
    states = tally.states

    def count(queue: str, *names: str) -> int:
        return sum(states.get((queue, name), 0) for name in names)

    yield Family(
        "kueue_pending_workloads",
        "gauge",
        "Workloads that wait, by whether they were tried already.",
        [
            Sample({"cluster_queue": one.name, "status": status}, count(one.name, state))
            for one in queues
            for status, state in (("active", "pending"), ("inadmissible", "inadmissible"))
        ],
    )
    for name, text in (
        ("kueue_reserving_active_workloads", "Workloads that have quota."),
        ("kueue_admitted_active_workloads", "Workloads that are admitted."),
    ):
        yield Family(
            name,
            "gauge",
            text,
            [
                Sample({"cluster_queue": one.name}, count(one.name, "admitted", "running"))
                for one in queues
            ],
        )
    yield Family(
        "kueue_cluster_queue_status",
        "gauge",
        "1 for the state a queue is in.",
        [
            Sample({"cluster_queue": one.name, "status": status}, int(one.is_active == is_active))
            for one in queues
            for status, is_active in (("active", True), ("pending", False))
        ],
    )
    yield from _resources(cache, tally)


def _resources(cache: ClusterCache, tally: QueueCounters) -> Iterator[Family]:
    usage: list[Sample] = []
    nominal: list[Sample] = []
    borrowing: list[Sample] = []
    lending: list[Sample] = []
    for name in sorted(cache.queues):
        one = cache.queues[name]
        for quota in one.quotas:
            labels = {
                "cohort": one.cohort,
                "cluster_queue": one.name,
                "flavor": quota.flavor,
                "resource": _GPU,
            }
            usage.append(Sample(labels, tally.used.get((one.name, quota.flavor), 0)))
            nominal.append(Sample(labels, quota.nominal))
            unlimited = float("inf")
            borrowing.append(
                Sample(labels, unlimited if quota.borrowing is None else quota.borrowing)
            )
            if quota.lending is not None:
                lending.append(Sample(labels, quota.lending))
    for name, text, samples in (
        ("kueue_cluster_queue_resource_usage", "GPUs in use.", usage),
        ("kueue_cluster_queue_nominal_quota", "GPUs of a queue's own.", nominal),
        ("kueue_cluster_queue_borrowing_limit", "GPUs it may borrow.", borrowing),
        ("kueue_cluster_queue_lending_limit", "GPUs it may lend.", lending),
    ):
        yield Family(name, "gauge", text, samples)


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
