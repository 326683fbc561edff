"""Where the pods of a set were placed, in the two forms that Kueue's versions have.

    v1beta1   domains: [{values: [b1, n1], count: 2}, {values: [b1, n2], count: 2}]

    v1beta2   slices:  [{domainCount: 2,
                         valuesPerLevel: [{universal: b1},
                                          {individual: {prefix: n, roots: ["1", "2"]}}],
                         podCounts: {universal: 2}}]

The second is the first, column by column, with what all rows share written once. Values are raw
(`Any` in the schema) so that an object survives being read and written; what has neither form is
left as it is, and `is_sound` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unisono.engine.model.node import HOSTNAME

# No gang has more (spec placement §10.1); a count beyond it is no count. A few characters can claim
# any number of domains, and any number of pods in each, so both are bounded in sum.
_MOST_DOMAINS = 100_000
_MOST_PODS = 1_000_000


def pods_per_host(assignment: Any) -> tuple[tuple[str, int], ...]:
    """Return how many pods go to each host, in the order written; nothing if it does not say."""
    old = expanded(assignment)
    if not is_sound(old) or not old["levels"] or old["levels"][-1] != HOSTNAME:
        return ()
    return tuple((domain["values"][-1], domain["count"]) for domain in old["domains"])


def is_sound(assignment: Any) -> bool:
    """Say whether an assignment has one of the two forms, with a value for every level."""
    if not isinstance(assignment, dict) or not _are_texts(assignment.get("levels")):
        return False
    depth = len(assignment["levels"])
    domains = assignment.get("domains")
    if isinstance(domains, list):
        if len(domains) > _MOST_DOMAINS or not all(_is_domain(one, depth) for one in domains):
            return False
        return sum(int(one["count"]) for one in domains) <= _MOST_PODS
    slices = assignment.get("slices")
    if not isinstance(slices, list) or not all(_is_slice(one, depth) for one in slices):
        return False
    rows = sum(int(one["domainCount"]) for one in slices)
    return rows <= _MOST_DOMAINS and sum(map(_pods_in, slices)) <= _MOST_PODS


def _pods_in(part: Any) -> int:
    counts: dict[str, Any] = part["podCounts"]
    if "universal" in counts:
        return int(counts["universal"] * part["domainCount"])
    return sum(counts["individual"])


def _are_texts(raw: Any) -> bool:
    return isinstance(raw, list) and all(isinstance(item, str) for item in raw)


def _is_count(raw: Any) -> bool:
    return isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0


def _is_domain(raw: Any, depth: int) -> bool:
    if not isinstance(raw, dict) or not _is_count(raw.get("count")):
        return False
    return _are_texts(raw.get("values")) and len(raw["values"]) == depth


def _is_slice(raw: Any, depth: int) -> bool:
    if not isinstance(raw, dict) or not _is_count(raw.get("domainCount")):
        return False
    rows, columns, counts = raw["domainCount"], raw.get("valuesPerLevel"), raw.get("podCounts")
    if rows > _MOST_DOMAINS or not isinstance(columns, list) or len(columns) != depth:
        return False
    if not isinstance(counts, dict) or not all(_is_column(one, rows) for one in columns):
        return False
    if "universal" in counts:
        return _is_count(counts["universal"])
    each = counts.get("individual")
    return isinstance(each, list) and len(each) == rows and all(_is_count(one) for one in each)


def _is_column(raw: Any, rows: int) -> bool:
    if not isinstance(raw, dict):
        return False
    if "universal" in raw:
        return isinstance(raw["universal"], str)
    parts = raw.get("individual")
    if not isinstance(parts, dict) or not _are_texts(parts.get("roots")):
        return False
    ends = (parts.get("prefix", ""), parts.get("suffix", ""))
    return len(parts["roots"]) == rows and all(isinstance(end, str) for end in ends)


def compressed(assignment: Any) -> Any:
    """Return the v1beta2 form of a v1beta1 assignment."""
    if not is_sound(assignment) or "domains" not in assignment:
        return assignment
    levels, domains = assignment["levels"], assignment["domains"]
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
    if not is_sound(assignment) or "domains" in assignment:
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
    return {"levels": assignment["levels"], "domains": domains}


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
