"""What a Ray cluster says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from unisono.control.actions import Json
from unisono.control.conditions import is_true, timestamp, with_condition
from unisono.control.job_kinds.amounts import requests_of, total, written
from unisono.control.job_kinds.ray import api
from unisono.control.job_kinds.ray.groups import Group
from unisono.control.job_kinds.ray.pods import is_gpu, service_name
from unisono.control.jobs.pods import is_deleting, is_ready, phase_of

SUSPENDING = "RayClusterSuspending"
SUSPENDED = "RayClusterSuspended"
PROVISIONED = "RayClusterProvisioned"
HEAD_READY = "HeadPodReady"
_TPU = "google.com/tpu"


def status_of(
    cluster: Json, groups: Sequence[Group], pods: Mapping[tuple[str, int], Json], now: float
) -> Json:
    """Return the status as the pods say it is; what is zero is left out, as upstream does."""
    old = cluster.get("status") or {}
    workers = [pod for (name, _), pod in pods.items() if name != groups[0].name]
    head = pods.get((groups[0].name, 0))
    state, conditions = _state(cluster, groups, pods, now)
    asked = total((group.count, requests_of(group.template)) for group in groups)
    status: Json = {
        **old,
        "state": state or None,
        "conditions": conditions,
        "desiredWorkerReplicas": sum(group.count for group in groups[1:]) or None,
        "minWorkerReplicas": sum(group.least for group in groups[1:]) or None,
        "maxWorkerReplicas": min(sum(group.most for group in groups[1:]), 2**31 - 1) or None,
        "availableWorkerReplicas": _count(phase_of(pod) == "Running" for pod in workers),
        "readyWorkerReplicas": _count(map(is_ready, workers)),
        **_amounts(asked),
        "head": _head(cluster, head),
        "endpoints": {name: str(port) for name, port in api.PORTS.items()},
        "observedGeneration": cluster["metadata"].get("generation", 0),
    }
    if state and state != old.get("state"):
        times = old.get("stateTransitionTimes") or {}
        status["stateTransitionTimes"] = {**times, state: timestamp(now)}
    return status


def _count(flags: Iterable[bool]) -> int | None:
    return sum(flags) or None


def _amounts(asked: Mapping[str, int]) -> Json:
    texts = written(
        {
            "cpu": asked.get("cpu", 0),
            "memory": asked.get("memory", 0),
            "gpu": sum(amount for name, amount in asked.items() if is_gpu(name)),
            "tpu": asked.get(_TPU, 0),
        }
    )
    names = {"cpu": "desiredCPU", "memory": "desiredMemory", "gpu": "desiredGPU"}
    return {name: texts[key] for key, name in {**names, "tpu": "desiredTPU"}.items()}


def _head(cluster: Json, head: Json | None) -> Json:
    """Return where the head is; its Service is headless, so its address is the pod's."""
    address = (head.get("status") or {}).get("podIP") if head is not None else None
    return {
        "podName": head["metadata"]["name"] if head is not None else None,
        "podIP": address,
        "serviceIP": address,
        "serviceName": service_name(cluster),
    }


def _state(
    cluster: Json, groups: Sequence[Group], pods: Mapping[tuple[str, int], Json], now: float
) -> tuple[str, list[Json]]:
    """Return the state, which stays `ready` when a pod dies later, and the conditions."""
    old = cluster.get("status") or {}
    conditions = list(old.get("conditions") or ())
    head = pods.get((groups[0].name, 0))
    is_up = head is not None and is_ready(head)
    if is_up or any(one["type"] == HEAD_READY for one in conditions):
        reason = "HeadPodRunningAndReady" if is_up else "HeadPodNotFound"
        conditions = with_condition(
            conditions, HEAD_READY, "True" if is_up else "False", reason, "", now=now
        )
    if is_true(conditions, SUSPENDED):
        return "suspended", conditions
    if is_true(conditions, SUSPENDING):
        return "", conditions
    wanted = sum(group.count for group in groups)
    ready = [pod for pod in pods.values() if is_ready(pod) and not is_deleting(pod)]
    if len(ready) == wanted == len(pods):
        if not is_true(conditions, PROVISIONED):
            conditions = with_condition(
                conditions,
                PROVISIONED,
                "True",
                "AllPodRunningAndReadyFirstTime",
                "All Ray Pods are ready for the first time",
                now=now,
            )
        return "ready", conditions
    return "ready" if old.get("state") == "ready" else "", conditions
