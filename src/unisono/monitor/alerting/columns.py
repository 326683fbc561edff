"""Since when devices have been too hot, too full, idle: a column for each alert.

A device that goes to another pod begins anew, as a series of Prometheus with other labels would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unisono.monitor.books import Books
from unisono.monitor.dcgm.devices import Devices, Floats
from unisono.monitor.dcgm.exporter import Frame
from unisono.monitor.dcgm.holders import Device

Who = tuple[Device, str]  # a device, and the uid of the pod that has it


class Look(NamedTuple):
    """What was seen, for whoever asks later whose device that is."""

    books: Books
    frame: Frame


class Columns:
    """Remembers since when; never is what is not a number."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.last: Look | None = None
        self._since: dict[str, Floats] = {}

    def look(self, books: Books, frame: Frame, masks: Mapping[str, NDArray[np.bool_]]) -> None:
        """Take which devices each alert is true of now."""
        if self.last is None or _has_changed(self.last.frame.devices, frame.devices):
            self._follow(frame.devices)
        self.last = Look(books, frame)
        never = np.full(len(frame.devices.places), np.nan)
        for name, mask in masks.items():
            since = self._since.get(name, never)
            begun = np.where(np.isnan(since), frame.now, since)
            self._since[name] = np.where(mask, begun, np.nan)

    def _follow(self, devices: Devices) -> None:
        """Take along what is known of those that are there still, with the same pod."""
        before = {} if self.last is None else _rows(self.last.frame.devices)
        pairs = [(at, before[who]) for who, at in _rows(devices).items() if who in before]
        here, there = np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T
        for name, since in self._since.items():
            moved = np.full(len(devices.places), np.nan)
            moved[here] = since[there]
            self._since[name] = moved

    def active(self) -> Iterator[tuple[str, int, float]]:
        """Yield the alerts that are true of a device: the name, the device's row, since when."""
        for name, since in self._since.items():
            for at in np.flatnonzero(~np.isnan(since)).tolist():
                yield name, at, float(since[at])


def _has_changed(before: Devices, after: Devices) -> bool:
    """Say whether devices came and went or have other pods; both are new tuples then."""
    return before.places is not after.places or before.holders is not after.holders


def _rows(devices: Devices) -> dict[Who, int]:
    rows = zip(devices.places, devices.holders, strict=True)
    return {
        (one.device, holder.pod.uid if holder is not None else ""): at
        for at, (one, holder) in enumerate(rows)
    }
