"""What is remembered of refusals: an offer that was out of stock is not asked for again at once.

The pause doubles with every refusal in a row, from three minutes to half an hour, and ends with the
first success. Fewer machines than were refused may be asked for after one minute. An account whose
quota is used up, or a zone that does not know a type, needs longer. Spec provisioning §5.6.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.names import Instant
from unisono.engine.model.provisioning import CapacityType, UnavailableOffer

FIRST_MS = 3 * 60_000
LONGEST_MS = 30 * 60_000
FEWER_AFTER_MS = 60_000
QUOTA_MS = 15 * 60_000
UNSUPPORTED_MS = 24 * 3600_000
_FIXED = {"QuotaExceeded": QUOTA_MS, "Unsupported": UNSUPPORTED_MS}


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """An offer, and how often in a row it was refused."""

    machine: str
    zone: str
    capacity_type: CapacityType
    count: int  # the fewest machines that were refused
    failures: int
    at: Instant  # the last time
    code: str = "InsufficientCapacity"


def after_refusal(
    before: Refused | None,
    offer: tuple[str, str, CapacityType],
    count: int,
    now: Instant,
    code: str,
) -> Refused:
    """Return what to remember of one refusal more."""
    machine, zone, capacity_type = offer
    return Refused(
        machine=machine,
        zone=zone,
        capacity_type=capacity_type,
        count=count if before is None else min(count, before.count),
        failures=1 if before is None else before.failures + 1,
        at=now,
        code=code,
    )


def outage_of(refused: Refused) -> UnavailableOffer:
    """Return when the offer may be asked for again."""
    pause = _FIXED.get(refused.code)
    if pause is None:
        pause = min(FIRST_MS << min(refused.failures - 1, 10), LONGEST_MS)
    fewer = pause if refused.code in _FIXED else min(FEWER_AFTER_MS, pause)
    return UnavailableOffer(
        machine=refused.machine,
        zone=refused.zone,
        capacity_type=refused.capacity_type,
        count=refused.count,
        until=Instant(refused.at + pause),
        fewer_from=Instant(refused.at + fewer),
        at=refused.at,
    )


def is_over(refused: Refused, now: Instant) -> bool:
    """Say whether the offer may be asked for again, whatever the number."""
    return outage_of(refused).until <= now
