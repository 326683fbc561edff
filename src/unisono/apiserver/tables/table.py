"""Objects as a Table, or cut down to their metadata: the two short forms of a list.

Rows carry the metadata of their objects, from which clients take namespaces and labels; on request
the whole object (`kubectl get --sort-by`) or nothing. The order is that of the objects, but for
events (see `events`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from unisono.apiserver.tables.age import INVALID
from unisono.apiserver.tables.custom import custom_printer
from unisono.apiserver.tables.events import EVENTS, by_time
from unisono.apiserver.tables.printer import Content, Printer
from unisono.apiserver.tables.printers import PRINTERS
from unisono.kinds.shapes.served import Served

Json = dict[str, Any]

_META_VERSION = "meta.k8s.io/v1"


def as_table(
    served: Served,
    objects: Iterable[Json],
    *,
    now: float,
    include: str,
    list_metadata: Json,
    with_columns: bool,
) -> Json:
    """Return the Table of some objects of one kind; `include` is Metadata, Object or None.

    A watch sends the columns with its first event only.
    """
    printer = printer_of(served)
    rows = list(rows_of(served, objects, now=now, include=include))
    columns = [heading.as_json() for heading in printer.headings] if with_columns else None
    return {
        "kind": "Table",
        "apiVersion": _META_VERSION,
        "metadata": list_metadata,
        "columnDefinitions": columns,
        "rows": rows,
    }


def rows_of(served: Served, objects: Iterable[Json], *, now: float, include: str) -> Iterator[Json]:
    """Yield the rows of a Table one by one, so that nobody has to hold ten thousand objects."""
    printer = printer_of(served)
    for obj in by_time(objects) if printer is EVENTS else objects:
        row: Json = {"cells": _cells(printer, obj, now)}
        if include == "Object":
            row["object"] = obj
        elif include != "None":
            row["object"] = _label(obj)
        yield row


def _cells(printer: Printer, obj: Json, now: float) -> list[Content]:
    try:
        return printer.cells(obj, now)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # Schemas keep objects in shape; should one be odd all the same, the others are still shown.
        name = obj["metadata"].get("name", "")
        return [name if heading.format == "name" else INVALID for heading in printer.headings]


def _label(obj: Json) -> Json:
    """Return what a row says about its object: the metadata, as far as anybody prints it.

    Who manages which field is more than half of the bytes of a long table, and in no column.
    """
    found = partial(obj)
    if "managedFields" in found["metadata"]:
        found["metadata"] = {**found["metadata"]}
        del found["metadata"]["managedFields"]
    return found


def partial(obj: Json) -> Json:
    """Return an object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": _META_VERSION,
        "metadata": obj["metadata"],
    }


# A few hundred kinds at most; kinds are compared by identity, so a new definition starts afresh.
@lru_cache(maxsize=1024)
def printer_of(served: Served) -> Printer:
    """Return what prints a kind: built in, or made of the columns that it declares."""
    return PRINTERS.get(served.key) or custom_printer(served)
