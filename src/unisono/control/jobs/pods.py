"""Pods made from a template: named, owned, numbered; the same every time they are made."""

from __future__ import annotations

import hashlib

from unisono.control.actions import Json
from unisono.control.jobs.workload import owner_reference

# The letters that Kubernetes puts behind generated names.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_NAME = 63


def suffix(*why: object) -> str:
    """Return five letters that follow from why a pod exists, so that twice is once.

    >>> suffix("uid", 0, 1) == suffix("uid", 0, 1), len(suffix("uid"))
    (True, 5)
    """
    digest = hashlib.sha256("/".join(map(str, why)).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])


def pod_from(
    template: Json,
    owner: Json,
    name: str,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    finalizers: list[str] | None = None,
) -> Json:
    """Return a pod of a template that belongs to an owner."""
    written = template.get("metadata") or {}
    metadata: Json = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(written.get("labels") or {}), **(labels or {})},
        "annotations": {**(written.get("annotations") or {}), **(annotations or {})},
        "ownerReferences": [owner_reference(owner)],
    }
    if finalizers:
        metadata["finalizers"] = finalizers
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": dict(template.get("spec") or {}),
    }


def pod_name(base: str, *why: object) -> str:
    """Return a pod's name: a base, cut to fit, and five letters."""
    ending = suffix(*why)
    return f"{base[: _LONGEST_NAME - len(ending) - 1]}-{ending}"


def phase_of(pod: Json) -> str:
    """Return a pod's phase."""
    return str((pod.get("status") or {}).get("phase", "Pending"))


def is_ready(pod: Json) -> bool:
    """Say whether a pod is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_deleting(obj: Json) -> bool:
    """Say whether an object is on its way out."""
    return "deletionTimestamp" in obj["metadata"]


def is_terminal(pod: Json) -> bool:
    """Say whether a pod has ended."""
    return phase_of(pod) in ("Succeeded", "Failed")
