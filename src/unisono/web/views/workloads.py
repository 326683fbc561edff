"""Workloads in pages: everybody who waits, runs or is over, narrowed by words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from unisono.kinds.digits import whole_number
from unisono.monitor.records import WorkloadRecord
from unisono.web.board import Board
from unisono.web.shown import Shown
from unisono.web.sight import Sight
from unisono.web.views.rows import key_of, workload_row

PAGE = 100
_LONGEST = 200  # of what is searched for


def workloads(board: Board, asked: Mapping[str, str], sight: Sight) -> Shown:
    """Return one page of the list."""
    lines = {"waits": board.waiting, "runs": board.running, "over": board.over}
    chosen = asked.get("state", "")
    queue = asked.get("queue", "")
    words = asked.get("q", "")[:_LONGEST].lower().split()
    page = number(asked.get("at", ""))
    if not words and not queue and sight.workloads is None:
        # Nobody is left out, so nobody has to be looked at but those of the page.
        line = lines.get(chosen)
        if line is not None:
            return _page(board, line.part((page - 1) * PAGE, PAGE), len(line), page)
    everybody: Iterable[WorkloadRecord]
    everybody = lines[chosen] if chosen in lines else chain(*lines.values())
    found = list(_matching(board, everybody, sight, queue, words))
    return _page(board, found[(page - 1) * PAGE : page * PAGE], len(found), page)


def number(text: str) -> int:
    """Read the number of a page; what is none is the first."""
    return max(1, whole_number(text, 10**7) or 1)


def _page(board: Board, shown: Iterable[WorkloadRecord], found: int, page: int) -> Shown:
    head = {
        "found": found,
        "page": page,
        "pages": max(1, -(-found // PAGE)),
        "counts": {
            "waits": len(board.waiting),
            "runs": len(board.running),
            "over": len(board.over),
        },
    }
    return Shown(head, {key_of(one): workload_row(board, one) for one in shown})


def _matching(
    board: Board, everybody: Iterable[WorkloadRecord], sight: Sight, queue: str, words: list[str]
) -> Iterator[WorkloadRecord]:
    is_all = sight.workloads is None
    for one in everybody:
        if not is_all and not sight.sees(one.namespace):
            continue
        if queue and board.queue_of(one) != queue:
            continue
        if words:
            text = board.text_of(one)
            if not all(word in text for word in words):
                continue
        yield one
