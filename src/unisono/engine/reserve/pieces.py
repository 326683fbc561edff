"""Pieces of time: what is free on every node, and used of every account, from one cut to the next.

Time is cut wherever somebody ends or starts; the last piece has no end. Rows of the arrays stay
where they are when a cut is added in between (`_order` says which row is which piece), until there
are as many pieces as there may be: then they are put in order once, and later instants are rounded
up to the next cut.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from unisono.engine.ledger import Booked
from unisono.engine.model.names import Instant
from unisono.engine.model.resources import WHOLE_GPU, Amounts, is_share
from unisono.engine.place.feasible import Mask
from unisono.engine.quota.tree import Cell, available
from unisono.engine.reserve.need import Counted
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.tenancy import Tenant, give_back, parts_of, take

MOST_PIECES = 640
# ... and so many more beyond the last one, further and further apart.
FAR_PIECES = 96

_NEVER = Instant(1 << 62)
FULL = -WHOLE_GPU  # what the column of a device says of which nothing is left
_Columns = tuple[tuple[int, int], ...]
_Kind = tuple[_Columns, int]  # what a pod takes, and which nodes (by the identity of their mask)


class Pieces:
    """What is free when."""

    def __init__(
        self,
        table: NodeTable,
        now: Instant,
        ends: list[tuple[Instant, int, Booked]],
        resolution_ms: int,
    ) -> None:
        self._table = table
        self._resolution_ms = resolution_ms
        self.cuts = _cuts(now, ends, resolution_ms)
        count = len(self.cuts)
        room = max(64, 2 * count)
        self._order: list[int] | None = list(range(count))
        self._free = np.empty((room, *table.free.shape), np.int64)
        self._free[0] = table.free
        self.usage: dict[Cell, Integers] = {}
        # How many pods of a kind fit on all nodes together, for kinds that were asked for.
        self._room: dict[_Kind, tuple[Mask, Integers]] = {}
        self._let_end(ends)
        self._recount()

    @property
    def next_cut(self) -> Instant:
        """Return when the first piece, which began when this was made, is over."""
        return self.cuts[1] if len(self.cuts) > 1 else _NEVER

    def _let_end(self, ends: list[tuple[Instant, int, Booked]]) -> None:
        """Give back what those who run hold, from the cut on at which they have ended."""
        freed: dict[Cell, list[tuple[int, int]]] = {}
        gone = 0
        for piece in range(1, len(self.cuts)):
            here = self._free[piece]
            here[:] = self._free[piece - 1]
            while gone < len(ends) and ends[gone][0] <= self.cuts[piece]:
                running = ends[gone][2]
                gone += 1
                for tenant in running.tenants:
                    self._give_back(here, tenant)
                for cell, amount in running.charges:
                    freed.setdefault(cell, []).append((piece, amount))
        for cell, entries in freed.items():
            change = np.zeros(len(self.cuts), np.int64)
            np.add.at(change, [piece for piece, _ in entries], [amount for _, amount in entries])
            self.usage[cell] = cell.usage - np.cumsum(change)

    def _give_back(self, free: Integers, tenant: Tenant) -> None:
        for column, amount in self._table.columns_of(tenant.requests):
            free[column, tenant.rows] += tenant.counts * amount
        if (parts := parts_of(self._table, tenant)) is not None:
            give_back(self._table, parts, free)

    def _recount(self) -> None:
        """Sum up what is free on all nodes that can be used, piece by piece."""
        rows = self._rows(0, len(self.cuts))
        usable = self._table.usable
        self.totals: Integers = np.maximum(self._free[rows], 0) @ usable

    def _rows(self, low: int, high: int) -> Rows | slice:
        if self._order is None:
            return slice(low, high)
        return np.array(self._order[low:high], np.intp)

    # --- cuts ------------------------------------------------------------------------------------

    def piece_before(self, instant: Instant) -> int:
        """Return the first piece that begins at `instant` or later: all before it end by then."""
        return bisect_left(self.cuts, instant)

    def cut(self, instant: Instant) -> int:
        """Cut time at an instant, or at the next cut when there are enough; return the piece."""
        found = bisect_left(self.cuts, instant)
        if found < len(self.cuts) and self.cuts[found] == instant:
            return found
        if self._order is None or len(self.cuts) >= MOST_PIECES:
            self._put_in_order()
            return bisect_left(self.cuts, instant)
        if len(self.cuts) >= self._free.shape[0]:
            self._free = np.concatenate([self._free, np.empty_like(self._free)])
        row = len(self.cuts)
        self._free[row] = self._free[self._order[found - 1]]
        self._order.insert(found, row)
        self.cuts.insert(found, instant)
        self.totals = np.insert(self.totals, found, self.totals[found - 1], axis=0)
        for cell, used in self.usage.items():
            self.usage[cell] = np.insert(used, found, used[found - 1])
        for kind, (allowed, room) in self._room.items():
            self._room[kind] = (allowed, np.insert(room, found, room[found - 1]))
        return found

    def _put_in_order(self) -> None:
        """Put pieces in order for good, and cut the time beyond the last cut in growing steps."""
        if self._order is None:
            return
        cuts, count = self.cuts, len(self.cuts)
        for _ in range(FAR_PIECES):
            step = max(self._resolution_ms, (cuts[-1] - cuts[0]) // 16)
            cuts.append(Instant(cuts[-1] + step))
        rows = [*self._order, *[self._order[-1]] * FAR_PIECES]
        self._free = self._free[np.array(rows, np.intp)]
        self._order = None
        last = [count - 1] * FAR_PIECES
        self.totals = np.concatenate([self.totals, self.totals[last]])
        for cell, used in self.usage.items():
            self.usage[cell] = np.concatenate([used, used[last]])
        for kind, (allowed, room) in self._room.items():
            self._room[kind] = (allowed, np.concatenate([room, room[last]]))

    # --- questions -------------------------------------------------------------------------------

    def starts_counted(self, known: Counted, limit_ms: int, first: int) -> list[int]:
        """Return the pieces from `first` on at which a gang that is counted may find its place."""
        enough = self._room_for(known) >= known.pods
        for cell, amount in known.cells:
            used = self.usage.get(cell)
            most = available(cell) + cell.usage - amount
            if used is not None:
                enough &= used <= most
            elif cell.usage > most:
                return []
        return self._long_enough(enough, limit_ms, first)

    def _room_for(self, known: Counted) -> Integers:
        """Return how many pods fit on all nodes together, piece by piece."""
        kind = (known.columns, id(known.allowed))
        found = self._room.get(kind)
        if found is None:
            count = known.allowed.shape[0]
            free = self._free[self._rows(0, len(self.cuts))][:, :, :count]
            room = _caps(free, known.columns) @ known.allowed
            found = self._room[kind] = (known.allowed, room)
        return found[1]

    def starts(self, wanted: Amounts, limit_ms: int, first: int) -> list[int]:
        """Return the pieces from `first` on at which there is enough, in total, for long enough."""
        enough = np.ones(len(self.cuts), np.bool_)
        for resource, amount in wanted:
            column = self._table.column(resource)
            if amount > 0:
                if column is None and is_share(resource):
                    continue  # which depends on the devices
                if column is None:
                    return []
                enough &= self.totals[:, column] >= amount
        return self._long_enough(enough, limit_ms, first)

    def _long_enough(self, enough: Mask, limit_ms: int, first: int) -> list[int]:
        """Return the pieces from `first` on with enough until the limit is over."""
        good = np.flatnonzero(enough[first:]) + first
        if not good.shape[0]:
            return []
        bad = np.flatnonzero(~enough)
        if not bad.shape[0]:
            return [int(piece) for piece in good]
        cuts = np.array(self.cuts, np.int64)
        after = np.searchsorted(bad, good)
        ends = np.append(cuts[bad], np.iinfo(np.int64).max)[after]
        fitting: list[int] = good[cuts[good] + limit_ms <= ends].tolist()
        return fitting

    def least_free(self, low: int, high: int) -> Integers:
        """Return what stays free on every node through the pieces [low, high)."""
        if high - low == 1:
            row = low if self._order is None else self._order[low]
            here: Integers = self._free[row].copy()
            return here
        pieces = self._free[self._rows(low, high)]
        least: Integers = pieces.min(axis=0)
        for _, devices in self._table.devices.values():
            # Shared now and whole later, or the other way round: nobody may count on either.
            for column in devices:
                least[column][(least[column] < 0) & (pieces[:, column].max(axis=0) == 0)] = FULL
        return least

    def leaves(self, tenants: tuple[Tenant, ...], high: int) -> bool:
        """Say whether nodes have room for tenants from now on through the pieces below `high`."""
        free = self.least_free(0, high)
        for tenant in tenants:
            for column, amount in self._table.columns_of(tenant.requests):
                free[column, tenant.rows] -= tenant.counts * amount
                if (free[column, tenant.rows] < 0).any():
                    return False
            if not self._leaves_devices(tenant, free):
                return False
        return True

    def _leaves_devices(self, tenant: Tenant, free: Integers) -> bool:
        """Say whether devices have room for a tenant, and let it sit there."""
        parts = parts_of(self._table, tenant)
        if parts is None:
            return True
        whole, devices = self._table.devices[parts.share]
        take(self._table, parts, free)
        return bool(
            (free[whole, tenant.rows] >= 0).all()
            and (free[list(devices)][:, tenant.rows] >= FULL).all()
        )

    def most_used(self, cell: Cell, low: int, high: int) -> int:
        """Return the most that is used of an account through the pieces [low, high)."""
        used = self.usage.get(cell)
        return cell.usage if used is None else int(used[low:high].max())

    # --- bookings --------------------------------------------------------------------------------

    def book(
        self,
        tenants: tuple[Tenant, ...],
        charges: tuple[tuple[Cell, int], ...],
        low: int,
        high: int,
    ) -> None:
        """Let somebody sit there through the pieces [low, high)."""
        rows = self._rows(low, high)
        pieces = np.arange(low, high) if isinstance(rows, slice) else rows
        for tenant in tenants:
            where = np.ix_(pieces, np.arange(self._free.shape[1]), tenant.rows)
            here = self._free[where]
            before = {kind: _caps(here, kind[0]) for kind in self._room}
            for column, amount in self._table.columns_of(tenant.requests):
                taken = tenant.counts * amount
                here[:, column, :] -= taken
                self.totals[low:high, column] -= int(taken.sum())
            self._share(tenant, here, low, high)
            self._free[where] = here
            for kind, (allowed, room) in self._room.items():
                lost = before[kind] - _caps(here, kind[0])
                room[low:high] -= lost @ allowed[tenant.rows]
        for cell, amount in charges:
            if cell not in self.usage:
                self.usage[cell] = np.full(len(self.cuts), cell.usage, np.int64)
            self.usage[cell][low:high] += amount

    def _share(self, tenant: Tenant, here: Integers, low: int, high: int) -> None:
        """Let a tenant take its parts of devices in every piece: (pieces, columns, its nodes)."""
        parts = parts_of(self._table, tenant)
        if parts is None:
            return
        whole = self._table.devices[parts.share].whole
        place_of = {row: place for place, row in enumerate(tenant.rows.tolist())}
        local = parts._replace(rows=[place_of[row] for row in parts.rows])
        before = here[:, whole].sum(axis=1)
        for piece in here:
            take(self._table, local, piece)
        self.totals[low:high, whole] -= before - here[:, whole].sum(axis=1)


def _caps(free: Integers, columns: _Columns) -> Integers:
    """Return how many pods fit, given what is free in (pieces, columns, nodes)."""
    (column, amount), *others = columns
    caps: Integers = free[:, column] // amount
    for column, amount in others:
        np.minimum(caps, free[:, column] // amount, out=caps)
    return np.maximum(caps, 0, out=caps)


def _cuts(
    now: Instant, ends: list[tuple[Instant, int, Booked]], resolution_ms: int
) -> list[Instant]:
    """Cut time where somebody ends; with very many, at whole steps only."""
    soon = Instant(now + 1)  # whoever is over their limit may end at any moment
    exact = sorted({max(end, soon) for end, _, _ in ends})
    if len(exact) >= MOST_PIECES // 2:
        head, tail = exact[: MOST_PIECES // 4], exact[MOST_PIECES // 4 :]
        step = max(resolution_ms, -(-(tail[-1] - tail[0]) // (MOST_PIECES // 4)))
        rounded = {Instant(tail[0] + -(-(end - tail[0]) // step) * step) for end in tail}
        exact = [*head, *sorted(rounded - set(head))]
    return [now, *exact]
