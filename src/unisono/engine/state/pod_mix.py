"""The pods a cluster sees, learned from what was admitted lately: typical and large ones.

Scoring reads them: what is idle on a node is worth as much as typical pods could use of it (FGD's
fragmentation, Weng et al., "Beware of Fragmentation", USENIX ATC 2023), and large pods, however
rare, decide which nodes are worth keeping whole. `PodMix` counts pods with whole GPUs,
`SharedPodMix` those of a cluster in which pods share GPUs. Spec placement §8.15.

Both follow from their history alone, so that a snapshot of the history brings back the same.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import msgspec

from unisono.engine.model.names import CPU
from unisono.engine.model.resources import WHOLE_GPU, Amounts, is_gpu, is_share

# Weights are integers in thousandths, so that equal clusters have equal fragmentation everywhere.
MILLI = 1000


class TypicalPod(msgspec.Struct, frozen=True):
    """A size of pod that the cluster sees often, with its weight in thousandths."""

    gpus: int
    requests: Amounts = ()  # besides the GPUs
    weight_milli: int = MILLI


# Until there is history: jobs of one, two, four and eight GPUs, equally likely.
PRIOR = tuple(TypicalPod(gpus, (), MILLI // 4) for gpus in (1, 2, 4, 8))


# How many admissions back the mix looks, and how many sizes of it count: enough to follow what a
# cluster runs this week, few enough to be cheap.
MIX_HISTORY = 2000
MOST_SHAPES = 16


class PodMix:
    """What pods the cluster sees, learned from what was admitted lately."""

    __slots__ = ("_counts", "_recent", "typical")

    def __init__(self, recent: Iterable[Amounts] = ()) -> None:
        self._recent: deque[Amounts] = deque()
        self._counts: Counter[Amounts] = Counter()
        self.typical: tuple[TypicalPod, ...] = PRIOR
        for requests in recent:
            self.note(requests)

    def note(self, requests: Amounts) -> None:
        """Take an admitted pod set into account; pods without GPUs fragment nothing."""
        if not any(is_gpu(resource) and amount for resource, amount in requests):
            return
        self._recent.append(requests)
        self._counts[requests] += 1
        if len(self._recent) > MIX_HISTORY:
            oldest = self._recent.popleft()
            self._counts[oldest] -= 1
            if not self._counts[oldest]:
                del self._counts[oldest]
        self.typical = self._typical()

    def recent(self) -> tuple[Amounts, ...]:
        """Return the history, oldest first."""
        return tuple(self._recent)

    def _typical(self) -> tuple[TypicalPod, ...]:
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_SHAPES]
        total = sum(count for _, count in ranked)
        return tuple(
            TypicalPod(
                gpus=sum(amount for resource, amount in requests if is_gpu(resource)),
                requests=tuple(pair for pair in requests if not is_gpu(pair[0])),
                weight_milli=count * MILLI // total,
            )
            for requests, count in ranked
        )


# So many admissions back the mix looks, at least: enough to follow what a cluster runs this week.
SHARED_HISTORY = 2048
# Typical pods are the commonest sizes that together make up this share of all pods.
TYPICAL_PERCENT = 95
LARGE_GPUS = 2  # pods with so many devices need a node that has them free at the same time


class PodSize(NamedTuple):
    """What fragmentation looks at: CPU, how many GPUs, and how much of each."""

    cpu: int
    gpus: int
    milli: int


Weighted = tuple[tuple[PodSize, int], ...]

# Until there is history: parts and whole GPUs of every size, equally likely.
SHARED_PRIOR: Weighted = (
    *((PodSize(0, 1, milli), 1) for milli in (100, 250, 500, WHOLE_GPU)),
    *((PodSize(0, gpus, WHOLE_GPU), 1) for gpus in (2, 4, 8)),
)
SHARED_PRIOR_LARGE = tuple(item for item in SHARED_PRIOR if item[0].gpus >= LARGE_GPUS)


def size_of(requests: Amounts) -> PodSize:
    """Return the size of a pod."""
    cpu = sum(amount for name, amount in requests if name == CPU)
    part = sum(amount for name, amount in requests if is_share(name))
    if part:
        return PodSize(cpu, 1, part)
    gpus = sum(amount for name, amount in requests if is_gpu(name))
    return PodSize(cpu, gpus, WHOLE_GPU if gpus else 0)


class SharedPodMix:
    """Typical and large pods, with how often each was seen.

    What is typical changes rarely (after 1, 16, 256 admissions, and in the end once in as many as
    the history is long), because every ranking of nodes depends on it.
    """

    __slots__ = ("_is_fixed", "_parts", "_recent", "_settled", "edition", "large", "typical")

    def __init__(self) -> None:
        self._recent: list[Amounts] = []
        self._parts = 0
        self._is_fixed = False
        self._settled = 0  # so many of the history, from its beginning, are counted
        self.edition = 0  # grows when something else is typical
        self.typical: Weighted = SHARED_PRIOR
        self.large: Weighted = SHARED_PRIOR_LARGE

    @property
    def has_parts(self) -> bool:
        """Say whether a pod with a part of a GPU was admitted lately."""
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
        if len(self._recent) >= 2 * SHARED_HISTORY:
            del self._recent[:SHARED_HISTORY]
            self._parts = sum(any(is_share(name) for name, _ in one) for one in self._recent)
            self._settled = 0
        known = min(SHARED_HISTORY, 1 << (len(self._recent).bit_length() - 1 & ~3))
        if len(self._recent) >= SHARED_HISTORY:
            known = SHARED_HISTORY
        if known != self._settled and not self._is_fixed:
            self._settled = known
            self._settle(islice(self._recent, known))

    def forget(self) -> None:
        """Start over: no pod shares a GPU any more."""
        if self._recent:
            self._recent.clear()
            self._parts = self._settled = 0
            self.typical, self.large = SHARED_PRIOR, SHARED_PRIOR_LARGE
            self.edition += 1

    def _settle(self, history: Iterable[Amounts]) -> None:
        self.typical, self.large = weighted(history)
        self.edition += 1


def weighted(history: Iterable[Amounts]) -> tuple[Weighted, Weighted]:
    """Return the typical sizes of pods, and all large ones, with how often each comes."""
    counts: Counter[PodSize] = Counter()
    for requests, times in Counter(history).items():
        counts[size_of(requests)] += times
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    wanted, typical = counts.total() * TYPICAL_PERCENT, []
    for size, count in ordered:
        if wanted <= 0:
            break
        typical.append((size, count))
        wanted -= 100 * count
    large = tuple(item for item in ordered if item[0].gpus >= LARGE_GPUS)
    return tuple(typical), large
