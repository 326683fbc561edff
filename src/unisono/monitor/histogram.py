"""A histogram: how many of the values seen lie below each of some bounds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from unisono.monitor.exposition import Sample, written


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
