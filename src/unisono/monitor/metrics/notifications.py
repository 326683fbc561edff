"""Mails and webhooks: what became of them, and how many are still to be sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from unisono.monitor.exposition import Family, Sample, single


class NotificationCounts(NamedTuple):
    """The outbox at one time; this is one that has had nothing to send."""

    results: Mapping[tuple[str, str], int] = {}  # by channel and result
    waiting: int = 0


def notification_families(counts: NotificationCounts) -> Iterator[Family]:
    """Yield everything, as it is now."""
    yield Family(
        "unisono_notifications_total",
        "counter",
        "Notifications by channel and result: sent, failed (given up), dropped (too many waited).",
        [
            Sample({"channel": channel, "result": result}, count)
            for (channel, result), count in sorted(counts.results.items())
        ],
    )
    waiting = "Notifications that are still to be sent."
    yield single("unisono_notifications_waiting", "gauge", waiting, counts.waiting)
