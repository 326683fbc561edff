"""The report of every week that an embedded cluster writes by itself, on Mondays at 7 UTC."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from unisono.cli.clock import seconds_now
from unisono.cli.instance import Instance
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.store import LedgerStore

_REPORTS_AT = timedelta(hours=7)


def reports_of(instance: Instance) -> Callable[[LedgerStore], Awaitable[None]]:
    """Return what writes the report of the week that is over, once."""

    async def report(store: LedgerStore) -> None:
        period = last_week(datetime.fromtimestamp(seconds_now(), UTC))
        folder = instance.reports
        name = f"gpu-usage-{datetime.fromtimestamp(period.since, UTC):%Y-%m-%d}"
        if store.first() >= period.until or any(folder.glob(f"{name}_*.html")):
            return
        from unisono.cli.report import read, weekly

        await asyncio.to_thread(lambda: weekly(read(instance.ledger, period), folder))

    return report


def last_week(now: datetime) -> Period:
    """Return the last whole week, Monday to Monday, as of its report on Monday morning."""
    day = (now - _REPORTS_AT).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = day - timedelta(days=day.weekday())
    return Period(int((monday - timedelta(days=7)).timestamp()), int(monday.timestamp()))
