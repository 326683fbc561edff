"""What the right to write an object does not include: decisions that are the scheduler's.

    a node for a pod                     `create` on pods/binding
    taking off a queue's gate            the same
    words that our controllers write     the same
    being part of another's job          `update` on the finalizers of that kind

The right to create jobs does not include choosing nodes, passing by a queue, or having pods counted
as those of another workload. What is refused is only what changes: an object that comes back with
what a controller wrote into it is welcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from unisono.apiserver.access.authorize import Authorizer
from unisono.apiserver.errors import ApiError, forbidden
from unisono.apiserver.request import MASTERS, User
from unisono.kinds.known import KNOWN
from unisono.kinds.shapes.served import Served, served_kinds

GATES = ("kueue.x-k8s.io/admission", "unisono.dev/gang")
# Which workload a pod is counted as, its place in it, and what was decided for it.
RESERVED = frozenset(
    {
        "kueue.x-k8s.io/workload",
        "kueue.x-k8s.io/podset",
        "kueue.x-k8s.io/job-uid",
        "unisono.dev/admitted",
        "unisono.dev/admitted-workload",
        "unisono.dev/gang",
        "unisono.dev/gpu-device",
        "unisono.dev/granted-limit",
        "unisono.dev/later-sets",
        "unisono.dev/slot",
    }
)
# Deeper than any template of any kind; what is nested further is no template.
_DEEPEST = 24

Json = Mapping[str, Any]


def overreach(
    authorizer: Authorizer, user: User, key: str, obj: Json, old: Json | None
) -> ApiError | None:
    """Return why a user must not write an object like this; None if they may."""
    if MASTERS in user.groups:
        return None
    metadata = obj.get("metadata") or {}
    namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    group, _, plural = key.partition("/")
    before = old or {}
    if not authorizer.allows(user, "create", "", "pods", "binding", namespace):
        why = decision_written(obj, before)
        if why:
            return forbidden(plural, name, why, group=group)
    for owner in new_owners(obj, before):
        if not authorizer.allows(
            user, "update", owner.group, owner.plural, "finalizers", namespace
        ):
            return forbidden(plural, name, claims(owner), group=group)
    return None


def claims(owner: Served) -> str:
    """Return why an object may not be made part of a job of some kind."""
    return (
        f"metadata.ownerReferences: only a controller makes an object part of a {owner.kind} "
        f"(the verb update on {owner.plural}/finalizers); leave out controller: true"
    )


def decision_written(obj: Json, old: Json) -> str:
    """Return which decision of the scheduler an object anticipates; empty if none."""
    known = dict(_reserved_values(old))
    for path, value in _reserved_values(obj):
        if known.get(path) == value:
            continue
        if path.endswith(".nodeName"):
            return (
                f"{path}: only users who may create pods/binding choose a node; ask for one with "
                'nodeSelector: {"kubernetes.io/hostname": …}'
            )
        return f"{path}: is written by the scheduler's controllers alone; leave it out"
    spec = obj.get("spec")
    had, has = _gates(old.get("spec")), _gates(spec)
    lifted = [gate for gate in GATES if gate in had and gate not in has]
    if lifted:
        return (
            f"spec.schedulingGates: {lifted[0]} is lifted when the queue admits the pod; wait for "
            "it, or delete the pod"
        )
    return ""


def _gates(spec: Any) -> set[str]:
    gates = spec.get("schedulingGates") if isinstance(spec, Mapping) else None
    return {str(one.get("name")) for one in gates or () if isinstance(one, Mapping)}


def _reserved_values(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield where an object or a template in it has what is the scheduler's to write, and what."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        node = value.get("nodeName")
        if node and isinstance(value.get("containers"), list):
            yield f"{path}.nodeName", node
        metadata = value.get("metadata")
        if isinstance(metadata, Mapping):
            for part in ("annotations", "labels"):
                texts = metadata.get(part)
                if isinstance(texts, Mapping):
                    for key in sorted(RESERVED.intersection(texts)):
                        yield f"{path}.metadata.{part}[{key}]".lstrip("."), texts[key]
        for key, below in value.items():
            if key not in ("metadata", "status") and isinstance(below, Mapping | list):
                yield from _reserved_values(below, f"{path}.{key}".lstrip("."), depth + 1)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            if isinstance(below, Mapping | list):
                yield from _reserved_values(below, f"{path}[{index}]", depth + 1)


@cache
def job_kinds() -> Mapping[tuple[str, str], Served]:
    """Return the kinds whose admission counts for what belongs to them, by group and name.

    Not by version: the owner of an object is the same in all of them.
    """
    found = {}
    for served in served_kinds():
        kind = KNOWN.kinds.get((served.api_version, served.kind))
        if kind is not None and kind.job is not None:
            found[served.group, served.kind] = served
    return found


def new_owners(obj: Json, old: Json) -> Iterator[Served]:
    """Yield the kinds of jobs that an object is to belong to from now on."""
    known = _owners(old)
    for owner in _owners(obj) - known:
        served = job_kinds().get(owner[:2])
        if served is not None:
            yield served


def _owners(obj: Json) -> set[tuple[str, str, str]]:
    references = (obj.get("metadata") or {}).get("ownerReferences") or ()
    return {
        (str(one.get("apiVersion")).rpartition("/")[0], str(one.get("kind")), str(one.get("name")))
        for one in references
        if isinstance(one, Mapping) and one.get("controller") is True
    }
