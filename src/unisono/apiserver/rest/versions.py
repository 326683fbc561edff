"""One stored object, shown in whatever version was asked for."""

from __future__ import annotations

import orjson

from unisono.apiserver.catalogue import Resource
from unisono.apiserver.conversion import convert
from unisono.apiserver.storage.record import Record
from unisono.apiserver.strategy import Json


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
