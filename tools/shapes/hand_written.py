"""Definitions that no document publishes in the form we need."""

from __future__ import annotations

from collections.abc import Mapping

from tools.shapes.schema import QUANTITY, SCALARS, TIME
from unisono.kube.form import Json

_CONDITION: Json = {
    "type": "object",
    "properties": {
        "lastTransitionTime": TIME,
        "message": {"type": "string", "maxLength": 32768},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "type": {
            "type": "string",
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
    },
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
}

_AMOUNTS: Json = {"type": "object", "additionalProperties": QUANTITY}


def _object(**fields: Json) -> Json:
    names = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    return {"type": "object", "properties": names | fields}


DEFINITIONS: Mapping[str, Json] = {
    **SCALARS,
    "meta.v1.Condition": _CONDITION,
    "metrics.v1beta1.NodeMetrics": _object(
        metadata={"$ref": "meta.v1.ObjectMeta"},
        timestamp=TIME,
        window={"type": "string"},
        usage=_AMOUNTS,
    ),
    "metrics.v1beta1.PodMetrics": _object(
        metadata={"$ref": "meta.v1.ObjectMeta"},
        timestamp=TIME,
        window={"type": "string"},
        containers={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "usage": _AMOUNTS},
            },
        },
    ),
}
