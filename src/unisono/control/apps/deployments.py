"""Replaces the pods of a Deployment step by step: one ReplicaSet for each revision of its template.

    template changed ──▶ a ReplicaSet NAME-HASH (or an old one of the same template)
    RollingUpdate    ──▶ new pods up to replicas + maxSurge, old ones away as far as
                         replicas - maxUnavailable stay available
    Recreate         ──▶ all old pods go, then the new ones come
    done             ──▶ old ReplicaSets stay empty, revisionHistoryLimit of them

A queue may keep the surge pods waiting, and the quota that they wait for may be that of the old
pods. With `maxUnavailable: 0` that would be for ever, so after a while an old pod gives way
(`_stuck`).
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from unisono.control.apps import DEPLOYMENT, REPLICA_SET
from unisono.control.apps.members import (
    controller_uid,
    is_active,
    is_its_own,
    released,
    share_of,
    waits_for_quota,
)
from unisono.control.conditions import find, seconds, timestamp
from unisono.control.controller import Reads, own_key, owner_key
from unisono.control.jobs.pods import is_deleting, is_ready, is_terminal, suffix
from unisono.control.jobs.workload import owner_reference
from unisono.control.view import View
from unisono.kinds.digits import whole_number
from unisono.kinds.upstream_operators import built_in
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MOST = "deployment.kubernetes.io/max-replicas"
# Annotations of a Deployment that are its own, and not those of its ReplicaSets.
_NOT_COPIED = ("kubectl.kubernetes.io/last-applied-configuration", REVISION, _DESIRED, _MOST)
# Seconds for which a surge pod may wait for quota, with nothing else going on, before an old pod
# gives way. Long enough for other workloads to end or to be preempted.
GIVES_WAY_S = 60.0


@dataclass(frozen=True, slots=True)
class _Sets:
    """The ReplicaSets of a Deployment."""

    new: Json | None
    old: Sequence[Json]

    @property
    def all(self) -> Sequence[Json]:
        return [*self.old, *((self.new,) if self.new is not None else ())]


class Deployments:
    """Runs Deployments."""

    name = "deployment"
    watches: Sequence[Kind] = (DEPLOYMENT, REPLICA_SET, names.POD)
    idle_without: Kind = DEPLOYMENT
    reads: Mapping[Kind, Reads] = {names.POD: waits_for_quota}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A Deployment, or a ReplicaSet of one; one without an owner may become one's."""
        if kind == DEPLOYMENT:
            return (own_key(obj),)
        if kind == names.POD:  # one that came, went, or was admitted by its queue
            sets = [view.peek(REPLICA_SET, *_placed(key)) for key in owner_key(obj, REPLICA_SET)]
            return [key for one in sets if one is not None for key in owner_key(one, DEPLOYMENT)]
        if controller_uid(obj):
            return owner_key(obj, DEPLOYMENT)
        found = view.within(DEPLOYMENT, obj["metadata"]["namespace"])
        return [own_key(one) for one in found if is_its_own(one, obj)]

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one Deployment a step further."""
        owner = view.get(DEPLOYMENT, key.name, key.namespace)
        if owner is None or is_deleting(owner):
            return
        if known := built_in(owner):
            yield from _say_built_in(owner, known, now)
            return
        yield from _adopt(owner, view)
        sets = _sets_of(owner, view)
        if sets.new is not None and is_deleting(sets.new):
            return  # its pods may be left to be adopted; once it is gone, there will be another
        if not owner["spec"].get("paused") or sets.new is not None:
            sets = yield from _with_new(owner, sets)
        if owner["spec"].get("paused"):
            yield from _scale_paused(owner, sets)
        elif (owner["spec"].get("strategy") or {}).get("type") == "Recreate":
            yield from _recreate(owner, sets, view)
        else:
            yield from _roll(owner, sets, view, now)
        sets = _sets_of(owner, view)
        yield from _tell(owner, sets, now)
        yield from _forget_old(owner, sets)


def _say_built_in(owner: Json, known: str, now: float) -> Steps:
    """Nothing is started; what waits for it to be available need not wait."""
    old = (owner.get("status") or {}).get("conditions")
    message = f"{known} is built in; no pods are started"
    new = _with(old or (), "Available", "True", "BuiltIn", message, now)
    if new != old:
        generation = owner["metadata"].get("generation", 1)
        status = {"observedGeneration": generation, "conditions": new}
        yield Patch(Ref.to(owner), {"status": status}, "status")


def _placed(key: Key) -> tuple[str, str]:
    return key.name, key.namespace


# ---- ReplicaSets ---------------------------------------------------------------------------------


def _adopt(owner: Json, view: View) -> Steps:
    writes = []
    for one in view.within(REPLICA_SET, owner["metadata"]["namespace"]):
        uid = controller_uid(one)
        if not uid and is_its_own(owner, one) and not is_deleting(one):
            owners = [*(one["metadata"].get("ownerReferences") or ()), owner_reference(owner)]
            writes.append(Patch(Ref.to(one), {"metadata": {"ownerReferences": owners}}))
        elif uid == owner["metadata"]["uid"] and not is_its_own(owner, one):
            writes.append(released(owner, one))
    if writes:
        yield Together(writes)


def _sets_of(owner: Json, view: View) -> _Sets:
    owned = [
        one for one in view.owned(REPLICA_SET, owner["metadata"]["uid"]) if is_its_own(owner, one)
    ]
    owned.sort(key=lambda one: (_created(one), one["metadata"]["name"]))
    wanted = _plain(owner["spec"]["template"])
    new = next((one for one in owned if _plain(one["spec"]["template"]) == wanted), None)
    return _Sets(new, [one for one in owned if one is not new and not is_deleting(one)])


def _created(obj: Json) -> float:
    return seconds(obj["metadata"].get("creationTimestamp") or "")


def _plain(template: Json) -> Json:
    """Return a template without the label that tells its revisions apart."""
    metadata = template.get("metadata") or {}
    labels = {key: text for key, text in (metadata.get("labels") or {}).items() if key != HASH}
    annotations = metadata.get("annotations") or {}
    return {"labels": labels, "annotations": annotations, "spec": template.get("spec")}


def _revision(obj: Json) -> int:
    return whole_number((obj["metadata"].get("annotations") or {}).get(REVISION, "")) or 0


def _with_new(owner: Json, sets: _Sets) -> Generator[Action, Any, _Sets]:
    """Return the sets with that of the present template, made or brought forward."""
    last = max(map(_revision, sets.old), default=0)
    copied = {
        key: text
        for key, text in (owner["metadata"].get("annotations") or {}).items()
        if key not in _NOT_COPIED
    }
    new = sets.new
    if new is None:
        new = yield Create(_replica_set(owner, copied, last + 1))
        name = new["metadata"]["name"]
        count = new["spec"].get("replicas", 0)
        message = f"Scaled up replica set {name} from 0 to {count}"
        if count:
            yield Note(Ref.to(owner), "ScalingReplicaSet", message)
    number = max(last + 1, 1) if _revision(new) <= last else _revision(new)
    wanted = {**copied, REVISION: str(number)}
    held = new["metadata"].get("annotations") or {}
    least = owner["spec"].get("minReadySeconds") or 0
    if wanted.items() - held.items() or (new["spec"].get("minReadySeconds") or 0) != least:
        changed = {"metadata": {"annotations": wanted}, "spec": {"minReadySeconds": least}}
        new = yield Patch(Ref.to(new), changed)
    said = (owner["metadata"].get("annotations") or {}).get(REVISION)
    if said != str(number):
        changes = {"metadata": {"annotations": {REVISION: str(number)}}}
        yield Patch(Ref.to(owner), changes, exact=False)
    return _Sets(new, sets.old)


def _replica_set(owner: Json, annotations: Json, revision: int) -> Json:
    metadata, spec = owner["metadata"], owner["spec"]
    template = spec["template"]
    text = json.dumps(_plain(template), sort_keys=True)
    # Of the template alone: a set that is made anew selects the pods that the last one left behind.
    label = suffix(text) + suffix("more", text)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: label}
    selector = dict(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: label}
    is_first = spec.get("strategy", {}).get("type") != "Recreate"
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name'][:242]}-{label}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {**annotations, **_bounds(owner), REVISION: str(revision)},
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {
            # The first revision begins whole; every other one is scaled up step by step.
            "replicas": _wanted(owner) if is_first and revision == 1 else 0,
            "minReadySeconds": spec.get("minReadySeconds") or 0,
            "selector": selector,
            "template": {
                **template,
                "metadata": {**(template.get("metadata") or {}), "labels": labels},
            },
        },
    }


def _forget_old(owner: Json, sets: _Sets) -> Steps:
    """Delete the oldest of the empty sets beyond the history limit."""
    limit = owner["spec"].get("revisionHistoryLimit", 10)
    empty = [
        one
        for one in sets.old
        if not one["spec"].get("replicas") and not (one.get("status") or {}).get("replicas")
    ]
    empty.sort(key=_revision)
    surplus = empty[: max(0, len(empty) - limit)]
    if surplus:
        yield Together([Delete(Ref.to(one)) for one in surplus])


# ---- scaling -------------------------------------------------------------------------------------


def _wanted(owner: Json) -> int:
    return int(owner["spec"].get("replicas", 1))


def _size(one: Json | None) -> int:
    return int(one["spec"].get("replicas", 0)) if one is not None else 0


def _there(one: Json) -> int:
    return int((one.get("status") or {}).get("replicas", 0))


def _available(one: Json) -> int:
    return int((one.get("status") or {}).get("availableReplicas", 0))


def _scaled(owner: Json, one: Json, size: int) -> Steps:
    before = _size(one)
    desired = _bounds(owner)
    annotations = one["metadata"].get("annotations") or {}
    if before == size and not desired.items() - annotations.items():
        return
    changes: Json = {"metadata": {"annotations": desired}, "spec": {"replicas": size}}
    yield Patch(Ref.to(one), changes)
    if before != size:
        way = "up" if size > before else "down"
        name = one["metadata"]["name"]
        message = f"Scaled {way} replica set {name} from {before} to {size}"
        yield Note(Ref.to(owner), "ScalingReplicaSet", message)


def _bounds(owner: Json) -> Json:
    return {_DESIRED: str(_wanted(owner)), _MOST: str(_wanted(owner) + _surge(owner))}


def _rolling(owner: Json) -> Json:
    return (owner["spec"].get("strategy") or {}).get("rollingUpdate") or {}


def _surge(owner: Json) -> int:
    if (owner["spec"].get("strategy") or {}).get("type") == "Recreate":
        return 0
    return share_of(_rolling(owner).get("maxSurge", "25%"), _wanted(owner), rounds_up=True)


def _unavailable(owner: Json) -> int:
    """Return how many pods may be missing; at least one where there may be no surge either."""
    value = _rolling(owner).get("maxUnavailable", "25%")
    found = share_of(value, _wanted(owner), rounds_up=False)
    if not found and not _surge(owner):
        return 1
    return min(found, _wanted(owner))


def _scale_paused(owner: Json, sets: _Sets) -> Steps:
    """No new revision is rolled out; what changes the number goes to the newest set with pods."""
    busy = [one for one in sets.all if _size(one)]
    if len(busy) > 1:
        return  # stopped half way: both keep what they have
    target = busy[0] if busy else sets.new
    if target is not None:
        yield from _scaled(owner, target, _wanted(owner))


def _recreate(owner: Json, sets: _Sets, view: View) -> Steps:
    for one in sets.old:
        if _size(one):
            yield from _scaled(owner, one, 0)
    left = [
        pod
        for one in sets.old
        for pod in view.owned(names.POD, one["metadata"]["uid"])
        if not is_terminal(pod)
    ]
    # A pod that is being deleted still holds its node and its quota: its end brings us back.
    if not left and sets.new is not None:
        yield from _scaled(owner, sets.new, _wanted(owner))


def _roll(owner: Json, sets: _Sets, view: View, now: float) -> Steps:
    new, wanted = sets.new, _wanted(owner)
    assert new is not None, "a Deployment that is not paused has a set for its template"
    total = sum(map(_size, sets.all))
    if _size(new) > wanted:
        yield from _scaled(owner, new, wanted)
        return
    room = wanted + _surge(owner) - total
    if _size(new) < wanted and room > 0:
        yield from _scaled(owner, new, min(wanted, _size(new) + room))
        return
    yield from _scaled(owner, new, _size(new))  # its annotations
    if not any(map(_size, sets.old)):
        return
    least = wanted - _unavailable(owner)
    surplus = total - least - (_size(new) - _available(new))
    if surplus > 0:
        # Old pods that are not available serve nothing: they go first.
        for one in sets.old:
            idle = min(surplus, _size(one) - _available(one))
            if idle > 0:
                yield from _scaled(owner, one, _size(one) - idle)
                return
    may_go = sum(map(_available, sets.all)) - least
    if may_go <= 0:
        may_go = yield from _stuck(owner, sets, view, now)
    for one in sets.old:
        down = min(may_go, _size(one))
        if down > 0:
            yield from _scaled(owner, one, _size(one) - down)
            may_go -= down


def _stuck(owner: Json, sets: _Sets, view: View, now: float) -> Generator[Action, Any, int]:
    """Return how many old pods give way though none may be missing: one, or none.

    The new pods wait for quota which only the end of an old pod would free.
    """
    assert sets.new is not None
    pods = [one for one in view.owned(names.POD, sets.new["metadata"]["uid"]) if is_active(one)]
    waiting = [pod for pod in pods if waits_for_quota(pod)]
    if not waiting or any(not is_ready(pod) for pod in pods if pod not in waiting):
        return 0
    due = max(map(_created, waiting)) + GIVES_WAY_S
    if now < due:
        yield Again(due)
        return 0
    if any(not is_active(pod) for one in sets.old for pod in _pods(one, view)):
        return 0  # one is on its way out; its quota is not free before it is gone
    message = (
        f"{len(waiting)} new pods wait for quota and maxUnavailable lets no old pod go: one gives"
        " way, or the rollout would wait for ever"
    )
    yield Note(Ref.to(owner), "GivingWay", message, "Warning")
    return 1


def _pods(one: Json, view: View) -> Sequence[Json]:
    return view.owned(names.POD, one["metadata"]["uid"])


# ---- status --------------------------------------------------------------------------------------


def _tell(owner: Json, sets: _Sets, now: float) -> Steps:
    old = owner.get("status") or {}
    replicas = sum(map(_there, sets.all))
    updated = _there(sets.new) if sets.new is not None else 0
    ready = sum(int((one.get("status") or {}).get("readyReplicas", 0)) for one in sets.all)
    available = sum(map(_available, sets.all))
    wanted = _wanted(owner)
    counts = {
        "observedGeneration": owner["metadata"].get("generation", 1),
        "replicas": replicas,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(_size, sets.all)) - available),
    }
    is_done = (
        updated == wanted
        and replicas == wanted
        and available == wanted
        and (sets.new is None or _observed(sets.new))
    )
    conditions = _conditions(owner, sets, counts, is_done=is_done, now=now)
    changed = {field: value or None for field, value in counts.items()}
    is_same = all(old.get(field) == value for field, value in changed.items())
    if not is_same or old.get("conditions") != conditions:
        yield Patch(Ref.to(owner), {"status": {**changed, "conditions": conditions}}, "status")
    progressing = find(conditions, "Progressing")
    deadline = owner["spec"].get("progressDeadlineSeconds")
    if not is_done and progressing is not None and progressing["status"] == "True" and deadline:
        yield Again(seconds(progressing["lastUpdateTime"]) + deadline)


def _observed(one: Json) -> bool:
    return bool(
        (one.get("status") or {}).get("observedGeneration") == one["metadata"]["generation"]
    )


def _conditions(owner: Json, sets: _Sets, counts: Json, *, is_done: bool, now: float) -> list[Json]:
    old = owner.get("status") or {}
    conditions = list(old.get("conditions") or ())
    is_enough = counts["availableReplicas"] >= _wanted(owner) - _unavailable(owner)
    conditions = _with(
        conditions,
        "Available",
        str(is_enough),
        "MinimumReplicasAvailable" if is_enough else "MinimumReplicasUnavailable",
        f"Deployment {'has' if is_enough else 'does not have'} minimum availability.",
        now,
    )
    before = find(conditions, "Progressing")
    name = sets.new["metadata"]["name"] if sets.new is not None else ""
    if owner["spec"].get("paused"):
        return _with(
            conditions, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now
        )
    if is_done:
        message = f'ReplicaSet "{name}" has successfully progressed.'
        return _with(conditions, "Progressing", "True", "NewReplicaSetAvailable", message, now)
    moved = before is None or any(
        (old.get(field) or 0) < counts[field]
        for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    if old.get("observedGeneration") != counts["observedGeneration"] or moved:
        message = f'ReplicaSet "{name}" is progressing.'
        return _with(
            conditions, "Progressing", "True", "ReplicaSetUpdated", message, now, is_news=True
        )
    deadline = owner["spec"].get("progressDeadlineSeconds")
    may_be_late = deadline and before is not None and before["status"] == "True"
    if may_be_late and _updated(before) + deadline <= now:
        message = f'ReplicaSet "{name}" has timed out progressing.'
        return _with(conditions, "Progressing", "False", "ProgressDeadlineExceeded", message, now)
    return conditions


def _updated(condition: Json | None) -> float:
    return seconds((condition or {}).get("lastUpdateTime") or "")


def _with(
    conditions: Sequence[Json],
    kind: str,
    word: str,
    reason: str,
    message: str,
    now: float,
    *,
    is_news: bool = False,
) -> list[Json]:
    """Return conditions with one set; those of Deployments have the time of the last news, too."""
    old = find(conditions, kind)
    same = old is not None and (old["status"], old["reason"]) == (word, reason)
    if old is not None and same and not is_news and old.get("message") == message:
        return list(conditions)
    moved = old is None or old["status"] != word
    new = {
        "type": kind,
        "status": word,
        "reason": reason,
        "message": message,
        "lastUpdateTime": timestamp(now),
        "lastTransitionTime": timestamp(now) if old is None or moved else old["lastTransitionTime"],
    }
    return [*(one for one in conditions if one is not old), new]
