"""The page of figures: everything the books say, gathered for one scrape."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Literal

from unisono.monitor.books import Books
from unisono.monitor.exposition import Family, Sample, single
from unisono.monitor.histogram import Histogram, doubling
from unisono.monitor.metrics import gangs, kube_state, kueue, nodes, queues, ranks, scheduler
from unisono.monitor.metrics.machines import Machines
from unisono.monitor.metrics.placing import Placing
from unisono.monitor.metrics.spending import Spending
from unisono.monitor.records import NodeRecord

Compat = Literal["kueue", "kube-state"]
ALL: tuple[Compat, ...] = ("kueue", "kube-state")

_CYCLES = doubling(0.001, 14)


class Figures:
    """Owns the books and the counters beside them."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        version: str,
        mode: str,
        compat: Collection[Compat] = (),
        price: Callable[[NodeRecord], float] = lambda _: 0.0,
        since: float | None = None,
    ) -> None:
        """Count from now on, or what came `since` then; `compat` adds names of other projects.

        `price` is that of nodes which do not tell theirs.
        """
        since = clock() if since is None else since
        self.books = Books(price)
        self._clock = clock
        self._about = {"version": version, "mode": mode}
        self._compat = compat
        self._idle = nodes.Idle()
        self._history = gangs.History(self.books, since=since)
        self.machines = Machines(self.books, clock, since=since)
        self.spending = Spending(self.books, clock)
        self.cycles = Histogram(("phase",), _CYCLES)
        self.placing = Placing(self.books, since=since)
        self.health: Callable[[], scheduler.SchedulerHealth] = scheduler.SchedulerHealth

    def families(self) -> Iterator[Family]:
        """Yield everything, as it is now."""
        now = self._clock()
        self.books.settle()
        tally = queues.Tally.of(self.books)
        yield Family("unisono_build_info", "gauge", "What runs here.", (Sample(self._about, 1),))
        yield Family(
            "unisono_cycle_duration_seconds",
            "histogram",
            "How long decisions take, by phase.",
            self.cycles.samples(),
        )
        unread = "Objects that could not be read, so that the figures are without them."
        yield single("unisono_unread_objects_total", "counter", unread, self.books.unread)
        yield from scheduler.families(self.health())
        yield from queues.families(self.books, tally)
        yield from gangs.families(self.books, now)
        yield from ranks.families(self.books)
        yield from self._history.families()
        yield from self.placing.families(nodes.in_pieces(self.books))
        yield from nodes.families(self.books, self._idle.of(self.books, now))
        yield from self.machines.families()
        yield from self.spending.families(now)
        if "kueue" in self._compat:
            yield from kueue.families(self.books, tally)
        if "kube-state" in self._compat:
            yield from kube_state.families(self.books)
