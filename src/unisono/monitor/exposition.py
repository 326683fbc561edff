"""Metrics as Prometheus reads them: families of samples, in the classic and in the open format.

Every Prometheus takes the classic text; OpenMetrics is the answer where it is asked for. In
OpenMetrics a counter's family has no `_total` in its name, and the text ends with `# EOF`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Literal, NamedTuple

CLASSIC = "text/plain; version=0.0.4; charset=utf-8"
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Type = Literal["gauge", "counter", "histogram"]


class Sample(NamedTuple):
    """One line: its labels, its value, and what is appended to the family's name."""

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


class Family(NamedTuple):
    """Samples of one name."""

    name: str
    type: Type
    help: str
    samples: Iterable[Sample]


def single(name: str, kind: Type, text: str, value: float) -> Family:
    """Return a family of one sample without labels."""
    return Family(name, kind, text, (Sample({}, value),))


def classic(families: Iterable[Family]) -> str:
    """Write families in the classic format."""
    return "".join(_lines(families, is_open=False))


def open_metrics(families: Iterable[Family]) -> str:
    """Write families as OpenMetrics."""
    return "".join((*_lines(families, is_open=True), "# EOF\n"))


def negotiated(families: Iterable[Family], accept: str) -> tuple[str, str]:
    """Return the content type and the text that a client accepts."""
    if "application/openmetrics-text" in accept:
        return OPEN, open_metrics(families)
    return CLASSIC, classic(families)


def _lines(families: Iterable[Family], *, is_open: bool) -> Iterator[str]:
    for family in families:
        name = family.name
        about = name.removesuffix("_total") if is_open and family.type == "counter" else name
        yield f"# HELP {about} {_help(family.help)}\n# TYPE {about} {family.type}\n"
        for labels, value, suffix in family.samples:
            yield f"{name}{suffix}{labelled(labels)} {written(value)}\n"


def labelled(labels: Mapping[str, str]) -> str:
    r"""Write labels.

    >>> labelled({"queue": "a", "reason": 'says "no"'})
    '{queue="a",reason="says \\"no\\""}'
    """
    if not labels:
        return ""
    plain = ",".join([f'{key}="{value}"' for key, value in labels.items()])
    # One look at all of them: hardly any value has anything to escape.
    if plain.count('"') == 2 * len(labels) and "\\" not in plain and "\n" not in plain:
        return "{" + plain + "}"
    return "{" + ",".join(f'{key}="{escaped(value)}"' for key, value in labels.items()) + "}"


def escaped(value: str) -> str:
    """Write a label's value between its quotation marks."""
    if '"' in value or "\\" in value or "\n" in value:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return value


def written(value: float) -> str:
    """Write a number; whole ones without a point, so that counts look like counts.

    >>> written(3.0), written(0.25), written(float("inf"))
    ('3', '0.25', '+Inf')
    """
    if isinstance(value, int):
        return str(int(value))  # a truth is a number, too
    if not isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


# ---- histograms ----------------------------------------------------------------------------------


def doubling(first: float, count: int) -> tuple[float, ...]:
    """Return so many bounds, each twice the one before.

    >>> doubling(2.5, 3)
    (2.5, 5.0, 10.0)
    """
    return tuple(first * 2**at for at in range(count))


# Waits: a second, then 2.5 seconds to the better part of a day; Kueue's histograms have the same.
WAITS = (1.0, *doubling(2.5, 15))


class Histogram:
    """Counts values by their labels; at most `most` sets of labels, so that it cannot grow."""

    def __init__(self, names: Sequence[str], bounds: Sequence[float], *, most: int = 2_000) -> None:
        """Take the names of the labels and the bounds, which rise."""
        self._names = tuple(names)
        self._bounds = tuple(bounds)
        self._most = most
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count a value."""
        if labels not in self._counts and len(self._counts) >= self._most:
            labels = ("other",) * len(labels)
        counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def expect(self, *labels: str) -> None:
        """Show a series with nothing in it, so that its first value is seen to come."""
        if labels not in self._counts and len(self._counts) < self._most:
            self._counts[labels] = [0] * (len(self._bounds) + 1)
            self._sums[labels] = 0.0

    def forget(self, is_gone: Callable[[tuple[str, ...]], bool]) -> None:
        """Drop the series with such labels."""
        for labels in [labels for labels in self._counts if is_gone(labels)]:
            del self._counts[labels], self._sums[labels]

    def samples(self) -> Iterator[Sample]:
        """Yield buckets, sum and count of every set of labels."""
        for values, counts in sorted(self._counts.items()):
            labels: Mapping[str, str] = dict(zip(self._names, values, strict=True))
            total = 0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                total += count
                yield Sample({**labels, "le": written(bound)}, total, "_bucket")
            yield Sample(labels, self._sums[values], "_sum")
            yield Sample(labels, total, "_count")
