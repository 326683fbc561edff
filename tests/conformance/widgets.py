"""The custom kinds of the suite: Widget has everything a schema can have, Gadget next to nothing.

Widgets are namespaced, with status and scale; gadgets are of the cluster, without subresources.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.client import Api, Manifest, eventually

GROUP = "conformance.unisono.example"
VERSION = f"{GROUP}/v1"

_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}

_SPEC: Manifest = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 100},
        "replicas": {"type": "integer", "format": "int32", "default": 1},
        "colour": {
            "type": "string",
            "enum": ["red", "green", "blue"],
            "default": "red",
            "maxLength": 5,
        },
        "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 2},
        "ratio": {"type": "number", "multipleOf": 0.5},  # a real server fails on whole numbers
        "port": {"x-kubernetes-int-or-string": True},
        "nothing": {"type": "string", "nullable": True},
        "when": {"type": "string", "format": "date-time"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": _STRING},
        "pod": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "tags": {"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"},
        "steps": {"type": "array", "items": _STRING, "maxItems": 3, "minItems": 1},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": _STRING,
                    "count": {"type": "integer", "default": 1},
                    "note": _STRING,
                },
            },
        },
        "whole": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": _INTEGER, "b": _INTEGER},
        },
        "least": _INTEGER,
        "most": _INTEGER,
        "fixed": {
            "type": "string",
            "maxLength": 10,
            "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "fixed cannot change"}
            ],
        },
    },
    "x-kubernetes-validations": [
        {
            "rule": "!has(self.least) || !has(self.most) || self.least <= self.most",
            "messageExpression": "'a ' + self.colour + ' widget has least above most'",
            "fieldPath": ".least",
        },
        {
            "rule": "self.colour != 'blue' || self.size > 10",
            "message": "blue widgets are big",
            "reason": "FieldValueForbidden",
        },
    ],
}

_STATUS: Manifest = {
    "type": "object",
    "properties": {
        "replicas": _INTEGER,
        "selector": _STRING,
        "phase": _STRING,
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {"type": _STRING, "status": _STRING},
            },
        },
    },
}

_COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {
        "name": "Ready",
        "type": "string",
        "jsonPath": ".status.conditions[?(@.type=='Ready')].status",
        "description": "whether it is ready",
    },
    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def definition(kind: str, *, scope: str, version: Manifest, **names: Any) -> Manifest:
    """Return a CustomResourceDefinition with one version."""
    singular = kind.lower()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": f"{singular}s",
                "singular": singular,
                **names,
            },
            "versions": [{"name": "v1", "served": True, "storage": True, **version}],
        },
    }


def widget_definition() -> Manifest:
    """Return the definition of Widget."""
    schema = {
        "type": "object",
        "description": "Widget has everything a schema can have.",
        "properties": {"spec": _SPEC, "status": _STATUS},
    }
    version = {
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": _COLUMNS,
        "selectableFields": [{"jsonPath": ".spec.colour"}],
    }
    return definition(
        "Widget", scope="Namespaced", version=version, shortNames=["wg"], categories=["toys"]
    )


def gadget_definition() -> Manifest:
    """Return the definition of Gadget."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": _INTEGER}},
            "status": {"type": "object", "properties": {"phase": _STRING}},
        },
    }
    version = {"schema": {"openAPIV3Schema": schema}}
    return definition("Gadget", scope="Cluster", version=version)


def define(api: Api, manifest: Manifest) -> Manifest:
    """Create a definition, wait until its kind is served, and return the definition."""
    definitions = api.of("apiextensions.k8s.io/v1", "customresourcedefinitions")
    name, spec = manifest["metadata"]["name"], manifest["spec"]
    definitions.create(manifest).ok(201)
    eventually(lambda: _is_established(definitions.read(name).ok()))
    served = api.of(f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["plural"])
    eventually(lambda: served.list(limit=1).code == 200)
    got: Manifest = definitions.read(name).ok()
    return got


def _is_established(made: Manifest) -> bool:
    conditions = made.get("status", {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Established", "True") for each in conditions)


def widget(name: str, spec: Manifest | None = None, **metadata: Any) -> Manifest:
    """Return a Widget of size 1."""
    return {
        "apiVersion": VERSION,
        "kind": "Widget",
        "metadata": {"name": name, **metadata},
        "spec": {"size": 1, **(spec or {})},
    }


def gadget(name: str, **fields: Any) -> Manifest:
    """Return a Gadget."""
    return {"apiVersion": VERSION, "kind": "Gadget", "metadata": {"name": name}, **fields}
