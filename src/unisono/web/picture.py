"""Everything the page shows, as data: made from the books, small enough to be sent every second.

Lists are bounded: of ten thousand workloads a person looks at the first few hundred, and the counts
say how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unisono.monitor.books import Books
from unisono.monitor.dcgm.holders import Holders
from unisono.monitor.metrics.queues import Tally, state_of
from unisono.monitor.records import NodeRecord, PodRecord, WorkloadRecord

Json = dict[str, Any]

_MOST_WAITING = 500
_MOST_RUNNING = 1_000
_MOST_OVER = 100
_MOST_PODS = 256  # of one gang
_OURS = "unisono.dev/"
_QUARANTINE = "unisono.dev/quarantine"


class Painter:
    """Makes pictures of a cluster."""

    def __init__(self, books: Books) -> None:
        """Look at these books."""
        self._books = books
        self._holders = Holders()

    def picture(self, now: float) -> Json:
        """Return how things are now."""
        books = self._books
        books.settle()
        tally = Tally.of(books)
        lines = books.lines()
        places = {one.uid: at for line in lines.values() for at, one in enumerate(line, 1)}
        waiting = [one for line in lines.values() for one in line]
        running = [
            one for one in books.workloads.values() if not one.is_waiting and not one.finished
        ]
        over = sorted(
            (one for one in books.workloads.values() if one.finished),
            key=lambda one: -one.finished,
        )
        shown = [
            *waiting[:_MOST_WAITING],
            *sorted(running, key=lambda one: -one.admitted)[:_MOST_RUNNING],
            *over[:_MOST_OVER],
        ]
        pods = _pods_by_gang(books.pods.values())
        return {
            "now": now,
            "counts": {"waiting": len(waiting), "running": len(running), "over": len(over)},
            "gpus": self._gpus(waiting),
            "queues": [_queue(books, name, tally, lines.get(name, [])) for name in books.queues],
            "workloads": [
                _workload(books, one, places.get(one.uid, 0), pods.get(one.key, ()))
                for one in shown
            ],
            "nodes": self._nodes(),
        }

    def _gpus(self, waiting: Iterable[WorkloadRecord]) -> Json:
        nodes = self._books.nodes.values()
        used = self._books.gpus_in_use()
        held = sum(min(used.get(one.name, 0), one.gpus) for one in nodes)
        closed = (one for one in nodes if _is_closed(one))
        down = sum(one.gpus - used.get(one.name, 0) for one in closed)
        there = sum(one.gpus for one in nodes)
        return {
            "there": there,
            "held": held,
            "down": max(0, down),
            "free": max(0, there - held - max(0, down)),
            "wanted": sum(one.gpus for one in waiting),
            "costHour": round(sum(one.price for one in nodes), 2),
        }

    def _nodes(self) -> list[Json]:
        holders = self._holders.give_out(self._books.living())
        return [
            {
                **_node(node),
                "holders": [
                    _holder(holders[node.name, index].pod) if (node.name, index) in holders else ""
                    for index in range(node.gpus)
                ],
            }
            for node in sorted(self._books.nodes.values(), key=lambda one: one.name)
        ]


def _is_closed(node: NodeRecord) -> bool:
    return not node.is_open or any(one.startswith(_QUARANTINE) for one in node.taints)


def _node(node: NodeRecord) -> Json:
    return {
        "name": node.name,
        "type": node.instance_type,
        "zone": node.zone,
        "model": node.model,
        "ready": node.is_ready,
        "closed": _is_closed(node),
        "why": [one.removeprefix("unisono.dev/") for one in node.taints if _OURS in one],
        "price": node.price,
    }


def _holder(pod: PodRecord) -> str:
    """Return what has a GPU: the gang of the pod, else the pod."""
    return f"{pod.namespace}/{pod.workload or pod.name}"


def _queue(books: Books, name: str, tally: Tally, line: list[WorkloadRecord]) -> Json:
    queue = books.queues[name]
    head = line[0] if line else None
    return {
        "name": name,
        "cohort": queue.cohort,
        "active": queue.is_active,
        "waiting": len(line),
        "running": tally.states.get((name, "running"), 0) + tally.states.get((name, "admitted"), 0),
        "pending": tally.pending.get(name, 0),
        "flavors": [
            {
                "name": one.flavor,
                "nominal": one.nominal,
                "used": tally.used.get((name, one.flavor), 0),
            }
            for one in queue.quotas
        ],
        "head": _key(head) if head is not None else "",
        "says": head.waits.says if head is not None else "",
        "planned": head.waits.start if head is not None else 0,
    }


def _workload(books: Books, one: WorkloadRecord, place: int, pods: Iterable[PodRecord]) -> Json:
    return {
        "key": _key(one),
        "job": f"{one.owner_kind.lower()}/{one.owner_name}",
        "state": "finished" if one.finished else state_of(one),
        "queue": books.queue_of(one),
        "user": one.user,
        "gpus": one.gpus,
        "size": one.pods,
        "priority": one.priority,
        "place": place,
        "stage": one.waits.stage,
        "says": one.waits.says,
        "changes": one.waits.changes,
        "planned": one.waits.start,
        "times": [one.created, one.reserved, one.admitted, one.ready, one.finished],
        "evictions": sum(count for _, count in one.evictions),
        "restarts": books.restarts.get((one.namespace, one.owner_name), 0),
        "pods": [[pod.name, pod.node, pod.phase] for pod in list(pods)[:_MOST_PODS]],
    }


def _key(one: WorkloadRecord) -> str:
    return f"{one.namespace}/{one.name}"


def _pods_by_gang(pods: Iterable[PodRecord]) -> dict[tuple[str, str], list[PodRecord]]:
    found: dict[tuple[str, str], list[PodRecord]] = {}
    for pod in pods:
        if pod.workload:
            found.setdefault((pod.namespace, pod.workload), []).append(pod)
    for of_gang in found.values():
        of_gang.sort(key=lambda one: one.name)
    return found
