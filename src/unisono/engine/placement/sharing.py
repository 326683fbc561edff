"""Pods of one gang that share GPUs: which devices each gets, and what is booked meanwhile.

Nodes are chosen by how many pods they hold, like for any gang; on a node every pod gets the fullest
device that still holds its part, so that empty devices stay whole. Spec placement §8.15.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unisono.engine.model.resources import Amounts, share_in
from unisono.engine.state.devices import fullest_first, rooms, share
from unisono.engine.state.move import Move
from unisono.engine.state.node_table import Integers, NodeTable, Rows

Devices = dict[int, list[int]]  # by row


@dataclass(slots=True, eq=False)
class Booked:
    """Pods that are counted on nodes while the rest of their gang looks for a place."""

    rows: Rows
    counts: Integers
    requests: Amounts
    came: Move | None = None  # how they are counted
    seats: list[tuple[int, int]] = field(default_factory=list)  # row and device of each that shares


def devices_of(
    table: NodeTable, requests: Amounts, rows: Rows, counts: Integers, chosen: Devices
) -> None:
    """Choose devices for pods that share GPUs; there is room for them."""
    wanted = share_in(requests)
    if wanted is None:
        return
    name, milli = wanted
    room = rooms(table.free, table.devices[name], rows).tolist()
    for row, free, pods in zip(rows.tolist(), room, counts.tolist(), strict=True):
        chosen.setdefault(row, []).extend(fullest_first(free, milli, pods))


def book(
    table: NodeTable, requests: Amounts, rows: Rows, counts: Integers, chosen: Devices
) -> Booked:
    """Count pods on nodes; those chosen last are the ones that come."""
    booked = Booked(rows, counts, requests)
    booked.came = table.take(rows, counts, requests, fits=True)
    if chosen:
        booked.seats = [
            (row, device)
            for row, pods in zip(rows.tolist(), counts.tolist(), strict=True)
            for device in chosen[row][-pods:]
        ]
        _sit(table, booked, 1)
    return booked


def give_back(table: NodeTable, booked: Booked) -> None:
    """Undo `book`."""
    table.give_back(booked.rows, booked.counts, booked.requests, came=booked.came)
    if booked.seats:
        _sit(table, booked, -1)


def _sit(table: NodeTable, booked: Booked, sign: int) -> None:
    wanted = share_in(booked.requests)
    assert wanted is not None, "only pods that share have seats"
    name, milli = wanted
    rows, devices = zip(*booked.seats, strict=True)
    share(table.free, table.devices[name], rows, devices, sign * milli)
