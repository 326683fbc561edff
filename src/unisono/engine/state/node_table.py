"""Nodes as columns: what is free on each, what they are labelled with, and which rows changed.

Structure of arrays (spec placement §8.1): `free[resource][row]` in exact Kubernetes integers. A
node keeps its row for life; rows of nodes that left are reused. Nothing here knows about gangs.
Readers that derive vectors from these columns (capacities, masks) remember the version they saw
and ask a journal what changed since, so that one node costs one row and not the cluster.
"""

from __future__ import annotations

import re
from bisect import bisect
from typing import Final, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.names import PODS, NodeName, ResourceName
from unisono.engine.model.node import HOSTNAME, Node
from unisono.engine.model.resources import Amounts, is_gpu, is_share, share_in, shared_gpu
from unisono.engine.model.selection import Taint
from unisono.engine.state import change_journal
from unisono.engine.state.change_journal import Columns, Journal, Move
from unisono.engine.state.devices import DeviceColumns

Integers = change_journal.Integers
Rows = change_journal.Rows
Codes = NDArray[np.int32]

# Kubernetes' default, for nodes whose manifest does not say how many pods they take.
DEFAULT_PODS = 110
# Requests whose columns are remembered; looking them up again costs a microsecond.
REQUESTS_KEPT = 1024
# So many bookings are written into the columns together, if nodes are not read before.
BOOKED_TOGETHER: Final = 1024
# Above this share of new nodes sorting all names is cheaper than finding each its place.
JOINED_SHARE = 64
NAME_FIELD = "metadata.name"  # node affinity may match it like a label
_DIGITS = re.compile(r"([0-9]+)")
# A cordoned node repels pods like a taint, so that a toleration can overrule it.
_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable")
ABSENT = 0  # the code of "this node does not have the label"


class NodeTable:
    """All nodes, one row each."""

    def __init__(self) -> None:
        self.nodes: list[Node | None] = []
        self.row_of: dict[NodeName, int] = {}
        self.resources: dict[ResourceName, int] = {}
        self.allocatable: Integers = np.zeros((0, 0), np.int64)
        self._free: Integers = np.zeros((0, 0), np.int64)
        self._booked: dict[Move, None] = {}  # what is not written into it yet
        self.usable = np.zeros(0, np.bool_)  # there, and ready
        self.layout = 0  # grows when rows, labels of rows or their order change
        self.usage = Journal()  # what is free on a row, or what it is
        self.traits = Journal()  # labels, taints, readiness of a row
        self._unused: list[int] = []
        self._names = np.zeros(0, np.object_)
        self._singles = np.zeros(0, np.object_)  # (name, 1): most pods are alone on their node
        self._order: Rows = np.zeros(0, np.intp)  # rows in natural order of names ...
        self._joined: list[int] = []  # ... but for these, which have not been asked for yet
        self._labels: dict[str, tuple[Codes, dict[str, int]]] = {}
        # Keys that a node has or had: only of these are there codes. Manifests may name any others,
        # another one each, and none of them is to cost memory or time from then on.
        self._label_keys: set[str] = {NAME_FIELD, HOSTNAME}
        self._taints: tuple[Codes, dict[tuple[Taint, ...], int]] | None = None
        self._held: dict[str, set[int]] = {}
        self._columns_of: dict[Amounts, Columns] = {}
        # By the resource that counts parts of them; empty as long as no pod asks for a part.
        self.devices: dict[ResourceName, DeviceColumns] = {}

    def __len__(self) -> int:
        """Return how many rows there are, unused ones included."""
        return len(self.nodes)

    # --- nodes -----------------------------------------------------------------------------------

    def put(self, node: Node) -> None:
        """Add a node or replace what is known about it; what runs on it stays counted."""
        row = self.row_of.get(node.name)
        if row is None:
            row = self._unused.pop() if self._unused else self._new_row()
            self.row_of[node.name] = row
            self._names[row] = node.name
            self._singles[row] = (node.name, 1)
            self._joined.append(row)
        old = self.nodes[row]
        if old == node:
            return
        here = np.array([row], np.intp)
        self.nodes[row] = node
        wanted = {PODS: DEFAULT_PODS, **dict(node.allocatable)}
        for resource in wanted:
            self._column(resource)
        for resource, column in self.resources.items():
            amount = wanted.get(resource, 0)
            self.free[column, row] += amount - self.allocatable[column, row]
            self.allocatable[column, row] = amount
        for share in self.devices:
            self.open_devices(share)
        self.usable[row] = node.ready
        self._hold(row, old, node)
        if old is None or _traits(old) != _traits(node):
            self._describe(row, node)
            self.layout += 1
        self.usage.note(here)
        self.traits.note(here)

    def drop(self, name: NodeName) -> None:
        """Forget a node; whatever was counted on it is forgotten with it."""
        row = self.row_of.pop(name, None)
        if row is None:
            return
        self._hold(row, self.nodes[row], None)
        if row in self._joined:
            self._joined.remove(row)
        else:
            self._order = self._order[self._order != row]
        here = np.array([row], np.intp)
        self.nodes[row] = None
        self.allocatable[:, row] = 0
        self.free[:, row] = 0
        self.usable[row] = False
        self._unused.append(row)
        self.layout += 1
        self.usage.note(here)
        self.traits.note(here)

    def name(self, row: int) -> NodeName:
        """Return the name of a row that holds a node."""
        found: NodeName = self._names[row]
        return found

    def names(self, rows: Rows) -> list[NodeName]:
        """Return the names of rows that hold nodes."""
        found: list[NodeName] = self._names[rows].tolist()
        return found

    def singles(self, rows: Rows) -> list[tuple[NodeName, int]]:
        """Return the names of rows that hold nodes, each with a pod there."""
        found: list[tuple[NodeName, int]] = self._singles[rows].tolist()
        return found

    def held_rows(self, key: str) -> list[int]:
        """Return the rows that are held for other workloads than `key`."""
        if not self._held:
            return []
        return sorted(row for owner, rows in self._held.items() if owner != key for row in rows)

    @property
    def has_held_rows(self) -> bool:
        """Say whether some node is held for a workload."""
        return bool(self._held)

    def is_held_for(self, key: str) -> bool:
        """Say whether some node is held for a workload."""
        return bool(self._held) and bool(self._held.get(key))

    # --- usage -----------------------------------------------------------------------------------

    def take(
        self,
        rows: Rows,
        counts: Integers,
        requests: Amounts,
        *,
        pods: int = 0,
        fits: bool = False,
    ) -> Move | None:
        """Count pods on rows: `counts[i]` pods of the same request on `rows[i]`.

        `pods` is the sum of counts, where it is known; `fits` says that there is room for it. What
        is returned makes it cheap to undo.
        """
        if not len(rows):
            return None
        columns = self.columns_of(requests)
        move = Move(rows, columns, counts, -(pods or int(counts.sum())))
        self._book(move)
        if self.devices and share_in(requests) is not None:
            self.usage.note(rows)  # which parts of devices they take, their number does not say
        elif fits or all(int(self.free_of(column)[rows].min()) >= 0 for column, _ in columns):
            self.usage.note(rows, move)
        else:
            self.usage.note(rows)
        return move

    def give_back(
        self,
        rows: Rows,
        counts: Integers,
        requests: Amounts,
        *,
        pods: int = 0,
        came: Move | None = None,
    ) -> None:
        """Undo `take`; `came` is what it returned."""
        if not len(rows):
            return
        if came is not None and came.rows is rows:
            move = Move(rows, came.columns, came.counts, -came.pods)
        else:
            move = Move(rows, self.columns_of(requests), counts, pods or int(counts.sum()))
        if came is not None and came in self._booked:
            del self._booked[came]  # what was booked and taken back changed nothing
        else:
            self._book(move)
        if self.devices and share_in(requests) is not None:
            self.usage.note(rows)
        else:
            self.usage.note(rows, move)

    def _book(self, move: Move) -> None:
        self._booked[move] = None
        if len(self._booked) >= BOOKED_TOGETHER:
            self._catch_up()

    def _catch_up(self) -> None:
        """Write all bookings into the columns; in which order does not matter."""
        booked, self._booked = self._booked, {}
        alike: dict[tuple[Columns, bool], list[Move]] = {}
        for each in booked:
            alike.setdefault((each.columns, each.pods < 0), []).append(each)
        for (columns, comes), moves in alike.items():
            if len(moves) == 1:
                self._write(columns, moves[0].rows, moves[0].counts, -1 if comes else 1)
                continue
            rows = np.concatenate([each.rows for each in moves])
            counts = np.concatenate([each.counts for each in moves])
            write = np.subtract if comes else np.add
            for column, amount in columns:
                write.at(self._free[column], rows, counts if amount == 1 else counts * amount)

    def _write(self, columns: Columns, rows: Rows, counts: Integers, sign: int) -> None:
        """Write one booking into the columns."""
        if rows.shape[0] == 1:  # for one number NumPy is the long way round
            row, pods = rows.item(), sign * counts.item()
            for column, amount in columns:
                self._free[column, row] += pods * amount
            return
        for column, amount in columns:
            self._free[column][rows] += counts if sign * amount == 1 else counts * (sign * amount)

    def columns_of(self, requests: Amounts) -> Columns:
        """Return what one pod takes of which column; columns are added for what is new."""
        known = self._columns_of.get(requests)
        if known is None:
            if len(self._columns_of) >= REQUESTS_KEPT:
                self._columns_of.clear()
            wanted = {PODS: 1, **dict(requests)}
            for share in [name for name in wanted if is_share(name)]:
                self.open_devices(share)
                del wanted[share]  # which device it is of is the taker's to say
            known = self._columns_of[requests] = tuple(
                (self._column(resource), amount) for resource, amount in wanted.items() if amount
            )
        return known

    def open_devices(self, share: ResourceName, least: int = 0) -> DeviceColumns:
        """Return the columns of devices that can be shared, as many as the largest node has."""
        gpu = shared_gpu(share)
        whole = self._column(gpu)
        most = max(1, least, int(self.allocatable[whole].max(initial=0)))
        known = self.devices.get(share)
        if known is None or len(known.devices) < most:
            each = tuple(self._column(ResourceName(f"{gpu}#{device}")) for device in range(most))
            known = self.devices[share] = DeviceColumns(whole, each)
        return known

    # --- reading ---------------------------------------------------------------------------------

    @property
    def free(self) -> Integers:
        """What is free of each resource, by row."""
        if self._booked:
            self._catch_up()
        return self._free

    @free.setter
    def free(self, amounts: Integers) -> None:
        self._free, self._booked = amounts, {}

    def column(self, resource: ResourceName) -> int | None:
        """Return the column of a resource; None if no node has it."""
        return self.resources.get(resource)

    def free_of(self, column: int) -> Integers:
        """Return what is free of one resource, by row: NumPy picks rows of it fastest by far."""
        free: Integers = self.free[column]
        return free

    def has_in_total(self, amounts: Amounts) -> bool:
        """Say whether all nodes that can be used have so much free together."""
        for resource, amount in amounts:
            column = self.resources.get(resource)
            if column is None and is_share(resource):
                continue  # which depends on the devices
            if amount > 0 and (column is None or self._total(column) < amount):
                return False
        return True

    def _total(self, column: int) -> int:
        free: Integers = self.free[column]
        return int(np.maximum(free, 0) @ self.usable)

    def in_name_order(self) -> Rows:
        """Return all rows with nodes, in natural order of their names."""
        joined, self._joined = self._joined, []
        if len(joined) * JOINED_SHARE > self._order.shape[0]:
            rows = [*self._order.tolist(), *joined]
            self._order = np.array(sorted(rows, key=self._name_key), np.intp)
            return self._order
        for row in joined:  # keys are not kept: they would weigh more than all the rest of a node
            place = bisect(self._order, self._name_key(row), key=self._name_key)
            self._order = np.insert(self._order, place, row)
        return self._order

    def _name_key(self, row: SupportsIndex) -> Natural:
        return natural(self._names[row])

    def gpu_columns(self) -> list[int]:
        """Return the columns of resources that are GPUs."""
        return [column for resource, column in self.resources.items() if is_gpu(resource)]

    def label_codes(self, key: str) -> tuple[Codes, dict[str, int]]:
        """Return one small integer a row for the value of a label, and what each integer means."""
        known = self._labels.get(key)
        if known is None:
            if key not in self._label_keys:
                return np.zeros(len(self.nodes), np.int32), {}
            known = self._labels[key] = (np.zeros(len(self.nodes), np.int32), {})
            for row, node in enumerate(self.nodes):
                if node is not None:
                    self._code_label(known, row, node, key)
        return known

    def taint_codes(self) -> tuple[Codes, dict[tuple[Taint, ...], int]]:
        """Return one small integer a row for the taints of its node."""
        if self._taints is None:
            self._taints = (np.zeros(len(self.nodes), np.int32), {(): 0})
            for row, node in enumerate(self.nodes):
                if node is not None:
                    self._code_taints(row, node)
        return self._taints

    # --- inside ----------------------------------------------------------------------------------

    def _new_row(self) -> int:
        row = len(self.nodes)
        self.nodes.append(None)
        if row >= self.usable.shape[0]:
            length = max(64, 2 * row)
            self.allocatable = _wider(self.allocatable, length)
            self.free = _wider(self.free, length)
            self.usable = np.concatenate([self.usable, np.zeros(length - row, np.bool_)])
            self._names = np.concatenate([self._names, np.zeros(length - row, np.object_)])
            self._singles = np.concatenate([self._singles, np.zeros(length - row, np.object_)])
        for key, (codes, meaning) in self._labels.items():
            self._labels[key] = (np.append(codes, np.int32(ABSENT)), meaning)
        if self._taints is not None:
            self._taints = (np.append(self._taints[0], np.int32(0)), self._taints[1])
        return row

    def _column(self, resource: ResourceName) -> int:
        column = self.resources.get(resource)
        if column is None:
            column = self.resources[resource] = len(self.resources)
            row = np.zeros((1, self.usable.shape[0]), np.int64)
            self.allocatable = np.concatenate([self.allocatable, row])
            self.free = np.concatenate([self.free, row])
        return column

    def _describe(self, row: int, node: Node) -> None:
        self._label_keys.update(key for key, _ in node.labels)
        for key, known in self._labels.items():
            self._code_label(known, row, node, key)
        if self._taints is not None:
            self._code_taints(row, node)

    def _code_label(
        self, known: tuple[Codes, dict[str, int]], row: int, node: Node, key: str
    ) -> None:
        codes, meaning = known
        value = next((v for k, v in node.labels if k == key), None)
        if key == NAME_FIELD or (value is None and key == HOSTNAME):
            value = node.name
        codes[row] = ABSENT if value is None else meaning.setdefault(value, len(meaning) + 1)

    def _code_taints(self, row: int, node: Node) -> None:
        assert self._taints is not None, "asked for first"
        codes, meaning = self._taints
        taints = (*node.taints, _UNSCHEDULABLE) if node.unschedulable else node.taints
        codes[row] = meaning.setdefault(taints, len(meaning))

    def _hold(self, row: int, old: Node | None, new: Node | None) -> None:
        if old is not None and old.held_for:
            self._held[old.held_for].discard(row)
            if not self._held[old.held_for]:
                del self._held[old.held_for]
        if new is not None and new.held_for:
            self._held.setdefault(new.held_for, set()).add(row)


def _traits(node: Node) -> tuple[object, ...]:
    return node.labels, node.taints, node.unschedulable


Natural = tuple[tuple[tuple[int, int | str], ...], str]


def natural(name: str) -> Natural:
    """Return a sort key that puts n2 before n10, and n before both.

    >>> sorted(["n10", "n2", "n"], key=natural)
    ['n', 'n2', 'n10']
    """
    parts = _DIGITS.split(name)
    if parts[-1] == "":
        parts.pop()
    key = tuple((0, int(part)) if index % 2 else (1, part) for index, part in enumerate(parts))
    return key, name  # n1 and n01 are different names


def _wider(columns: Integers, length: int) -> Integers:
    """Return the columns with room for more rows."""
    more = np.zeros((columns.shape[0], length - columns.shape[1]), np.int64)
    return np.concatenate([columns, more], axis=1)
