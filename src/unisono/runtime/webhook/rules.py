"""What the webhooks answer: the rules of `runtime.admission`, for one AdmissionReview at a time.

About tenancy the server asks only if the author of an object has no right to decide
(`runtime.webhook.conditions`), so what is left to say is what is wrong with it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unisono.apiserver.access.reserved_fields import claims, decision_written, new_owners
from unisono.apiserver.admission.priority_class_rules import class_of_others
from unisono.apiserver.request import User
from unisono.control.names import QUEUE_LABEL
from unisono.control.pod_gangs.controller import GATE as QUEUE_GATE
from unisono.control.pod_gangs.membership import MANAGED
from unisono.kinds.core.pod_groups import GROUP_NAME
from unisono.kinds.known import wrong_with
from unisono.kinds.policy.schema import PriorityClassRule
from unisono.kinds.policy.settings import Settings
from unisono.kube.form import Json
from unisono.runtime.admission.policies import (
    BY_RUN_POLICY,
    BY_SPEC,
    CARRIED,
    CHANGED_QUEUE,
    NO_NAME,
    OWNERS,
    QUEUE_NAME,
    SETS,
    pod_gates,
)

HOLD, JUDGE, INTAKE = "/hold", "/judge", "/intake"
TENANCY, OWNERS_CLAIMED = "/tenancy", "/owners"
PATHS = (HOLD, JUDGE, INTAKE, TENANCY, OWNERS_CLAIMED)

_UNPROCESSABLE, _FORBIDDEN = 422, 403
_SPEC = {(group, plural) for group, _, plurals in BY_SPEC for plural in plurals}
_RUN_POLICY = {(group, plural) for group, _, plurals in BY_RUN_POLICY for plural in plurals}
_SETS = {(group, plural) for group, _, plurals in SETS for plural in plurals}
_PODS = ("", "pods")
_NAME = re.compile(QUEUE_NAME)


def answer(
    path: str, review: Mapping[str, Any], class_rules: Sequence[PriorityClassRule] = ()
) -> Json:
    """Return the AdmissionReview that answers one; `path` says which webhook was asked."""
    request = review["request"]
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], **_ANSWERS[path](request, class_rules)},
    }


def _held(request: Json, _: Sequence[PriorityClassRule]) -> Json:
    operations = hold(request)
    if not operations:
        return {"allowed": True}
    packed = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": packed}


def _judged(request: Json, _: Sequence[PriorityClassRule]) -> Json:
    return _refused(refusal(request), _UNPROCESSABLE, "Invalid")


def _taken_in(request: Json, _: Sequence[PriorityClassRule]) -> Json:
    return _refused(wrong_with(request.get("object") or {}), _UNPROCESSABLE, "Invalid")


def _of_others(request: Json, class_rules: Sequence[PriorityClassRule]) -> Json:
    """Refuse a decision that is the scheduler's, and a class that is not for the author."""
    new, old = request.get("object") or {}, request.get("oldObject")
    info = request["userInfo"]
    user = User(name=str(info.get("username", "")), groups=tuple(info.get("groups") or ()))
    why = decision_written(new, old or {}) or class_of_others(
        Settings(priority_classes=tuple(class_rules)), user, new, old
    )
    return _refused(why, _FORBIDDEN, "Forbidden")


def _claimed(request: Json, _: Sequence[PriorityClassRule]) -> Json:
    owners = new_owners(request.get("object") or {}, request.get("oldObject") or {})
    return _refused(next(map(claims, owners), ""), _FORBIDDEN, "Forbidden")


def _refused(why: str, code: int, reason: str) -> Json:
    if not why:
        return {"allowed": True}
    return {"allowed": False, "status": {"code": code, "reason": reason, "message": why}}


_ANSWERS: Mapping[str, Callable[[Json, Sequence[PriorityClassRule]], Json]] = {
    HOLD: _held,
    JUDGE: _judged,
    INTAKE: _taken_in,
    TENANCY: _of_others,
    OWNERS_CLAIMED: _claimed,
}


def hold(request: Json) -> list[Json]:
    """Return the JSON patch that holds a new job or pod of a queue back until it is admitted.

    What keeps pods running hands its queue on to them instead, whenever it is written.
    """
    obj = request.get("object") or {}
    if not _queue_of(obj) or _has_job_above(obj):
        return []
    resource = _resource(request)
    if resource in _SETS:
        return _carried(obj)
    if request.get("operation") != "CREATE":
        return []
    spec = obj.get("spec") or {}
    if resource == _PODS:
        return [] if spec.get("nodeName") else _gated(obj["metadata"], spec)
    if resource in _SPEC:
        return _set(obj, ("spec", "suspend"))
    if resource in _RUN_POLICY:
        return _set(obj, ("spec", "runPolicy", "suspend"))
    return []


def _carried(obj: Json) -> list[Json]:
    """Return what puts the labels of an object on the template of its pods."""
    place, path = obj, ("spec", "template", "metadata", "labels")
    made: list[Json] = []
    for depth, word in enumerate(path):
        if not isinstance(place.get(word), dict):
            made.append({"op": "add", "path": _pointer(*path[: depth + 1]), "value": {}})
            place = {}
        else:
            place = place[word]
    for label in CARRIED:
        text = (obj["metadata"].get("labels") or {}).get(label)
        if text and place.get(label) != text:
            made.append({"op": "add", "path": _pointer(*path, label), "value": text})
    return made


def _set(obj: Json, path: tuple[str, ...]) -> list[Json]:
    """Return what makes a flag true, with whatever is missing on the way to it."""
    place: Any = obj
    value: Any = True
    for depth, word in enumerate(path):
        if word not in place:
            for inner in reversed(path[depth + 1 :]):
                value = {inner: value}
            return [{"op": "add", "path": _pointer(*path[: depth + 1]), "value": value}]
        place = place[word]
    return [] if place is True else [{"op": "replace", "path": _pointer(*path), "value": True}]


def _gated(metadata: Json, spec: Json) -> list[Json]:
    made: list[Json] = []
    if metadata["labels"].get(MANAGED) != "true":
        path = _pointer("metadata", "labels", MANAGED)
        made.append({"op": "add", "path": path, "value": "true"})
    there = spec.get("schedulingGates") or []
    names = {one["name"] for one in there}
    gates = [{"name": one} for one in pod_gates(spec) if one not in names]
    if gates:
        path = _pointer("spec", "schedulingGates")
        made.append({"op": "add", "path": path, "value": [*there, *gates]})
    finalizers = metadata.get("finalizers") or []
    # Pods of a group are counted even when they are over; our controllers let them go in the end.
    if GROUP_NAME in metadata["labels"] and MANAGED not in finalizers:
        path = _pointer("metadata", "finalizers")
        made.append({"op": "add", "path": path, "value": [*finalizers, MANAGED]})
    return made


def refusal(request: Json) -> str:
    """Return why a job may not be written like this; empty if it may."""
    new, old = request.get("object") or {}, request.get("oldObject") or {}
    queue, before = _queue_of(new), _queue_of(old)
    if queue and not _NAME.match(queue):
        return NO_NAME
    if before and before != queue and not _is_held(_resource(request), old.get("spec") or {}):
        return CHANGED_QUEUE
    if _resource(request) != _PODS and new.get("spec") != old.get("spec"):
        return wrong_with(new)  # of pods the API server finds it out by itself
    return ""


def _is_held(resource: tuple[str, str], spec: Json) -> bool:
    if resource == _PODS:
        return any(one["name"] == QUEUE_GATE for one in spec.get("schedulingGates") or ())
    if resource in _RUN_POLICY:
        spec = spec.get("runPolicy") or {}
    return spec.get("suspend") is True


def _queue_of(obj: Json) -> str:
    labels = (obj.get("metadata") or {}).get("labels") or {}
    return str(labels.get(QUEUE_LABEL) or "")


def _has_job_above(obj: Json) -> bool:
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one["kind"] in OWNERS for one in owners)


def _resource(request: Json) -> tuple[str, str]:
    return request["resource"]["group"], request["resource"]["resource"]


def _pointer(*words: str) -> str:
    return "".join(f"/{one.replace('~', '~0').replace('/', '~1')}" for one in words)
