"""Objects for stories about live gangs: a queue with GPUs, nodes, jobs."""

from __future__ import annotations

from typing import Any

from unisono.kube.form import Json

KUEUE = "kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"


def node(name: str, gpus: int = 8) -> Json:
    """Return a ready node."""
    amounts = {"cpu": "96", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastTransitionTime": "2023-11-14T00:00:00Z",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"providerID": f"unisono:///zone/{name}"},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def queue(name: str = "cq", gpus: int = 16, preemption: Json | None = None) -> list[Json]:
    """Return a flavor, a ClusterQueue of so many GPUs, and a LocalQueue `lq-NAME` in default."""
    quota = [{"name": "f", "resources": [{"name": GPU, "nominalQuota": str(gpus)}]}]
    return [
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {}},
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": [GPU], "flavors": quota}],
                "preemption": preemption or {},
            },
        },
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": f"lq-{name}", "namespace": "default"},
            "spec": {"clusterQueue": name},
        },
    ]


def priority(name: str, value: int) -> Json:
    """Return a class that a job names by label."""
    return {
        "apiVersion": KUEUE,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def job(
    name: str,
    *,
    pods: int = 2,
    gpus: int = 8,
    seconds: int = 30,
    queue_name: str = "lq-cq",
    priority_class: str = "",
    says: dict[str, str] | None = None,
    **spec: Any,
) -> Json:
    """Return an indexed job; without a queue name it is not managed."""
    labels = {"kueue.x-k8s.io/queue-name": queue_name} if queue_name else {}
    if priority_class:
        labels["kueue.x-k8s.io/priority-class"] = priority_class
    annotations = {f"unisono.dev/{key}": value for key, value in (says or {}).items()}
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", str(seconds)],
        "resources": {"limits": {GPU: str(gpus)}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
            **spec,
        },
    }
