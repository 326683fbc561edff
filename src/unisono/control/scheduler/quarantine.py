"""Objects that the scheduler cannot handle and leaves out.

    handled ──fails──▶ in quarantine ──changes, or time is up──▶ on trial ──good cycle──▶ handled
                            ▲                                       │
                            └────────────── fails again ────────────┘

One object must never stop the others: whatever cannot be read, decided, audited or written is left
out of the engine's state, and an event says why. It is tried again when it changes, and rarely
otherwise, each time after twice the pause.

A failure that nothing can be blamed for makes everything that changed since the last good cycle a
suspect. Suspects are tried one at a time, so the one that is to blame fails alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from unisono.control.actions import Json
from unisono.engine.model.explanation import QuarantineStage
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# A change is what mends an object. Time only mends what depends on other objects, and those rarely
# change within minutes; a bug of ours costs one refused plan at each trial.
FIRST_PAUSE_S = 300.0
LONGEST_PAUSE_S = 6 * 3600.0
# A refused write is different: a right, a webhook or an object quota stands in its way, which the
# object does not show and an operator mends; trying costs one request.
FIRST_WRITE_PAUSE_S = 15.0
LONGEST_WRITE_PAUSE_S = 300.0
# What people and conditions get to read of a problem.
_MOST_CHARACTERS = 500
# Annotations and conditions that we write ourselves change nothing about an object.
_OURS = "unisono.dev/"

Name = tuple[Kind, Key]


@dataclass(slots=True)
class Entry:
    """One object in quarantine."""

    stage: QuarantineStage
    problem: str
    since: float
    retry_at: float
    pause: float
    content: int  # what it was like when it failed
    on_trial: bool = False
    is_suspect: bool = False  # it is only known to have come before a failure


class Quarantine:
    """Remembers which objects are left out, why, and when they are tried again."""

    def __init__(self) -> None:
        """Begin with none."""
        self._entries: dict[Name, Entry] = {}
        self.total = 0  # how many were ever put here, suspects not counted

    def __len__(self) -> int:
        """Return how many objects are left out now."""
        return len(self._entries)

    def add(
        self, name: Name, obj: Json | None, stage: QuarantineStage, problem: str, now: float
    ) -> Entry:
        """Leave an object out from now on; again, after a longer pause."""
        before = self._entries.get(name)
        pause, longest = FIRST_PAUSE_S, LONGEST_PAUSE_S
        if stage == "write":
            pause, longest = FIRST_WRITE_PAUSE_S, LONGEST_WRITE_PAUSE_S
        if before is not None and not before.is_suspect and before.content == _content(obj):
            pause = min(2 * before.pause, longest)
        self.total += 1
        entry = self._entries[name] = Entry(
            stage=stage,
            problem=problem[:_MOST_CHARACTERS],
            since=now if before is None else before.since,
            retry_at=now + pause,
            pause=pause,
            content=_content(obj),
        )
        return entry

    def suspect(self, names: Iterable[tuple[Name, Json | None]], problem: str, now: float) -> int:
        """Leave objects out until each has been tried alone; return how many these are."""
        count = 0
        for name, obj in names:
            if name not in self._entries:
                count += 1
                self._entries[name] = Entry(
                    stage="decide",
                    problem=problem[:_MOST_CHARACTERS],
                    since=now,
                    retry_at=now,
                    pause=0.0,
                    content=_content(obj),
                    is_suspect=True,
                )
        return count

    def left_out(self, name: Name, obj: Json | None) -> Entry | None:
        """Return why an object is left out; one that has changed is on trial instead."""
        entry = self._entries.get(name)
        if entry is None or entry.on_trial:
            return None
        if obj is None:
            del self._entries[name]
            return None
        if not entry.is_suspect and entry.content != _content(obj):
            entry.on_trial = True
            return None
        return entry

    def trials(self, now: float) -> list[Name]:
        """Begin the trials that are due, but of suspects one at a time; return whose they are."""
        if not self._entries:
            return []
        due = [
            name
            for name, one in self._entries.items()
            if not one.on_trial and not one.is_suspect and one.retry_at <= now
        ]
        if not any(one.is_suspect and one.on_trial for one in self._entries.values()):
            suspects = (name for name, one in self._entries.items() if one.is_suspect)
            due += [name for name in [next(suspects, None)] if name is not None]
        for name in due:
            self._entries[name].on_trial = True
        return due

    def on_trial(self) -> list[Name]:
        """Return what is tried again in this cycle."""
        return [name for name, one in self._entries.items() if one.on_trial]

    def acquit(self) -> list[Name]:
        """Let those go that were on trial while a cycle went well; return which these were."""
        if not self._entries:
            return []
        gone = self.on_trial()
        for name in gone:
            del self._entries[name]
        return gone

    @property
    def has_suspects(self) -> bool:
        """Say whether something has to be tried alone."""
        return any(one.is_suspect for one in self._entries.values())

    def next_due(self) -> float | None:
        """Return when to try one of them again."""
        waiting = (one.retry_at for one in self._entries.values() if not one.on_trial)
        return min(waiting, default=None)

    def __contains__(self, name: object) -> bool:
        """Say whether an object is left out now."""
        entry = self._entries.get(name) if isinstance(name, tuple) else None
        return entry is not None and not entry.on_trial

    def entries(self) -> Iterator[tuple[Name, Entry]]:
        """Yield everything that is left out now."""
        return ((name, one) for name, one in self._entries.items() if not one.on_trial)

    def counts(self) -> Mapping[tuple[str, str], int]:
        """Count what is left out, by kind and stage."""
        counts: dict[tuple[str, str], int] = {}
        for (kind, _), entry in self.entries():
            counts[kind.kind, entry.stage] = counts.get((kind.kind, entry.stage), 0) + 1
        return counts


def _content(obj: Json | None) -> int:
    """Return a number for what a person or another controller can change about an object.

    Nothing is taken for granted about its form: that may be what is wrong with it.
    """
    if obj is None:
        return 0
    metadata, status = _fields(obj.get("metadata")), _fields(obj.get("status"))
    annotations = _fields(metadata.get("annotations"))
    parts = (
        metadata.get("uid"),
        metadata.get("labels"),
        metadata.get("deletionTimestamp"),
        {key: value for key, value in annotations.items() if not str(key).startswith(_OURS)},
        {key: value for key, value in obj.items() if key not in ("metadata", "status")},
        {key: value for key, value in status.items() if key != "conditions"},
    )
    return hash(repr(parts))


def _fields(value: object) -> Json:
    return value if isinstance(value, dict) else {}
