"""Workloads in pages: waiting, running and finished, filtered by words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from unisono.kinds.digits import whole_number
from unisono.monitor.records import WorkloadRecord
from unisono.web.auth import Permissions
from unisono.web.dashboard import Dashboard
from unisono.web.gpus import Gpus
from unisono.web.view_models import PageModel
from unisono.web.views.rows import key_of, workload_row

PAGE = 100
_LONGEST = 200  # of what is searched for


def workloads(
    dashboard: Dashboard,
    asked: Mapping[str, str],
    permissions: Permissions,
    *,
    gpus: Gpus | None = None,
) -> PageModel:
    """Return one page of the list."""
    lines = {"waits": dashboard.waiting, "runs": dashboard.running, "over": dashboard.over}
    chosen = asked.get("state", "")
    queue = asked.get("queue", "")
    words = asked.get("q", "")[:_LONGEST].lower().split()
    page = number(asked.get("at", ""))
    if not words and not queue and permissions.workloads is None:
        # Nothing is filtered, so only the workloads of this page are read.
        line = lines.get(chosen)
        if line is not None:
            return _page(dashboard, line.part((page - 1) * PAGE, PAGE), len(line), page, gpus)
    candidates: Iterable[WorkloadRecord]
    candidates = lines[chosen] if chosen in lines else chain(*lines.values())
    found = list(_matching(dashboard, candidates, permissions, queue, words))
    return _page(dashboard, found[(page - 1) * PAGE : page * PAGE], len(found), page, gpus)


def number(text: str) -> int:
    """Read the number of a page; what is none is the first."""
    return max(1, whole_number(text, 10**7) or 1)


def _page(
    dashboard: Dashboard,
    shown: Iterable[WorkloadRecord],
    found: int,
    page: int,
    gpus: Gpus | None,
) -> PageModel:
    head = {
        "found": found,
        "page": page,
        "pages": max(1, -(-found // PAGE)),
        "counts": {
            "waits": len(dashboard.waiting),
            "runs": len(dashboard.running),
            "over": len(dashboard.over),
        },
    }
    return PageModel(head, {key_of(one): workload_row(dashboard, one, gpus) for one in shown})


def _matching(
    dashboard: Dashboard,
    candidates: Iterable[WorkloadRecord],
    permissions: Permissions,
    queue: str,
    words: list[str],
) -> Iterator[WorkloadRecord]:
    is_all = permissions.workloads is None
    for one in candidates:
        if not is_all and not permissions.sees(one.namespace):
            continue
        if queue and dashboard.queue_of(one) != queue:
            continue
        if words:
            text = dashboard.text_of(one)
            if not all(word in text for word in words):
                continue
        yield one
