"""Our own sentence for every field, from `descriptions/*.json`.

A sentence is looked up under the last names that lead to a field, the longest first, in the file
of the group and then in `common.json`:

    "PodSpec.nodeName"         a field of a named type of a built-in group
    "resourceGroups.flavors"   a field of whatever stands in a field of that name
    "nodeName"                 wherever it stands

Kinds themselves are described under their name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from unisono.kube.form import Json

FOLDER = Path(__file__).parent / "descriptions"
_LONGEST = 4  # names that a key may have


class Sentences:
    """What is known about fields, and which of it was used."""

    def __init__(self, folder: Path = FOLDER) -> None:
        """Read all files of a folder."""
        self._files: dict[str, Mapping[str, str]] = {
            file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))
        }
        self.used: set[tuple[str, str]] = set()
        self.missing: dict[str, str] = {}  # key -> where

    def of(self, group: str, path: Sequence[str]) -> str:
        """Return the sentence for a field by the names that lead to it; empty if there is none."""
        for stem in (group, "common"):
            known = self._files.get(stem, {})
            for length in range(min(_LONGEST, len(path)), 0, -1):
                key = ".".join(path[-length:])
                if key in known:
                    self.used.add((stem, key))
                    return known[key]
        self.missing.setdefault(".".join(path[-2:]), f"{group}: {'.'.join(path)}")
        return ""

    def unused(self) -> Iterator[str]:
        """Return what describes nothing."""
        for stem, sentences in self._files.items():
            for key in sentences:
                if (stem, key) not in self.used:
                    yield f"{stem}.json: {key}"


def describe(node: Json, group: str, path: tuple[str, ...], sentences: Sentences) -> Json:
    """Return the schema with a description on every field in it."""
    node = dict(node)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            node[key] = describe(node[key], group, path, sentences)
    if "properties" in node:
        node["properties"] = {
            name: _described(child, group, (*path, name), sentences)
            for name, child in node["properties"].items()
        }
    return node


def _described(node: Json, group: str, path: tuple[str, ...], sentences: Sentences) -> Json:
    sentence = sentences.of(group, path)
    made = describe(node, group, path, sentences)
    return {"description": sentence} | made if sentence else made
