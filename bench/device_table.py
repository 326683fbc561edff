"""Nodes whose GPUs are shared: what is free on every device, and the ways to seat a pod there.

A device has 1,000 milli. A pod takes whole devices, or a part of exactly one. Nodes are rows in the
order of their names; `device_free[row][device]` is in milli.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from unisono.engine.state.node_table import Integers, Rows

Mask = NDArray[np.bool_]

MILLI = 1000  # of one device
NO_LIMIT = (1 << 63) - 1
CHANGES_KEPT = 1 << 16  # who is further behind reads every node anew


class SharedPod(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """A shape of pod. `gpu_milli` is of each device, and below 1,000 only for a single one."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    gpus: int = 0
    gpu_milli: int = 0
    models: tuple[str, ...] = ()  # of GPUs that will do; empty: any

    @property
    def shares(self) -> bool:
        """Say whether it leaves a part of its device to others."""
        return self.gpus == 1 and self.gpu_milli < MILLI

    @property
    def total_milli(self) -> int:
        """What it takes of all devices together."""
        return self.gpus * self.gpu_milli


class SharedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose devices can be shared."""

    name: str
    cpu_milli: int
    memory_bytes: int
    gpus: int
    model: str = ""


class Seat(msgspec.Struct, frozen=True):
    """Where a pod sits."""

    pod: SharedPod
    row: int
    devices: tuple[int, ...]


class DeviceTable:
    """Nodes in the order of their names, and what is free on each device."""

    def __init__(self, nodes: Iterable[SharedNode]) -> None:
        self.nodes = tuple(sorted(nodes, key=lambda node: node.name))
        self.cpu_free: Integers = np.array([node.cpu_milli for node in self.nodes], np.int64)
        self.memory_free: Integers = np.array([node.memory_bytes for node in self.nodes], np.int64)
        gpus: Integers = np.array([node.gpus for node in self.nodes], np.int64)
        # A device that a node does not have is one without anything free.
        there = np.arange(gpus.max(initial=0)) < gpus[:, None]
        self.device_free: Integers = MILLI * there.astype(np.int64)
        self.models = sorted({node.model for node in self.nodes})
        self.model_of: Rows = np.array(
            [self.models.index(node.model) for node in self.nodes], np.intp
        )
        self.version = 0  # how many seats were taken or given back
        self._changed: list[int] = []  # the rows of the latest of them, oldest first

    def fits(self, pod: SharedPod, rows: Rows) -> Mask:
        """Say which rows can take one such pod."""
        fitting = (self.cpu_free[rows] >= pod.cpu_milli) & (
            self.memory_free[rows] >= pod.memory_bytes
        )
        if pod.gpus:
            enough = self.device_free[rows] >= pod.gpu_milli
            fitting &= enough.sum(axis=1) >= pod.gpus
        if pod.models:
            fitting &= np.isin(np.array(self.models), pod.models)[self.model_of[rows]]
        return fitting

    def capacity(self, pod: SharedPod, rows: Rows) -> Integers:
        """Return how many such pods would fit on rows of suitable nodes."""
        most = np.full(rows.shape[0], NO_LIMIT, np.int64)
        if pod.cpu_milli:
            most = np.minimum(most, self.cpu_free[rows] // pod.cpu_milli)
        if pod.memory_bytes:
            most = np.minimum(most, self.memory_free[rows] // pod.memory_bytes)
        if pod.gpus:
            on_devices = (self.device_free[rows] // pod.gpu_milli).sum(axis=1)
            most = np.minimum(most, on_devices // pod.gpus)
        return most

    def take(self, seat: Seat) -> None:
        """Let a pod sit."""
        self._add(seat, -1)

    def give_back(self, seat: Seat) -> None:
        """Undo `take`."""
        self._add(seat, 1)

    def changed_since(self, version: int) -> Rows:
        """Return the rows that changed after a version, all of them if that was long ago."""
        behind = self.version - version
        if behind > len(self._changed):
            return np.arange(len(self.nodes))
        return np.array(sorted(set(self._changed[len(self._changed) - behind :])), np.intp)

    def _add(self, seat: Seat, sign: int) -> None:
        self.cpu_free[seat.row] += sign * seat.pod.cpu_milli
        self.memory_free[seat.row] += sign * seat.pod.memory_bytes
        self.device_free[seat.row, seat.devices] += sign * seat.pod.gpu_milli
        if len(self._changed) >= CHANGES_KEPT:
            self._changed.clear()
        self._changed.append(seat.row)
        self.version += 1


@dataclass(slots=True)
class Ways:
    """Ways to seat a pod: on which row, which device if it shares one, and what is free then."""

    index: Rows  # into the rows that were asked about
    rows: Rows
    device: Rows
    cpu_free: Integers
    device_free: Integers


def ways_to_seat(
    table: DeviceTable, pod: SharedPod, rows: Rows, *, fullest_only: bool = False
) -> Ways:
    """Return all ways to seat a pod on rows: one a node, or one a device if it shares.

    Devices of a node with the same amount free are alike; the first stands for all of them.
    """
    fitting = np.flatnonzero(table.fits(pod, rows))
    free = table.device_free[rows[fitting]]
    if not pod.shares:
        if pod.gpus:
            whole = free >= pod.gpu_milli
            free[whole & (np.cumsum(whole, axis=1) <= pod.gpus)] -= pod.gpu_milli
        index, device = fitting, np.zeros(fitting.shape[0], np.intp)
    else:
        enough = free >= pod.gpu_milli
        if fullest_only:
            device = np.where(enough, free, MILLI + 1).argmin(axis=1)
            owner = np.arange(fitting.shape[0])
        else:
            for column in range(1, free.shape[1]):
                seen = (free[:, :column] == free[:, column, None]).any(axis=1)
                enough[:, column] &= ~seen
            owner, device = np.nonzero(enough)
        free = free[owner]
        free[np.arange(owner.shape[0]), device] -= pod.gpu_milli
        index = fitting[owner]
    there = rows[index]
    return Ways(index, there, device, table.cpu_free[there] - pod.cpu_milli, free)
