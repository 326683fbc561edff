"""How bad things are: the chance of each fault, for a call or for a change that a watch brings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRates:
    """Chances between 0 and 1."""

    # Of a call.
    refuse: float = 0.0  # 500 or 503, nothing done
    lose: float = 0.0  # done, but the answer never comes
    delay: float = 0.0  # no answer, and it is done some time later
    conflict: float = 0.0  # 409, nothing done
    busy: float = 0.0  # 429, nothing done
    die_before: float = 0.0  # the writer is gone, and the write is not done
    die_after: float = 0.0  # … and the write is done
    # Of a change that a watch is about to bring.
    late: float = 0.0  # this watch says nothing for some seconds
    lost: float = 0.0  # this watch breaks; what it missed shows in a new list
    doubled: float = 0.0  # it comes twice, the second time perhaps after newer ones


NO_FAULTS = FaultRates()
