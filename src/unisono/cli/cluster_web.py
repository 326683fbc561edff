"""The web page of a replica on a real cluster: it follows the API whether it leads or stands by.

A standby hears of every change from its informers. Who leads also writes, and of its own writes
informers say nothing more: from then on the driver tells of everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from unisono.cli.clock import cpu_seconds, seconds_now
from unisono.cli.past import LedgerPast
from unisono.control.driver import Driver
from unisono.control.live import Live
from unisono.control.packed import Packed
from unisono.control.view import Difference
from unisono.kube.client import Client
from unisono.kube.mapping import Kind
from unisono.kube.store import Delta
from unisono.monitor.books import FOLLOWED, Books
from unisono.web.board import Board
from unisono.web.pages import Pages
from unisono.web.reviews import ClusterDoor
from unisono.web.serve import Site, serving


class ClusterWeb:
    """Shows a cluster to whoever its API knows."""

    def __init__(self, live: Live, client: Client, ledger: Path | None, *, reuse: float) -> None:
        """Follow a view from now on; `client` asks who people are."""
        self._view = live.view
        self._client = client
        self._ledger = ledger
        self._reuse = reuse
        self._books = Books()
        self._is_leading = False
        for kind, informer in live.informers.items():
            if kind in FOLLOWED:
                informer.on_change(self._to(kind))

    def lead(self, driver: Driver) -> None:
        """Hear of everything from a driver, as others do."""

        def heard(kind: Kind, difference: Difference) -> None:
            self._books.heard(kind, difference.old, difference.new)

        driver.listeners.append(heard)
        self._is_leading = True

    async def serve(self, host: str, port: int, tell: Callable[[str], None]) -> None:
        """Serve the page until cancelled; `tell` gets its address."""
        board = Board(self._books, self._view.find)
        past = LedgerPast(self._ledger) if self._ledger is not None else None
        pages = Pages(
            board,
            now=seconds_now,
            past=past.read if past is not None else None,
            report=past.report if past is not None else None,
            reuse=self._reuse,
        )
        door = ClusterDoor(self._client.variant(most_tries=2), board.namespaces, now=seconds_now)
        site = Site(pages, door, now=seconds_now, ticks=cpu_seconds)
        async with serving(site, host, port) as address:
            tell(address)
            await asyncio.Event().wait()

    def _to(self, kind: Kind) -> Callable[[Delta[Packed]], None]:
        def heard(delta: Delta[Packed]) -> None:
            if not self._is_leading:
                for difference in self._view.unpacked(kind, (delta,)):
                    self._books.heard(kind, difference.old, difference.new)

        return heard
