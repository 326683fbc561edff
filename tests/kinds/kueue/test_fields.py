"""Every field of every kind of Kueue is known: supported, warned of by name, or held."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from unisono.kinds.shapes.served import served_kinds
from unisono.kinds.shapes.shape import Shape

PAGE = Path(__file__).parents[3] / "docs/reference/kueue-fields.md"
_ROW = re.compile(r"\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|")
_OF_EVERY_KIND = ("apiVersion", "kind", "metadata")
# What one row says for everything below it: pod templates, selectors and statuses.
_WHOLE = ("template", "namespaceSelector", "tolerations[]", "nodeTaints[]")


def served() -> dict[str, dict[str, Shape]]:
    """Return the schemas of Kueue's kinds by version."""
    found: dict[str, dict[str, Shape]] = {}
    for one in served_kinds():
        if one.group == "kueue.x-k8s.io":
            found.setdefault(one.kind, {})[one.version] = one.shape
    return found


def fields(shape: Shape, path: str = "") -> Iterator[str]:
    """Yield the path of every field below a schema."""
    for name in shape.raw.get("properties") or {}:
        at = f"{path}.{name}" if path else name
        if at in _OF_EVERY_KIND:
            continue
        below = shape.field(name)
        yield at
        if below is None or name in _WHOLE:
            continue
        if below.items is not None:
            if f"{name}[]" not in _WHOLE:
                yield from fields(below.items, f"{at}[]")
        else:
            yield from fields(below, at)


def walked(kind: str) -> list[tuple[str, list[str]]]:
    """Return every field of a kind, and the versions that have it; no sections by themselves."""
    versions: dict[str, list[str]] = {}
    for version, shape in served()[kind].items():
        for path in fields(shape):
            versions.setdefault(path, []).append(version)
    sections = {path.rpartition(".")[0].removesuffix("[]") for path in versions}
    return [
        (path, sorted(found)) for path, found in sorted(versions.items()) if path not in sections
    ]


def rows(kind: str) -> dict[str, tuple[list[str], str]]:
    """Return what the page says of the fields of a kind."""
    section = PAGE.read_text().partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    return {
        path: (versions.split(", "), state.strip())
        for path, versions, state in _ROW.findall(section)
    }


@pytest.mark.parametrize("kind", sorted(served()))
def test_every_field_is_known(kind: str) -> None:
    said = rows(kind)
    missing = []
    for path, versions in walked(kind):
        row = path if path in said else ".".join(path.split(".")[:2]).replace("[]", "")
        if row not in said or (row == path and said[row][0] != versions):
            missing.append(f"| `{path}` | {', '.join(versions)} | ? |")
    assert not missing, "\n".join([f"rows that {PAGE.name} needs in {kind}:", *missing])


@pytest.mark.parametrize("kind", sorted(served()))
def test_no_row_is_about_a_field_that_is_gone(kind: str) -> None:
    there = {path for path, _ in walked(kind)}
    tops = {".".join(path.split(".")[:2]).replace("[]", "") for path in there}
    assert [path for path in rows(kind) if path not in there | tops] == []


def test_states_are_words_of_the_page() -> None:
    words = (
        "supported",
        "written",
        "warned",
        "not needed",
        "one level",
        "read in",
        "kept",
        "not w",
    )
    states = {state for kind in served() for _, state in rows(kind).values()}
    assert [state for state in states if not state.startswith(words)] == []
