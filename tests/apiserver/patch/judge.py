"""Our answer to a step of a story, held against a real server's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.apiserver.patch.gadgets import API_VERSION, GADGET, filled
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json, copied
from unisono.apiserver.patch.apply import apply
from unisono.apiserver.patch.json_patch import json_patch, merge_patch
from unisono.apiserver.patch.managed_fields import record_update
from unisono.apiserver.patch.strategic import strategic_merge
from unisono.kinds.shapes.served import served_kinds

DEPLOYMENT = next(kind.shape for kind in served_kinds() if kind.kind == "Deployment")
_SERVER_KEEPS = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "namespace",
        "resourceVersion",
        "uid",
    }
)
# What a real server fills into a Deployment; nothing else may be missing from ours.
_DEFAULTS = frozenset(
    {
        "apiVersion",
        "defaultMode",
        "dnsPolicy",
        "emptyDir",
        "imagePullPolicy",
        "maxSurge",
        "maxUnavailable",
        "progressDeadlineSeconds",
        "protocol",
        "replicas",
        "resources",
        "restartPolicy",
        "revisionHistoryLimit",
        "rollingUpdate",
        "schedulerName",
        "securityContext",
        "status",
        "strategy",
        "terminationGracePeriodSeconds",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "type",
    }
)


def check_gadget(step: Json, live: Json | None, code: int, theirs: Json) -> None:
    """Fail unless we would have answered the same."""
    before = copied(live)
    try:
        ours = _gadget_after(step, live, _newest(theirs))
    except ApiError as refusal:
        _check_refusal(refusal, code, theirs)
    else:
        if code == 422:
            # A real server cannot empty an object of a custom resource: it becomes null.
            assert "null" in theirs["message"]
        else:
            assert code < 300, f"{theirs['message']}, but we say {ours}"
            _check_same(ours, theirs)
    assert live == before


def _gadget_after(step: Json, live: Json | None, now: float) -> Json:
    op, body = step["op"], step["body"]
    options: Json = {
        "manager": step["manager"],
        "api_version": API_VERSION,
        "now": now,
        "shape": GADGET,
        "subresource": "status" if "status" in op else "",
    }
    if op in ("apply", "force", "apply-status"):
        return filled(apply(live, body, force=op != "apply", **options))
    if op == "create" or live is None:
        ours = filled(copied(body))
    elif op == "put":
        ours = filled({**copied(body), **({"status": live["status"]} if "status" in live else {})})
    elif op == "json":
        ours = filled(json_patch(live, body))
    elif op == "status":
        ours = merge_patch(live, {"status": body["status"]})
    else:
        ours = filled(merge_patch(live, body))
    record_update(live, ours, **options)
    return ours


def check_deployment(step: Json, live: Json | None, code: int, theirs: Json) -> None:
    """Fail unless we would own the same fields, and applying does the same to the object."""
    before = copied(live)
    options: Json = {
        "manager": step["manager"],
        "api_version": "apps/v1",
        "now": _newest(theirs),
        "shape": DEPLOYMENT,
        "subresource": "",
    }
    if step["op"] in ("apply", "force"):
        try:
            ours = apply(live, step["body"], force=step["op"] == "force", **options)
        except ApiError as refusal:
            _check_refusal(refusal, code, theirs)
        else:
            if code < 300:
                assert ours["metadata"].get("managedFields") == _entries(theirs)
                check_all_but_defaults(_shared(ours), _shared(theirs))
            else:
                assert code == 422  # validation is not ours
    elif code < 300:
        # What the server made of the rest is for others to test.
        after = copied(theirs)
        after["metadata"].pop("managedFields", None)
        record_update(live, after, **options)
        assert after["metadata"].get("managedFields") == _entries(theirs)
    assert live == before


def check_strategic(patch: Json, target: Json, code: int, theirs: Json) -> None:
    """Fail unless our strategic merge leaves the same behind."""
    # The server validates too, and stumbles over empty lists.
    assert code in (200, 422, 500)
    ours = strategic_merge(target, patch, DEPLOYMENT)
    if code == 200:
        check_all_but_defaults(_shared(ours), _shared(theirs))


def _check_refusal(refusal: ApiError, code: int, theirs: Json) -> None:
    assert refusal.code == code, f"we say {refusal.message}"
    ours = sorted((cause.message, cause.field) for cause in refusal.causes)
    causes = theirs["details"]["causes"]
    assert ours == sorted((cause["message"], cause["field"]) for cause in causes)
    assert refusal.message.splitlines()[0] == theirs["message"].splitlines()[0] or len(ours) > 1


def _check_same(ours: Json, theirs: Json) -> None:
    assert ours["metadata"].get("managedFields") == _entries(theirs)
    mine, real = _shared(ours), _shared(theirs)
    if "spec" in mine and "spec" in real:
        mine["spec"] = _with_their_nulls(mine["spec"], real["spec"])
    assert mine == real


def _with_their_nulls(ours: Any, theirs: Any) -> Any:
    """A real server leaves null or nothing where it emptied an object; ours stays, empty."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {
            name: _with_their_nulls(value, theirs.get(name))
            for name, value in ours.items()
            if name in theirs or value not in ({}, [])
        }
    return None if theirs is None and ours in ({}, []) else ours


def check_all_but_defaults(ours: Any, theirs: Any, path: str = "") -> None:
    """Fail if two values differ by more than defaults and empty values, which structs leave out."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours.keys() | theirs.keys():
            if name not in theirs:
                assert _is_empty(ours[name]), f"{path}.{name} should be gone"
            elif name not in ours:
                assert name in _DEFAULTS, f"{path}.{name} is missing"
            else:
                check_all_but_defaults(ours[name], theirs[name], f"{path}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list):
        assert len(ours) == len(theirs), f"{path}: {ours}, not {theirs}"
        for number, (mine, real) in enumerate(zip(ours, theirs, strict=True)):
            check_all_but_defaults(mine, real, f"{path}[{number}]")
    else:
        assert ours == theirs or (ours is None and not theirs), f"{path}: {ours}, not {theirs}"


def _is_empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_empty(below) for below in value.values())
    return value is None or value in ([], "")


def _shared(obj: Json) -> Json:
    """Return an object without what the server alone keeps."""
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name not in _SERVER_KEEPS and name != "managedFields" and value
    }
    return {**obj, "metadata": metadata}


def _entries(obj: Json) -> Any:
    return obj["metadata"].get("managedFields")


def _newest(obj: Json) -> float:
    """Return when a step was made: the newest time that its answer shows."""
    entries = obj.get("metadata", {}).get("managedFields") or ()
    times = [datetime.fromisoformat(entry["time"]) for entry in entries if "time" in entry]
    return max(times).timestamp() if times else 0.0
