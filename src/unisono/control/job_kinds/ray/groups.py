"""The pods that a Ray cluster is to have: one head, and so many of each worker group."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

from unisono.control.actions import Json
from unisono.kinds.batch import MAX_PARALLELISM

HEAD = "head"


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of one template."""

    name: str  # as its pod set is called
    label: str  # as Ray calls it
    count: int
    least: int
    most: int
    template: Json
    start: Json  # parameters of `ray start`
    is_head: bool = False
    hosts: int = 1  # pods that make up one replica


def groups_of(spec: Json) -> list[Group]:
    """Return the groups of a cluster's spec, the head first."""
    head = spec["headGroupSpec"]
    return [
        Group(
            HEAD,
            "headgroup",
            1,
            1,
            1,
            with_autoscaler(head.get("template") or {}, spec),
            head.get("rayStartParams") or {},
            is_head=True,
        ),
        *_workers(spec),
    ]


def _workers(spec: Json) -> Iterator[Group]:
    for group in spec.get("workerGroupSpecs") or ():
        hosts = max(1, group.get("numOfHosts", 1))
        least = group.get("minReplicas", 0)
        most = group.get("maxReplicas", MAX_PARALLELISM)
        count = 0 if group.get("suspend") else min(max(group.get("replicas", 0), least), most)
        yield Group(
            group["groupName"].lower(),
            group["groupName"],
            count * hosts,
            least * hosts,
            most * hosts,
            group.get("template") or {},
            group.get("rayStartParams") or {},
            hosts=hosts,
        )


def with_autoscaler(template: Json, spec: Json) -> Json:
    """Return the head's template with the autoscaler beside it, if the cluster wants one."""
    containers = (template.get("spec") or {}).get("containers") or []
    is_there = any(one["name"] == "autoscaler" for one in containers)
    if not spec.get("enableInTreeAutoscaling") or is_there or not containers:
        return template
    options = spec.get("autoscalerOptions") or {}
    amounts = {"cpu": "500m", "memory": "512Mi"}
    sidecar: Json = {
        "name": "autoscaler",
        "image": options.get("image") or containers[0].get("image", ""),
        "command": ["/bin/bash", "-c", "--"],
        "args": [
            "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME)"
            " --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
        ],
        "resources": options.get("resources") or {"requests": amounts, "limits": amounts},
    }
    for field in ("env", "envFrom", "volumeMounts", "securityContext", "imagePullPolicy"):
        if options.get(field):
            sidecar[field] = copy.deepcopy(options[field])
    return {**template, "spec": {**template["spec"], "containers": [*containers, sidecar]}}
