"""Gangs on paper: workloads, their pods, and why they wait in the engine's own facts."""

from __future__ import annotations

import random
from collections.abc import Mapping

from tools.sample.times import text
from unisono.engine.model.explanation import Blocker, GangDoesNotFit, Planned, QuotaExhausted
from unisono.engine.model.names import FlavorName, Instant, QueueName, ResourceName
from unisono.kube.form import Json

_GPU = "nvidia.com/gpu"
_HOUR = 3600


def facts(
    team: str, pods: int, gpus: int, number: int, nodes: int, now: float, dice: random.Random
) -> list[Blocker]:
    """Return why a gang waits, and perhaps until when."""
    found: list[Blocker] = []
    wanted = pods * gpus
    if pods == 1 or number % 3:
        left = dice.choice([few for few in (0, 4, 8) if few < wanted])
        found.append(
            QuotaExhausted(
                queue=QueueName(team),
                pod_set="main",
                flavor=FlavorName("h100"),
                resource=ResourceName(_GPU),
                wanted=wanted,
                available=left,
            )
        )
    else:
        found.append(
            GangDoesNotFit(
                pod_set="main",
                pods=pods,
                pods_placeable=pods // 2,
                cluster_holds=pods // 2,
                nodes=nodes,
            )
        )
    start = int((now + dice.randint(300, 2 * _HOUR)) * 1000)
    if number % 4:
        limit = dice.choice((1, 2, 4)) * _HOUR * 1000
        found.append(
            Planned(start=Instant(start), position=1, limit_ms=limit, limit_from="request")
        )
    return found


def gang(
    name: str,
    team: str,
    user: str,
    pods: int,
    gpus: int,
    flavor: str,
    created: float,
    times: Mapping[str, float],
    limit: str,
) -> Json:
    """Return a workload; conditions by type, with when they came true."""
    limits = {"limits": {_GPU: str(gpus), "cpu": "24", "memory": "180Gi"}}
    template = {"spec": {"containers": [{"name": "main", "resources": limits}]}}
    admission = {
        "clusterQueue": team,
        "podSetAssignments": [
            {
                "name": "main",
                "count": pods,
                "flavors": {_GPU: flavor},
                "resourceUsage": {_GPU: str(pods * gpus)},
            }
        ],
    }
    full = f"trainjob-{name}"
    return {
        "metadata": {
            "name": full,
            "namespace": f"team-{team}",
            "uid": f"uid-{full}",
            "creationTimestamp": text(created),
            "annotations": {
                "unisono.dev/submitter": user,
                "unisono.dev/time-limit": limit,
            },
            "ownerReferences": [{"kind": "TrainJob", "name": name}],
        },
        "spec": {
            "queueName": team,
            "podSets": [{"name": "main", "count": pods, "template": template}],
        },
        "status": {
            **({"admission": admission} if times else {}),
            "conditions": [
                {
                    "type": kind,
                    "status": "True",
                    "reason": kind,
                    "message": "Job finished successfully" if kind == "Finished" else "",
                    "lastTransitionTime": text(at),
                }
                for kind, at in times.items()
            ],
        },
    }


def pod(gang: Json, rank: int, node: str, gpus: int, began: float, *, is_ready: bool) -> Json:
    """Return a pod of a gang, on a node."""
    name = gang["metadata"]["name"]
    state = {"running": {"startedAt": text(began)}}
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": text(began - 2)}]
    if is_ready:
        conditions.append(
            {"type": "Ready", "status": "True", "lastTransitionTime": text(began + 20)}
        )
    return {
        "metadata": {
            "name": f"{gang['metadata']['ownerReferences'][0]['name']}-node-0-{rank}",
            "namespace": gang["metadata"]["namespace"],
            "uid": f"{name}-{rank}",
            "creationTimestamp": text(began - 3),
            "annotations": {"kueue.x-k8s.io/workload": name},
            "labels": {"batch.kubernetes.io/job-completion-index": str(rank)},
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"limits": {_GPU: str(gpus)}}}],
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "containerStatuses": [{"name": "main", "state": state}],
        },
    }
