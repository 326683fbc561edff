"""Gives a name to what stands several times in one group, and writes it once.

Versions of a custom resource are mostly equal, and Trainer's runtimes differ in nothing but their
scope. Only objects with fields are named; the name comes from the field that holds them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from unisono.kube.form import Json

_SMALLEST = 160  # characters; a reference must be worth it


def hoist(schemas: dict[str, Json], prefix: str) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return schemas (by version and kind, "v1 RayJob") and the definitions they now refer to."""
    counts = Counter(_text(node) for schema in schemas.values() for _, node in _objects(schema, ()))
    names: dict[str, str] = {}
    definitions: dict[str, Json] = {}
    taken: set[str] = set()
    for key, schema in schemas.items():
        version, _, kind = key.partition(" ")
        for path, node in _objects(schema, (kind,)):
            text = _text(node)
            if counts[text] > 1 and len(text) >= _SMALLEST and text not in names:
                name = _free_name(f"{prefix}.{version}", path, taken)
                taken.add(name)
                names[text] = name
                definitions[name] = node
    made = {key: _named(schema, names, is_top=True) for key, schema in schemas.items()}
    definitions = {
        name: _named(node, names, is_top=True) for name, node in sorted(definitions.items())
    }
    return made, definitions


def _objects(node: Json, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Return every object below a node with the field names that lead to it, outermost first."""
    for name, child in node.get("properties", {}).items():
        inner = child
        while "items" in inner or isinstance(inner.get("additionalProperties"), dict):
            inner = inner["items"] if "items" in inner else inner["additionalProperties"]
        if inner.get("properties"):
            yield (*path, name), _bare(inner)
        yield from _objects(inner, (*path, name))


def _bare(node: Json) -> Json:
    """Return a node without what belongs to the field that holds it."""
    return {key: value for key, value in node.items() if key not in _OF_THE_FIELD}


_OF_THE_FIELD = ("description", "default", "nullable")


def _text(node: Json) -> str:
    return json.dumps(node, sort_keys=True)


# Such names need the one before: ResourceFlavorSpec, RayJobStatus.
_SAY_LITTLE = frozenset({"Spec", "Status", "Template", "Option", "Condition", "Rule", "Target"})


def _free_name(start: str, path: tuple[str, ...], taken: set[str]) -> str:
    words: list[str] = []
    for field in reversed(path):
        words.insert(0, _singular(field[:1].upper() + field[1:]))
        name = f"{start}.{''.join(words)}"
        if name not in taken and words[0] not in _SAY_LITTLE:
            return name
    return next(
        name
        for number in range(2, 100)
        if (name := f"{start}.{''.join(words)}{number}") not in taken
    )


def _singular(word: str) -> str:
    """Return the singular of a field name, roughly.

    >>> [_singular(word) for word in ("Policies", "PodSets", "Status", "JobStatuses", "Tls")]
    ['Policy', 'PodSet', 'Status', 'JobStatus', 'Tls']
    """
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("ses"):
        return word[:-2]
    is_plural = word.endswith("s") and not word.endswith(("ss", "us", "Options", "Tls"))
    return word[:-1] if is_plural else word


def _named(node: Json, names: dict[str, str], *, is_top: bool = False) -> Json:
    """Return the node with everything that has a name replaced by it."""
    if not is_top and node.get("properties"):
        name = names.get(_text(_bare(node)))
        if name is not None:
            return {"$ref": name} | {key: node[key] for key in _OF_THE_FIELD if key in node}
    made = dict(node)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            made[key] = _named(node[key], names)
    if "properties" in node:
        made["properties"] = {
            field: _named(child, names) for field, child in node["properties"].items()
        }
    return made
