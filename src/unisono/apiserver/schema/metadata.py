"""`metadata` as every object has it, custom resources and embedded ones included.

Its schema is written out here because a custom resource's own schema says only "an object".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.kinds.shapes.shape import Shape

_TEXT = {"type": "string"}
_TIME = {"type": "string", "format": "date-time"}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "format": "int64"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}

_OWNER = {
    "type": "object",
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "uid": _TEXT,
        "controller": _FLAG,
        "blockOwnerDeletion": _FLAG,
    },
    "required": ["apiVersion", "kind", "name", "uid"],
    "x-kubernetes-map-type": "atomic",
}

_MANAGED = {
    "type": "object",
    "properties": {
        "manager": _TEXT,
        "operation": _TEXT,
        "apiVersion": _TEXT,
        "time": _TIME,
        "fieldsType": _TEXT,
        "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "subresource": _TEXT,
    },
}

_OBJECT_META = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
        "resourceVersion": _TEXT,
        "generation": _COUNT,
        "creationTimestamp": _TIME,
        "deletionTimestamp": _TIME,
        "deletionGracePeriodSeconds": _COUNT,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "ownerReferences": {
            "type": "array",
            "items": _OWNER,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
        "finalizers": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "managedFields": {"type": "array", "items": _MANAGED, "x-kubernetes-list-type": "atomic"},
    },
}


def _no_references(name: str) -> Mapping[str, Any]:
    raise KeyError(name)


TEXT = Shape(_TEXT, _no_references)
OBJECT_META = Shape(_OBJECT_META, _no_references)
