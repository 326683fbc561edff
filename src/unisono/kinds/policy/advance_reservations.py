"""Reservations as an operator writes them in a Policy.

    reservations:
      - name: new-cooling
        start: 2026-02-01T08:00:00Z
        duration: 4h                       # or end: 2026-02-01T12:00:00Z
        nodes: [gpu-1, gpu-2]              # or all
        maintenance: true                  # no workload may run there
      - name: course
        start: 2026-02-02T09:00:00Z
        duration: 2h
        repeat: Weekly
        nodes: [gpu-3]
        localQueues: [teaching/main]       # or namespaces, accounts, users: any of them may

What it means is in spec backfill §8.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from unisono.engine.model import policy as engine
from unisono.engine.model.names import Instant, LocalQueueKey, NodeName
from unisono.kinds.decode import Schema
from unisono.kinds.notes import Notes
from unisono.kinds.scalar import Duration, Timestamp

_PERIOD_MS = {"Daily": 24 * 3600 * 1000, "Weekly": 7 * 24 * 3600 * 1000}
_ENGINE_WORDS: dict[str, Literal["daily", "weekly"]] = {"Daily": "daily", "Weekly": "weekly"}


class Reservation(Schema, frozen=True, kw_only=True):
    """Advance reservations: nodes kept for some workloads, or for maintenance, for a time."""

    name: Annotated[str, Meta(min_length=1)]
    start: Timestamp
    end: Timestamp | None = None
    duration: Annotated[Duration | None, Meta(description="How long, instead of an end.")] = None
    nodes: Annotated[tuple[str, ...] | str, Meta(description="Names of nodes, or all.")]
    maintenance: Annotated[bool, Meta(description="No workload may run there.")] = False
    local_queues: Annotated[
        tuple[str, ...], Meta(description="namespace/name of queues whose workloads may run there.")
    ] = ()
    namespaces: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    repeat: Literal["Daily", "Weekly"] | None = None

    @property
    def allowed(self) -> tuple[str, ...]:
        """All queues, namespaces, accounts and users that may use it."""
        return (*self.local_queues, *self.namespaces, *self.accounts, *self.users)

    @property
    def until(self) -> Instant | None:
        """When it is over, as far as that is said once."""
        if self.end is not None:
            return self.end.instant if self.duration is None else None
        return None if self.duration is None else Instant(self.start.instant + self.duration.ms)


def check_reservations(reservations: tuple[Reservation, ...], notes: Notes) -> None:
    """Say what is wrong with reservations."""
    seen: set[str] = set()
    for index, each in enumerate(reservations):
        path = f"reservations[{index}]"
        if each.name in seen:
            notes.problem(f"{path}.name", f'"{each.name}" stands twice')
        seen.add(each.name)
        _check_times(each, path, notes)
        _check_nodes(each, path, notes)
        if each.maintenance and each.allowed:
            message = "admits no workload; leave out localQueues, namespaces, accounts and users"
            notes.problem(f"{path}.maintenance", message)
        if not each.maintenance and not each.allowed:
            message = (
                "does not say which workloads may use it: name localQueues, namespaces, accounts "
                "or users, or say maintenance: true"
            )
            notes.problem(path, message)
        for number, queue in enumerate(each.local_queues):
            if queue.count("/") != 1 or "" in queue.split("/"):
                message = f'must be namespace/name, not "{queue}"'
                notes.problem(f"{path}.localQueues[{number}]", message)


def _check_times(each: Reservation, path: str, notes: Notes) -> None:
    until = each.until
    if until is None:
        notes.problem(path, "needs either an end or a duration")
        return
    if until <= each.start.instant:
        field = "end" if each.duration is None else "duration"
        notes.problem(f"{path}.{field}", "must be after its start")
    elif each.repeat is not None and until - each.start.instant >= _PERIOD_MS[each.repeat]:
        message = f"is {each.repeat}, but lasts until it begins again"
        notes.problem(f"{path}.repeat", message)


def _check_nodes(each: Reservation, path: str, notes: Notes) -> None:
    if isinstance(each.nodes, str):
        if each.nodes != "all":
            message = f'must be a list of nodes, or all, not "{each.nodes}"'
            notes.problem(f"{path}.nodes", message)
    elif not each.nodes:
        notes.problem(f"{path}.nodes", "names no node")


def reservations_of(reservations: tuple[Reservation, ...]) -> tuple[engine.AdvanceReservation, ...]:
    """Return reservations as the engine reads them."""
    return tuple(
        engine.AdvanceReservation(
            name=each.name,
            start=each.start.instant,
            end=each.until or each.start.instant,
            nodes=() if isinstance(each.nodes, str) else tuple(map(NodeName, each.nodes)),
            local_queues=tuple(map(LocalQueueKey, each.local_queues)),
            namespaces=each.namespaces,
            accounts=each.accounts,
            users=each.users,
            repeat="" if each.repeat is None else _ENGINE_WORDS[each.repeat],
        )
        for each in reservations
    )
