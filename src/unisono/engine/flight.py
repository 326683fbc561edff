"""The flight recorder: decisions as lines of a file, from which each can be made again.

    line 1       the whole state before the first decision (`Base`)
    line 2, …    what happened since, and the plan that was made (`Decision`)

A plan that changes nothing is no line of its own: only that it was made is noted with what happened
before the next one. The engine is deterministic, so reading the base and doing the rest again gives
the same plans, byte for byte; where it does not, there is a bug, and the file shows it.

A snapshot says everything that decisions depend on, but for reservations that are kept from cycle
to cycle to save work. Those are let go where a base is taken, and worked out anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.model.errors import UnisonoError
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Plan
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.changes import Change
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

FORMAT = 1
_Line = TypeVar("_Line")


class Unreadable(UnisonoError):
    """A recording is damaged, or of another version."""


class Looked(msgspec.Struct, frozen=True, tag=True):
    """A decision was made at this instant, and changed nothing."""

    now: Instant


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """The state before the first decision of a recording."""

    format: int = FORMAT
    program: str = ""  # the version that recorded it
    first: int = 1  # the number of the first decision
    snapshot: Snapshot


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What happened since the last decision, and the plan as it was encoded then."""

    number: int
    follows: int  # the version of the state before the first step: one more if a plan was filed
    steps: tuple[Change | Looked, ...] = ()
    plan: msgspec.Raw


class Sink(Protocol):
    """Where lines go."""

    @property
    def is_full(self) -> bool:
        """Say whether the next decision should begin a new recording."""
        ...

    def begin(self, base: bytes) -> None:
        """Begin a recording with its base."""
        ...

    def add(self, decision: bytes) -> None:
        """Write one more line."""
        ...


class Tape:
    """Decides, and records it. `plan` takes the place of the engine's own."""

    def __init__(self, sink: Sink, *, program: str = "") -> None:
        self._sink = sink
        self._program = program
        self._steps: list[Change | Looked] = []
        self._state: ClusterState | None = None
        self._follows = 0  # the version of the state before the first step
        self.decisions = 0

    def plan(self, state: ClusterState, now: Instant) -> Plan:
        """Decide one cycle and write it down before it is applied."""
        if self._state is not state:
            self._listen(state)
            self._begin(state)
        elif self._sink.is_full:
            self._begin(state)
        made = plan(state, now)
        if is_quiet(made):
            self._note(state, Looked(now))
            return made
        self.decisions += 1
        follows = self._follows if self._steps else state.version
        line = Decision(
            number=self.decisions,
            follows=follows,
            steps=tuple(self._steps),
            plan=msgspec.Raw(encoded(made)),
        )
        self._steps.clear()
        self._sink.add(msgspec.json.encode(line))
        return made

    def _begin(self, state: ClusterState) -> None:
        state.timeline.invalidate()
        self._steps.clear()
        base = Base(program=self._program, first=self.decisions + 1, snapshot=snapshot(state))
        self._sink.begin(msgspec.json.encode(base))

    def _note(self, state: ClusterState, step: Change | Looked) -> None:
        if not self._steps:
            self._follows = state.version
        self._steps.append(step)

    def _listen(self, state: ClusterState) -> None:
        """Receive every change."""
        self._state = state
        state.listener = partial(self._note, state)


def recorded_once(state: ClusterState, made: Plan, *, program: str = "") -> tuple[bytes, bytes]:
    """Return a recording of one plan, made from this very state, as its two lines."""
    state.timeline.invalidate()
    base = Base(program=program, snapshot=snapshot(state))
    line = Decision(number=1, follows=state.version, plan=msgspec.Raw(encoded(made)))
    return msgspec.json.encode(base), msgspec.json.encode(line)


def is_quiet(made: Plan) -> bool:
    """Say whether a plan neither does nor says anything."""
    return not (
        made.admissions or made.preemptions or made.awaits or made.evictions_due or made.waits
    )


def encoded(made: Plan) -> bytes:
    """Return a plan as it is compared: every byte counts."""
    return msgspec.json.encode(made)


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded decision, made again on the state that `replay` hands out with it."""

    number: int
    recorded: bytes
    made: Plan

    @property
    def is_identical(self) -> bool:
        """Say whether the plan is the same, byte for byte."""
        return encoded(self.made) == self.recorded


def replay(lines: Iterable[bytes]) -> Iterator[tuple[Again, ClusterState]]:
    """Make recorded decisions again, one after the other, each on the state that it was made on.

    After a decision that came out otherwise the recorded one is carried out, so that the following
    ones are compared on what really happened.
    """
    rest = iter(lines)
    base = _read(next(rest, b""), Base, "its first line")
    if base.format != FORMAT:
        raise Unreadable(f"it is of format {base.format}; this program reads {FORMAT}")
    state = restore(base.snapshot)
    pending: Plan | None = None  # the last plan, until it is known whether it was carried out
    for number, line in enumerate(rest, start=base.first):
        entry = _read(line, Decision, f"decision {number}")
        if entry.number != number:
            raise Unreadable(f"decision {number} is missing; decision {entry.number} follows")
        recorded = _read(bytes(entry.plan), Plan, f"the plan of decision {number}")
        if pending is not None and _was_carried_out(pending, recorded, entry):
            apply_plan(state, pending)
        for step in entry.steps:
            if isinstance(step, Looked):
                apply_plan(state, plan(state, step.now))
            else:
                state.apply(step)
        again = Again(
            number=entry.number, recorded=bytes(entry.plan), made=plan(state, recorded.now)
        )
        yield again, state
        if not again.is_identical:
            state.version = recorded.based_on
        pending = recorded


def _was_carried_out(made: Plan, following: Plan, entry: Decision) -> bool:
    """Say whether a plan was carried out; one that the auditor refused was not."""
    return entry.follows == made.based_on + 1


def _read(line: bytes, kind: type[_Line], what: str) -> _Line:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError as reason:
        raise Unreadable(f"{what} cannot be read: {reason}") from None


def first_difference(recorded: bytes, made: bytes) -> tuple[str, object, object] | None:
    """Return where two plans differ first, as a path, and what each says there."""
    return _differ("plan", msgspec.json.decode(recorded), msgspec.json.decode(made))


def _differ(path: str, old: object, new: object) -> tuple[str, object, object] | None:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            found = _differ(f"{path}.{key}", old.get(key), new.get(key))
            if found is not None:
                return found
        return None
    if isinstance(old, list) and isinstance(new, list):
        for place, (one, other) in enumerate(zip(old, new, strict=False)):
            found = _differ(f"{path}[{place}]", one, other)
            if found is not None:
                return found
        if len(old) != len(new):
            shorter = min(len(old), len(new))
            return f"{path}[{shorter}]", old[shorter:][:1], new[shorter:][:1]
        return None
    return None if old == new else (path, old, new)
