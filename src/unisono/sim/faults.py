"""Nodes that fail and come back: by chance, or as somebody wrote it down.

    mtbf=20h,repair=30m,seed=1     every node fails after 20 hours on average (by an exponential
                                   distribution) and is back half an hour later
    FILE.csv                       lines of TIME,NODE,down or up; TIME in seconds of the trace

A spot market that takes 5 % of all nodes in an hour is `mtbf=20h`. Times are those of the trace.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from unisono.engine.model.names import NodeName
from unisono.kinds.digits import whole_number
from unisono.sim.dice import dice
from unisono.sim.errors import BadTrace

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SPAN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")
_EVENTS: Final = {"down": False, "up": True}
_SETTINGS: Final = ("mtbf", "repair", "seed")

_Event = tuple[float, int, NodeName, bool]  # when, number, whose, and whether it is back


@dataclass(slots=True)
class Faults:
    """What happens to nodes, in the order of time."""

    _due: list[_Event]
    _mean_s: float = 0.0  # between failures of one node; 0: all is written down
    _repair_s: float = 0.0
    _seed: int = 0
    _number: int = 0
    down: dict[NodeName, None] = field(default_factory=dict)

    def next_due(self) -> float:
        """Return when the next node fails or is back."""
        return self._due[0][0] if self._due else math.inf

    def take(self, now: float) -> tuple[list[NodeName], list[NodeName]]:
        """Return who fails and who is back by now."""
        failed: list[NodeName] = []
        back: list[NodeName] = []
        while self._due and self._due[0][0] <= now:
            when, _, name, is_up = heapq.heappop(self._due)
            if is_up == (name in self.down):  # who is down cannot fail again
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
        if not is_up:  # each draw has dice of its own: who fails first changes nobody else's luck
            chance = dice(self._seed, f"faults/{name}/{round(now * 1000)}")
            after = float(chance.exponential(self._mean_s))
        heapq.heappush(self._due, (now + after, self._number, name, is_up))

    def begin(self, names: Iterable[NodeName]) -> None:
        """Let every node fail for the first time."""
        for name in names if self._mean_s else ():
            self._draw(name, 0.0, is_up=False)


def by_chance(text: str, names: Sequence[NodeName], seed: int) -> Faults:
    """Return faults by settings; `seed` is that of the run, so that every run has its own."""
    settings: dict[str, str] = {}
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        if key not in _SETTINGS:
            message = f'there is no setting "{part.strip()}"; it knows {", ".join(_SETTINGS)}'
            raise BadTrace("--faults", message)
        settings[key] = value
    if "mtbf" not in settings:
        raise BadTrace("--faults", "needs the mean time between failures of a node: mtbf=30d")
    mean, repair = _seconds(settings["mtbf"]), _seconds(settings.get("repair", "1h"))
    if not mean or not repair:
        raise BadTrace("--faults", "mtbf and repair must be above 0")
    own = whole_number(settings.get("seed", "0"))
    if own is None:
        raise BadTrace("--faults", f'seed is "{settings["seed"]}"; it must be a whole number')
    made = Faults([], mean, repair, own + seed)
    made.begin(names)
    return made


def as_written(lines: Iterable[str], names: Sequence[NodeName], where: str) -> Faults:
    """Return faults as a file has them."""
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
        raise BadTrace(where, f"has {len(cells)} cells; it is TIME,NODE,down or TIME,NODE,up")
    when, name, event = cells
    if name not in known:
        raise BadTrace(where, f'there is no node "{name}" in the cluster')
    if event not in _EVENTS:
        raise BadTrace(where, f'"{event}" is neither down nor up')
    return _seconds(when, where), number, NodeName(name), _EVENTS[event]


def _seconds(text: str, where: str = "--faults") -> float:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise BadTrace(where, f'"{text}" is no time; write seconds, or 90s, 30m, 20h, 30d')
    return float(found[1]) * _UNITS[found[2] or "s"]
