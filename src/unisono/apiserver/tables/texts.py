"""Parts of objects in one line: labels, selectors, the containers of a template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.tables.printer import NONE, Cell, Content, Printed, inside, wide

_WORDS = {"In": "in", "NotIn": "notin"}


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Write labels in the order of their keys.

    >>> labels_text({"b": "2", "a": "1"})
    'a=1,b=2'
    """
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Write a label selector as `kubectl -l` takes it, in the order of its keys.

    >>> selector_text({"matchExpressions": [{"key": "a", "operator": "In", "values": ["2", "1"]}]})
    'a in (1,2)'
    """
    if not selector:
        return NONE
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for requirement in selector.get("matchExpressions") or ():
        key, operator = requirement.get("key", ""), requirement.get("operator", "")
        parts.append((key, _requirement(key, operator, requirement.get("values") or ())))
    # Requirements on the same key keep their order.
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0])) or NONE


def _requirement(key: str, operator: str, values: Any) -> str:
    if operator in _WORDS:
        return f"{key} {_WORDS[operator]} ({','.join(sorted(values))})"
    return f"!{key}" if operator == "DoesNotExist" else key


def selector_cell(*path: str) -> Cell:
    """Return a cell that shows a label selector."""
    return lambda obj, now: selector_text(inside(obj, *path))


def labels_cell(*path: str) -> Cell:
    """Return a cell that shows labels."""
    return lambda obj, now: labels_text(inside(obj, *path))


def container_columns(*template: str) -> tuple[Printed, Printed]:
    """Return the columns with the names and the images of the containers of a pod template."""

    def listed(field: str) -> Cell:
        def cell(obj: Mapping[str, Any], now: float) -> Content:
            containers = inside(obj, *template, "spec", "containers") or ()
            return ",".join(container.get(field, "") for container in containers)

        return cell

    names = wide("Containers", listed("name"), "The containers of a pod.")
    images = wide("Images", listed("image"), "The images of the containers, in the same order.")
    return names, images
