"""The hint for an unknown name: which known name is nearest to it."""

from __future__ import annotations

from collections.abc import Iterable

_MAX_EDITS = 2
_MIN_PREFIX = 5  # `cohort` suggests `cohortName`; shorter beginnings are coincidences


def did_you_mean(unknown: str, known: Iterable[str]) -> str:
    """Return `; did you mean "name"?` for the nearest known name, or nothing.

    >>> did_you_mean("nominalQouta", ["name", "nominalQuota"])
    '; did you mean "nominalQuota"?'
    >>> did_you_mean("banana", ["name"])
    ''
    """
    near = nearest(unknown, known)
    return f'; did you mean "{near}"?' if near else ""


def nearest(unknown: str, known: Iterable[str]) -> str:
    """Return the known name that `unknown` was probably meant to be, or an empty string."""
    best = (_MAX_EDITS + 1, "")
    for name in known:
        if _bare(name) == _bare(unknown):
            return name
        if abs(len(name) - len(unknown)) <= _MAX_EDITS:
            best = min(best, (_edits(unknown, name), name))
        elif _extends(unknown, name):
            best = min(best, (_MAX_EDITS, name))
    # Two edits turn any short word into any other; ask for more likeness there.
    return best[1] if best[0] <= min(_MAX_EDITS, len(unknown) // 3) else ""


def _bare(name: str) -> str:
    """Forget how words are joined: `node_labels`, `node-labels` and `nodelabels` are one name."""
    return name.replace("_", "").replace("-", "").casefold()


def _extends(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) >= _MIN_PREFIX and longer.startswith(shorter)


def _edits(one: str, other: str) -> int:
    """Return the edit distance, counting a swap of neighbours as one (optimal alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        previous, row = row, [i]
        for j, wanted in enumerate(other, start=1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = previous
    return row[-1]
