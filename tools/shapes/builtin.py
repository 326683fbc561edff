"""The built-in kinds, read from the OpenAPI documents of Kubernetes itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.shapes import hand_written
from tools.shapes.builtin_kinds import BODIES, BUILT_IN, BuiltIn, prefix_of
from tools.shapes.enums import add_words
from tools.shapes.schema import definition_name, facts
from tools.shapes.sources import KUBERNETES, KUBERNETES_VERSIONS
from tools.shapes.union import unite
from unisono.kube.form import Json


def read_definitions(directory: Path) -> dict[str, Json]:
    """Return every definition of every version, united, by our names."""
    definitions: dict[str, Json] = {}
    for version in KUBERNETES_VERSIONS:
        newer: dict[str, Json] = {}
        folder = directory / f"{KUBERNETES}@{version}" / "api/openapi-spec/v3"
        for file in sorted(folder.glob("*__v*_openapi.json")):
            components = json.loads(file.read_text()).get("components", {})
            for published, schema in components.get("schemas", {}).items():
                newer[definition_name(published)] = facts(schema, typed=True)
        assert newer, f"{folder} has no OpenAPI documents"
        for name, schema in newer.items():
            older = definitions.get(name)
            definitions[name] = unite(older, schema) if older else schema
    add_words(definitions, directory)
    return {**definitions, **hand_written.DEFINITIONS}


def entry_of(kind: BuiltIn, definitions: Mapping[str, Json]) -> Json:
    """Return the entry of `kinds` for one built-in kind."""
    entry: Json = {
        "kind": kind.kind,
        "plural": kind.plural,
        "singular": kind.kind.lower() if kind.singular is None else kind.singular,
        "shortNames": list(kind.short),
        "categories": list(kind.categories),
        "namespaced": kind.namespaced,
        "versions": [],
    }
    for number, version in enumerate(kind.versions):
        name = f"{prefix_of(kind.group)}.{version}.{kind.kind}"
        made: dict[str, Any] = {
            "name": version,
            "storage": number == 0,
            "subresources": list(kind.subresources),
            "selectable": list(kind.selectable),
            "schema": {"$ref": name},
        }
        assert name in definitions, f"no document describes {name}"
        if "scale" in kind.subresources:
            made["scale"] = {
                "spec": ".spec.replicas",
                "status": ".status.replicas",
                "selector": ".spec.selector",
            }
        entry["versions"].append(made)
    return entry


def built_in_entries(definitions: Mapping[str, Json]) -> dict[str, list[Json]]:
    """Return the entries of all built-in kinds, by group."""
    entries: dict[str, list[Json]] = {}
    for kind in BUILT_IN:
        entries.setdefault(kind.group, []).append(entry_of(kind, definitions))
    return entries


def needed(entries: Iterable[Json], definitions: Mapping[str, Json]) -> dict[str, Json]:
    """Return the definitions that these entries, and the bodies of requests, refer to."""
    waiting = [*references(list(entries)), *BODIES]
    found: dict[str, Json] = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions[name]
            waiting.extend(references(definitions[name]))
    return found


def references(node: object) -> Iterator[str]:
    """Return every reference in a schema."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)
