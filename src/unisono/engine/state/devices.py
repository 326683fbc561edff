"""GPUs that pods share, one column a device: which pods have which part of which.

Pods that ask for whole GPUs take any that are not shared, so for them the number of those is all
that counts, and it stays in the column of the GPU. A device is *open* while a pod has a part of
it: then it is not among the whole ones, and a column of its own says how much of it is taken.

    free[gpu][row]      devices that no pod uses
    free[gpu#k][row]    0: device k is not shared; -300: 300 thousandths of it are taken

Both are functions of the pods that are there now, in whatever order they came, so that taking back
is exact.
Which of a machine's GPUs device k really is, the kubelet decides when it is opened: whole
GPUs are handed out by the kubelet, which does not ask. Spec placement §8.15.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.resources import WHOLE_GPU

Integers = NDArray[np.int64]
Rows = NDArray[np.intp]


class DeviceColumns(NamedTuple):
    """Where a node table keeps the devices of one kind of GPU."""

    whole: int  # the column that counts unused devices
    devices: tuple[int, ...]  # the columns of device 0, 1, ...


def share(
    free: Integers, columns: DeviceColumns, rows: Iterable[int], devices: Iterable[int], milli: int
) -> None:
    """Let one pod after the other take a part of a device; a negative part is given back."""
    whole, column_of = columns
    for row, device in zip(rows, devices, strict=True):
        column = column_of[device]
        before = free[column, row]
        after = before - milli
        free[column, row] = after
        if not before:
            free[whole, row] -= 1
        elif not after:
            free[whole, row] += 1


def free_by_device(free: Integers, columns: DeviceColumns, rows: Rows) -> Integers:
    """Return what is free on every device (a column each) of rows, in thousandths.

    Of those that are not shared, the first stand for the devices that no pod uses. A node of which
    more is taken than it has (it lost a GPU) gives nothing.
    """
    taken: Integers = free[columns.devices, rows[:, None]]
    whole = free[columns.whole][rows][:, None]
    shut = taken == 0
    # Devices that are shut but beyond the unused ones are taken whole.
    full = shut & (shut.cumsum(axis=1) > whole)
    taken += WHOLE_GPU
    taken[full] = 0
    np.maximum(taken, 0, out=taken)
    taken *= whole >= 0
    return taken


def pods_that_fit(
    free: Integers, columns: DeviceColumns, milli: int, rows: Rows | slice
) -> Integers:
    """Return how many pods find a part so large on the devices of each row."""
    if milli > WHOLE_GPU:
        return np.zeros_like(free[columns.whole][rows])
    whole = free[columns.whole][rows]
    fitting: Integers = whole * (WHOLE_GPU // milli)
    for column in columns.devices:
        taken = free[column][rows]
        fitting += np.where(taken < 0, np.maximum(WHOLE_GPU + taken, 0) // milli, 0)
    fitting *= whole >= 0
    return fitting


def fullest_first(device_free: list[int], milli: int, pods: int) -> list[int]:
    """Choose devices for equal pods: the fullest that still holds one, of equals the first.

    >>> fullest_first([1000, 300, 600], 300, 3)
    [1, 2, 2]
    """
    left, chosen = list(device_free), []
    for _ in range(pods):
        fitting = [(free, device) for device, free in enumerate(left) if free >= milli]
        if not fitting:
            break
        device = min(fitting)[1]
        left[device] -= milli
        chosen.append(device)
    return chosen
