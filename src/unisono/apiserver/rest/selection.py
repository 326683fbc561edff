"""Which objects of a collection a request is about: a namespace, labels, fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unisono.apiserver.errors import bad_request
from unisono.apiserver.request import Request
from unisono.apiserver.rest.route import Route
from unisono.apiserver.selectors import parse_fields, parse_labels
from unisono.apiserver.storage.record import Record
from unisono.apiserver.strategy import Json

_MOST = 2**63 - 1
_COMMON = ("metadata.name", "metadata.namespace")
# Field selectors of built-in kinds; custom resources bring theirs along.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "/pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "/nodes": ("spec.unschedulable",),
    "/namespaces": ("status.phase",),
    "/secrets": ("type",),
    "/services": ("spec.clusterIP", "spec.type"),
    "batch/jobs": ("status.successful",),
    "/events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "reason",
        "reportingComponent",
        "reportingController",
        "source",
        "type",
    ),
}
# What an absent field counts as, where that is not the empty text.
_ABSENT = {
    "spec.hostNetwork": "false",
    "spec.unschedulable": "false",
    "spec.restartPolicy": "Always",
    "status.successful": "0",
}
# Fields that are called otherwise in the stored form.
_STORED_AS = {
    "status.successful": "status.succeeded",
    "source": "source.component",
    "reportingController": "reportingComponent",
}


class Selection:
    """A test for objects. Labels are looked at first: they need no decoding."""

    __slots__ = ("_fields", "_labels", "is_everything", "key", "namespace", "only_name")

    def __init__(self, request: Request, route: Route) -> None:
        """Read the selectors of a request."""
        self.namespace = route.namespace
        self.only_name = ""
        self._labels: Callable[[Mapping[str, str]], bool] | None = None
        self._fields: Callable[[Callable[[str], str]], bool] | None = None
        labels = request.query.get("labelSelector", "")
        if labels:
            self._labels = parse_labels(labels)
        fields = request.query.get("fieldSelector", "")
        if fields:
            self._take_fields(fields, route)
        self.is_everything = not (labels or fields)
        self.key = (self.namespace, labels, fields)  # who asks alike is shown alike

    def _take_fields(self, text: str, route: Route) -> None:
        served = route.resource.served
        custom = tuple(path.lstrip(".") for path in served.selectable)
        allowed = (*_COMMON, *_FIELDS.get(served.key, ()), *custom)
        selector = parse_fields(text, allowed)
        for path, sign, value in selector.requirements:
            if path == "metadata.name" and sign == "=" and not self.only_name:
                self.only_name = value  # a quick no for all other objects
        if selector.requirements != (("metadata.name", "=", self.only_name),):
            self._fields = selector.matches

    def matches(self, record: Record) -> bool:
        """Say whether an object is meant."""
        if self.namespace and record.key[1] != self.namespace:
            return False
        if self.only_name and record.key[2] != self.only_name:
            return False
        if self._labels is not None and not self._labels(record.labels):
            return False
        return self._fields is None or self._fields(_Lookup(record))


class _Lookup:
    """Reads fields of an object as text, decoding it once."""

    __slots__ = ("_obj", "_record")

    def __init__(self, record: Record) -> None:
        self._record = record
        self._obj: Json | None = None

    def __call__(self, path: str) -> str:
        if path == "metadata.name":
            return self._record.key[2]
        if path == "metadata.namespace":
            return self._record.key[1]
        if self._obj is None:
            self._obj = self._record.load()
        at: Any = self._obj
        where = _STORED_AS.get(path, path)
        if where.startswith("regarding.") and "involvedObject" in self._obj:
            where = f"involvedObject.{where.removeprefix('regarding.')}"
        for part in where.split("."):
            at = at.get(part) if isinstance(at, dict) else None
        if at is None:
            return _ABSENT.get(path, "")
        if isinstance(at, bool):
            return "true" if at else "false"
        if isinstance(at, list):
            return ",".join(str(one.get("ip", one) if isinstance(one, dict) else one) for one in at)
        return str(at)


def number(request: Request, name: str) -> int:
    """Return a whole number of the query; 0 if it is absent."""
    text = request.query.get(name, "")
    if not text:
        return 0
    try:
        return min(max(0, int(text)), _MOST)
    except ValueError as error:
        raise bad_request(f"{name}: {text[:40]!r} is not a number") from error
