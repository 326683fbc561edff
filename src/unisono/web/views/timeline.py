"""What ran, runs and is planned, as bars over time, in lanes of queues or of nodes.

A bar is an attempt of a workload (or its part on a node): when it began to wait, got its nodes,
ended, or ends at the latest. A waiting workload with an estimated start has a bar in the future.
The past beyond what the cluster still holds comes from the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from itertools import chain
from typing import NamedTuple

from unisono.kube.form import Json
from unisono.monitor.ledger.rows import PodRow, WorkloadRow
from unisono.monitor.records import WorkloadRecord
from unisono.web.auth import Permissions
from unisono.web.dashboard import Dashboard
from unisono.web.view_models import PageModel

# More than that cannot be told apart; those that take most GPU time are shown.
MOST_BARS = 1_500
# Of these, so many are kept for what is planned, the soonest first, however much runs.
_MOST_PLANNED = MOST_BARS // 3
_HOUR = 3600.0
_LONGEST_SPAN = 366 * 24 * _HOUR
_SHORTEST_SPAN = 60.0
_DEFAULT_SPAN = 6 * _HOUR
# So much of the time that is shown lies ahead.
_AHEAD = 0.25
PLANNED = "planned"


class Window(NamedTuple):
    """The time that is shown."""

    since: float
    until: float
    is_live: bool  # it goes along with the time

    def touches(self, since: float, until: float) -> bool:
        """Say whether something is within."""
        return since < self.until and until > self.since


class Past(NamedTuple):
    """What the ledger says of a time."""

    tries: tuple[WorkloadRow, ...] = ()
    pods: tuple[PodRow, ...] = ()


def window_of(asked: Mapping[str, str], now: float) -> Window:
    """Return the requested time range: a span around now, or one that ends at `end`."""
    span = min(_LONGEST_SPAN, max(_SHORTEST_SPAN, _number(asked.get("span", ""), _DEFAULT_SPAN)))
    end = _number(asked.get("end", ""), 0.0)
    if end:
        return Window(end - span, end, is_live=False)
    # By whole steps, so that the window does not become another every second.
    step = max(1.0, span / 240)
    until = (now + span * _AHEAD) // step * step + step
    return Window(until - span, until, is_live=True)


class _Span(NamedTuple):
    """Something that may become a bar: enough to choose among thousands of them."""

    weight: float
    name: str  # unique
    namespace: str
    queue: str
    of: WorkloadRow | WorkloadRecord | _Part


def timeline(
    dashboard: Dashboard,
    asked: Mapping[str, str],
    permissions: Permissions,
    *,
    now: float,
    past: Past,
) -> PageModel:
    """Return the bars of a time."""
    window = window_of(asked, now)
    by_node = asked.get("by") == "node"
    if by_node and not permissions.nodes:
        return PageModel({"denied": "list nodes"})
    there = (
        _on_nodes(dashboard, window, past, now)
        if by_node
        else _in_queues(dashboard, window, past, now)
    )
    queue = asked.get("queue", "")
    # Of others' gangs on nodes that one may look at, only that the GPUs are taken.

    def is_shown(one: _Span) -> bool:
        is_seen = permissions.sees(one.namespace) or isinstance(one.of, _Part)
        return is_seen and (not queue or one.queue == queue)

    were, will = list(filter(is_shown, there)), list(filter(is_shown, _planned(dashboard, window)))
    kept = _heaviest(max(_MOST_PLANNED, MOST_BARS - len(were)), will)
    kept += _heaviest(MOST_BARS - len(kept), were)
    bars = [_bar(dashboard, one, permissions) for one in kept]
    bars.sort(key=lambda bar: (bar["lane"], bar["from"], bar["id"]))
    head = {
        "since": window.since,
        "until": window.until,
        "live": window.is_live,
        "left": len(were) + len(will) - len(kept),
        "undated": sum(not one.waits.start for one in dashboard.waiting),
    }
    return PageModel(head, {bar["id"]: bar for bar in bars})


def _heaviest(most: int, spans: Iterable[_Span]) -> list[_Span]:
    return nlargest(most, spans, key=lambda one: (one.weight, one.name))


def _weight(window: Window, since: float, until: float, gpus: int) -> float:
    """Return how much of what is shown something takes."""
    shown = min(window.until, until) - max(window.since, since)
    return (max(0.0, shown) + 1.0) * max(1, gpus)


# ---- by queue ------------------------------------------------------------------------------------


def _in_queues(dashboard: Dashboard, window: Window, past: Past, now: float) -> Iterator[_Span]:
    living = {one.uid: one for one in chain(dashboard.running, dashboard.over)}
    for row in past.tries:
        # The newest try of what is still there is told below, with its newest state.
        one = living.get(row.uid)
        if one is not None and row.attempt > sum(count for _, count in one.evictions):
            continue
        began = row.admitted or row.reserved
        if began and row.ended and window.touches(row.since, row.ended):
            weight = _weight(window, began, row.ended, row.gpus)
            yield _Span(weight, f"{row.uid}/{row.attempt}", row.namespace, row.queue, row)
    for one in living.values():
        until = one.finished or now
        if window.touches(one.created, until):
            weight = _weight(window, _began(one), until, one.gpus)
            yield _Span(weight, one.uid, one.namespace, dashboard.queue_of(one), one)


def _began(one: WorkloadRecord) -> float:
    return one.admitted or one.reserved or one.ready or one.finished


def _planned(dashboard: Dashboard, window: Window) -> Iterator[_Span]:
    """Yield waiting workloads with an estimated start; the sooner, the more important."""
    for one in dashboard.waiting:
        start = one.waits.start
        if start:
            until = start + (one.waits.limit or one.limit or _HOUR)
            if window.touches(start, until):
                yield _Span(-start, one.uid, one.namespace, dashboard.queue_of(one), one)


# ---- by node -------------------------------------------------------------------------------------


class _Part:
    """The pods of one gang on one node, as one bar."""

    def __init__(self, namespace: str, name: str, node: str) -> None:
        self.namespace = namespace
        self.name = name
        self.node = node
        self.label = name
        self.since = float("inf")
        self.until = 0.0
        self.gpus = 0
        self.is_open = False
        self.failed = False

    def add(self, since: float, until: float, gpus: int, outcome: str) -> None:
        self.since = min(self.since, since)
        self.until = max(self.until, until)
        self.gpus += gpus
        self.is_open = self.is_open or not until
        self.failed = self.failed or outcome in ("Failed", "Gone")


def _on_nodes(dashboard: Dashboard, window: Window, past: Past, now: float) -> Iterator[_Span]:
    for part in _parts(dashboard, window, past):
        until = now if part.is_open else part.until
        if window.touches(part.since, until):
            one = dashboard.workload(part.namespace, part.name)
            queue = dashboard.queue_of(one) if one is not None else ""
            weight = _weight(window, part.since, until, part.gpus)
            name = f"{part.node}/{part.namespace}/{part.name}"
            yield _Span(weight, name, part.namespace, queue, part)


def _parts(dashboard: Dashboard, window: Window, past: Past) -> Iterable[_Part]:
    parts: dict[tuple[str, str, str], _Part] = {}
    living = {pod.uid for name in dashboard.cache.nodes for pod in dashboard.pods_on(name)}
    names = {row.uid: row for row in past.tries}
    for row in past.pods:
        if row.uid not in living and row.ended and window.touches(row.bound, row.ended):
            gang = names.get(row.workload)
            key = row.namespace, gang.name if gang is not None else row.name, row.node
            part = parts.setdefault(key, _Part(*key))
            part.label = gang.owner if gang is not None else row.name
            part.add(row.bound, row.ended, row.gpus, row.outcome)
    for node in dashboard.cache.nodes:
        for pod in dashboard.pods_on(node):
            if pod.gpus:
                key = pod.namespace, pod.workload or pod.name, node
                gpus = sum(count for _, count in pod.gpus)
                since = pod.bound or pod.started or pod.created
                parts.setdefault(key, _Part(*key)).add(since, 0.0, gpus, "")
    return parts.values()


# ---- bars ----------------------------------------------------------------------------------------


def _bar(dashboard: Dashboard, span: _Span, permissions: Permissions) -> Json:
    match span.of:
        case WorkloadRow():
            return _of_row(span.name, span.of)
        case _Part():
            return _of_part(dashboard, span, span.of, permissions)
        case one:
            return _of_record(span, one)


def _of_row(name: str, row: WorkloadRow) -> Json:
    return {
        "id": name,
        "lane": row.queue or row.local_queue,
        "key": f"{row.namespace}/{row.name}",
        "name": row.owner,
        "queue": row.queue,
        "user": row.user,
        "gpus": row.gpus,
        "waited": row.since,
        "from": row.admitted or row.reserved,
        "to": row.ended,
        "latest": 0.0,
        "kind": "over" if row.outcome == "Finished" else "left",
        "promised": False,
    }


def _of_record(span: _Span, one: WorkloadRecord) -> Json:
    about = {
        "id": span.name,
        "lane": span.queue,
        "key": f"{one.namespace}/{one.name}",
        "name": one.owner_name,
        "queue": span.queue,
        "user": one.user,
        "gpus": one.gpus,
    }
    if one.is_waiting:
        limit = one.waits.limit or one.limit
        return {
            **about,
            "waited": one.created,
            "from": one.waits.start,
            "to": one.waits.start + limit if limit else 0.0,
            "latest": 0.0,
            "kind": PLANNED,
            "promised": one.waits.is_promised,
        }
    began = _began(one)
    return {
        **about,
        "waited": max(one.created, one.evicted if one.evicted < began else 0.0),
        "from": began,
        "to": one.finished,
        "latest": _latest(one),
        "kind": "over" if one.finished else "runs" if one.ready else "starts",
        "promised": False,
    }


def _latest(one: WorkloadRecord) -> float:
    """Return when a gang that runs is over at the latest; 0 if it did not say."""
    began = one.admitted or one.reserved
    return began + one.limit if one.limit and began and not one.finished else 0.0


def _of_part(dashboard: Dashboard, span: _Span, part: _Part, permissions: Permissions) -> Json:
    one = dashboard.workload(part.namespace, part.name)
    is_mine = permissions.sees(part.namespace)
    return {
        "id": span.name if is_mine else f"{part.node}/{part.since}/{part.gpus}",
        "lane": part.node,
        "key": permissions.named(part.namespace, part.name),
        "name": (one.owner_name if one is not None else part.label) if is_mine else "",
        "queue": span.queue if is_mine else "",
        "user": one.user if one is not None and is_mine else "",
        "gpus": part.gpus,
        "waited": 0.0,
        "from": part.since,
        "to": 0.0 if part.is_open else part.until,
        "latest": _latest(one) if one is not None and part.is_open else 0.0,
        "kind": "runs" if part.is_open else "left" if part.failed else "over",
        "promised": False,
    }


def _number(text: str, default: float) -> float:
    try:
        found = float(text) if text else default
    except ValueError:
        return default
    return found if 0 <= found < 1e11 else default
