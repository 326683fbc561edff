"""What pods a cluster sees on which GPUs are shared, learned from what was admitted lately.

Typical pods decide how useful what is idle on a node is (FGD's fragmentation, Weng et al., "Beware
of Fragmentation", USENIX ATC 2023); large pods, however rare, decide which nodes are worth keeping
whole. Spec placement §8.15.

What is typical changes rarely (after 1, 16, 256 admissions, and in the end once in as many as the
history is long), because every ranking of nodes depends on it. It follows from the history
alone, so that a snapshot of the history brings back the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from unisono.engine.model.names import CPU
from unisono.engine.model.resources import WHOLE_GPU, Amounts, is_gpu, is_share

# So many admissions back the mix looks, at least: enough to follow what a cluster runs this week.
HISTORY = 2048
# Typical pods are the commonest shapes that together make up this share of all pods.
TYPICAL_PERCENT = 95
LARGE_GPUS = 2  # pods with so many devices need a node that has them free at the same time


class Shape(NamedTuple):
    """What fragmentation looks at: CPU, how many GPUs, and how much of each."""

    cpu: int
    gpus: int
    milli: int


Weighted = tuple[tuple[Shape, int], ...]

# Until there is history: parts and whole GPUs of every size, equally likely.
PRIOR: Weighted = (
    *((Shape(0, 1, milli), 1) for milli in (100, 250, 500, WHOLE_GPU)),
    *((Shape(0, gpus, WHOLE_GPU), 1) for gpus in (2, 4, 8)),
)
PRIOR_LARGE = tuple(item for item in PRIOR if item[0].gpus >= LARGE_GPUS)


def shape_of(requests: Amounts) -> Shape:
    """Return the shape of a pod."""
    cpu = sum(amount for name, amount in requests if name == CPU)
    part = sum(amount for name, amount in requests if is_share(name))
    if part:
        return Shape(cpu, 1, part)
    gpus = sum(amount for name, amount in requests if is_gpu(name))
    return Shape(cpu, gpus, WHOLE_GPU if gpus else 0)


class SharedMix:
    """Typical and large pods, with how often each was seen."""

    __slots__ = ("_is_fixed", "_parts", "_recent", "_settled", "edition", "large", "typical")

    def __init__(self) -> None:
        self._recent: list[Amounts] = []
        self._parts = 0
        self._is_fixed = False
        self._settled = 0  # so many of the history, from its beginning, are counted
        self.edition = 0  # grows when something else is typical
        self.typical: Weighted = PRIOR
        self.large: Weighted = PRIOR_LARGE

    @property
    def has_parts(self) -> bool:
        """Say whether somebody asked for a part of a GPU lately."""
        return self._parts > 0

    def recent(self) -> tuple[Amounts, ...]:
        """Return the history, oldest first."""
        return tuple(self._recent)

    def fix(self, history: Iterable[Amounts]) -> None:
        """Take what is typical from elsewhere, and learn nothing: for experiments."""
        self._is_fixed = True
        self._settle(history)

    def note(self, requests: Amounts) -> None:
        """Take an admitted pod set into account."""
        self._recent.append(requests)
        self._parts += any(is_share(name) for name, _ in requests)
        if len(self._recent) >= 2 * HISTORY:
            del self._recent[:HISTORY]
            self._parts = sum(any(is_share(name) for name, _ in one) for one in self._recent)
            self._settled = 0
        known = min(HISTORY, 1 << (len(self._recent).bit_length() - 1 & ~3))
        if len(self._recent) >= HISTORY:
            known = HISTORY
        if known != self._settled and not self._is_fixed:
            self._settled = known
            self._settle(islice(self._recent, known))

    def forget(self) -> None:
        """Begin anew: nobody shares any more."""
        if self._recent:
            self._recent.clear()
            self._parts = self._settled = 0
            self.typical, self.large = PRIOR, PRIOR_LARGE
            self.edition += 1

    def _settle(self, history: Iterable[Amounts]) -> None:
        self.typical, self.large = weighted(history)
        self.edition += 1


def weighted(history: Iterable[Amounts]) -> tuple[Weighted, Weighted]:
    """Return the typical shapes of pods, and all large ones, with how often each comes."""
    counts: Counter[Shape] = Counter()
    for requests, times in Counter(history).items():
        counts[shape_of(requests)] += times
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    wanted, typical = counts.total() * TYPICAL_PERCENT, []
    for shape, count in ordered:
        if wanted <= 0:
            break
        typical.append((shape, count))
        wanted -= 100 * count
    large = tuple(item for item in ordered if item[0].gpus >= LARGE_GPUS)
    return tuple(typical), large
