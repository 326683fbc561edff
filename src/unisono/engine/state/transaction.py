"""A ledger: bookings that can be taken back, so that a cycle may try things on the real picture.

Quota and nodes are booked together: a holding that leaves gives both back. Integer arithmetic makes
`rollback` exact: afterwards every cell and every node holds what it held at the mark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from unisono.engine.state.quota_tree import Cell, charge
from unisono.engine.state.tenancy import Cleared, Tenancy
from unisono.engine.state.tenant import Tenant

Charges = tuple[tuple[Cell, int], ...]


class Mark(NamedTuple):
    """A place in the ledger."""

    bookings: int = 0
    seats: int = 0


class Lifted(NamedTuple):
    """Everything that stood on a ledger."""

    bookings: Charges
    seats: tuple[tuple[Tenant, bool], ...]


class Clearing(NamedTuple):
    """Where a ledger and the nodes stood before many were counted as gone, and who was."""

    mark: Mark
    version: int
    cleared: list[Cleared]


class Booked(Protocol):
    """Something that holds quota and, perhaps, nodes."""

    @property
    def charges(self) -> Charges: ...
    @property
    def tenants(self) -> tuple[Tenant, ...]: ...


class Starting:
    """What an admission of this cycle queues."""

    __slots__ = ("charges", "tenants")

    def __init__(self, charges: Charges, tenants: tuple[Tenant, ...]) -> None:
        self.charges = charges
        self.tenants = tenants


class Ledger:
    """An undo log over the quota tree and the nodes; without nodes, who sits where stays."""

    __slots__ = ("_before", "_log", "_seats", "_tenancy", "later")

    def __init__(self, tenancy: Tenancy | None = None) -> None:
        self._log: list[tuple[Cell, int]] = []
        self._seats: list[tuple[Tenant, bool]] = []  # True: it came, False: it went
        self._tenancy = tenancy
        self.later: list[Tenant] = []  # who comes, too: seated when somebody looks at nodes
        self._before = 0  # the version of the nodes before the first of them moved

    def mark(self) -> Mark:
        """Return a place to roll back to."""
        if self.later:
            self.settle()
        return Mark(len(self._log), len(self._seats))

    def add(self, charges: Iterable[tuple[Cell, int]]) -> None:
        """Book usage of quota."""
        for cell, amount in charges:
            charge(cell, amount)
            self._log.append((cell, amount))

    def remove(self, charges: Iterable[tuple[Cell, int]]) -> None:
        """Take usage of quota off."""
        for cell, amount in charges:
            charge(cell, -amount)
            self._log.append((cell, -amount))

    def let_go(self, holding: Booked) -> None:
        """Count a holding as gone."""
        self.remove(holding.charges)
        for tenant in holding.tenants:
            self._move(tenant, comes=False)

    def bring_back(self, holding: Booked) -> None:
        """Count a holding that was gone as there again."""
        self.add(holding.charges)
        for tenant in holding.tenants:
            self._move(tenant, comes=True)

    def clear_nodes(self, holdings: Iterable[Booked]) -> Clearing:
        """Count many as gone from their nodes, for one look at these; their quota stays booked.

        Nothing else may be booked before `fill_nodes` has undone it.
        """
        assert self._tenancy is not None, "only a ledger with nodes can be looked at"
        mark = self.mark()
        version = self._tenancy.table.usage.version
        plain: list[Tenant] = []
        for holding in holdings:
            for tenant in holding.tenants:
                if self._tenancy.is_plain(tenant):
                    plain.append(tenant)
                else:
                    self._move(tenant, comes=False)
        return Clearing(mark, version, self._tenancy.clear(plain))

    def fill_nodes(self, clearing: Clearing) -> None:
        """Count them as there again."""
        assert self._tenancy is not None, "they were cleared"
        self._tenancy.fill(clearing.cleared)
        self.rollback(clearing.mark)
        self._tenancy.table.usage.put_back(clearing.version)

    def seat(self, tenant: Tenant) -> None:
        """Let pods sit on nodes."""
        self._move(tenant, comes=True)

    def seat_later(self, tenant: Tenant) -> None:
        """Let pods sit on nodes that have room for them; not before somebody looks there."""
        self.later.append(tenant)

    def settle(self) -> None:
        """Seat everybody who is still to be seated; whoever looks at nodes calls this first."""
        later, self.later = self.later, []
        for tenant in later:
            self._move(tenant, comes=True, fits=True)

    def unseat(self, tenant: Tenant) -> None:
        """Take pods off nodes."""
        self._move(tenant, comes=False)

    @property
    def moved(self) -> int:
        """Return a number that grows when somebody comes to, or leaves, a node."""
        return len(self._seats) + len(self.later)

    def rollback(self, mark: Mark = Mark()) -> None:  # noqa: B008  # a mark is a plain tuple
        """Undo everything since the mark."""
        if self.later:  # a mark has everybody seated: these came after it
            self.later.clear()
        while len(self._log) > mark.bookings:
            cell, amount = self._log.pop()
            charge(cell, -amount)
        if len(self._seats) > mark.seats:
            while len(self._seats) > mark.seats:
                tenant, came = self._seats.pop()
                self._sit(tenant, comes=not came)
            if not self._seats and self._tenancy is not None:
                self._tenancy.table.usage.put_back(self._before)

    def lift(self) -> Lifted:
        """Take everything off, to look at the picture as it is; `put_back` makes it good."""
        self.settle()
        lifted = Lifted(tuple(self._log), tuple(self._seats))
        self.rollback()
        return lifted

    def put_back(self, lifted: Lifted) -> None:
        """Book again what was lifted, in its order."""
        self.add(lifted.bookings)
        for tenant, came in lifted.seats:
            self._move(tenant, comes=came)

    def _move(self, tenant: Tenant, *, comes: bool, fits: bool = False) -> None:
        if self._tenancy is None:
            return  # only quota is looked at
        if not self._seats:
            self._before = self._tenancy.table.usage.version
        self._sit(tenant, comes=comes, fits=fits)
        self._seats.append((tenant, comes))

    def _sit(self, tenant: Tenant, *, comes: bool, fits: bool = False) -> None:
        assert self._tenancy is not None, "only a ledger with nodes has tenants"
        if comes:
            self._tenancy.occupy(tenant, fits=fits)
        else:
            self._tenancy.vacate(tenant)
