"""Every manifest among our examples fits its schema, apart from the documented alias."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from unisono.kinds.shapes.served import served_kinds
from unisono.kinds.shapes.shape import Shape

EXAMPLES = Path(__file__).parents[3] / "examples"
SERVED = {(one.api_version, one.kind): one for one in served_kinds()}
# Admission rewrites it to nodeLabels before fields are looked at.
ALIAS = "ResourceFlavor.spec.nodeSelector"
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def _manifests() -> list[tuple[str, dict[str, object]]]:
    found = []
    for file in sorted(EXAMPLES.glob("*/*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            found.append((str(file.relative_to(EXAMPLES)), document))
    own = {_defined(one) for _, one in found if one["kind"] == "CustomResourceDefinition"}
    return [(file, one) for file, one in found if (one["apiVersion"], one["kind"]) not in own]


def _defined(definition: dict[str, Any]) -> tuple[str, str]:
    """Return the kind that an example defines itself: its schema is its own."""
    spec = definition["spec"]
    return f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"]


@pytest.mark.parametrize(("file", "manifest"), _manifests(), ids=lambda one: str(one)[:40])
def test_a_manifest_fits(file: str, manifest: dict[str, object]) -> None:
    served = SERVED[str(manifest["apiVersion"]), str(manifest["kind"])]
    misfits = set(_misfits(manifest, served.shape, served.kind))
    assert misfits - {f"{ALIAS}: unknown"} == set()


def _misfits(value: object, shape: Shape, path: str) -> Iterator[str]:
    if not shape.type or value is None:
        return
    if shape.is_int_or_string:
        if not isinstance(value, (int, str)):
            yield f"{path}: {value!r} is neither a number nor a text"
        return
    if not isinstance(value, _TYPES[shape.type]):
        yield f"{path}: {value!r} is no {shape.type}"
        return
    if "enum" in shape.raw and value not in shape.raw["enum"]:
        yield f"{path}: {value!r} is none of {shape.raw['enum']}"
    if isinstance(value, dict):
        for name, child in value.items():
            field = shape.field(name)
            if field is not None:
                yield from _misfits(child, field, f"{path}.{name}")
            elif not shape.is_open:
                yield f"{path}.{name}: unknown"
    elif isinstance(value, list) and shape.items is not None:
        for item in value:
            yield from _misfits(item, shape.items, path)
