"""Usage reports: made from the ledger for `unisono report`, the page, and every Monday at 7 UTC."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import PodRow, WorkloadRow
from unisono.monitor.ledger.store import LedgerError, LedgerStore
from unisono.runtime.clock import seconds_now
from unisono.runtime.instance import Instance
from unisono.web.pages import File
from unisono.web.views.timeline import Past

if TYPE_CHECKING:
    from unisono.monitor.ledger.store import LedgerStore
    from unisono.monitor.report.advice import Gpu
    from unisono.monitor.report.build import Only
    from unisono.monitor.report.model import Report


_ALWAYS = (0, 1 << 62)
_REPORTS_AT = timedelta(hours=7)

SreportName = Literal["utilization", "AccountUtilizationByUser", "TopUsage", "SizesByAccount"]


class FormatOptions(NamedTuple):
    """What some formats need to know besides the report."""

    mail_from: str = "unisono@localhost"
    mail_to: str = ""
    sreport: SreportName = "utilization"
    is_parsable: bool = False  # sreport with bars between the columns
    say: Callable[[str], str] = str  # text in the language of its reader ...
    width: Callable[[str], int] = len  # ... and how wide that is in a terminal


PLAIN = FormatOptions()


def read(ledger: Path, period: Period, only: Only | None = None) -> Report:
    """Return the report of a period."""
    from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, WorkloadRow
    from unisono.monitor.ledger.store import LedgerStore
    from unisono.monitor.report.build import Only, Rows, report

    store = LedgerStore(ledger, is_read_only=True)

    def rows(wanted: Period) -> Rows:
        return Rows(
            list(store.within(PodRow, *wanted)),
            list(store.within(WorkloadRow, *wanted)),
            list(store.within(NodeRow, *wanted)),
            list(store.within(QueueRow, *wanted)),
        )

    try:
        return report(rows, period, only=only or Only(), gpus=_catalogue())
    finally:
        store.close()


class KnownNames(NamedTuple):
    """The names by which a ledger can be filtered."""

    queues: frozenset[str]
    teams: frozenset[str]
    users: frozenset[str]


def known_names(ledger: Path) -> KnownNames:
    """Return all names of a ledger, of whatever period."""
    from unisono.monitor.ledger.rows import QueueRow
    from unisono.monitor.report.build import UNKNOWN_USER, UNMANAGED

    store = LedgerStore(ledger, is_read_only=True)
    try:
        workloads = list(store.within(WorkloadRow, *_ALWAYS))
        alone = [one for one in store.within(PodRow, *_ALWAYS) if not one.workload]
        queues = {one.queue for one in store.within(QueueRow, *_ALWAYS)}
    finally:
        store.close()
    return KnownNames(
        frozenset(queues | {one.queue for one in workloads} | ({UNMANAGED} if alone else set())),
        frozenset({one.team for one in workloads} | {one.namespace for one in alone}),
        frozenset({one.user for one in workloads} | ({UNKNOWN_USER} if alone else set())),
    )


def written(made: Report, form: str, options: FormatOptions = PLAIN) -> str:
    """Return a report in a format."""
    from unisono.monitor.report import formats as words
    from unisono.monitor.report.focus import focus
    from unisono.monitor.report.html import html, mail
    from unisono.monitor.report.other_tools import opencost, sreport

    match form:
        case "html":
            return html(made)
        case "csv":
            return words.as_csv(made)
        case "json":
            return words.as_json(made)
        case "md":
            return words.markdown(made)
        case "eml":
            return mail(made, sender=options.mail_from, to=options.mail_to).decode()
        case "sreport":
            which, is_parsable = options.sreport, options.is_parsable
            return sreport(made, "unisono", which=which, is_parsable=is_parsable)
        case "opencost":
            return opencost(made)
        case "focus":
            return focus(made, "unisono")
        case _:
            return words.text(made, options.say, options.width)


def write(
    made: Report, folder: Path, formats: Iterable[str], options: FormatOptions = PLAIN
) -> list[Path]:
    """Write a report in several formats into a folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for one in formats:
        path = folder / file_name(made, one)
        path.write_text(written(made, one, options), encoding="utf-8", newline="")
        paths.append(path)
    return paths


def file_name(made: Report, form: str) -> str:
    """Return the file name of a report: its period and its format."""
    suffixes = {"text": "txt", "sreport": "sreport.txt", "opencost": "opencost.json"}
    suffixes["focus"] = "focus.csv"
    suffix = suffixes.get(form, form)
    since, until = (datetime.fromtimestamp(at, UTC) for at in (made.since, made.until))
    return f"gpu-usage-{since:%Y-%m-%d}_{until:%Y-%m-%d}.{suffix}"


def weekly(made: Report, folder: Path) -> list[Path]:
    """Write the files of a weekly report."""
    return write(made, folder, ("html", "csv", "json"))


def weekly_reports(instance: Instance) -> Callable[[LedgerStore], Awaitable[None]]:
    """Return a step that writes the report of the last week, once."""

    async def report(store: LedgerStore) -> None:
        period = last_week(datetime.fromtimestamp(seconds_now(), UTC))
        folder = instance.reports
        name = f"gpu-usage-{datetime.fromtimestamp(period.since, UTC):%Y-%m-%d}"
        if store.first() >= period.until or any(folder.glob(f"{name}_*.html")):
            return
        await asyncio.to_thread(lambda: weekly(read(instance.ledger, period), folder))

    return report


def last_week(now: datetime) -> Period:
    """Return the last whole week, Monday to Monday, as of its report on Monday morning."""
    day = (now - _REPORTS_AT).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = day - timedelta(days=day.weekday())
    return Period(int((monday - timedelta(days=7)).timestamp()), int(monday.timestamp()))


def _catalogue() -> list[Gpu]:
    """Return the GPU models on offer, each with its lowest price per hour."""
    from unisono.monitor.report.advice import Gpu
    from unisono.provision.catalog.instance_types import machine_types

    found: dict[str, Gpu] = {}
    for machine in machine_types().values():
        accelerator = machine.accelerator
        if accelerator is None or not accelerator.memory_mi_b or accelerator.kind != "gpu":
            continue
        prices = [one.on_demand for one in machine.price.values() if one.on_demand]
        if prices:
            one = Gpu(accelerator.model, accelerator.memory_mi_b, min(prices) / accelerator.count)
            there = found.get(one.model)
            if there is None or one.usd_hour < there.usd_hour:
                found[one.model] = one
    return list(found.values())


# ---- for the web page ----------------------------------------------------------------------------
#
# Read in a thread, from a connection of its own that cannot write: a long query delays nothing
# else.

# So many rows are looked at for one page; a year of a large cluster has more.
_MOST_ROWS = 50_000
_TYPES = {
    "html": "text/html; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "md": "text/markdown; charset=utf-8",
}


class LedgerPast:
    """Reads one ledger."""

    def __init__(self, path: Path) -> None:
        """Take its file."""
        self._path = path

    async def read(self, since: int, until: int) -> Past:
        """Return what was between two seconds; nothing if the ledger cannot be read."""
        return await asyncio.to_thread(self._read, since, until)

    def _read(self, since: int, until: int) -> Past:
        try:
            store = LedgerStore(self._path, is_read_only=True)
        except LedgerError:
            return Past()
        try:
            return Past(
                tuple(islice(store.within(WorkloadRow, since, until), _MOST_ROWS)),
                tuple(islice(store.within(PodRow, since, until), _MOST_ROWS)),
            )
        finally:
            store.close()

    async def report(self, since: int, until: int, form: str) -> File:
        """Return a report of the time between two seconds."""
        return await asyncio.to_thread(self._report, since, until, form)

    def _report(self, since: int, until: int, form: str) -> File:
        made = read(self._path, Period(since, until))
        if form == "figures":
            made, form = msgspec.structs.replace(made, jobs=(), waiting=()), "json"
        return File(file_name(made, form), _TYPES[form], written(made, form).encode())
