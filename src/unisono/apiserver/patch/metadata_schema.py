"""The schema of `metadata`, as far as its writers share it; the same for every kind.

Schemas of custom resources say nothing about their metadata, so it is written down here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.kinds.shapes.shape import Shape

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_OWNER = {
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "uid": _TEXT,
        "controller": {"type": "boolean"},
        "blockOwnerDeletion": {"type": "boolean"},
    },
}


def _no_definitions(name: str) -> Mapping[str, Any]:
    raise KeyError(name)


METADATA = Shape(
    {
        "type": "object",
        "properties": {
            "annotations": _TEXTS,
            "creationTimestamp": _TEXT,
            "deletionGracePeriodSeconds": {"type": "integer"},
            "deletionTimestamp": _TEXT,
            "finalizers": {
                "type": "array",
                "items": _TEXT,
                "x-kubernetes-list-type": "set",
                "x-kubernetes-patch-strategy": "merge",
            },
            "generateName": _TEXT,
            "generation": {"type": "integer"},
            "labels": _TEXTS,
            "managedFields": {"type": "array"},
            "name": _TEXT,
            "namespace": _TEXT,
            "ownerReferences": {
                "type": "array",
                "items": _OWNER,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "uid",
            },
            "resourceVersion": _TEXT,
            "selfLink": _TEXT,
            "uid": _TEXT,
        },
    },
    _no_definitions,
)
