"""A ledger as the web page reads it: what was, and reports of it.

Read in a thread, from a connection of its own that cannot write: a long query delays nothing else.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path

import msgspec

from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import PodRow, WorkloadRow
from unisono.monitor.ledger.store import LedgerError, LedgerStore
from unisono.runtime.usage.reports import file_name, read, written
from unisono.web.pages import File
from unisono.web.views.timeline import Past

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
