"""Whether the status of a Workload has the types that its readers rely on.

Our own API and the definition that we bring refuse anything else. A cluster may have another
definition, of an older version or another project, and a status is written by controllers that we
do not know. The scheduler reads a status field by field (`kinds.known`); what counts, explains or
looks something up in it reads it as it is, for which this is enough. It is asked at every look, so
it goes into nothing that may be long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unisono.kinds.quantity import Quantity

_CONDITION = ("type", "status", "reason", "message", "lastTransitionTime")
_NEEDED = ("type", "status")
_AN_OBJECT, _A_LIST, _A_TEXT = "must be an object", "must be a list", "must be a text"
_A_COUNT = "must be a number that is not negative"


def wrong_with_status(workload: Mapping[str, object]) -> tuple[str, str]:
    """Return the first field of a status that is not what it should be, and why; or nothing.

    >>> wrong_with_status({"status": {"admission": {"clusterQueue": "a"}}})
    ('', '')
    >>> wrong_with_status({"status": {"admission": ["a"]}})
    ('status.admission', 'must be an object')
    """
    status = workload.get("status")
    if not status:
        return "", ""
    if not isinstance(status, dict):
        return "status", _AN_OBJECT
    return next(_problems(status), ("", ""))


def _problems(status: dict[str, Any]) -> Iterator[tuple[str, str]]:
    admission = status.get("admission")
    if admission is not None:
        yield from _of_admission(admission)
    for field in ("conditions", "reclaimablePods", "admissionChecks", "unhealthyNodes"):
        if not isinstance(status.get(field) or [], list):
            yield f"status.{field}", _A_LIST
            return
    for path, one in _items(status, "conditions"):
        if not isinstance(one, dict):
            yield path, _AN_OBJECT
            return
        for field in _CONDITION:
            if type(one.get(field, "")) is not str or (field not in one and field in _NEEDED):
                yield f"{path}.{field}", _A_TEXT
    for path, one in _items(status, "reclaimablePods"):
        if not isinstance(one, dict) or type(one.get("name")) is not str:
            yield f"{path}.name", _A_TEXT
        elif not _is_count(one.get("count")):
            yield f"{path}.count", _A_COUNT
    for path, one in _items(status, "admissionChecks"):
        if not isinstance(one, dict) or type(one.get("name")) is not str:
            yield f"{path}.name", _A_TEXT
    for field in ("requeueState", "schedulingStats"):
        if not isinstance(status.get(field) or {}, dict):
            yield f"status.{field}", _AN_OBJECT
            return
    evictions = (status.get("schedulingStats") or {}).get("evictions") or []
    if not isinstance(evictions, list) or not all(isinstance(one, dict) for one in evictions):
        yield "status.schedulingStats.evictions", "must be a list of objects"


def _of_admission(admission: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(admission, dict):
        yield "status.admission", _AN_OBJECT
        return
    if not admission:
        return
    if type(admission.get("clusterQueue")) is not str:
        yield "status.admission.clusterQueue", _A_TEXT
    if not isinstance(admission.get("podSetAssignments") or [], list):
        yield "status.admission.podSetAssignments", _A_LIST
        return
    for path, one in _items(admission, "podSetAssignments", "status.admission"):
        if not isinstance(one, dict):
            yield path, _AN_OBJECT
            return
        if type(one.get("name")) is not str:
            yield f"{path}.name", _A_TEXT
        if not _is_count(one.get("count", 0)):
            yield f"{path}.count", _A_COUNT
        for field in ("flavors", "resourceUsage", "topologyAssignment"):
            if not isinstance(one.get(field) or {}, dict):
                yield f"{path}.{field}", _AN_OBJECT
                return
        for resource, flavor in (one.get("flavors") or {}).items():
            if type(flavor) is not str:
                yield f"{path}.flavors[{resource}]", _A_TEXT
        for resource, amount in (one.get("resourceUsage") or {}).items():
            try:
                Quantity.from_raw(amount)
            except ValueError as error:
                yield f"{path}.resourceUsage[{resource}]", str(error)


def _items(above: dict[str, Any], field: str, path: str = "status") -> Iterator[tuple[str, Any]]:
    for index, one in enumerate(above.get(field) or ()):
        yield f"{path}.{field}[{index}]", one


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def readable(workload: dict[str, Any]) -> dict[str, Any]:
    """Return a Workload as it is, or without its status if that cannot be read."""
    return workload if not wrong_with_status(workload)[0] else {**workload, "status": {}}
