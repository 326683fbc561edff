"""What Volcano's webhook fills in, in objects as JSON; a second time changes nothing."""

from __future__ import annotations

from typing import Any

from unisono.kinds.meta import Json
from unisono.kinds.volcano.queues import HIERARCHY, HIERARCHY_WEIGHTS, ROOT

_RETRIES = 3
_SCHEDULER = "volcano"
_NEEDS_SVC = ("tensorflow", "mpi", "pytorch", "ray")


def fill_job(job: Json) -> None:
    """Fill in a batch.volcano.sh Job."""
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return
    for name, value in (("queue", "default"), ("schedulerName", _SCHEDULER)):
        if spec.get(name) in (None, ""):
            spec[name] = value
    if spec.get("maxRetry") in (None, 0):
        spec["maxRetry"] = _RETRIES
    tasks = spec.get("tasks")
    for place, task in enumerate(tasks if isinstance(tasks, list) else ()):
        if isinstance(task, dict):
            _fill_task(task, place)
    if spec.get("minAvailable") in (None, 0) and isinstance(tasks, list):
        minima = [one.get("minAvailable") for one in tasks if isinstance(one, dict)]
        if all(_is_count(least) for least in minima):
            spec["minAvailable"] = sum(minima)
    plugins = spec.get("plugins")
    if isinstance(plugins, dict):
        if any(name in plugins for name in _NEEDS_SVC):
            plugins.setdefault("svc", [])
        if "mpi" in plugins:
            plugins.setdefault("ssh", [])


def _fill_task(task: Json, place: int) -> None:
    if task.get("name") in (None, ""):
        task["name"] = f"default{place}"
    pods = _dict(_dict(task.get("template")).get("spec"))
    if pods.get("hostNetwork") is True and not pods.get("dnsPolicy"):
        pods["dnsPolicy"] = "ClusterFirstWithHostNet"
    if task.get("minAvailable") is None:
        parts = _dict(task.get("partitionPolicy"))
        least, size = parts.get("minPartitions"), parts.get("partitionSize")
        if _is_count(least) and _is_count(size) and least:
            task["minAvailable"] = least * size
        else:
            task["minAvailable"] = task.get("replicas") or 0
    if task.get("maxRetry") in (None, 0):
        task["maxRetry"] = _RETRIES


def fill_queue(queue: Json) -> None:
    """Fill in a scheduling.volcano.sh Queue."""
    spec = queue.setdefault("spec", {})
    if isinstance(spec, dict):
        if spec.get("reclaimable") is None:
            spec["reclaimable"] = True
        if spec.get("weight") in (None, 0):
            spec["weight"] = 1
    annotations = _dict(_dict(queue.get("metadata")).get("annotations"))
    path, weights = annotations.get(HIERARCHY), annotations.get(HIERARCHY_WEIGHTS)
    if path and weights and not str(path).startswith(ROOT):
        annotations[HIERARCHY] = f"{ROOT}/{path}"
        annotations[HIERARCHY_WEIGHTS] = f"1/{weights}"


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
