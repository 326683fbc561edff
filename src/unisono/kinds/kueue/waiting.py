"""The two conditions that say why a workload is pending.

    QuotaReserved=False     in Kueue's sentence, where Kueue has one: tools match on it
    unisono.dev/Waiting     in our own words, with the root cause and what would change it; only
                            where they are others

People are shown our own words.
"""

from __future__ import annotations

from unisono.kinds.views.objects import Conditions

WAITING = "unisono.dev/Waiting"


def waiting_message(conditions: Conditions) -> str:
    """Return why a workload is pending, for people; empty if no condition says so."""
    return conditions.message(WAITING) or conditions.message("QuotaReserved")
