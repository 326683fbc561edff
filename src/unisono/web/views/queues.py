"""Queues as a tree of cohorts, with what is theirs, used, borrowed and lent."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.monitor.books import Books
from unisono.monitor.metrics.queues import lent_by
from unisono.monitor.records import Quota
from unisono.web.board import Board
from unisono.web.shown import Json, Shown
from unisono.web.sight import Sight
from unisono.web.views.rows import workload_row

_DEEPEST = 16  # cohorts above each other; a circle ends there


def queues(board: Board, asked: Mapping[str, str], sight: Sight) -> Shown:
    """Return the page."""
    if not sight.queues:
        return Shown({"denied": "list clusterqueues.kueue.x-k8s.io"})
    books = board.books
    lent = lent_by(list(books.queues.values()), board.sums.used)
    rows: dict[str, Json] = {}
    for name in sorted(books.queues, key=lambda one: (_path(books, one), one)):
        queue = books.queues[name]
        line = board.lines.get(name)
        head = line.first() if line is not None else None
        shown = head if head is not None and sight.sees(head.namespace) else None
        states = board.sums.states
        rows[name] = {
            "name": name,
            "cohorts": _path(books, name),
            "active": queue.is_active,
            "weight": queue.weight,
            "waits": len(line) if line is not None else 0,
            "runs": states[name, "running"] + states[name, "admitted"],
            "wanted": board.sums.wanted[name],
            "flavors": [_flavor(board, name, one, lent) for one in queue.quotas],
            "head": workload_row(board, shown) if shown is not None else None,
        }
    return Shown({}, rows)


def _flavor(board: Board, queue: str, quota: Quota, lent: Mapping[tuple[str, str], int]) -> Json:
    place = queue, quota.flavor
    used = board.sums.used[place]
    return {
        "name": quota.flavor,
        "nominal": quota.nominal,
        "used": used,
        "borrowed": max(0, used - quota.nominal),
        "lent": lent.get(place, 0),
        "mayBorrow": quota.borrowing,
        "mayLend": quota.lending,
    }


def _path(books: Books, queue: str) -> list[str]:
    """Return the cohorts of a queue, the topmost first."""
    found: list[str] = []
    cohort = books.queues[queue].cohort
    while cohort and cohort not in found and len(found) < _DEEPEST:
        found.insert(0, cohort)
        cohort = books.cohorts.get(cohort, "")
    return found
