"""Workloads: which wait and for what, which run, how long it took; the pace of their ranks.

A series about one workload disappears when the workload ends; what happened is in the counters.
Only the longest-waiting workloads have series of their own, so that a long queue stays cheap. Only
pods that report steps have rank series, while they are on a node; scores are those that the
watchdog acts on (`kinds/pace.py`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from unisono.engine.model.plan import PreemptionReason
from unisono.kinds.pace import ranked
from unisono.monitor.cache import ClusterCache, Key, WorkloadChange
from unisono.monitor.exposition import WAITS, Family, Histogram, Sample
from unisono.monitor.records import PodRecord, WorkloadRecord

_MOST_WAITING = 500
_MOST_RUNNING = 10_000

_PARTS = ("quota", "capacity", "start", "total")
# What makes a workload start again; other reasons are rare, and come to most workloads never.
_LIKELY = ("Preempted", "NodeFailures", "PodsReadyTimeout")

Labels = Mapping[str, str]


def families(cache: ClusterCache, now: float) -> Iterator[Family]:
    """Yield what there is to say about gangs that are not over."""
    living = [one for one in cache.workloads.values() if not one.finished]
    waiting = heapq.nsmallest(
        _MOST_WAITING, (one for one in living if one.is_waiting), key=lambda one: one.created
    )
    yield Family(
        "unisono_gang_pending_seconds",
        "gauge",
        "How long a workload has been pending, and what it waits for.",
        [
            Sample(
                {**named(one, cache), "reason": one.waits.stage or "order"},
                max(0.0, now - max(one.created, one.evicted)),
            )
            for one in waiting
        ],
    )
    shown = {one.key for one in waiting}
    yield Family(
        "unisono_gang_position",
        "gauge",
        "Position of a pending workload in its ClusterQueue, from 1.",
        [
            Sample(named(one, cache), at)
            for line in cache.pending_by_queue().values()
            for at, one in enumerate(line, 1)
            if one.key in shown
        ],
    )
    admitted = [one for one in living if not one.is_waiting][:_MOST_RUNNING]
    yield Family("unisono_gang_pods", "gauge", "Pods of a gang by state.", _pods(cache, admitted))
    yield Family(
        "unisono_workload_running",
        "gauge",
        "1 while all pods of a workload are ready.",
        [Sample({**named(one, cache), "kind": one.owner_kind}, 1) for one in admitted if one.ready],
    )
    yield Family(
        "unisono_pod_info",
        "gauge",
        "Labels of a pod: joins GPU metrics with workloads, queues and users.",
        [Sample(_pod_labels(pod, cache), 1) for pod in cache.pods_on_nodes() if pod.gpus],
    )


def named(workload: WorkloadRecord, cache: ClusterCache) -> Labels:
    """Return the labels that say which workload is meant."""
    queue = cache.queue_of(workload)
    return {"namespace": workload.namespace, "workload": workload.name, "queue": queue}


def _pods(cache: ClusterCache, admitted: list[WorkloadRecord]) -> Iterator[Sample]:
    for one, counts in pods_by_state(cache, admitted):
        labels = named(one, cache)
        for state, count in counts.items():
            yield Sample({**labels, "state": state}, count)


def pods_by_state(
    cache: ClusterCache, admitted: list[WorkloadRecord]
) -> Iterator[tuple[WorkloadRecord, dict[str, int]]]:
    """Yield how many pods of each gang there should be, are there, have nodes, and are ready.

    A pod that is done with its work counts as it did before: a gang whose pods end one after the
    other is no part of a gang.
    """
    found: dict[tuple[str, str], list[int]] = {one.key: [0, 0, 0] for one in admitted}
    for pod in cache.pods.values():
        counts = found.get((pod.namespace, pod.workload))
        is_done = pod.phase == "Succeeded"
        if counts is not None and (is_done or not pod.is_over):
            counts[0] += 1
            counts[1] += bool(pod.node)
            counts[2] += is_done or pod.is_ready
    for one in admitted:
        created, bound, ready = found[one.key]
        yield one, {"required": one.pods, "created": created, "bound": bound, "ready": ready}


def _pod_labels(pod: PodRecord, cache: ClusterCache) -> Labels:
    workload = cache.workload_of(pod)
    about = {"namespace": pod.namespace, "pod": pod.name, "node": pod.node}
    if workload is None:
        return {**about, "workload": "", "kind": "Pod", "queue": "", "cluster_queue": ""}
    queue = cache.queue_of(workload)
    return {
        **about,
        "workload": workload.name,
        "kind": workload.owner_kind,
        "queue": queue,
        "local_queue": workload.local_queue,
        "cluster_queue": queue,
        "user": workload.user,
        "team": workload.team,
        "priority_class": workload.priority_class,
        "rank": pod.rank,
    }


@dataclass(slots=True)
class _Counter:
    names: tuple[str, ...]
    counts: dict[tuple[str, ...], int]
    most: int

    def add(self, amount: int, *labels: str) -> None:
        if labels not in self.counts and len(self.counts) >= self.most:
            # The oldest makes room: its workload is most likely over.
            del self.counts[next(iter(self.counts))]
        self.counts[labels] = self.counts.get(labels, 0) + amount

    def expect(self, *labels: str) -> None:
        """Show a series at 0; half of the room stays for what is counted."""
        if len(self.counts) < self.most // 2:
            self.counts.setdefault(labels, 0)

    def forget_zero(self, *labels: str) -> None:
        if self.counts.get(labels) == 0:
            del self.counts[labels]

    def samples(self) -> list[Sample]:
        return [
            Sample(dict(zip(self.names, labels, strict=True)), count)
            for labels, count in self.counts.items()
        ]


class WorkloadHistory:
    """Counts what becomes of workloads from a time on."""

    def __init__(self, cache: ClusterCache, since: float) -> None:
        """Listen; what happened before `since` was counted by another process."""
        self._cache = cache
        # Conditions tell whole seconds: what came in the second we began in would seem older.
        self._since = math.floor(since)
        self._waits = Histogram(("queue", "priority_class", "part"), WAITS)
        self._preemptions = _Counter(("queue", "reason"), {}, 2_000)
        self._leaving = Histogram(("queue", "reason"), WAITS)
        self._restarts = _Counter(("namespace", "workload", "queue", "reason"), {}, 8_000)
        self._known_restarts: dict[Key, int] | None = None  # those before the first scrape
        cache.on_workload.append(self._follow)

    def _follow(self, step: WorkloadChange) -> None:
        before, after = step
        if before is not None and (after is None or after.finished):
            self._forget_zeros(before)
        if after is None:
            return
        self._expect(after)
        if self._is_news(before.reserved if before else 0.0, after.reserved):
            began = max(after.created, after.evicted)
            self._observe(after, "quota", after.reserved - began)
        if self._is_news(before.ready if before else 0.0, after.ready):
            admitted = after.admitted or after.reserved
            self._observe(after, "capacity", admitted - after.reserved)
            self._observe(after, "start", after.ready - admitted)
            self._observe(after, "total", after.ready - max(after.created, after.evicted))
        self._count_evictions(before, after)
        self._time_leaving(before, after)

    def _expect(self, workload: WorkloadRecord) -> None:
        """Show counters at 0 before their first event: it is invisible in a series born with it."""
        queue = self._cache.queue_of(workload)
        if workload.is_waiting:
            for part in _PARTS:
                self._waits.expect(queue, workload.priority_class, part)
        elif not workload.finished:
            for reason in _LIKELY:
                self._restarts.expect(workload.namespace, workload.name, queue, reason)

    def _forget_zeros(self, workload: WorkloadRecord) -> None:
        queue = self._cache.queue_of(workload)
        for reason in _LIKELY:
            self._restarts.forget_zero(workload.namespace, workload.name, queue, reason)

    def _count_evictions(self, before: WorkloadRecord | None, after: WorkloadRecord) -> None:
        if not self._is_news(0.0, after.evicted):
            return
        # On first sight of a workload that was evicted lately, only its last eviction is news.
        known = dict(before.evictions) if before is not None else None
        for reason, count in after.evictions:
            more = count - known.get(reason, 0) if known is not None else 1
            if more <= 0:
                continue
            queue = self._cache.queue_of(after)
            self._restarts.add(more, after.namespace, after.name, queue, reason)
            if reason == "Preempted":
                self._preemptions.add(more, queue, after.preemption or "Preempted")

    def _time_leaving(self, before: WorkloadRecord | None, after: WorkloadRecord) -> None:
        """Take the time from an order to make room until quota and nodes were free."""
        was_preempted = after.preemption and after.evicted and after.left >= after.evicted
        if was_preempted and self._is_news(before.left if before else 0.0, after.left):
            queue = self._cache.queue_of(after) or (self._cache.queue_of(before) if before else "")
            self._leaving.observe(after.left - after.evicted, queue, after.preemption)

    def _is_news(self, before: float, after: float) -> bool:
        return after > before and after >= self._since

    def _observe(self, workload: WorkloadRecord, part: str, seconds: float) -> None:
        queue = self._cache.queue_of(workload)
        self._waits.observe(max(0.0, seconds), queue, workload.priority_class, part)

    def families(self) -> Iterator[Family]:
        """Yield the counters."""
        for queue in sorted(self._cache.queues):
            for reason in get_args(PreemptionReason):
                self._preemptions.expect(queue, reason)
        yield Family(
            "unisono_gang_wait_time_seconds",
            "histogram",
            "How long workloads waited: for quota, for capacity, for their pods, and in total.",
            self._waits.samples(),
        )
        yield Family(
            "unisono_preemptions_total",
            "counter",
            "Workloads that were preempted, by reason.",
            self._preemptions.samples(),
        )
        yield Family(
            "unisono_preemption_latency_seconds",
            "histogram",
            "Time from a preemption until quota and nodes of the victim were free.",
            self._leaving.samples(),
        )
        yield Family(
            "unisono_workload_restarts_total",
            "counter",
            "Restarts of workloads, by reason.",
            [*self._restarts.samples(), *self._whole_gangs()],
        )

    def _whole_gangs(self) -> Iterator[Sample]:
        """Yield restarts of gangs that kept their quota: a JobSet counts them itself."""
        cache = self._cache
        if self._known_restarts is None:
            # Another leader counted these: they are no news of a series that is new.
            self._known_restarts = dict(cache.restarts)
        for workload in cache.workloads.values():
            key = workload.namespace, workload.owner_name
            if key in cache.restarts and not workload.finished:
                restarts = max(0, cache.restarts[key] - self._known_restarts.get(key, 0))
                yield Sample({**named(workload, cache), "reason": "GangRestarted"}, restarts)


# Three series each; larger gangs exist, but more lines than that cannot be read.
_MOST_RANKS = 10_000


def rank_families(cache: ClusterCache) -> Iterator[Family]:
    """Yield what pods say of their steps."""
    pods = [one for one in cache.pods_on_nodes() if one.workload and one.stepped][:_MOST_RANKS]
    timed = [one for one in pods if one.step_seconds]
    yield Family(
        "unisono_rank_step_seconds",
        "gauge",
        "Duration of a training step of a rank: the median of the last ones.",
        [Sample(_labels(one), one.step_seconds) for one in timed],
    )
    yield Family(
        "unisono_rank_last_step_timestamp_seconds",
        "gauge",
        "Time of the last step that a rank reported.",
        [Sample(_labels(one), one.stepped) for one in pods],
    )
    yield Family(
        "unisono_straggler_score",
        "gauge",
        "How much slower a rank is than the median of its gang, in median absolute deviations.",
        _scores(timed),
    )


def _scores(pods: list[PodRecord]) -> Iterator[Sample]:
    gangs: dict[tuple[str, str], dict[str, PodRecord]] = {}
    for one in pods:
        gangs.setdefault((one.namespace, one.workload), {})[one.name] = one
    for ranks in gangs.values():
        scores = ranked({name: one.step_seconds for name, one in ranks.items()})
        for name, rank in scores.items():
            yield Sample(_labels(ranks[name]), round(rank.score, 3))


def _labels(pod: PodRecord) -> Mapping[str, str]:
    return {
        "namespace": pod.namespace,
        "workload": pod.workload,
        "rank": pod.rank,
        "pod": pod.name,
        "node": pod.node,
    }
