"""A small cluster to submit jobs to."""

from __future__ import annotations

from typing import Any

from tests.apiserver.surroundings import Around
from unisono.apiserver.objects import Json

KUEUE = "kueue.x-k8s.io"
QUEUE = "kueue.x-k8s.io/queue-name"


def named(name: str, namespace: str = "", **fields: Any) -> Json:
    home = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, **home}, **fields}


def cluster(gpus: int = 8, **spec: Any) -> Around:
    """Return surroundings with one flavor, one queue behind one door, and one node."""
    context = Around()
    context.add("/namespaces", {"apiVersion": "v1", "kind": "Namespace", **named("team")})
    flavor = named("h100", spec={"nodeLabels": {"gpu": "h100"}})
    context.add(f"{KUEUE}/resourceflavors", kueue("ResourceFlavor", flavor))
    quota = {"name": "nvidia.com/gpu", "nominalQuota": gpus}
    group = {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": "h100", "resources": [quota]}],
    }
    queue = named("cq", spec={"namespaceSelector": {}, "resourceGroups": [group], **spec})
    context.add(f"{KUEUE}/clusterqueues", kueue("ClusterQueue", queue))
    door = named("lq", "team", spec={"clusterQueue": "cq"})
    context.add(f"{KUEUE}/localqueues", kueue("LocalQueue", door))
    node = named("n1")
    node["metadata"]["labels"] = {"gpu": "h100"}
    context.add("/nodes", {"apiVersion": "v1", "kind": "Node", **node})
    return context


def kueue(kind: str, obj: Json) -> Json:
    return {"apiVersion": f"{KUEUE}/v1beta2", "kind": kind, **obj}


def job(queue: str = "lq", *, pods: int = 1, gpus: int = 1, **labels: str) -> Json:
    """Return a Job as its author writes it, with as many GPUs for each pod."""
    amounts = {"nvidia.com/gpu": str(gpus)}
    container = {
        "name": "a",
        "image": "x",
        "resources": {"limits": amounts, "requests": dict(amounts)},
    }
    made = named(
        "train",
        "team",
        apiVersion="batch/v1",
        kind="Job",
        spec={
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    )
    made["metadata"]["labels"] = {QUEUE: queue, **labels} if queue else dict(labels)
    return made
