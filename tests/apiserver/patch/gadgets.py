"""A made-up kind whose schema has every way in which writers can share a field."""

from __future__ import annotations

from typing import Any

from unisono.kinds.shapes.shape import Shape

API_VERSION = "patch.example.com/v1"
_TEXT = {"type": "string"}
_PAIR = {"type": "object", "properties": {"p": _TEXT, "q": _TEXT}}
_PORT = {
    "type": "object",
    "required": ["port"],
    "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
        "x": _TEXT,
        "y": _TEXT,
    },
}
_CONDITION = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": _TEXT, "status": _TEXT},
}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "text": _TEXT,
                "number": {"type": "integer"},
                "nullable": {"type": "string", "nullable": True},
                "defaulted": {"type": "string", "default": "given"},
                "list": {"type": "array", "items": _TEXT},
                "set": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": _PORT,
                },
                "map": {"type": "object", "additionalProperties": _TEXT},
                "pairs": {"type": "object", "additionalProperties": _PAIR},
                "whole": {**_PAIR, "x-kubernetes-map-type": "atomic"},
                "either": {"x-kubernetes-int-or-string": True},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "anything": {"x-kubernetes-preserve-unknown-fields": True},
                "nested": {
                    "type": "object",
                    "properties": {
                        "p": _TEXT,
                        "q": {"type": "object", "properties": {"r": _TEXT}},
                    },
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "text": _TEXT,
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": _CONDITION,
                },
            },
        },
    },
}

GADGET = Shape(SCHEMA, lambda name: {})

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.patch.example.com"},
    "spec": {
        "group": "patch.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}


def gadget(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    """Make one; without a spec it has none."""
    made: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "Gadget",
        "metadata": {"name": "one", **metadata},
    }
    return made if spec is None else {**made, "spec": spec}


def filled(obj: dict[str, Any]) -> dict[str, Any]:
    """Fill in the defaults of the schema, in place, as a server does before it stores."""
    spec = obj.get("spec")
    if isinstance(spec, dict):
        spec.setdefault("defaulted", "given")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        if not obj["metadata"].get(name):
            obj["metadata"].pop(name, None)
    return obj
