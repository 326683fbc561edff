"""Objects as the API has them, as far as figures read them."""

from __future__ import annotations

from typing import Any

from unisono.kube.form import Json


def node(name: str, gpus: int = 8, **changes: Any) -> Json:
    """Return a node with GPUs."""
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.memory": "81559",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
    }
    amounts = {"nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": labels,
            "annotations": {"unisono.dev/price-usd-hour": "55.04"},
        },
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
        **changes,
    }


def pod(name: str, on: str = "", gpus: int = 1, phase: str = "Running", **changes: Any) -> Json:
    """Return a pod of the workload `gang`, begun at 10:00."""
    return {
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": changes.pop("uid", f"uid-{name}"),
            "creationTimestamp": "2026-01-01T10:00:00Z",
            "annotations": {"kueue.x-k8s.io/workload": "gang", **changes.pop("annotations", {})},
        },
        "spec": {
            "nodeName": on,
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}],
        },
        "status": {
            "phase": phase,
            "containerStatuses": [
                {"name": "main", "state": {"running": {"startedAt": "2026-01-01T10:00:00Z"}}}
            ],
        },
        **changes,
    }


def workload(name: str, *, gpus: int = 8, **conditions: str) -> Json:
    """Return a workload of the local queue `q`; conditions by type, with when they came true."""
    admission = {
        "clusterQueue": "cq",
        "podSetAssignments": [
            {
                "name": "main",
                "count": 2,
                "flavors": {"nvidia.com/gpu": "h100"},
                "resourceUsage": {"nvidia.com/gpu": str(gpus)},
            }
        ],
    }
    limits = {"limits": {"nvidia.com/gpu": gpus // 2}}
    template = {"spec": {"containers": [{"name": "main", "resources": limits}]}}
    return {
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-01-01T10:00:00Z",
            "annotations": {"unisono.dev/submitter": "kim"},
            "ownerReferences": [{"kind": "TrainJob", "name": name}],
        },
        "spec": {
            "queueName": "q",
            "priority": 10,
            "podSets": [{"name": "main", "count": 2, "template": template}],
        },
        "status": {
            **({"admission": admission} if "QuotaReserved" in conditions else {}),
            "conditions": [
                {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": at}
                for kind, at in conditions.items()
            ],
        },
    }


def cluster_queue(name: str = "cq", *, gpus: int = 16, cohort: str = "") -> Json:
    """Return a ClusterQueue with one flavor."""
    quota = {"name": "nvidia.com/gpu", "nominalQuota": gpus}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {
            "cohortName": cohort,
            "resourceGroups": [{"flavors": [{"name": "h100", "resources": [quota]}]}],
        },
        "status": {"conditions": [{"type": "Active", "status": "True"}]},
    }


def local_queue() -> Json:
    """Return the LocalQueue `q` of the team."""
    metadata = {"name": "q", "namespace": "team-a", "uid": "uid-q"}
    return {"metadata": metadata, "spec": {"clusterQueue": "cq"}}
