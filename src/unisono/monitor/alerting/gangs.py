"""What holds of gangs and queues; looked for only when any of them became another.

A wait that becomes too long is no change: since when each is, is found once and compared with the
clock from then on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from operator import itemgetter

from unisono.monitor.alerting.conditions import Holds, Labels
from unisono.monitor.books import Books
from unisono.monitor.metrics.gangs import named, pods_by_state
from unisono.monitor.metrics.queues import DEFAULT_SLO_SECONDS, Tally


class Gangs:
    """Remembers what the books said of gangs the last time."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._seen = (-1, -1, -1)
        self._deadlines: list[float] = []  # from when on each waits too long, the first first
        self._waiting: list[Labels] = []  # and who that is
        self._late: list[Labels] = []
        self._partly: list[Labels] = []
        self._starved: list[Labels] = []
        self._unstartable: list[Labels] = []

    def hold(self, books: Books, now: float) -> Holds:
        """Return what somebody might have to look at; the same lists while nothing is new."""
        seen = books.workloads_version, books.pods_version, books.queues_version
        if seen != self._seen:
            self._seen = seen
            waiting = sorted(_waiting(books), key=itemgetter(0))
            self._deadlines = [at for at, _ in waiting]
            self._waiting = [labels for _, labels in waiting]
            self._late = []
            self._partly = list(_partly(books))
            tally = Tally.of(books)
            self._starved = list(_starved(books, tally))
            self._unstartable = [
                {"queue": queue, "reason": reason} for queue, reason in sorted(tally.unstartable)
            ]
        late = bisect_left(self._deadlines, now)
        if late != len(self._late):
            self._late = self._waiting[:late]
        return {
            "GangWaitingTooLong": self._late,
            "GangPartiallyRunning": self._partly,
            "QuotaStarvation": self._starved,
            "WorkloadCannotStart": self._unstartable,
        }


def _waiting(books: Books) -> Iterator[tuple[float, Labels]]:
    for one in books.workloads.values():
        if one.is_waiting:
            queue = books.queues.get(books.queue_of(one))
            slo = queue.wait_slo if queue is not None else None
            deadline = max(one.created, one.evicted) + (DEFAULT_SLO_SECONDS if slo is None else slo)
            labels = {**named(one, books), "user": one.user, "reason": one.waits.stage or "order"}
            yield deadline, labels


def _partly(books: Books) -> Iterator[Labels]:
    admitted = [one for one in books.workloads.values() if not one.finished and not one.is_waiting]
    for one, counts in pods_by_state(books, admitted):
        if 0 < counts["bound"] < counts["required"]:
            yield named(one, books)


def _starved(books: Books, tally: Tally) -> Iterator[Labels]:
    for queue in books.queues.values():
        # Who waits has no flavor yet, and is counted with the first one.
        for quota in queue.quotas[:1]:
            used = tally.used.get((queue.name, quota.flavor), 0)
            if tally.pending.get(queue.name, 0) and used < quota.nominal:
                yield {"queue": queue.name, "cohort": queue.cohort, "flavor": quota.flavor}
