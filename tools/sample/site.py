"""The web page of a cluster on paper: the real page, served by the real listener."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from tools.sample.world import Sample
from unisono.monitor.books import Books
from unisono.web.board import Board
from unisono.web.door import Door, TokenDoor
from unisono.web.pages import Pages
from unisono.web.serve import Site, serving

TOKEN = "a-token"


class Served(NamedTuple):
    """Where the page is, and the books behind it: what they are told of appears on it."""

    address: str
    books: Books
    board: Board
    now: Callable[[], float]

    def at(self, page: str) -> str:
        """Return the address of a page, with what signs in."""
        return f"{self.address}#token={TOKEN}{page}"


@contextlib.asynccontextmanager
async def served(shown: Sample, door: Door | None = None) -> AsyncIterator[Served]:
    """Serve the page while the block lasts; its time goes on from the sample's."""
    began = time.monotonic()

    def now() -> float:
        return shown.now + time.monotonic() - began

    books = shown.books()
    board = Board(books, shown.look)
    pages = Pages(board, now=now, past=shown.past, report=shown.report)
    site = Site(pages, door or TokenDoor(TOKEN), now=now, ticks=time.process_time)
    async with serving(site, "127.0.0.1", 0) as address:
        yield Served(address, books, board, now)
