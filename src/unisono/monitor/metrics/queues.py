"""Queues: quota, usage and waiting workloads.

`lent` is what others use beyond their own share, laid on those of the same cohort that leave some
of theirs unused, in proportion to that. `held` is the part of `used` whose pods do not all run yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from unisono.monitor.cache import ClusterCache
from unisono.monitor.exposition import Family, Sample
from unisono.monitor.records import QueueRecord, WorkloadRecord

DEFAULT_SLO_SECONDS = 1800.0
STATES = ("pending", "inadmissible", "provisioning", "admitted", "running")

Place = tuple[str, str]  # a queue and a flavor


@dataclass(slots=True)
class QueueCounters:
    """What is used and wanted, by queue and flavor, and workloads by queue and state."""

    used: dict[Place, int] = field(default_factory=dict)
    held: dict[Place, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)  # by queue: no flavor is assigned yet
    states: dict[Place, int] = field(default_factory=dict)
    unstartable: dict[Place, int] = field(default_factory=dict)  # by queue and reason

    @staticmethod
    def of(cache: ClusterCache) -> QueueCounters:
        """Count."""
        tally = QueueCounters()
        for workload in cache.workloads.values():
            if not workload.finished:
                tally._count(workload, cache.queue_of(workload))
        return tally

    def _count(self, workload: WorkloadRecord, queue: str) -> None:
        _add(self.states, (queue, state_of(workload)), 1)
        if workload.is_waiting:
            self.pending[queue] = self.pending.get(queue, 0) + workload.gpus
            if workload.waits.is_never:
                _add(self.unstartable, (queue, workload.waits.reason), 1)
            return
        for one in workload.asked:
            _add(self.used, (queue, one.flavor), one.gpus)
            if not workload.ready:
                _add(self.held, (queue, one.flavor), one.gpus)


def state_of(workload: WorkloadRecord) -> str:
    """Say how far a workload is that is not over."""
    if workload.is_waiting:
        return "inadmissible" if workload.waits.stage not in ("", "order") else "pending"
    if workload.ready:
        return "running"
    return "provisioning" if workload.is_buying else "admitted"


def families(cache: ClusterCache, tally: QueueCounters) -> Iterator[Family]:
    """Yield what there is to say about queues."""
    queues = [cache.queues[name] for name in sorted(cache.queues)]
    yield Family(
        "unisono_queue_gpus",
        "gauge",
        "GPUs of a queue by flavor and kind.",
        _gpus(queues, tally),
    )
    yield Family(
        "unisono_queue_workloads",
        "gauge",
        "Workloads of a queue by state.",
        [
            Sample({"queue": one.name, "state": state}, tally.states.get((one.name, state), 0))
            for one in queues
            for state in STATES
        ],
    )
    yield Family(
        "unisono_unstartable_workloads",
        "gauge",
        "Workloads that cannot start without a change of them or their queue, by reason.",
        [
            Sample({"queue": queue, "reason": reason}, count)
            for (queue, reason), count in sorted(tally.unstartable.items())
        ],
    )
    yield Family(
        "unisono_queue_wait_slo_seconds",
        "gauge",
        "Wait after which GangWaitingTooLong fires for a workload of a queue.",
        [
            Sample(
                {"queue": one.name}, DEFAULT_SLO_SECONDS if one.wait_slo is None else one.wait_slo
            )
            for one in queues
        ],
    )
    yield Family(
        "unisono_queue_fair_share",
        "gauge",
        "Fair-sharing weight of a queue, and its share of all GPUs in use.",
        _shares(queues, tally),
    )


def _gpus(queues: list[QueueRecord], tally: QueueCounters) -> Iterator[Sample]:
    lent = lent_by(queues, tally.used)
    for one in queues:
        for at, quota in enumerate(one.quotas):
            place = one.name, quota.flavor
            used = tally.used.get(place, 0)
            kinds = {
                "nominal": quota.nominal,
                "used": used,
                "borrowed": max(0, used - quota.nominal),
                "lent": lent.get(place, 0),
                # A waiting workload has no flavor yet; it is counted once, with the first.
                "pending": tally.pending.get(one.name, 0) if at == 0 else 0,
                "held": tally.held.get(place, 0),
            }
            about = {"queue": one.name, "cohort": one.cohort, "flavor": quota.flavor}
            for kind, value in kinds.items():
                yield Sample({**about, "kind": kind}, value)


def lent_by(queues: list[QueueRecord], used: Mapping[Place, int]) -> dict[Place, int]:
    """Distribute what is borrowed in a cohort over the queues with unused quota."""
    borrowed: dict[Place, int] = {}
    unused: dict[Place, list[tuple[Place, int]]] = {}
    for one in queues:
        if not one.cohort:
            continue
        for quota in one.quotas:
            place, pool = (one.name, quota.flavor), (one.cohort, quota.flavor)
            over = used.get(place, 0) - quota.nominal
            if over > 0:
                _add(borrowed, pool, over)
            elif over < 0:
                unused.setdefault(pool, []).append((place, -over))
    found: dict[Place, int] = {}
    for pool, amount in borrowed.items():
        spare = unused.get(pool, [])
        total = sum(left for _, left in spare)
        left = min(amount, total)
        for place, part_unused in spare:
            part = min(left, -(-amount * part_unused // total))
            found[place] = part
            left -= part
    return found


def _shares(queues: list[QueueRecord], tally: QueueCounters) -> Iterator[Sample]:
    by_queue: dict[str, int] = {}
    for (queue, _), gpus in tally.used.items():
        by_queue[queue] = by_queue.get(queue, 0) + gpus
    everything = sum(by_queue.values())
    for one in queues:
        usage = by_queue.get(one.name, 0)
        yield Sample({"queue": one.name, "kind": "usage"}, usage)
        yield Sample({"queue": one.name, "kind": "share"}, usage / everything if everything else 0)
        yield Sample({"queue": one.name, "kind": "weight"}, one.weight)


def _add(into: dict[Place, int], place: Place, amount: int) -> None:
    into[place] = into.get(place, 0) + amount
