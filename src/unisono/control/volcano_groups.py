"""What a Volcano PodGroup says of its gang, whichever controller keeps it.

    Pending     its queue, or the cluster as a whole, has no room for `minResources`
    Inqueue     there is room in all, so pods may be made; no node was found yet
    Running     as many pods as must start together have nodes
    Unknown     some run, and not as many as that
    Completed   all are over

Volcano promises a fifth more than there is (`overcommit`), so a gang that is Inqueue may still wait
for nodes; it is explained by its Workload, and by the condition `Unschedulable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unisono.control import names
from unisono.control.actions import Json, Note, Ref, Steps
from unisono.control.conditions import find, with_condition
from unisono.control.jobs.pods import is_deleting, is_terminal, phase_of, requests_of
from unisono.control.view import View
from unisono.kinds.quantity import Quantity

_DEFAULT_QUEUE = "default"
_OVERCOMMIT_PERCENT = 120
_REMEMBERED_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 10.0  # at a gang that is Pending: nothing tells that others have gone
UNSCHEDULABLE = "Unschedulable"
SCHEDULED = "Scheduled"


@dataclass(slots=True)
class Room:
    """What all nodes have left for gangs to count on, worked out once a second at most."""

    _left: Mapping[str, int] = field(default_factory=dict)
    _at: float = -_REMEMBERED_SECONDS

    def fits(self, group: Json, view: View, now: float) -> bool:
        """Say whether a group's queue and the cluster have room for it, counted generously."""
        spec = group.get("spec") or {}
        asked: Mapping[str, str] = spec.get("minResources") or {}
        queue = view.get(names.VOLCANO_QUEUE, spec.get("queue") or _DEFAULT_QUEUE)
        if queue is not None and not _queue_has_room(queue, asked):
            return False
        if not asked or not view.is_any(names.NODE):
            return True
        if not self._at <= now < self._at + _REMEMBERED_SECONDS:
            self._left, self._at = _left(view), now
        return all(
            Quantity.from_raw(text).amount(name) <= self._left[name]
            for name, text in asked.items()
            if name in self._left
        )


def _queue_has_room(queue: Json, asked: Mapping[str, str]) -> bool:
    status = queue.get("status") or {}
    if (status.get("state") or "Open") != "Open":
        return False
    used = status.get("allocated") or {}
    for name, most in ((queue.get("spec") or {}).get("capability") or {}).items():
        total = [
            Quantity.from_raw(text).amount(name)
            for text in (asked.get(name), used.get(name))
            if text
        ]
        if total and sum(total) > Quantity.from_raw(most).amount(name):
            return False
    return True


def _left(view: View) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in view.all(names.NODE):
        for name, text in ((node.get("status") or {}).get("allocatable") or {}).items():
            found[name] = found.get(name, 0) + Quantity.from_raw(text).amount(name)
    found = {name: amount * _OVERCOMMIT_PERCENT // 100 for name, amount in found.items()}
    for pod in view.all(names.POD):
        if pod["spec"].get("nodeName") and not is_terminal(pod):
            for name, amount in {**requests_of(pod), "pods": 1}.items():
                if name in found:
                    found[name] -= amount
    return found


def phase_of_group(least: int, pods: Sequence[Json], *, has_room: bool) -> str:
    """Return the phase of a gang by its pods; a gang without pods is never over."""
    if pods and all(map(is_terminal, pods)):
        return "Completed"
    alive = [pod for pod in pods if not is_deleting(pod)]
    placed = sum(bool(pod["spec"].get("nodeName")) and phase_of(pod) != "Failed" for pod in alive)
    if placed and placed >= least:
        return "Running"
    if any(phase_of(pod) == "Running" for pod in alive):
        return "Unknown"
    return "Inqueue" if has_room else "Pending"


def with_scheduling(
    group: Json, phase: str, least: int, total: int, why: str, now: float
) -> list[Json]:
    """Return the conditions of a group that say whether its pods have nodes, and why not."""
    conditions = (group.get("status") or {}).get("conditions") or []
    if phase in ("Running", "Completed"):
        if find(conditions, UNSCHEDULABLE) is None and find(conditions, SCHEDULED) is not None:
            return conditions
        others = [one for one in conditions if one["type"] != UNSCHEDULABLE]
        message = "tasks in gang are ready to be scheduled"
        return with_condition(others, SCHEDULED, "True", "ready", message, now=now)
    if not why:
        return conditions
    others = [one for one in conditions if one["type"] != SCHEDULED]
    message = f"{total}/{total} tasks in gang unschedulable: {why}; {least} must start together"
    return with_condition(others, UNSCHEDULABLE, "True", "NotEnoughResources", message, now=now)


def unschedulable_event(group: Json, status: Json) -> Steps:
    """Yield the event of a group that has begun to wait for nodes, or waits for another reason."""
    before = find((group.get("status") or {}).get("conditions"), UNSCHEDULABLE)
    now = find(status.get("conditions"), UNSCHEDULABLE)
    if now is not None and (before is None or before["message"] != now["message"]):
        yield Note(Ref.to(group), UNSCHEDULABLE, now["message"], "Warning")
