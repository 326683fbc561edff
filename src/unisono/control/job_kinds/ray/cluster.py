"""The operator of Ray clusters: makes their pods and replaces them, or suspends them as a whole.

A worker that is gone is replaced alone: Ray runs its tasks again elsewhere. The head keeps what the
cluster knows, so without it (and without a store outside) everybody starts over.

    running ──suspend──▶ Suspending ──no pod left──▶ Suspended ──let go──▶ running

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
from unisono.control.job_kinds.pod_limit import made, most_pods, too_many
from unisono.control.job_kinds.ray import api
from unisono.control.job_kinds.ray.groups import HEAD, Group, groups_of
from unisono.control.job_kinds.ray.pods import new_pod, service, service_name
from unisono.control.job_kinds.ray.status import PROVISIONED, SUSPENDED, SUSPENDING, status_of
from unisono.control.jobs.letting_go import is_let_go
from unisono.control.jobs.pods import is_deleting, is_terminal
from unisono.control.jobs.queues import Queues
from unisono.control.view import View
from unisono.kinds.digits import whole_number
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

Pods = Mapping[tuple[str, int], Json]  # by the group's name and the number in it


class RayClusterOperator:
    """Runs Ray clusters."""

    name = "raycluster"
    watches: Sequence[Kind] = (api.CLUSTER, names.POD)
    follows: Kind = api.CLUSTER

    def __init__(self, queues: Queues) -> None:
        """Take what knows which clusters wait to be admitted."""
        self._queues = queues

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A cluster, or a pod of one."""
        return (own_key(obj),) if kind == api.CLUSTER else owner_key(obj, api.CLUSTER)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one cluster a step further."""
        cluster = view.get(api.CLUSTER, key.name, key.namespace)
        if cluster is None or is_deleting(cluster):
            return
        if cluster["spec"].get("managedBy") not in api.OURS:
            return
        groups = groups_of(cluster["spec"])
        owned = view.owned(names.POD, cluster["metadata"]["uid"])
        pods = _sorted(owned)
        conditions = (cluster.get("status") or {}).get("conditions")
        wants_rest = bool(cluster["spec"].get("suspend"))
        if is_true(conditions, SUSPENDING) or (wants_rest and not is_true(conditions, SUSPENDED)):
            yield from self._suspend(cluster, groups, owned, now)
        elif not wants_rest and is_let_go(cluster, api.CLUSTER, self._queues, view):
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
        """Send away who ended or is too many; make whoever is missing."""
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
        is_head = labels.get(api.NODE_TYPE) == HEAD
        name = HEAD if is_head else labels.get(api.GROUP, "").lower()
        index = whole_number((metadata.get("annotations") or {}).get(api.INDEX))
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
