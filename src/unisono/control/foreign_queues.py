"""Queues and groups of other schedulers, kept as objects that we act upon.

    scheduling.run.ai Queue          a Volcano Queue `kai-NAME`: quota is what it deserves, limit
                                     what it may use; its parent's is its parent
    scheduling.run.ai PodGroup       a Volcano PodGroup of its name, with as many pods as its leaves
                                     ask for
    scheduling.x-k8s.io ElasticQuota a Volcano Queue `elasticquota-NAMESPACE-NAME`: min is what it
                                     deserves, max what it may use

What they mean is so close that a second implementation would only differ by mistakes. Jobs and pods
find these queues by a label that the embedded API gives them (`apiserver.admission`). Each object
that is made here has an annotation that says of what; without its source it is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from unisono.control import names
from unisono.control.actions import Create, Delete, Json, Patch, Ref, Steps
from unisono.control.controller import own_key
from unisono.control.job_kinds import volcano
from unisono.control.view import View
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.foreign_queues import elastic_queue_name, kai_queue_name
from unisono.kinds.quantity import Quantity
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

KAI_QUEUE = Kind("scheduling.run.ai/v2", "Queue")
KAI_GROUP = Kind("scheduling.run.ai/v2alpha2", "PodGroup")
ELASTIC_QUOTA = Kind("scheduling.x-k8s.io/v1alpha1", "ElasticQuota")
KINDS = (KAI_QUEUE, KAI_GROUP, ELASTIC_QUOTA)

MADE_OF = "unisono.dev/made-of"  # the kind of the source, its namespace and its name
# KAI counts cpu in thousandths and memory in millions of bytes; -1 is without end.
_UNITS = {"cpu": ("cpu", "m"), "memory": ("memory", "M"), "gpu": ("nvidia.com/gpu", "")}
_MOST = 1e12  # of any unit: a thousand clusters of this world
_MOST_DEEP = 16  # subgroups of subgroups


class ForeignObjects:
    """Keeps an object of ours beside each object of a foreign kind."""

    def __init__(
        self,
        source: Kind,
        target: Kind,
        name_of: Callable[[Key], Key],
        spec_of: Callable[[Json, View], Json],
    ) -> None:
        """Take both kinds, how the target is called, and what its spec says."""
        self.name = f"kept-{source.kind.lower()}.{source.api_version.partition('/')[0]}"
        self.watches: Sequence[Kind] = (source, target)
        self._source, self._target = source, target
        self._name_of, self._spec_of = name_of, spec_of

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A source, or that of a target; and the queues that are below its target."""
        if kind == self._source:
            yield own_key(obj)
            if kind == KAI_QUEUE and _parent(obj):
                yield Key("", _parent(obj))
            return
        mark = (obj["metadata"].get("annotations") or {}).get(MADE_OF, "")
        group_kind, _, key = mark.partition(" ")
        if group_kind == self._group_kind:
            namespace, _, name = key.partition("/")
            yield Key(namespace, name)
            if self._source == KAI_QUEUE:  # few, and rarely changed
                every = view.all(KAI_QUEUE)
                yield from (own_key(one) for one in every if _parent(one) == name)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Make, change or delete the target."""
        source = view.get(self._source, key.name, key.namespace)
        wanted = self._name_of(key)
        target = view.get(self._target, wanted.name, wanted.namespace)
        mark = self._mark(key)
        written = (target or {}).get("metadata", {}).get("annotations") or {}
        is_ours = written.get(MADE_OF) == mark
        if source is None or "deletionTimestamp" in source["metadata"]:
            if target is not None and is_ours and "deletionTimestamp" not in target["metadata"]:
                yield Delete(Ref.to(target))
            return
        spec = self._spec_of(source, view)
        if target is None:
            metadata: Json = {"name": wanted.name, "annotations": {MADE_OF: mark}}
            if wanted.namespace:
                metadata["namespace"] = wanted.namespace
            yield Create({**_typed(self._target), "metadata": metadata, "spec": spec})
        elif is_ours:
            changes = {key: one for key, one in spec.items() if target["spec"].get(key) != one}
            gone = {key: None for key in _OWN_FIELDS if key in target["spec"] and key not in spec}
            if changes or gone:
                yield Patch(Ref.to(target), {"spec": {**changes, **gone}})

    @property
    def _group_kind(self) -> str:
        return f"{self._source.kind}.{self._source.api_version.rpartition('/')[0]}"

    def _mark(self, key: Key) -> str:
        return f"{self._group_kind} {key.namespace}/{key.name}"


_OWN_FIELDS = ("capability", "deserved", "parent", "queue", "priorityClassName")


def foreign_objects() -> Sequence[ForeignObjects]:
    """Return the controllers, one for each foreign kind."""
    return (
        ForeignObjects(
            KAI_QUEUE,
            names.VOLCANO_QUEUE,
            lambda key: Key("", kai_queue_name(key.name)),
            _kai_queue,
        ),
        ForeignObjects(KAI_GROUP, volcano.POD_GROUP, lambda key: key, _kai_group),
        ForeignObjects(
            ELASTIC_QUOTA,
            names.VOLCANO_QUEUE,
            lambda key: Key("", elastic_queue_name(key.namespace, key.name)),
            _elastic_quota,
        ),
    )


def _typed(kind: Kind) -> Json:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def _parent(source: Json) -> str:
    return str((source.get("spec") or {}).get("parentQueue") or "")


# ---- what the targets say ------------------------------------------------------------------------


def _kai_queue(source: Json, view: View) -> Json:
    capability = {
        resource: f"{_spelt(limit)}{unit}"
        for name, (resource, unit) in _UNITS.items()
        if (limit := _limit(source, name)) is not None
    }
    spec: Json = {"weight": 1}
    spec |= _given(capability=capability, deserved=_deserved(source, view))
    parent = view.get(KAI_QUEUE, _parent(source)) if _parent(source) else None
    if parent is not None:
        # Not before the parent deserves what those below it do: it would be refused.
        kept = view.get(names.VOLCANO_QUEUE, kai_queue_name(_parent(source)))
        wanted = _deserved(parent, view)
        if kept is not None and (kept["spec"].get("deserved") or {}) == wanted:
            spec["parent"] = kai_queue_name(_parent(source))
    return spec


def _deserved(source: Json, view: View) -> Mapping[str, str]:
    """Return what a queue deserves: its quota, and no less than the queues below it."""
    found = {}
    for name, (resource, unit) in _UNITS.items():
        amount = _quota(source, name, view, 0)
        if amount > 0:
            found[resource] = f"{_spelt(amount)}{unit}"
    return found


def _quota(source: Json, resource: str, view: View, depth: int) -> float:
    name = source["metadata"]["name"]
    below = 0.0
    if depth < _MOST_DEEP:
        children = [one for one in view.all(KAI_QUEUE) if _parent(one) == name]
        below = sum(_quota(one, resource, view, depth + 1) for one in children)
    written = _number(_resource(source, resource).get("quota")) or 0.0
    limit = _limit(source, resource)
    return max(written, below) if limit is None else min(max(written, below), limit)


def _limit(source: Json, resource: str) -> float | None:
    limit = _number(_resource(source, resource).get("limit"))
    return limit if limit is not None and limit >= 0 else None


def _resource(source: Json, name: str) -> Json:
    resources = (source.get("spec") or {}).get("resources") or {}
    found = resources.get(name)
    return found if isinstance(found, dict) else {}


def _kai_group(source: Json, view: View) -> Json:
    written = source.get("spec") or {}
    least = max(_whole(written.get("minMember")), _of_leaves(written.get("subGroups"), written))
    queue = str(written.get("queue") or "")
    return {"minMember": max(1, min(least, MAX_COUNT))} | _given(
        queue=kai_queue_name(queue) if queue else "",
        priorityClassName=str(written.get("priorityClassName") or ""),
    )


def _of_leaves(groups: object, whole: Json) -> int:
    """Return how many pods the subgroups need together, where only some of them have to run."""
    listed = [one for one in groups if isinstance(one, dict)] if isinstance(groups, list) else []

    def needs(group: Json, parent: str, depth: int) -> int:
        below = [
            needs(one, str(one.get("name")), depth + 1)
            for one in listed
            if str(one.get("parent") or "") == parent and depth < _MOST_DEEP
        ]
        if not below:
            return _whole(group.get("minMember"))
        most = _whole(group.get("minSubGroup")) or len(below)
        return sum(sorted(below)[:most])

    return needs({**whole, "minMember": 0}, "", 0)


def _elastic_quota(source: Json, view: View) -> Json:
    written = source.get("spec") or {}
    capability = {
        name: str(amount)
        for name, amount in (written.get("max") or {}).items()
        if not _is_more(amount, None)
    }
    deserved = {
        name: str(amount)
        for name, amount in (written.get("min") or {}).items()
        if not _is_more(amount, capability.get(name))
    }
    return {"weight": 1} | _given(capability=capability, deserved=deserved)


def _is_more(amount: object, most: str | None) -> bool:
    """Say whether an amount is above its maximum, or cannot be read: it then means nothing."""
    try:
        least = Quantity.from_raw(amount)
        if least.nano < 0:
            return True
        return most is not None and least.nano > Quantity.from_raw(most).nano
    except (InvalidManifest, ValueError, TypeError):
        return True


def _given(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value}


def _number(value: object) -> float | None:
    """Return a number within bounds that quantities have; None of anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return max(-1.0, min(float(value), _MOST))


def _spelt(amount: float) -> str:
    return f"{amount:.3f}".rstrip("0").rstrip(".")


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(0, min(value, MAX_COUNT))
