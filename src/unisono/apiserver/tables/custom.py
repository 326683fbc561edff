"""Columns that a custom kind declares, each a path into the object.

A path may find several values; like Kubernetes we show the first. Text columns print whatever that
is, structures as JSON. Numbers and booleans are shown if that is what is found. Dates are shown as
an age. What is not there is None, which kubectl leaves blank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from unisono.apiserver.tables.age import INVALID, duration
from unisono.apiserver.tables.jsonpath import compile_path, plain_names
from unisono.apiserver.tables.printer import (
    AGE,
    NAME,
    Cell,
    Content,
    Heading,
    Printed,
    Printer,
    inside,
    printer,
)
from unisono.apiserver.times import seconds
from unisono.kinds.shapes.served import Column, Served

Find = Callable[[Any], Any]  # the first value, or None


def custom_printer(served: Served) -> Printer:
    """Return the printer of a kind that has none built in."""
    if not served.columns:
        return printer(NAME, AGE)
    return printer(NAME, *(_printed(column) for column in served.columns))


def _printed(column: Column) -> Printed:
    heading = Heading(column.name, column.description, column.type, column.format, column.priority)
    return Printed(heading, _cell(column))


def _cell(column: Column) -> Cell:
    find = _finder(column.json_path)
    if column.type == "date":
        return lambda obj, now: _age(find(obj), now)
    show = _SHOW.get(column.type, _text)
    return lambda obj, now: show(find(obj))


def _finder(path: str) -> Find:
    names = plain_names(path)
    if names is not None:  # nearly all columns
        return lambda obj: inside(obj, *names)
    try:
        find = compile_path(path)
    except ValueError:
        # Whoever stored such a definition was told; its column stays empty.
        return lambda obj: None
    return lambda obj: next(iter(find(obj)), None)


def _text(value: Any) -> Content:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _integer(value: Any) -> Content:
    number = _number(value)
    return None if number is None else int(number)


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: Any) -> Content:
    return value if isinstance(value, bool) else None


def _age(value: Any, now: float) -> Content:
    if not isinstance(value, str):
        return None
    moment = seconds(value)
    return INVALID if moment is None else duration(now - moment)


_SHOW: dict[str, Callable[[Any], Content]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
}
