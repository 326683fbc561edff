"""The cheapest machines that hold so many equal pods (spec provisioning §5.3).

A table says for every number of machines and every number of pods what the cheapest choice costs;
machine offers join it one after the other, in bundles of 1, 2, 4, … so that stock is a bound
like any other. One table answers every packing policy:

    MinCost       the cheapest column
    FewestNodes   the first row that can hold all pods
    Balanced      the first row that costs at most a quarter more than the cheapest one

Above `EXACT_SLOTS` pods the bulk goes to the machine whose place is cheapest (largest, for the
other policies), and only the rest is searched: the result is at most one machine's price above the
optimum. How long it takes depends on the machine offers, not on the number of pods.

Limits of pools couple offers: two large machines may leave no cores for a third. The table does
not know that, so that where its answer breaks a limit `cover_within` searches the cheapest one
that does not, cheapest places first, leaving out whatever cannot become cheaper than the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.provisioning import NODES, Packing
from unisono.engine.provisioning.candidates import headroom
from unisono.engine.provisioning.catalogue import Offering

# Pods that are searched exactly. With eight of them on a machine that is 16 machines, beyond
# what any mixture of sizes could gain.
EXACT_SLOTS = 128
# A search that has tried so many choices answers with the best so far.
MOST_CHOICES = 20_000
_NEVER = 2**60
_Table = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MachineOffer:
    """Machines that are alike: how many pods one holds, what it costs, how many there are."""

    slots: int
    price: int
    stock: int


Counts = tuple[int, ...]  # of each offer


@lru_cache(maxsize=1024)  # zones mostly sell alike: one search serves them all
def cover(
    pods: int, offers: tuple[MachineOffer, ...], packing: Packing, slack_milli: int
) -> Counts | None:
    """Return how many machines of each offer hold `pods`; None if there are not enough."""
    if sum(machine.slots * machine.stock for machine in offers) < pods:
        return None
    counts = [0] * len(offers)
    if len({machine.slots for machine in offers}) == 1:  # the usual case of a gang: nothing to mix
        _take_cheapest(pods, offers, counts)
        return tuple(counts)
    left = pods
    while left > EXACT_SLOTS:
        index = _bulk(offers, counts, packing, slack_milli)
        machine = offers[index]
        in_stock = machine.stock - counts[index]
        taken = min(in_stock, -(-(left - EXACT_SLOTS) // machine.slots))
        counts[index] += taken
        left -= taken * machine.slots
    rest = tuple(
        MachineOffer(machine.slots, machine.price, machine.stock - taken)
        for machine, taken in zip(offers, counts, strict=True)
    )
    if left > 0:
        for index, taken in enumerate(_search(left, rest, packing, slack_milli)):
            counts[index] += taken
    return tuple(counts)


def cost_of(counts: Counts, offers: tuple[MachineOffer, ...]) -> int:
    """Return what machines cost together."""
    return sum(count * machine.price for count, machine in zip(counts, offers, strict=True))


def _take_cheapest(pods: int, offers: tuple[MachineOffer, ...], counts: list[int]) -> None:
    needed = -(-pods // offers[0].slots)
    for index in sorted(range(len(offers)), key=lambda i: (offers[i].price, i)):
        taken = min(needed, offers[index].stock)
        counts[index] = taken
        needed -= taken


def _bulk(
    offers: tuple[MachineOffer, ...], counts: list[int], packing: Packing, slack_milli: int
) -> int:
    """Choose the offer that most pods go to."""
    there = [i for i, machine in enumerate(offers) if counts[i] < machine.stock]
    cheapest = min(there, key=lambda i: (offers[i].price / offers[i].slots, i))
    if packing == "MinCost":
        return cheapest
    if packing == "Balanced":
        limit = offers[cheapest].price * (1000 + slack_milli) / offers[cheapest].slots
        there = [i for i in there if offers[i].price * 1000 / offers[i].slots <= limit]
    return max(there, key=lambda i: (offers[i].slots, -offers[i].price, -i))


@dataclass(frozen=True, slots=True)
class _Step:
    """A bundle that joined the table: where taking it was better, and what the rest was then."""

    machine: int
    bundle: int
    better: NDArray[np.bool_]
    rest_of_all: NDArray[np.intp]  # by machines: how many pods the others hold if all have a place


def _search(
    pods: int, offers: tuple[MachineOffer, ...], packing: Packing, slack_milli: int
) -> list[int]:
    """Fill the table and read the best choice from it."""
    slots = min(machine.slots for machine in offers if machine.stock)
    most = min(-(-pods // slots), sum(machine.stock for machine in offers))
    table = np.full((most + 1, pods + 1), _NEVER, np.int64)
    table[0, 0] = 0
    steps: list[_Step] = []
    for index, machine in enumerate(offers):
        for bundle in _bundles(min(machine.stock, most, -(-pods // machine.slots))):
            table, step = _joined(table, index, bundle, machine)
            steps.append(step)
    row = _row(table[:, pods], packing, slack_milli)
    return _read(steps, offers, row, pods)


def _bundles(stock: int) -> list[int]:
    """Return bundles of which any number up to the stock can be made.

    >>> _bundles(6)
    [1, 2, 3]
    """
    found, size = [], 1
    while stock > 0:
        found.append(min(size, stock))
        stock -= found[-1]
        size *= 2
    return found


def _joined(table: _Table, index: int, bundle: int, machine: MachineOffer) -> tuple[_Table, _Step]:
    """Return the table when a bundle may be taken, too.

    The last column is "all pods": places beyond the need are not counted.
    """
    rows, last = table.shape[0], table.shape[1] - 1
    shifted = np.full_like(table, _NEVER)
    reach = min(bundle * machine.slots, last)
    enough = table[: rows - bundle, last - reach :]  # these need no more than the bundle
    rest = np.zeros(rows, np.intp)
    rest[bundle:] = last - reach + enough.argmin(axis=1)
    shifted[bundle:, reach:last] = table[: rows - bundle, : last - reach]
    shifted[bundle:, last] = enough.min(axis=1)
    shifted += bundle * machine.price
    better = shifted < table
    return np.where(better, shifted, table), _Step(index, bundle, better, rest)


def _row(costs: _Table, packing: Packing, slack_milli: int) -> int:
    """Choose how many machines to have."""
    if packing == "FewestNodes":
        return int(np.argmax(costs < _NEVER))
    cheapest = int(np.argmin(costs))
    if packing == "MinCost":
        return cheapest
    bound = int(costs[cheapest]) * (1000 + slack_milli) // 1000
    return int(np.argmax(costs <= bound))


def _read(steps: list[_Step], offers: tuple[MachineOffer, ...], row: int, pods: int) -> list[int]:
    """Walk back through the bundles that were taken."""
    counts = [0] * len(offers)
    column = pods
    for step in reversed(steps):
        if step.better[row, column]:
            counts[step.machine] += step.bundle
            reach = step.bundle * offers[step.machine].slots
            column = int(step.rest_of_all[row]) if column == pods else column - reach
            row -= step.bundle
    return counts


def cover_within(
    pods: int,
    offers: tuple[MachineOffer, ...],
    offerings: Sequence[Offering],
    planned: dict[str, dict[str, int]],
) -> Counts | None:
    """Return the cheapest machines that hold `pods` and stay within every limit."""
    order = sorted(range(len(offers)), key=lambda i: (offers[i].price / offers[i].slots, i))
    search = _Search(offers, offerings, order)
    search.search(
        0, pods, 0, [0] * len(offers), {name: dict(mine) for name, mine in planned.items()}
    )
    return search.best


class _Search:
    def __init__(
        self,
        offers: tuple[MachineOffer, ...],
        offerings: Sequence[Offering],
        order: list[int],
    ) -> None:
        self._offers = offers
        self._offerings = offerings
        self._order = order
        self._tried = 0
        self._price: int | None = None
        self.best: Counts | None = None

    def search(
        self, at: int, left: int, price: int, counts: list[int], used: dict[str, dict[str, int]]
    ) -> None:
        """Choose how many of the next offer; the most that make sense first."""
        self._tried += 1
        if left <= 0:
            if self._price is None or price < self._price:
                self._price, self.best = price, tuple(counts)
            return
        if at == len(self._order) or self._tried > MOST_CHOICES:
            return
        machine = self._offers[self._order[at]]
        # The offers come by the price of a place: nothing later is cheaper than this one.
        if self._price is not None and price + left * machine.price / machine.slots >= self._price:
            return
        offering = self._offerings[self._order[at]]
        most = min(machine.stock, -(-left // machine.slots), headroom(offering, used))
        for count in range(most, -1, -1):
            counts[self._order[at]] = count
            more = {
                **used,
                offering.pool.name: _with(used.get(offering.pool.name, {}), offering, count),
            }
            self.search(
                at + 1, left - count * machine.slots, price + count * machine.price, counts, more
            )
        counts[self._order[at]] = 0


def _with(mine: dict[str, int], offering: Offering, count: int) -> dict[str, int]:
    made = dict(mine)
    made[NODES] = made.get(NODES, 0) + count
    for name, amount in offering.machine.capacity:
        made[name] = made.get(name, 0) + amount * count
    return made
