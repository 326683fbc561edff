"""How many requests may be out at once, learned from how long their answers take.

An API server with two processors answers no more in a second when it is asked sixty things at once
than when it is asked four: the others wait inside it, and the requests of
other clients, whose answers we wait for, wait behind them. One that is far away, or has many
processors, has to be asked much at once. It need not be configured (the idea is that of TCP Vegas):

    quickest        how long an answer of this sort takes when no request waits
    took            how long it took this time, with so many of ours beside it
    queued          beside x (1 - quickest / took): so many of ours queued in the server

With fewer than two queued there is room for more; more than four gain nothing.
"""

from __future__ import annotations

import math

# Each holds a connection and a coroutine.
MOST_IN_FLIGHT = 64
# However slow it is: enough that its answers, and not our waiting for them, set the pace.
LEAST_IN_FLIGHT = 4
# Before anything is known.
FIRST_IN_FLIGHT = 16

_TOO_FEW_IN_LINE = 2.0
_TOO_MANY_IN_LINE = 4.0
# One answer may be slow or quick by chance; four that agree count for one request.
_STEP = 0.25
# How much of what is known of the line each answer changes.
_WEIGHT = 0.1
# A server that became slower for good is believed after a while: what is known of quick answers
# doubles in so many seconds.
_DOUBLES_S = 600.0
# Methods and resources: far more than there are.
_MOST_SORTS = 512


class ConcurrencyLimit:
    """Learns from answers; pure, the time comes in."""

    __slots__ = ("_in_line", "_least", "_most", "_quickest", "size")

    def __init__(self, most: int = MOST_IN_FLIGHT) -> None:
        """Know nothing yet."""
        self._most = float(most)
        self._least = float(min(most, LEAST_IN_FLIGHT))
        self.size = float(min(most, FIRST_IN_FLIGHT))
        self._in_line = 0.0
        self._quickest: dict[str, tuple[float, float]] = {}  # by sort: when it was told, and how

    def learn(self, sort: str, took_s: float, beside: int, now: float) -> None:
        """Hear how long an answer took, with how many requests of ours out, itself among them."""
        quickest = self._quickest_of(sort, took_s, now)
        in_line = beside * (1.0 - quickest / took_s) if took_s > 0.0 else 0.0
        self._in_line += _WEIGHT * (in_line - self._in_line)
        if in_line > _TOO_MANY_IN_LINE:
            self.size = max(self._least, self.size - _STEP)
        elif in_line < _TOO_FEW_IN_LINE and 2 * beside > self.size:  # it was made use of
            self.size = min(self._most, self.size + _STEP)

    @property
    def is_busy(self) -> bool:
        """Whether the API has enough to do with what it is asked already."""
        return self._in_line > _TOO_FEW_IN_LINE

    def _quickest_of(self, sort: str, took_s: float, now: float) -> float:
        known = self._quickest.get(sort)
        if known is not None:
            at, quickest = known
            quickest *= math.pow(2.0, (now - at) / _DOUBLES_S)
            if quickest < took_s:
                return quickest
        if len(self._quickest) >= _MOST_SORTS:
            self._quickest.clear()
        self._quickest[sort] = now, took_s
        return took_s
