"""Nodes that fail and recover, at random or by a schedule, and the timers of a simulated run.

    mtbf=20h,repair=30m,seed=1     every node fails after 20 hours on average (by an exponential
                                   distribution) and is back half an hour later
    FILE.csv                       lines of TIME,NODE,down or up; TIME in seconds of the trace

A spot market that takes 5 % of all nodes in an hour is `mtbf=20h`. Times are those of the trace.

`ExternalEvents` feeds them to a run, with the engine's timers: advance reservations end and usage
decays although no job comes or ends. A node that fails evicts its jobs, which queue again. At one
instant nodes fail before jobs complete, and recover after it.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.state.changes import NodeGone, NodeSet
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.digits import whole_number
from unisono.sim.random_source import random_source
from unisono.sim.trace import BadTrace

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SPAN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")
_EVENTS: Final = {"down": False, "up": True}
_SETTINGS: Final = ("mtbf", "repair", "seed")

_Event = tuple[float, int, NodeName, bool]  # time, number, node, and whether it recovers


@dataclass(slots=True)
class Faults:
    """Failures and recoveries of nodes, in order of time."""

    _due: list[_Event]
    _mean_s: float = 0.0  # between failures of one node; 0: scheduled failures only
    _repair_s: float = 0.0
    _seed: int = 0
    _number: int = 0
    down: dict[NodeName, None] = field(default_factory=dict)

    def next_due(self) -> float:
        """Return when the next node fails or recovers."""
        return self._due[0][0] if self._due else math.inf

    def take(self, now: float) -> tuple[list[NodeName], list[NodeName]]:
        """Return the nodes that fail and those that recover by now."""
        failed: list[NodeName] = []
        back: list[NodeName] = []
        while self._due and self._due[0][0] <= now:
            when, _, name, is_up = heapq.heappop(self._due)
            if is_up == (name in self.down):  # a node that is down cannot fail again
                (back if is_up else failed).append(name)
                if is_up:
                    del self.down[name]
                else:
                    self.down[name] = None
            if self._mean_s:
                self._draw(name, when, is_up=not is_up)
        return failed, back

    def _draw(self, name: NodeName, now: float, *, is_up: bool) -> None:
        self._number += 1
        after = self._repair_s
        if not is_up:  # a generator per draw, so that one failure does not shift all later ones
            rng = random_source(self._seed, f"faults/{name}/{round(now * 1000)}")
            after = float(rng.exponential(self._mean_s))
        heapq.heappush(self._due, (now + after, self._number, name, is_up))

    def begin(self, names: Iterable[NodeName]) -> None:
        """Draw the first failure of every node."""
        for name in names if self._mean_s else ():
            self._draw(name, 0.0, is_up=False)


def random_faults(text: str, names: Sequence[NodeName], seed: int) -> Faults:
    """Return random faults; `seed` is that of the run, so that every run has its own."""
    settings: dict[str, str] = {}
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        if key not in _SETTINGS:
            message = f'unknown setting "{part.strip()}"; known are {", ".join(_SETTINGS)}'
            raise BadTrace("--faults", message)
        settings[key] = value
    if "mtbf" not in settings:
        raise BadTrace(
            "--faults",
            "mtbf is missing: give the mean time between failures of a node, as in mtbf=30d",
        )
    mean, repair = _seconds(settings["mtbf"]), _seconds(settings.get("repair", "1h"))
    if not mean or not repair:
        raise BadTrace("--faults", "mtbf and repair must be above 0")
    own = whole_number(settings.get("seed", "0"))
    if own is None:
        raise BadTrace("--faults", f'seed is "{settings["seed"]}"; it must be a whole number')
    made = Faults([], mean, repair, own + seed)
    made.begin(names)
    return made


def scheduled_faults(lines: Iterable[str], names: Sequence[NodeName], where: str) -> Faults:
    """Return the faults that a file lists."""
    known = {str(name) for name in names}
    due: list[_Event] = []
    for number, line in enumerate(lines, start=1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or line.startswith("#") or (number == 1 and cells[0] == "time"):
            continue
        due.append(_event(cells, known, f"{where}: line {number}", number))
    heapq.heapify(due)
    return Faults(due)


def _event(cells: list[str], known: set[str], where: str, number: int) -> _Event:
    if len(cells) != 3:
        raise BadTrace(where, f"has {len(cells)} cells; write TIME,NODE,down or TIME,NODE,up")
    when, name, event = cells
    if name not in known:
        raise BadTrace(where, f'there is no node "{name}" in the cluster')
    if event not in _EVENTS:
        raise BadTrace(where, f'"{event}" is neither down nor up')
    return _seconds(when, where), number, NodeName(name), _EVENTS[event]


def _seconds(text: str, where: str = "--faults") -> float:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise BadTrace(where, f'"{text}" is not a time; write seconds, or 90s, 30m, 20h, 30d')
    return float(found[1]) * _UNITS[found[2] or "s"]


# The run ends after so many external events that started no job, while none arrives or ends: weeks
# of a daily advance reservation. Otherwise a job that fits nowhere would keep the run going for
# ever.
MOST_IN_VAIN = 100
# A job is given up after so many: on nodes that keep failing it would never complete.
MOST_INTERRUPTIONS = 100


class ExternalEvents:
    """Timers and faults of one run; `base` is the instant of second 0 of the trace."""

    __slots__ = ("_back", "_base", "_decisions", "_faults", "_in_vain", "_nodes", "_state")

    def __init__(
        self, state: ClusterState, base: int, nodes: tuple[Node, ...], faults: Faults | None
    ) -> None:
        self._state = state
        self._base = base
        self._nodes = {node.name: node for node in nodes}
        self._faults = faults
        self._back: list[NodeName] = []
        self._decisions = 0
        self._in_vain = 0

    def may_unblock(self) -> bool:
        """Say whether a pending job may start because of a coming event."""
        in_time = self._in_vain < MOST_IN_VAIN and self.next_due() < math.inf
        return in_time and bool(self._state.waiting)

    def next_due(self) -> float:
        """Return when the next event is due, in seconds of the trace."""
        reminder = self._state.timers.next()
        due = math.inf if reminder is None else (reminder - self._base) / 1000
        return due if self._faults is None else min(due, self._faults.next_due())

    def instant(self, now: float) -> Instant:
        """Return the engine's instant of a time; exact for a timer that is due then."""
        reminder = self._state.timers.next()
        if reminder is not None and (reminder - self._base) / 1000 == now:
            return reminder
        return Instant(self._base + int(now * 1000))

    def fail(self, now: float, lose: Callable[[WorkloadKey, float], None]) -> None:
        """Fail the nodes that are due; `lose` is called for every job that was on one."""
        if self._faults is None or self._faults.next_due() > now:
            return
        failed, self._back = self._faults.take(now)
        gone = set(failed)
        hit = [
            key
            for key, running in self._state.running.items()
            for pod_set in running.admitted.admission.pod_sets
            if any(name in gone for name, _ in pod_set.nodes)
        ]
        for key in sorted(dict.fromkeys(hit)):
            lose(key, now)
        for name in failed:
            self._state.apply(NodeGone(name))

    def recover(self, decisions: int) -> None:
        """Bring back nodes that are due; count events that started no job."""
        self._in_vain = self._in_vain + 1 if decisions == self._decisions else 0
        self._decisions = decisions
        for name in self._back:
            self._state.apply(NodeSet(self._nodes[name]))
        self._back = []


def gave_up(interruptions: Mapping[int, int]) -> str:
    """Say how many jobs were given up after too many interruptions; empty: none."""
    lost = sum(times >= MOST_INTERRUPTIONS for times in interruptions.values())
    return f"{jobs_text(lost)} given up, interrupted {MOST_INTERRUPTIONS} times" if lost else ""


def jobs_text(count: int) -> str:
    """Say how many jobs.

    >>> jobs_text(1), jobs_text(1200)
    ('1 job', '1,200 jobs')
    """
    return f"{count:,} job{'s' if count != 1 else ''}"
