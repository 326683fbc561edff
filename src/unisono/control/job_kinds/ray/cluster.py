"""The operator of Ray clusters: makes their pods and replaces them, or suspends them as a whole.

A worker that is gone is replaced alone: Ray runs its tasks again elsewhere. The head keeps what the
cluster knows, so without it (and without a store outside) all pods start over.

    running ──suspend──▶ Suspending ──no pod left──▶ Suspended ──resume──▶ running

Suspending goes through to its end, even if it is called off half way.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from unisono.control import names
from unisono.control.actions import (
    Action,
    Create,
    Delete,
    Json,
    Note,
    Patch,
    Ref,
    Steps,
    Together,
)
from unisono.control.conditions import is_true, timestamp, with_condition
from unisono.control.controller import own_key, owner_key
from unisono.control.job_kinds import ray
from unisono.control.job_kinds.ray.pods import (
    HEAD,
    Group,
    groups_of,
    is_gpu,
    new_pod,
    service,
    service_name,
)
from unisono.control.jobs.pods import (
    is_deleting,
    is_ready,
    is_terminal,
    made,
    most_pods,
    phase_of,
    requests_of,
    too_many,
    total_requests,
    written_amounts,
)
from unisono.control.jobs.queues import Queues, may_make_pods
from unisono.control.view import View
from unisono.kinds.digits import whole_number
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

Pods = Mapping[tuple[str, int], Json]  # by the group's name and the number in it


class RayClusterOperator:
    """Runs Ray clusters."""

    name = "raycluster"
    watches: Sequence[Kind] = (ray.CLUSTER, names.POD)
    owner_kind: Kind = ray.CLUSTER

    def __init__(self, queues: Queues) -> None:
        """Take what knows which clusters wait to be admitted."""
        self._queues = queues

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A cluster, or a pod of one."""
        return (own_key(obj),) if kind == ray.CLUSTER else owner_key(obj, ray.CLUSTER)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one cluster a step further."""
        cluster = view.get(ray.CLUSTER, key.name, key.namespace)
        if cluster is None or is_deleting(cluster):
            return
        if cluster["spec"].get("managedBy") not in ray.OURS:
            return
        groups = groups_of(cluster["spec"])
        owned = view.owned(names.POD, cluster["metadata"]["uid"])
        pods = _sorted(owned)
        conditions = (cluster.get("status") or {}).get("conditions")
        wants_rest = bool(cluster["spec"].get("suspend"))
        if is_true(conditions, SUSPENDING) or (wants_rest and not is_true(conditions, SUSPENDED)):
            yield from self._suspend(cluster, groups, owned, now)
        elif not wants_rest and may_make_pods(cluster, ray.CLUSTER, self._queues, view):
            yield from self._run(cluster, groups, pods, owned, view, now)
        else:
            # A pod may turn up after all were gone: its creation was given up, and came late.
            late = [pod for pod in owned if wants_rest and not is_deleting(pod)]
            if late:
                yield Together([Delete(Ref.to(pod)) for pod in late])
            yield from _write(cluster, status_of(cluster, groups, pods, now), now)

    # ---- suspended ---------------------------------------------------------------------------

    def _suspend(
        self, cluster: Json, groups: Sequence[Group], owned: Sequence[Json], now: float
    ) -> Steps:
        status = cluster.get("status") or {}
        conditions = status.get("conditions")
        if owned and not is_true(conditions, SUSPENDING):
            began = with_condition(
                conditions, SUSPENDING, "True", "UserRequestSuspend", "", now=now
            )
            cluster = yield from _write(cluster, {**status, "conditions": began}, now)
        going = [pod for pod in owned if not is_deleting(pod)]
        if going:
            yield Together([Delete(Ref.to(pod)) for pod in going])
        if owned:
            gone = status_of(cluster, groups, _sorted(owned), now)
            yield from _write(cluster, gone, now)
            return
        ended = with_condition(
            with_condition(conditions, SUSPENDED, "True", "AllPodDeleted", "", now=now),
            SUSPENDING,
            "False",
            "AllPodDeleted",
            "",
            now=now,
        )
        rested = {**cluster, "status": {**status, "conditions": ended}}
        yield from _write(cluster, status_of(rested, groups, {}, now), now)

    # ---- running -----------------------------------------------------------------------------

    def _run(
        self,
        cluster: Json,
        groups: Sequence[Group],
        pods: Pods,
        owned: Sequence[Json],
        view: View,
        now: float,
    ) -> Steps:
        if is_true((cluster.get("status") or {}).get("conditions"), SUSPENDED):
            cluster = yield from self._resume(cluster, now)
        if view.get(names.SERVICE, service_name(cluster), cluster["metadata"]["namespace"]) is None:
            yield Create(service(cluster))
        if self._has_lost_its_head(cluster, pods, owned):
            going = [pod for pod in owned if not is_deleting(pod)]
            if going:
                yield Together([Delete(Ref.to(pod)) for pod in going])
                message = "the head is gone, and what it knew with it; all pods start over"
                yield Note(Ref.to(cluster), "HeadLost", message, "Warning")
        else:
            yield from self._replace(cluster, groups, pods, owned, view, now)
        yield from _write(cluster, status_of(cluster, groups, pods, now), now)

    def _resume(self, cluster: Json, now: float) -> Generator[Action, Any, Json]:
        status = cluster["status"]
        conditions = with_condition(
            status["conditions"], SUSPENDED, "False", "UserRequestResume", "", now=now
        )
        conditions = [one for one in conditions if one["type"] != PROVISIONED]
        return (
            yield from _write(cluster, {**status, "conditions": conditions, "state": None}, now)
        )

    def _has_lost_its_head(self, cluster: Json, pods: Pods, owned: Sequence[Json]) -> bool:
        """Say whether there are pods of a cluster whose head is not alive."""
        if cluster["spec"].get("gcsFaultToleranceOptions"):
            return False
        head = pods.get((HEAD, 0))
        return bool(owned) and (head is None or is_deleting(head) or is_terminal(head))

    def _replace(
        self,
        cluster: Json,
        groups: Sequence[Group],
        pods: Pods,
        owned: Sequence[Json],
        view: View,
        now: float,
    ) -> Steps:
        """Delete pods that ended or are surplus; create missing ones."""
        counts = {group.name: group.count for group in groups}
        kept = {
            pod["metadata"]["uid"]
            for (name, number), pod in pods.items()
            if number < counts.get(name, 0)
        }
        going = [
            pod
            for pod in owned
            if (pod["metadata"]["uid"] not in kept or is_terminal(pod)) and not is_deleting(pod)
        ]
        if going:
            yield Together([Delete(Ref.to(pod)) for pod in going])
        wanted = sum(counts.values())
        if wanted > most_pods(cluster, wanted, (group.template for group in groups), view):
            yield from too_many(cluster, wanted, view, now)
            return
        # The head goes first. If the API refuses it, there are no workers yet; those would be sent
        # away for want of a head and made again, as fast as the API answers.
        for is_head in (True, False):
            yield from made(
                new_pod(cluster, group, number)
                for group in groups
                if (group.name == HEAD) is is_head
                for number in range(group.count)
                if (group.name, number) not in pods
            )


def _sorted(owned: Sequence[Json]) -> dict[tuple[str, int], Json]:
    found: dict[tuple[str, int], Json] = {}
    for pod in owned:
        metadata = pod["metadata"]
        labels = metadata.get("labels") or {}
        is_head = labels.get(ray.NODE_TYPE) == HEAD
        name = HEAD if is_head else labels.get(ray.GROUP, "").lower()
        index = whole_number((metadata.get("annotations") or {}).get(ray.INDEX))
        if index is not None:
            found[name, index] = pod
    return found


def _write(cluster: Json, status: Json, now: float) -> Generator[Action, Any, Json]:
    """Write a status if it is another one; return the cluster as it then is."""
    old = cluster.get("status") or {}
    if _plain(status) == _plain(old):
        return cluster
    changes = {**status, "lastUpdateTime": timestamp(now)}
    written: Json = yield Patch(Ref.to(cluster), {"status": changes}, "status")
    return written


def _plain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        key: _plain(one)
        for key, one in value.items()
        if one not in (None, 0, "", [], {}) and key != "lastUpdateTime"
    }


# ---- status ------------------------------------------------------------------------------------

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
    asked = total_requests((group.count, requests_of(group.template)) for group in groups)
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
        "endpoints": {name: str(port) for name, port in ray.PORTS.items()},
        "observedGeneration": cluster["metadata"].get("generation", 0),
    }
    if state and state != old.get("state"):
        times = old.get("stateTransitionTimes") or {}
        status["stateTransitionTimes"] = {**times, state: timestamp(now)}
    return status


def _count(flags: Iterable[bool]) -> int | None:
    return sum(flags) or None


def _amounts(asked: Mapping[str, int]) -> Json:
    texts = written_amounts(
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
