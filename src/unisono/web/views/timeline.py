"""What ran, runs and is planned, as bars over time, in lanes of queues or of nodes.

A bar is a try of a gang (or its part on a node): when it began to wait, when it got its nodes, when
it ended, or when it ends at the latest. Who waits with a date has a bar in the time to come. The
past beyond what the cluster still holds comes from the ledger, where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from unisono.monitor.ledger.rows import PodRow, WorkloadRow
from unisono.monitor.records import PodRecord, WorkloadRecord
from unisono.web.board import Board
from unisono.web.shown import Json, Shown
from unisono.web.sight import HIDDEN, Sight

# More than that nobody tells apart; those that take most GPU time are shown.
MOST_BARS = 1_500
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
    """Return the time that somebody asked for: a span around now, or one that ends at `end`."""
    span = min(_LONGEST_SPAN, max(_SHORTEST_SPAN, _number(asked.get("span", ""), _DEFAULT_SPAN)))
    end = _number(asked.get("end", ""), 0.0)
    if end:
        return Window(end - span, end, is_live=False)
    # By whole steps, so that the window does not become another every second.
    step = max(1.0, span / 240)
    until = (now + span * _AHEAD) // step * step + step
    return Window(until - span, until, is_live=True)


def timeline(
    board: Board, asked: Mapping[str, str], sight: Sight, *, now: float, past: Past
) -> Shown:
    """Return the bars of a time."""
    window = window_of(asked, now)
    by_node = asked.get("by") == "node"
    if by_node and not sight.nodes:
        return Shown({"denied": "list nodes"})
    bars = list(
        chain(_on_nodes(board, window, past, now), _planned(board, window))
        if by_node
        else chain(_in_queues(board, window, past, now), _planned(board, window))
    )
    queue = asked.get("queue", "")
    seen = [
        bar
        for bar in bars
        if sight.sees(bar["key"].partition("/")[0]) and (not queue or bar["queue"] == queue)
    ]
    # Of others' gangs on nodes that one may look at, only that the GPUs are taken.
    if by_node:
        seen += [
            {**bar, "key": HIDDEN, "name": "", "queue": "", "user": ""}
            for bar in bars
            if not sight.sees(bar["key"].partition("/")[0]) and bar["kind"] != PLANNED
        ]
    kept = sorted(seen, key=lambda bar: (-_weight(bar, window, now), bar["id"]))[:MOST_BARS]
    kept.sort(key=lambda bar: (bar["lane"], bar["from"], bar["id"]))
    head = {
        "since": window.since,
        "until": window.until,
        "live": window.is_live,
        "left": len(seen) - len(kept),
        "undated": sum(not one.waits.start for one in board.waiting),
    }
    return Shown(head, {bar["id"]: bar for bar in kept})


def _weight(bar: Json, window: Window, now: float) -> float:
    """Return how much of what is shown a bar takes; what is planned is always worth showing."""
    since = max(window.since, float(bar["from"]))
    until = min(window.until, float(bar["to"]) or now)
    shown = (max(0.0, until - since) + 1.0) * max(1, int(bar["gpus"]))
    return shown * 1000 if bar["kind"] == PLANNED else shown


# ---- by queue ------------------------------------------------------------------------------------


def _in_queues(board: Board, window: Window, past: Past, now: float) -> Iterator[Json]:
    living = {one.uid: one for one in chain(board.running, board.over)}
    for row in past.tries:
        # The newest try of what is still there is told below, with its newest state.
        one = living.get(row.uid)
        if one is not None and row.attempt > sum(count for _, count in one.evictions):
            continue
        started = row.admitted or row.reserved
        if started and row.ended and window.touches(row.since, row.ended):
            yield _bar(
                f"{row.uid}/{row.attempt}",
                lane=row.queue or row.local_queue,
                key=f"{row.namespace}/{row.name}",
                name=row.owner,
                queue=row.queue,
                user=row.user,
                gpus=row.gpus,
                waited=row.since,
                since=started,
                until=row.ended,
                kind="over" if row.outcome == "Finished" else "left",
            )
    for one in living.values():
        began = one.admitted or one.reserved or one.ready or one.finished
        if window.touches(one.created, one.finished or now):
            yield _bar(
                one.uid,
                lane=board.queue_of(one),
                key=f"{one.namespace}/{one.name}",
                name=one.owner_name,
                queue=board.queue_of(one),
                user=one.user,
                gpus=one.gpus,
                waited=max(one.created, one.evicted if one.evicted < began else 0.0),
                since=began,
                until=one.finished,
                latest=_latest(one),
                kind="over" if one.finished else "runs" if one.ready else "starts",
            )


def _latest(one: WorkloadRecord) -> float:
    """Return when a gang that runs is over at the latest; 0 if it did not say."""
    began = one.admitted or one.reserved
    return began + one.limit if one.limit and began and not one.finished else 0.0


def _planned(board: Board, window: Window) -> Iterator[Json]:
    for one in board.waiting:
        start, limit = one.waits.start, one.waits.limit or one.limit
        if start and window.touches(start, start + (limit or _HOUR)):
            yield _bar(
                one.uid,
                lane=board.queue_of(one),
                key=f"{one.namespace}/{one.name}",
                name=one.owner_name,
                queue=board.queue_of(one),
                user=one.user,
                gpus=one.gpus,
                waited=one.created,
                since=start,
                until=start + limit if limit else 0.0,
                kind=PLANNED,
                promised=one.waits.is_promised,
            )


# ---- by node -------------------------------------------------------------------------------------


class _Part:
    """The pods of one gang on one node, as one bar."""

    def __init__(self) -> None:
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


def _on_nodes(board: Board, window: Window, past: Past, now: float) -> Iterator[Json]:
    parts: dict[tuple[str, str, str], _Part] = {}
    living = {pod.uid for name in board.books.nodes for pod in board.pods_on(name)}
    names = {row.uid: row for row in past.tries}
    for row in past.pods:
        if row.uid not in living and row.ended and window.touches(row.bound, row.ended):
            gang = names.get(row.workload)
            key = row.namespace, gang.name if gang is not None else row.name, row.node
            parts.setdefault(key, _Part()).add(row.bound, row.ended, row.gpus, row.outcome)
    for node in board.books.nodes:
        for pod in board.pods_on(node):
            if pod.gpus:
                key = pod.namespace, pod.workload or pod.name, node
                parts.setdefault(key, _Part()).add(_bound(pod), 0.0, _gpus(pod), "")
    for (namespace, name, node), part in parts.items():
        one = board.workload(namespace, name)
        if window.touches(part.since, now if part.is_open else part.until):
            yield _bar(
                f"{node}/{namespace}/{name}",
                lane=node,
                key=f"{namespace}/{name}",
                name=one.owner_name if one is not None else name,
                queue=board.queue_of(one) if one is not None else "",
                user=one.user if one is not None else "",
                gpus=part.gpus,
                waited=0.0,
                since=part.since,
                until=0.0 if part.is_open else part.until,
                latest=_latest(one) if one is not None and part.is_open else 0.0,
                kind="runs" if part.is_open else "left" if part.failed else "over",
            )


def _bound(pod: PodRecord) -> float:
    return pod.bound or pod.started or pod.created


def _gpus(pod: PodRecord) -> int:
    return sum(gpus for _, gpus in pod.gpus)


def _bar(
    of: str,
    *,
    lane: str,
    key: str,
    name: str,
    queue: str,
    user: str,
    gpus: int,
    waited: float,
    since: float,
    until: float,
    kind: str,
    latest: float = 0.0,
    promised: bool = False,
) -> Json:
    return {
        "id": of,
        "lane": lane,
        "key": key,
        "name": name,
        "queue": queue,
        "user": user,
        "gpus": gpus,
        "waited": waited,
        "from": since,
        "to": until,
        "latest": latest,
        "kind": kind,
        "promised": promised,
    }


def _number(text: str, default: float) -> float:
    try:
        found = float(text) if text else default
    except ValueError:
        return default
    return found if 0 <= found < 1e11 else default
