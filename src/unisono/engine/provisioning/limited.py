"""Machines within the limits of several pools at once: a search with bounds.

Limits couple types: two large machines may leave no cores for a third. The table of `cover` does
not know that, so when its answer breaks a limit the cheapest one that does not is searched here,
cheapest places first, leaving out whatever cannot become cheaper than the best so far.
"""

from __future__ import annotations

from collections.abc import Sequence

from unisono.engine.model.market import NODES
from unisono.engine.provisioning.candidates import headroom
from unisono.engine.provisioning.catalogue import Offering
from unisono.engine.provisioning.cover import Counts, Kind

# A search that has looked at so many choices answers with the best so far.
MOST_LOOKS = 20_000


def cover_within(
    pods: int,
    kinds: tuple[Kind, ...],
    offerings: Sequence[Offering],
    planned: dict[str, dict[str, int]],
) -> Counts | None:
    """Return the cheapest machines that hold `pods` and stay within every limit."""
    order = sorted(range(len(kinds)), key=lambda i: (kinds[i].price / kinds[i].slots, i))
    search = _Search(pods, kinds, offerings, order)
    search.go(0, pods, 0, [0] * len(kinds), {name: dict(mine) for name, mine in planned.items()})
    return search.best


class _Search:
    def __init__(
        self, pods: int, kinds: tuple[Kind, ...], offerings: Sequence[Offering], order: list[int]
    ) -> None:
        self._kinds = kinds
        self._offerings = offerings
        self._order = order
        self._looks = 0
        self._price: int | None = None
        self.best: Counts | None = None

    def go(
        self, at: int, left: int, price: int, counts: list[int], used: dict[str, dict[str, int]]
    ) -> None:
        """Choose how many of the next kind; the most that make sense first."""
        self._looks += 1
        if left <= 0:
            if self._price is None or price < self._price:
                self._price, self.best = price, tuple(counts)
            return
        if at == len(self._order) or self._looks > MOST_LOOKS:
            return
        kind = self._kinds[self._order[at]]
        # The kinds come by the price of a place: nothing later is cheaper than this one.
        if self._price is not None and price + left * kind.price / kind.slots >= self._price:
            return
        offering = self._offerings[self._order[at]]
        most = min(kind.stock, -(-left // kind.slots), headroom(offering, used))
        for count in range(most, -1, -1):
            counts[self._order[at]] = count
            more = {
                **used,
                offering.pool.name: _with(used.get(offering.pool.name, {}), offering, count),
            }
            self.go(at + 1, left - count * kind.slots, price + count * kind.price, counts, more)
        counts[self._order[at]] = 0


def _with(mine: dict[str, int], offering: Offering, count: int) -> dict[str, int]:
    made = dict(mine)
    made[NODES] = made.get(NODES, 0) + count
    for name, amount in offering.machine.capacity:
        made[name] = made.get(name, 0) + amount * count
    return made
