"""Keeps so many pods of one template: ReplicaSets and ReplicationControllers.

fewer pods than replicas ──▶ created; names follow from the set and a number that is free
more                     ──▶ those are deleted that do least (`members.goes_before`)
a pod that ended         ──▶ does not count; the last few are kept to be looked at
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from unisono.control import names
from unisono.control.actions import (
    Action,
    Again,
    Create,
    Delete,
    Json,
    Note,
    Patch,
    Ref,
    Steps,
    Together,
)
from unisono.control.apps import REPLICA_SET, REPLICATION_CONTROLLER
from unisono.control.apps.adoption import adopt
from unisono.control.apps.members import (
    available_at,
    goes_before,
    is_active,
    is_available,
    is_its_own,
    may_wait,
    read_of_pod,
    released,
)
from unisono.control.conditions import seconds
from unisono.control.controller import Reads, own_key, owner_key
from unisono.control.jobs.pods import (
    AT_ONCE,
    is_deleting,
    is_ready,
    is_terminal,
    most_pods,
    pod_from,
    pod_name,
    too_many,
)
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# Pods that ended (evicted by a node, lost with it) are kept for people, but not without end.
_ENDED_KEPT = 3


class ReplicaSets:
    """Runs the sets of one kind."""

    def __init__(self, kind: Kind) -> None:
        """Take the kind: both have the same fields."""
        self._kind = kind
        self.name = kind.kind.lower()
        self.watches: Sequence[Kind] = (kind, names.POD)
        self.owner_kind: Kind = kind
        self.idle_without: Kind = kind
        self.reads: Mapping[Kind, Reads] = {names.POD: read_of_pod}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A set, or a pod of one."""
        return (own_key(obj),) if kind == self._kind else owner_key(obj, self._kind)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Create what is missing, delete what is too much, count."""
        owner = view.get(self._kind, key.name, key.namespace)
        if owner is None or is_deleting(owner):
            return
        yield from adopt(owner, view)
        owned = view.owned(names.POD, owner["metadata"]["uid"])
        foreign = [pod for pod in owned if not is_its_own(owner, pod) and not is_deleting(pod)]
        if foreign:
            yield Together([released(owner, pod) for pod in foreign])
        pods = [pod for pod in owned if pod not in foreign]
        yield from _tidy(pods)
        active = [pod for pod in pods if is_active(pod)]
        wanted = int(owner["spec"].get("replicas", 1))
        if len(active) > wanted:
            active = yield from _fewer(owner, active, wanted)
        elif len(active) < wanted:
            yield from _more(owner, active, wanted, view, now)
            owned = view.owned(names.POD, owner["metadata"]["uid"])
            active = [pod for pod in owned if is_active(pod) and is_its_own(owner, pod)]
        yield from _tell(owner, active, now)


def _tidy(pods: Sequence[Json]) -> Steps:
    ended = [pod for pod in pods if is_terminal(pod) and not is_deleting(pod)]
    ended.sort(key=lambda pod: seconds(pod["metadata"].get("creationTimestamp") or ""))
    if len(ended) > _ENDED_KEPT:
        yield Together([Delete(Ref.to(pod), grace=0) for pod in ended[:-_ENDED_KEPT]])


def _fewer(owner: Json, active: Sequence[Json], wanted: int) -> Generator[Action, Any, list[Json]]:
    surplus = goes_before(active)[: len(active) - wanted][:AT_ONCE]
    yield Together([Delete(Ref.to(pod)) for pod in surplus])
    for pod in surplus:
        name = pod["metadata"]["name"]
        yield Note(Ref.to(owner), "SuccessfulDelete", f"Deleted pod: {name}")
    return [pod for pod in active if pod not in surplus]


def _more(owner: Json, active: Sequence[Json], wanted: int, view: View, now: float) -> Steps:
    template = owner["spec"].get("template") or {}
    room = most_pods(owner, wanted, (template,), view)
    if room < wanted:
        yield from too_many(owner, wanted, view, now)
    missing = min(room - len(active), may_wait(template, active), AT_ONCE)
    metadata = owner["metadata"]
    made: list[Json] = []
    for number in count():
        if len(made) >= missing:
            break
        name = pod_name(metadata["name"], metadata["uid"], number)
        if view.raw(names.POD, name, metadata["namespace"]) is None:
            made.append(pod_from(template, owner, name))
    if not made:
        return
    yield Together([Create(pod) for pod in made])
    for pod in made:
        name = pod["metadata"]["name"]
        yield Note(Ref.to(owner), "SuccessfulCreate", f"Created pod: {name}")
    if missing == AT_ONCE:
        yield Again(now)


def _tell(owner: Json, active: Sequence[Json], now: float) -> Steps:
    """Write the counts if they changed, and come back when a pod becomes available."""
    least = float(owner["spec"].get("minReadySeconds") or 0)
    labels = ((owner["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
    status = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(
            labels.items() <= (pod["metadata"].get("labels") or {}).items() for pod in active
        ),
        "readyReplicas": sum(map(is_ready, active)),
        "availableReplicas": sum(is_available(pod, least, now) for pod in active),
        "observedGeneration": owner["metadata"].get("generation", 1),
    }
    old = owner.get("status") or {}
    if any(old.get(field, 0) != value for field, value in status.items()):
        # `replicas` is always there, as in Kubernetes; the others only when they are above zero.
        changed = {
            field: value if value or field == "replicas" else None
            for field, value in status.items()
        }
        yield Patch(Ref.to(owner), {"status": changed}, "status")
    at = available_at(active, least, now)
    if at is not None:
        yield Again(at)


KINDS = (REPLICA_SET, REPLICATION_CONTROLLER)
