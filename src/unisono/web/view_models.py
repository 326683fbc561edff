"""A page as data, and what became different in it since it was last sent.

A page is a head (a few figures) and rows by name, in an order. The first message has all of it;
those that follow have the head if it changed, the rows that did, and the order if that did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unisono.kube.form import Json


@dataclass(frozen=True, slots=True)
class PageModel:
    """A page as it is now; its contents are never changed."""

    head: Json
    rows: Mapping[str, Json] = field(default_factory=dict)


class PageUpdates:
    """Remembers what a visitor has been told."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._last: PageModel | None = None

    def news(self, shown: PageModel) -> Json | None:
        """Return what is new to the visitor; None if nothing is."""
        last, self._last = self._last, shown
        if last is None:
            return {"head": shown.head, "order": list(shown.rows), "set": dict(shown.rows)}
        changed = {
            name: row
            for name, row in shown.rows.items()
            if (old := last.rows.get(name)) is not row and old != row
        }
        message: Json = {}
        if shown.head != last.head:
            message["head"] = shown.head
        if changed:
            message["set"] = changed
        if list(shown.rows) != list(last.rows):
            message["order"] = list(shown.rows)
        return message or None
