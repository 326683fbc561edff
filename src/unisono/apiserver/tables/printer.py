"""How one kind is printed: its columns, each with a function that makes its cell.

Cells are text, numbers, booleans or None (printed as nothing). A column of priority 1 is shown with
`-o wide` only; its cell is computed all the same, because the server does not know which the user
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unisono.apiserver.objects import Json
from unisono.apiserver.times import age

Content = str | int | float | bool | None
Cell = Callable[[Mapping[str, Any], float], Content]  # takes the object and the time
Cells = Callable[[Mapping[str, Any], float], list[Content]]

NONE = "<none>"
UNSET = "<unset>"


@dataclass(frozen=True, slots=True)
class Heading:
    """The head of a column."""

    name: str
    description: str = ""
    type: str = "string"
    format: str = ""
    priority: int = 0

    def as_json(self) -> Json:
        """Return it as a Table carries it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Printer:
    """The columns of a kind and what makes its rows, one cell for each column."""

    headings: tuple[Heading, ...]
    cells: Cells


@dataclass(frozen=True, slots=True)
class Printed:
    """A column: its head and what makes its cells."""

    heading: Heading
    cell: Cell


def printer(*columns: Printed) -> Printer:
    """Put a printer together column by column."""
    makers = tuple(column.cell for column in columns)
    return Printer(
        headings=tuple(column.heading for column in columns),
        cells=lambda obj, now: [make(obj, now) for make in makers],
    )


def column(
    name: str, cell: Cell, description: str, *, type: str = "string", priority: int = 0
) -> Printed:
    """Describe a column; `cell` makes its content of an object and the time."""
    return Printed(Heading(name, description, type, "", priority), cell)


def wide(name: str, cell: Cell, description: str) -> Printed:
    """Describe a column of text that only `-o wide` shows."""
    return column(name, cell, description, priority=1)


# ---- cells that many kinds have ------------------------------------------------------------------


def inside(obj: Mapping[str, Any], *path: str) -> Any:
    """Return what stands at a path of names; None if any part of it is missing.

    >>> inside({"spec": {"replicas": 3}}, "spec", "replicas")
    3
    """
    value: Any = obj
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def of(*path: str, absent: Content = "") -> Cell:
    """Return a cell that shows one field, or `absent` if it is missing or empty text."""

    def cell(obj: Mapping[str, Any], now: float) -> Content:
        value = inside(obj, *path)
        if value is None or value == "":
            return absent
        return value if isinstance(value, str | int | float) else str(value)

    return cell


def count_of(*path: str) -> Cell:
    """Return a cell that shows how many items a list or a map has."""
    return lambda obj, now: len(inside(obj, *path) or ())


def age_of(*path: str, absent: str | None = None) -> Cell:
    """Return a cell that shows how long ago a time was."""

    def cell(obj: Mapping[str, Any], now: float) -> Content:
        moment = inside(obj, *path)
        return absent if absent is not None and not moment else age(moment, now)

    return cell


def name_cell(obj: Mapping[str, Any], now: float) -> Content:
    """Show the name."""
    name: str = obj["metadata"].get("name", "")
    return name


def flagged_name(annotation: str) -> Cell:
    """Return a cell with the name, and a mark if an annotation makes the object the default."""

    def cell(obj: Mapping[str, Any], now: float) -> Content:
        name = name_cell(obj, now)
        is_default = inside(obj, "metadata", "annotations", annotation) == "true"
        return f"{name} (default)" if is_default else name

    return cell


NAME_HEADING = Heading("Name", "The name, unique among its kind and namespace.", format="name")
AGE_HEADING = Heading("Age", "How long ago the object was created.")
NAME = Printed(NAME_HEADING, name_cell)
AGE = Printed(AGE_HEADING, age_of("metadata", "creationTimestamp"))
CREATED_AT = column(
    "Created At", of("metadata", "creationTimestamp"), "When it was created.", type="date"
)


def named(cell: Cell) -> Printed:
    """Describe the first column of a kind whose name comes with a mark."""
    return Printed(NAME_HEADING, cell)


def joined(values: Sequence[str], absent: str = NONE) -> str:
    """Write words with commas between them."""
    return ",".join(values) or absent


# ---- labels, selectors, containers ---------------------------------------------------------------


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
