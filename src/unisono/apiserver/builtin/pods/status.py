"""What the server itself says in the status of a pod: its phase, its class, why it is held back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from unisono.apiserver.builtin.fields import at, child, items
from unisono.apiserver.builtin.verdict_cache import VerdictCache
from unisono.apiserver.objects import Json
from unisono.apiserver.times import timestamp
from unisono.kinds.quantity import Quantity
from unisono.kinds.text_cache import cached_if_short

_COMPUTE = ("cpu", "memory")
_SEEN: VerdictCache[str] = VerdictCache()


def fill_pod_status(pod: Json) -> None:
    """Fill in the phase and the class of service."""
    status = child(pod, "status")
    if not status.get("phase"):
        status["phase"] = "Pending"
    if not status.get("qosClass"):
        status["qosClass"] = qos_class(at(pod, "spec"))


def note_gates(pod: Json, now: float) -> None:
    """Say of a pod with gates that it is not to be scheduled yet."""
    status = child(pod, "status")
    conditions = items(status, "conditions")
    if items(at(pod, "spec"), "schedulingGates") and not any(
        one.get("type") == "PodScheduled" for one in conditions
    ):
        status["conditions"] = [
            *conditions,
            {
                "type": "PodScheduled",
                "status": "False",
                "lastTransitionTime": timestamp(now),
                "reason": "SchedulingGated",
                "message": "scheduling waits until all gates are removed",
            },
        ]


def qos_class(spec: Mapping[str, Any]) -> str:
    """Return how well a pod is protected when a node runs short.

    Guaranteed if every container limits cpu and memory and requests just that; BestEffort if none
    asks for either; Burstable in all other cases.
    """
    own = at(spec, "resources")
    containers = [own] if at(own, "requests") or at(own, "limits") else list(_resources(spec))
    try:
        key = orjson.dumps(containers)
    except TypeError:  # a number that no kind has
        return _class_of(containers)
    found = _SEEN.get(key)
    if found is None:
        found = _class_of(containers)
        _SEEN.keep(key, found)
    return found


def _class_of(containers: Sequence[Json]) -> str:
    asked = [
        amount
        for resources in containers
        for part in ("requests", "limits")
        for name, amount in at(resources, part).items()
        if name in _COMPUTE and _nano(amount) != 0
    ]
    if not asked:
        return "BestEffort"
    return "Guaranteed" if all(_is_guaranteed(one) for one in containers) else "Burstable"


def _resources(spec: Mapping[str, Any]) -> Iterator[Json]:
    for name in ("initContainers", "containers"):
        for container in items(spec, name):
            yield at(container, "resources")


def _is_guaranteed(resources: Json) -> bool:
    requests, limits = at(resources, "requests"), at(resources, "limits")
    return all(
        name in limits
        and _nano(limits[name]) != 0
        and _nano(requests.get(name, limits[name])) == _nano(limits[name])
        for name in _COMPUTE
    )


def _nano(raw: object) -> int:
    return _nano_of_text(raw) if type(raw) is str else _nano_of(raw)


def _nano_of(raw: object) -> int:
    """Return an amount; what is none counts as nothing, since the schema complains about it."""
    try:
        return Quantity.from_raw(raw).nano
    except ValueError:
        return 0


_nano_of_text = cached_if_short(1024)(_nano_of)
