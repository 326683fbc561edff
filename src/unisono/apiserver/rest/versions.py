"""One stored object, shown in whatever version was asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import orjson

from unisono.apiserver.catalogue import Catalogue, Resource
from unisono.apiserver.conversion import convert
from unisono.apiserver.objects import Json
from unisono.apiserver.patch.managed_fields import Translate
from unisono.apiserver.storage.record import Record
from unisono.kinds.shapes.shape import Shape


def shown(record: Record, resource: Resource) -> Json:
    """Return a stored object in the version of a resource, a new copy."""
    obj = record.load()
    if not (resource.is_as_stored and obj["apiVersion"] == resource.stored_as):
        obj = convert(resource.served.key, obj, resource.served.version)
    if record.rv < resource.schema_rv:
        resource.checker.fill(obj)
    return obj


def shown_bytes(record: Record, resource: Resource) -> bytes:
    """Return a stored object in the version of a resource as JSON."""
    if resource.is_as_stored and record.rv >= resource.schema_rv:
        return record.data
    return orjson.dumps(shown(record, resource))


def stored(obj: Json, resource: Resource) -> Json:
    """Return an object in the version in which its kind is stored."""
    if resource.is_as_stored:
        return obj
    return convert(resource.key, obj, resource.stored_as.rpartition("/")[2])


# ---- field ownership across versions -------------------------------------------------------------


def translator(catalogue: Catalogue, resource: Resource) -> Translate | None:
    """Return what shows an object in another version of its kind; None if there is only one."""
    served = resource.served
    if resource.is_only_version:
        return None

    def translate(obj: Mapping[str, Any], api_version: str) -> tuple[Json, Shape] | None:
        found = catalogue.find(served.group, api_version.rpartition("/")[2], served.plural)
        if found is None:
            return None
        return convert(served.key, dict(obj), found.served.version), found.served.shape

    return translate


def unowned(resource: Resource) -> Collection[str] | None:
    """Return which fields have no owner at the main address; None for the usual ones.

    Where the status has no address of its own it is a field like others.
    """
    return None if resource.has_status or resource.strategy.is_typed else ()
