"""Where the pods of a set were placed, in the two forms that Kueue's versions have.

    v1beta1   domains: [{values: [b1, n1], count: 2}, {values: [b1, n2], count: 2}]

    v1beta2   slices:  [{domainCount: 2,
                         valuesPerLevel: [{universal: b1},
                                          {individual: {prefix: n, roots: ["1", "2"]}}],
                         podCounts: {universal: 2}}]

The second is the first, column by column, with what all rows share written once. Values are raw
(`Any` in the schema) because no decision reads them yet; what has neither form is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def compressed(assignment: Any) -> Any:
    """Return the v1beta2 form of a v1beta1 assignment."""
    if not isinstance(assignment, dict) or "domains" not in assignment:
        return assignment
    levels, domains = assignment.get("levels", []), assignment["domains"]
    if not domains:
        return {"levels": levels, "slices": []}
    columns = [[domain["values"][level] for domain in domains] for level in range(len(levels))]
    counts = [domain["count"] for domain in domains]
    one_slice = {
        "domainCount": len(domains),
        "valuesPerLevel": [_column(column) for column in columns],
        "podCounts": _shared(counts) or {"individual": counts},
    }
    return {"levels": levels, "slices": [one_slice]}


def expanded(assignment: Any) -> Any:
    """Return the v1beta1 form of a v1beta2 assignment."""
    if not isinstance(assignment, dict) or "slices" not in assignment:
        return assignment
    domains: list[dict[str, Any]] = []
    for part in assignment["slices"]:
        rows = part["domainCount"]
        columns = [_values(column, rows) for column in part["valuesPerLevel"]]
        counts = part["podCounts"]
        pods = [counts["universal"]] * rows if "universal" in counts else counts["individual"]
        domains.extend(
            {"values": [column[row] for column in columns], "count": pods[row]}
            for row in range(rows)
        )
    return {"levels": assignment.get("levels", []), "domains": domains}


def _shared(items: Sequence[Any]) -> dict[str, Any] | None:
    return {"universal": items[0]} if all(item == items[0] for item in items) else None


def _column(values: list[str]) -> dict[str, Any]:
    """Write a column with its common beginning and end pulled out."""
    shared = _shared(values)
    if shared is not None:
        return shared
    prefix = _common_prefix(values)
    rest = [value[len(prefix) :] for value in values]
    suffix = _common_prefix([value[::-1] for value in rest])[::-1]
    roots = [value[: len(value) - len(suffix)] for value in rest]
    written: dict[str, Any] = {"roots": roots}
    if prefix:
        written["prefix"] = prefix
    if suffix:
        written["suffix"] = suffix
    return {"individual": written}


def _values(column: dict[str, Any], rows: int) -> list[str]:
    if "universal" in column:
        return [column["universal"]] * rows
    parts = column["individual"]
    prefix, suffix = parts.get("prefix", ""), parts.get("suffix", "")
    return [f"{prefix}{root}{suffix}" for root in parts["roots"]]


def _common_prefix(values: Sequence[str]) -> str:
    low, high = min(values), max(values)
    for index, letter in enumerate(low):
        if index >= len(high) or high[index] != letter:
            return low[:index]
    return low
