"""The kinds of jobs, and where each keeps whether it is held back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from unisono.apiserver.builtin.fields import at, child, items
from unisono.apiserver.objects import Json
from unisono.apiserver.strategy import Context
from unisono.kinds.known import KNOWN
from unisono.kinds.registry import Kind
from unisono.kinds.shapes.served import Served, served_kinds

GATE = "kueue.x-k8s.io/admission"
PODS = "/pods"

_RUN_POLICY = ("spec", "runPolicy", "suspend")
_SPEC = ("spec", "suspend")
# A Volcano job has no such field; its pods are withheld instead.
SUSPEND_FIELDS: Mapping[str, tuple[str, ...]] = {
    "batch/jobs": _SPEC,
    "jobset.x-k8s.io/jobsets": _SPEC,
    "trainer.kubeflow.org/trainjobs": _SPEC,
    "ray.io/rayclusters": _SPEC,
    "ray.io/rayjobs": _SPEC,
    "kubeflow.org/jaxjobs": _RUN_POLICY,
    "kubeflow.org/mpijobs": _RUN_POLICY,
    "kubeflow.org/paddlejobs": _RUN_POLICY,
    "kubeflow.org/pytorchjobs": _RUN_POLICY,
    "kubeflow.org/tfjobs": _RUN_POLICY,
    "kubeflow.org/xgboostjobs": _RUN_POLICY,
}


def job_kind(served: Served) -> Kind | None:
    """Return the typed manifest of a kind of which one object is one workload, or None."""
    kind = KNOWN.kinds.get((served.api_version, served.kind))
    return kind if kind is not None and kind.job is not None else None


def suspend(key: str, obj: Json) -> None:
    """Hold a job back."""
    *parents, last = SUSPEND_FIELDS[key]
    at_ = obj
    for name in parents:
        at_ = child(at_, name)
    at_[last] = True


def is_held(key: str, obj: Json) -> bool:
    """Say whether a job is suspended, or a pod has our gate."""
    if key == PODS:
        return any(gate.get("name") == GATE for gate in items(at(obj, "spec"), "schedulingGates"))
    *parents, last = SUSPEND_FIELDS[key]
    return at(obj, *parents).get(last) is True


@cache
def _keys() -> Mapping[tuple[str, str], str]:
    """Find where objects of a job kind are stored by what an owner reference says of them."""
    return {
        (served.api_version, served.kind): served.key
        for served in served_kinds()
        if job_kind(served) is not None
    }


@cache
def _keys_of(keys: tuple[str, ...]) -> Mapping[tuple[str, str], str]:
    """Find the same of some kinds that are no jobs."""
    return {(one.api_version, one.kind): one.key for one in served_kinds() if one.key in keys}


def managed_owner(obj: Json, context: Context) -> Mapping[str, Any] | None:
    """Return the job that an object belongs to; what is decided about that one counts for it."""
    return controlling_owner(obj, context)


def controlling_owner(
    obj: Json, context: Context, more: tuple[str, ...] = ()
) -> Mapping[str, Any] | None:
    """Return the job that an object belongs to, or an owner of some more kinds, by their keys."""
    metadata = at(obj, "metadata")
    for owner in items(metadata, "ownerReferences"):
        named = str(owner.get("apiVersion")), str(owner.get("kind"))
        key = _keys().get(named) or _keys_of(more).get(named)
        if key is not None and owner.get("controller") is True:
            found = context.find(key, str(metadata.get("namespace")), str(owner.get("name")))
            if found is not None:
                return found
    return None
