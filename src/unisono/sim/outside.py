"""What happens by itself while jobs come and go: reminders of the engine, and nodes that fail.

Reservations end and use fades although nobody comes or goes; a node that fails takes its jobs with
it, and they queue again. At one instant nodes fail before jobs complete, and come back after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.state.changes import NodeGone, NodeSet
from unisono.engine.state.cluster import ClusterState
from unisono.sim.faults import Faults

# So often may something happen, with nobody to come or to end, and nobody start because of it:
# weeks of a daily reservation. A job that fits nowhere would wait for ever.
MOST_IN_VAIN = 100
# A long job on nodes that fail all the time never gets to its end.
MOST_INTERRUPTIONS = 100


class Outside:
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

    def is_awaited(self) -> bool:
        """Say whether somebody waits who may start because of what comes."""
        in_time = self._in_vain < MOST_IN_VAIN and self.next_due() < math.inf
        return in_time and bool(self._state.waiting)

    def next_due(self) -> float:
        """Return when the next thing happens, in seconds of the trace."""
        reminder = self._state.timers.next()
        due = math.inf if reminder is None else (reminder - self._base) / 1000
        return due if self._faults is None else min(due, self._faults.next_due())

    def instant(self, now: float) -> Instant:
        """Return an instant as the engine has it; reminders are due when they are due."""
        reminder = self._state.timers.next()
        if reminder is not None and (reminder - self._base) / 1000 == now:
            return reminder
        return Instant(self._base + int(now * 1000))

    def fail(self, now: float, lose: Callable[[WorkloadKey, float], None]) -> None:
        """Let nodes fail that do so now; `lose` is called for every job that was on one."""
        if self._faults is None or self._faults.next_due() > now:
            return
        failed, self._back = self._faults.take(now)
        gone = set(failed)
        hit = [
            key
            for key, running in self._state.running.items()
            for pod_set in running.holding.admission.pod_sets
            if any(name in gone for name, _ in pod_set.nodes)
        ]
        for key in sorted(dict.fromkeys(hit)):
            lose(key, now)
        for name in failed:
            self._state.apply(NodeGone(name))

    def mend(self, decisions: int) -> None:
        """Let nodes come back that do so now; note how often something happens in vain."""
        self._in_vain = self._in_vain + 1 if decisions == self._decisions else 0
        self._decisions = decisions
        for name in self._back:
            self._state.apply(NodeSet(self._nodes[name]))
        self._back = []


def given_up(interruptions: Mapping[int, int]) -> str:
    """Say how many jobs were given up, by how often each was interrupted; empty: none."""
    lost = sum(times >= MOST_INTERRUPTIONS for times in interruptions.values())
    return f"{jobs_text(lost)} given up, interrupted {MOST_INTERRUPTIONS} times" if lost else ""


def jobs_text(count: int) -> str:
    """Say how many jobs.

    >>> jobs_text(1), jobs_text(1200)
    ('1 job', '1,200 jobs')
    """
    return f"{count:,} job{'s' if count != 1 else ''}"
