"""Errors in the input of a simulation."""

from __future__ import annotations

from unisono.engine.model.errors import InvalidManifest


class BadTrace(InvalidManifest):
    """A trace, a list of nodes or an option that cannot be read: where, and what is wrong."""


class BadRows(BadTrace):
    """Some rows of a table cannot be read; the message is about the first of them."""

    def __init__(self, path: str, problem: str, rows: list[int]) -> None:
        """Say where and what, and which rows."""
        super().__init__(path, problem)
        self.rows = rows
