"""What would unblock whom: the wake index of one cohort tree (spec performance §2.2).

A blocked kind is filed under the accounts it was short of, with the shortage. Availability can
grow by no more than what is freed in the tree, so nothing filed needs a look before at least its
shortage has been freed since. What also depends on victims, or on how several pod sets share, is
filed under "anything freed" (None). No shortages at all means that only configuration can help;
configuration changes wake everybody without asking this index.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from unisono.engine.model.names import QueueName
from unisono.engine.model.resources import Account
from unisono.engine.order.lines import Kind

# A queue, and the kind of workload in it; None stands for the stalled head of a StrictFIFO queue.
Sleeper = tuple[QueueName, Kind | None]
Shortages = tuple[tuple[Account, int], ...] | None


class Wakes:
    """Sleepers of one tree, filed by what they wait for."""

    __slots__ = ("_by_account", "_count", "_filed", "_freed", "_on_anything", "_tickets")

    def __init__(self) -> None:
        self._count = 0
        self._freed: dict[Account, int] = {}
        self._by_account: dict[Account, list[tuple[int, int, Sleeper]]] = {}
        self._on_anything: dict[Sleeper, None] = {}
        # The newest filing of each sleeper: entries with an older ticket are void.
        self._tickets: dict[Sleeper, int] = {}
        self._filed: dict[Sleeper, tuple[tuple[Account, int], ...]] = {}  # with thresholds

    def file(self, sleeper: Sleeper, shortages: Shortages) -> None:
        """File a sleeper under what it was short of."""
        self.forget(sleeper)
        if shortages is None:
            self._on_anything[sleeper] = None
            return
        for account, short in shortages:
            self._count += 1  # one ticket an entry, so that no comparison reaches the sleeper
            threshold = self._freed.get(account, 0) + max(1, short)
            entries = self._by_account.setdefault(account, [])
            if len(entries) > 2 * len(self._tickets) + 64:
                entries[:] = [entry for entry in entries if self._is_live(entry)]
                heapq.heapify(entries)
            heapq.heappush(entries, (threshold, self._count, sleeper))
        self._tickets[sleeper] = self._count - len(shortages)
        self._filed[sleeper] = tuple(
            (account, self._freed.get(account, 0) + max(1, short)) for account, short in shortages
        )

    def shortages(self, sleeper: Sleeper) -> Shortages:
        """Return what still has to be freed before a sleeper wakes, as `file` takes it."""
        filed = self._filed.get(sleeper)
        if filed is None:
            return None
        return tuple((account, until - self._freed.get(account, 0)) for account, until in filed)

    def forget(self, sleeper: Sleeper) -> None:
        """Drop a sleeper that left or was woken by something else."""
        self._tickets.pop(sleeper, None)
        self._filed.pop(sleeper, None)
        self._on_anything.pop(sleeper, None)

    def free(self, charges: Iterable[tuple[Account, int]]) -> Iterator[Sleeper]:
        """Note that usage went away and yield who should be looked at again."""
        if self._on_anything:
            woken = list(self._on_anything)
            self._on_anything.clear()
            yield from woken
        for account, amount in charges:
            freed = self._freed[account] = self._freed.get(account, 0) + amount
            entries = self._by_account.get(account)
            while entries and entries[0][0] <= freed:
                entry = heapq.heappop(entries)
                if self._is_live(entry):
                    del self._tickets[entry[2]]
                    del self._filed[entry[2]]
                    yield entry[2]

    def _is_live(self, entry: tuple[int, int, Sleeper]) -> bool:
        """Say whether the entry belongs to its sleeper's newest filing."""
        since = self._tickets.get(entry[2])
        return since is not None and entry[1] > since
