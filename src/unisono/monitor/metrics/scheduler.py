"""The scheduler: how long it takes to find nodes, what would fit, whether it makes progress.

It measures and counts; these are its numbers. Times from a gang's admission until its pods have
nodes come from the pods, in whole seconds as conditions have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from unisono.monitor.cache import ClusterCache, Key, PodChange, WorkloadChange
from unisono.monitor.exposition import WAITS, Family, Histogram, Sample, doubling, single

# From sixteen microseconds, for a gang whose answer is known, to half a second.
_PLACEMENTS = doubling(0.000_016, 16)
_ROLLBACKS = ("LateDecision", "NoOtherNode", "NodeLost", "NotBound", "PodsMissing")


class Largest(NamedTuple):
    """How many pods of so many GPUs would fit into one domain of a level, at most."""

    level: str
    gpus_per_pod: int
    pods: int


@dataclass(slots=True)
class _Bound:
    """Pods of a gang that have nodes."""

    count: int
    first: float
    last: float


class PlacementMetrics:
    """Gathers what is known about placement."""

    def __init__(self, cache: ClusterCache, since: float) -> None:
        """Listen; what was bound before `since` was counted by another process."""
        self._cache = cache
        self._since = math.floor(since)
        self.placements = Histogram(("result",), _PLACEMENTS)
        for result in ("placed", "refused"):
            self.placements.expect(result)
        self._commits = Histogram((), WAITS)
        self._partial = Histogram((), WAITS)
        self._commits.expect()
        self._partial.expect()
        self._starting: dict[Key, _Bound] = {}
        self.cached: Callable[[], tuple[int, int]] = lambda: (0, 0)  # answers known, and not
        self.rollbacks: Callable[[], Mapping[str, int]] = dict
        self.largest: Callable[[], Iterable[Largest]] = tuple
        cache.on_pod.append(self._follow_pod)
        cache.on_workload.append(self._follow_workload)

    def _follow_workload(self, step: WorkloadChange) -> None:
        gone = step.before if step.after is None else None
        waits = step.after if step.after is not None and step.after.is_waiting else gone
        if waits is not None:  # a workload that queues again is bound anew
            self._starting.pop(waits.key, None)

    def _follow_pod(self, step: PodChange) -> None:
        pod = step.after
        is_new = bool(pod.node) and (step.before is None or not step.before.node)
        workload = self._cache.workload_of(pod) if is_new and pod.bound >= self._since else None
        if workload is None or workload.is_waiting:
            return
        found = self._starting.setdefault(workload.key, _Bound(0, pod.bound, pod.bound))
        found.count += 1
        found.first, found.last = min(found.first, pod.bound), max(found.last, pod.bound)
        if found.count == workload.pods:
            del self._starting[workload.key]
            began = workload.admitted or workload.reserved
            self._commits.observe(max(0.0, found.last - began))
            self._partial.observe(found.last - found.first)

    def families(self, free: Mapping[str, int]) -> Iterator[Family]:
        """Yield everything; `free` says how many GPUs lie about on nodes in part, by model."""
        never = dict.fromkeys(_ROLLBACKS, 0)
        yield Family(
            "unisono_gang_placement_seconds",
            "histogram",
            "Time to find nodes for a gang, or to find that there are none.",
            self.placements.samples(),
        )
        yield Family(
            "unisono_gang_commit_seconds",
            "histogram",
            "Time from a gang's admission until all of its pods are bound.",
            self._commits.samples(),
        )
        yield Family(
            "unisono_gang_partial_seconds",
            "histogram",
            "Time between the first and the last bound pod of a gang.",
            self._partial.samples(),
        )
        yield Family(
            "unisono_gang_rollbacks_total",
            "counter",
            "Gangs that released all of their nodes because they could not be completed.",
            [
                Sample({"reason": one}, count)
                for one, count in sorted({**never, **self.rollbacks()}.items())
            ],
        )
        hits, misses = self.cached()
        known = (
            "Placements answered from the cache: the same as a gang of the same shape just before."
        )
        yield single("unisono_placer_cache_hits_total", "counter", known, hits)
        new = "Placements that were computed."
        yield single("unisono_placer_cache_misses_total", "counter", new, misses)
        yield Family(
            "unisono_fragmented_gpus",
            "gauge",
            "Free GPUs on partly used nodes: not available to pods that need a whole node.",
            [Sample({"flavor": model}, gpus) for model, gpus in sorted(free.items())],
        )
        yield Family(
            "unisono_largest_gang",
            "gauge",
            "Pods of so many GPUs that would fit into one topology domain of a level now.",
            [
                Sample({"level": one.level, "gpus_per_pod": str(one.gpus_per_pod)}, one.pods)
                for one in self.largest()
            ],
        )


# ---- progress ------------------------------------------------------------------------------------


class SchedulerHealth(NamedTuple):
    """The scheduler at one time; this is one that is well and has done nothing yet."""

    quarantined: Mapping[tuple[str, str], int] = {}  # objects by kind and stage
    quarantines: int = 0  # how often an object was put there
    refused_plans: int = 0
    rebuilds: int = 0
    failing_keys: int = 0
    planned_at: float = 0.0
    written_at: float = 0.0
    behind_s: float = 0.0
    unwritten_s: float = 0.0
    unexplained_s: float = 0.0


def health_families(health: SchedulerHealth) -> Iterator[Family]:
    """Yield everything, as it is now."""
    yield Family(
        "unisono_quarantined_objects",
        "gauge",
        "Objects that the scheduler goes on without, by kind and by what failed.",
        [
            Sample({"kind": kind, "stage": stage}, count)
            for (kind, stage), count in sorted(health.quarantined.items())
        ],
    )
    quarantines = "How often an object was put into quarantine."
    yield single("unisono_quarantines_total", "counter", quarantines, health.quarantines)
    refused = "Plans that the auditor refused: each is a bug, and kept as a recording."
    yield single("unisono_refused_plans_total", "counter", refused, health.refused_plans)
    rebuilds = "How often the scheduler built its state anew after an exception."
    yield single("unisono_state_rebuilds_total", "counter", rebuilds, health.rebuilds)
    failing = "Keys on which a controller failed the last time."
    yield single("unisono_failing_keys", "gauge", failing, health.failing_keys)
    planned = "When the last plan was made."
    yield single("unisono_last_plan_timestamp_seconds", "gauge", planned, health.planned_at)
    written = "When a decision was last written."
    yield single("unisono_last_write_timestamp_seconds", "gauge", written, health.written_at)
    behind = "For how long no plan could be made; 0 if all is well."
    yield single("unisono_scheduler_behind_seconds", "gauge", behind, health.behind_s)
    unwritten = "For how long no decision could be written; 0 if all is well."
    yield single("unisono_unwritten_seconds", "gauge", unwritten, health.unwritten_s)
    unexplained = "How long the oldest workload without an explanation has waited."
    yield single("unisono_unexplained_seconds", "gauge", unexplained, health.unexplained_s)
