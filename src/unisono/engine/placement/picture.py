"""What nodes with shared GPUs look like now: kept by row, and renewed for rows that changed.

Free CPU and room on every device: rankings of all shapes of pods read the same picture. Nodes on
which the very same is free are in the same *state*: pods of one shape rank them alike, so that
whoever ranks looks at every state once, and a node that is again as it was has its rank already.
Spec placement §8.15.
"""

from __future__ import annotations

import numpy as np

from unisono.engine.model.names import CPU
from unisono.engine.placement.fragments import Fragments, LargePlaces, Mask
from unisono.engine.state.devices import DeviceColumns, rooms
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.pod_mix import SharedPodMix

# So many states are told apart, or twice as many as there are nodes; then they are numbered anew.
STATES_KEPT = 2048


class Picture:
    """The nodes of one table, as far as one kind of GPU goes."""

    def __init__(self, table: NodeTable, columns: DeviceColumns, mix: SharedPodMix) -> None:
        self._table = table
        self._columns = columns
        self._mix = mix
        self._edition = -1  # of the mix
        self._version = -1  # of usage
        self._traits = -1
        self._rows = 0
        self._seen: Integers = np.zeros(
            0, np.int64
        )  # the version at which a row was last looked at
        self.most_cpu = 1
        self._numbers: dict[tuple[bytes, bool], int] = {}  # of states
        self.numbering = 0  # grows when states are numbered anew
        self._begin()

    def _begin(self) -> None:
        count = len(self._table)
        self._rows = count
        self._version = -1
        self._numbers.clear()
        self.numbering += 1
        self.state: Rows = np.zeros(count, np.intp)
        self._seen = np.zeros(count, np.int64)
        self.has_gpus: Mask = np.zeros(count, np.bool_)
        self.cpu: Integers = np.zeros(count, np.int64)
        self.room: Integers = np.zeros((count, len(self._columns.devices)), np.int64)

    def look(self) -> None:
        """Take in what changed since."""
        table = self._table
        if self._rows != len(table):
            self._begin()
        if self._edition != self._mix.edition:
            self._edition = self._mix.edition
            self.fragments = Fragments(self._mix.typical)
            self.large = LargePlaces(self._mix.large)
        version = table.usage.version
        if self._version == version:
            return
        if len(self._numbers) > max(STATES_KEPT, 2 * self._rows):
            self._begin()
        changed = None if self._version < 0 else table.usage.since(self._version)
        rows = np.arange(self._rows) if changed is None else changed
        self._version = version
        if rows.shape[0]:
            self._take_in(rows)
            self._seen[rows] = version

    def _take_in(self, rows: Rows) -> None:
        table, columns = self._table, self._columns
        cpu = table.column(CPU)
        if cpu is not None:
            self.cpu[rows] = table.free_of(cpu)[rows]
            if self._traits != table.traits.version:
                self._traits = table.traits.version
                self.most_cpu = max(1, int(table.allocatable[cpu].max(initial=0)))
        self.has_gpus[rows] = table.allocatable[columns.whole][rows] > 0
        self.room[rows] = rooms(table.free, columns, rows)
        free, numbers = np.ascontiguousarray(table.free[:, rows].T), self._numbers
        for row, has, has_gpus in zip(
            rows.tolist(), free, self.has_gpus[rows].tolist(), strict=True
        ):
            self.state[row] = numbers.setdefault((has.tobytes(), has_gpus), len(numbers))

    @property
    def states(self) -> int:
        """Return how many states there have been; they are numbered from 0."""
        return len(self._numbers)

    def changed_since(self, version: int) -> Rows:
        """Return the rows that were looked at after a version."""
        return np.flatnonzero(self._seen > version)

    def before_and_after(
        self, rows: Rows, node: Rows, cpu: Integers, room: Integers
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """Return F of rows as they are and as ways make them, and which large pods they take.

        `node` says which of the rows a way is on. One look at both costs half of two looks.
        """
        every_cpu = np.concatenate([self.cpu[rows], cpu])
        every_room = np.concatenate([self.room[rows], room])
        count = rows.shape[0]
        torn, large = self.fragments.of(every_cpu, every_room), self.large.of(every_cpu, every_room)
        return torn[:count][node], torn[count:], large[:count][node], large[count:]

    def fragmented_milli(self) -> float:
        """Return the fragmentation of the whole cluster, in thousandths of GPUs."""
        self.look()
        return float(self.fragments.of(self.cpu, self.room).sum()) / self.fragments.pods
