"""The quota tree: queues and cohorts, and one cell per node and flavor-resource (spec quota §4).

A cell knows what its node owns (`nominal`), what its subtree holds (`subtree`), what of that its
parent cannot see (`local`), and what is used. Cells of one flavor-resource are linked to their
parents' cells, so a question about availability is one walk towards the root and a booking touches
only that path. Nothing is ever recomputed from all children: every edit sends the *difference* it
makes upwards.

    parent.subtree = nominal + sum over children of (child.subtree - child.local)
    parent.usage   =           sum over children of max(0, child.usage - child.local)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unisono.engine.model.queue import MILLI, ResourceGroup, ResourceQuota
from unisono.engine.model.resources import FlavorResource, pool_name

# Stands for "no borrowing limit" and "no lending limit" so that min() needs no branches. Far above
# any sum of quotas that manifests can express (each is at most 2^63-1).
NO_LIMIT = 1 << 100


class Cell:
    """The numbers of one flavor-resource at one node of the tree."""

    __slots__ = (
        "borrowing_limit",
        "flavor_resource",
        "lending_limit",
        "local",
        "node",
        "nominal",
        "parent",
        "subtree",
        "usage",
    )

    def __init__(self, node: Node, flavor_resource: FlavorResource) -> None:
        self.node = node
        self.flavor_resource = flavor_resource
        self.parent: Cell | None = None
        self.nominal = 0
        self.borrowing_limit = NO_LIMIT
        self.lending_limit = NO_LIMIT
        self.subtree = 0
        self.local = 0
        self.usage = 0


class Node:
    """A ClusterQueue or a cohort."""

    __slots__ = ("_height", "cells", "children", "is_queue", "name", "parent", "weight_milli")

    def __init__(self, name: str, *, is_queue: bool) -> None:
        self.name = name
        self.is_queue = is_queue
        self.parent: Node | None = None
        self.children: dict[tuple[bool, str], Node] = {}
        self.cells: dict[FlavorResource, Cell] = {}
        self.weight_milli = MILLI
        self._height: int | None = None  # cached until something is linked below

    def cell(self, flavor_resource: FlavorResource) -> Cell:
        """Return the node's cell of a flavor-resource, made on first use, with its ancestors'."""
        found = self.cells.get(flavor_resource)
        if found is None:
            found = self.cells[flavor_resource] = Cell(self, flavor_resource)
            if self.parent is not None:
                found.parent = self.parent.cell(flavor_resource)
        return found

    def path(self) -> Iterator[Node]:
        """Yield this node and its ancestors, the root last."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def root(self) -> Node:
        """Return the top of the node's tree; a queue without a cohort is its own root."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def queues(self) -> Iterator[Node]:
        """Yield every queue at or below this node."""
        pending = [self]
        while pending:
            node = pending.pop()
            if node.is_queue:
                yield node
            pending.extend(node.children.values())

    def height(self) -> int:
        """Return how many levels of nodes are below: 0 without children (spec quota §4)."""
        if self._height is None:
            below = [child.height() for child in self.children.values()]
            self._height = 1 + max(below) if below else 0
        return self._height

    def forget_height(self) -> None:
        """Recompute heights up to the root when they are next asked for."""
        for node in self.path():
            node._height = None


# --- questions -----------------------------------------------------------------------------------


def available(cell: Cell) -> int:
    """Return how much more the node may use now; negative after quota was cut below usage.

    The recursive definition (what is locally available, plus what the parent grants, capped by the
    borrowing limit) is unrolled: each ancestor's cap limits the sum of what is locally available
    up to it.
    """
    locally = 0
    best = NO_LIMIT
    parent = cell.parent
    while parent is not None:
        local, usage = cell.local, cell.usage
        if usage < local:
            locally += local - usage
            usage = local
        if cell.borrowing_limit != NO_LIMIT:
            # (subtree - local) - (usage - local) + limit, with usage at least local.
            capped = locally + cell.subtree - usage + cell.borrowing_limit
            if capped < best:
                best = capped
        cell = parent
        parent = cell.parent
    rooted = locally + cell.subtree - cell.usage
    return rooted if rooted < best else best


def potential(cell: Cell) -> int:
    """Return how much the node could use if the cluster were empty."""
    if cell.parent is None:
        return cell.subtree
    grant = cell.local + potential(cell.parent)
    return min(grant, cell.subtree + cell.borrowing_limit)


def local_available(cell: Cell) -> int:
    """Return what is left of the capacity that the parent cannot see."""
    return cell.local - cell.usage if cell.usage < cell.local else 0


def borrows_with(cell: Cell, amount: int) -> bool:
    """Say whether using `amount` more would take the node above its own quota."""
    return cell.subtree < cell.usage + amount


def borrow_level(cell: Cell, amount: int) -> tuple[int, bool]:
    """Return from how far up `amount` is borrowed, and whether it may be reclaimed there.

    Level 0 is the queue's own quota; otherwise the height of the first cohort whose subtree can
    hold what is left after what is locally available at each level.
    """
    if not borrows_with(cell, amount):
        return 0, cell.parent is not None
    rest = amount - local_available(cell)
    top = cell
    while top.parent is not None:
        top = top.parent
        if not borrows_with(top, rest):
            return top.node.height(), top.parent is not None
        rest -= local_available(top)
    return top.node.height(), False


def reclaim_gap(cell: Cell, amount: int) -> int:
    """Return how much has to be freed before `amount` could be reclaimed at some ancestor.

    The other side of `borrow_level`'s second answer: an amount freed anywhere in the tree narrows
    an ancestor's gap by no more than itself.
    """
    gap = NO_LIMIT
    rest = amount - local_available(cell)
    ancestor = cell.parent
    while ancestor is not None and ancestor.parent is not None:
        gap = min(gap, max(1, ancestor.usage + rest - ancestor.subtree))
        rest -= local_available(ancestor)
        ancestor = ancestor.parent
    return gap


# --- bookings ------------------------------------------------------------------------------------


def charge(cell: Cell, amount: int) -> None:
    """Add usage (or take it back, when negative) and pass on to the ancestors what overflows."""
    current: Cell | None = cell
    while current is not None and amount:
        local, before = current.local, current.usage
        after = before + amount
        current.usage = after
        amount = (after - local if after > local else 0) - (before - local if before > local else 0)
        current = current.parent


def set_limits(cell: Cell, *, nominal: int, borrowing_limit: int, lending_limit: int) -> None:
    """Change what a node owns of a flavor-resource."""
    visible, overflow = _seen_by_parent(cell)
    cell.subtree += nominal - cell.nominal
    cell.nominal = nominal
    cell.borrowing_limit = borrowing_limit
    cell.lending_limit = lending_limit
    _settle(cell, visible, overflow)


def _seen_by_parent(cell: Cell) -> tuple[int, int]:
    """Return capacity and usage as the parent counts them."""
    return cell.subtree - cell.local, max(0, cell.usage - cell.local)


def _settle(cell: Cell, visible: int, overflow: int) -> None:
    """Recompute `local` after an edit and carry the difference to the root."""
    current = cell
    while True:
        lent = current.lending_limit
        current.local = max(0, current.subtree - lent) if lent != NO_LIMIT else 0
        now_visible, now_overflow = _seen_by_parent(current)
        if current.parent is None:
            return
        more, used = now_visible - visible, now_overflow - overflow
        current = current.parent
        visible, overflow = _seen_by_parent(current)
        current.subtree += more
        current.usage += used


def link(node: Node, parent: Node | None) -> None:
    """Hang a node below another parent (or none); usage and quota move with it."""
    if node.parent is parent:
        return
    if node.parent is not None:
        for cell in node.cells.values():
            assert cell.parent is not None, "cells of a linked node are linked"
            visible, overflow = _seen_by_parent(cell)
            _shift(cell.parent, -visible, -overflow)
            cell.parent = None
        del node.parent.children[node.is_queue, node.name]
        node.parent.forget_height()
    node.parent = parent
    if parent is not None:
        parent.children[node.is_queue, node.name] = node
        parent.forget_height()
        for flavor_resource, cell in node.cells.items():
            cell.parent = parent.cell(flavor_resource)
            visible, overflow = _seen_by_parent(cell)
            _shift(cell.parent, visible, overflow)


def _shift(cell: Cell, capacity: int, usage: int) -> None:
    """Add what a child brings (or takes away) to a cell and its ancestors."""
    visible, overflow = _seen_by_parent(cell)
    cell.subtree += capacity
    cell.usage += usage
    _settle(cell, visible, overflow)


def set_groups(node: Node, groups: Iterable[ResourceGroup]) -> None:
    """Replace everything a node owns; what is no longer listed keeps its usage."""
    wanted = dict(quotas(groups))
    for flavor_resource in [*node.cells]:
        if flavor_resource not in wanted:
            cell = node.cells[flavor_resource]
            set_limits(cell, nominal=0, borrowing_limit=NO_LIMIT, lending_limit=NO_LIMIT)
    for flavor_resource, quota in wanted.items():
        borrowing, lending = quota.borrowing_limit, quota.lending_limit
        set_limits(
            node.cell(flavor_resource),
            nominal=quota.nominal,
            borrowing_limit=NO_LIMIT if borrowing is None else borrowing,
            lending_limit=NO_LIMIT if lending is None else lending,
        )


def quotas(groups: Iterable[ResourceGroup]) -> Iterator[tuple[FlavorResource, ResourceQuota]]:
    """Yield the flavor-resources that groups give quota to: one a flavor, or one for a pool."""
    for group in groups:
        if group.pool is not None:
            pool = pool_name(quota.flavor for quota in group.flavors)
            for quota in group.pool:
                yield FlavorResource(pool, quota.resource), quota
            continue
        for flavor in group.flavors:
            for quota in flavor.resources:
                yield FlavorResource(flavor.flavor, quota.resource), quota
