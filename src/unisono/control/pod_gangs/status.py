"""What PodGroups say of their pods; those of a Volcano job are kept by its own operator.

coscheduling        Pending, PreScheduling, Scheduling, Scheduled, Running, Finished, Failed
Volcano             Pending, Inqueue, Running, Unknown, Completed (`control.volcano_groups`)
scheduling.k8s.io   the condition PodGroupInitiallyScheduled, which stays True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unisono.control import names
from unisono.control.actions import Again, Json, Patch, Ref, Steps
from unisono.control.conditions import is_true, with_condition
from unisono.control.controller import own_key
from unisono.control.jobs.pods import is_deleting, phase_of
from unisono.control.jobs.workload import workload_name
from unisono.control.pod_gangs.membership import (
    BY_GANG,
    COSCHEDULING,
    GANG,
    UPSTREAM_GROUP,
    VOLCANO,
    Gang,
    gang_of,
    groups_named,
    is_made_by_job,
)
from unisono.control.view import View
from unisono.control.volcano_groups import (
    LOOK_AGAIN_SECONDS,
    Room,
    phase_of_group,
    unschedulable_event,
    with_scheduling,
)
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.views.objects import Conditions
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_STARTED = "PodGroupInitiallyScheduled"


@dataclass(frozen=True, slots=True)
class Counts:
    """How many pods of a group are in each phase."""

    there: int
    bound: int
    running: int
    succeeded: int
    failed: int


class PodGroupStatus:
    """Keeps the status of one kind of PodGroups."""

    def __init__(self, kind: Kind) -> None:
        """Take the kind."""
        self._kind = kind
        self.name = f"podgroups.{kind.api_version.partition('/')[0]}"
        self.watches: Sequence[Kind] = (kind, names.POD)
        if kind == VOLCANO:
            self.watches = (kind, names.POD, names.WORKLOAD)
        self._room = Room()
        self.idle_without = kind

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A group, or a pod that names it."""
        if kind == self._kind:
            yield own_key(obj)
            return
        if kind == names.WORKLOAD:
            text = (obj["metadata"].get("annotations") or {}).get(GANG, "")
            of = Gang.read(text) if text else None
            if of is not None and of.kind == self._kind:
                yield Key(obj["metadata"]["namespace"], of.name)
            return
        gang = gang_of(obj)
        if gang is not None and gang.kind == self._kind and not is_made_by_job(obj, view):
            yield Key(obj["metadata"]["namespace"], gang.name)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Count, and write the status if it is another one."""
        group = view.get(self._kind, key.name, key.namespace)
        if group is None or is_deleting(group) or group["metadata"].get("ownerReferences"):
            return
        (text,) = groups_named(self._kind, group, ())
        assert Gang.read(text).name == key.name
        pods = view.by(names.POD, BY_GANG, f"{key.namespace}/{text}")
        counts = _counted(pods)
        old = group.get("status") or {}
        if self._kind == VOLCANO:
            status = self._of_volcano(group, pods, counts, view, now)
        else:
            status = _STATUSES[self._kind](group, counts, now)
        if any((old.get(name) or None) != (value or None) for name, value in status.items()):
            is_apart = self._kind != VOLCANO  # Volcano's has no subresource
            yield Patch(Ref.to(group), {"status": status}, "status" if is_apart else "")
            if self._kind == VOLCANO:
                yield from unschedulable_event(group, status)
        if status.get("phase") == "Pending":
            yield Again(now + LOOK_AGAIN_SECONDS)

    def _of_volcano(
        self, group: Json, pods: Sequence[Json], counts: Counts, view: View, now: float
    ) -> Json:
        metadata = group["metadata"]
        least = max(1, (group.get("spec") or {}).get("minMember", 1))
        has_room = self._room.fits(group, view, now)
        phase = phase_of_group(least, pods, has_room=has_room)
        name = workload_name(VOLCANO, metadata["name"], metadata["uid"])
        workload = view.get(names.WORKLOAD, name, metadata["namespace"])
        conditions = ((workload or {}).get("status") or {}).get("conditions") or []
        why = waiting_message(Conditions(conditions)) if pods else ""
        return {
            "phase": phase,
            "conditions": with_scheduling(group, phase, least, len(pods), why, now),
            "running": counts.running,
            "succeeded": counts.succeeded,
            "failed": counts.failed,
        }


def _counted(pods: Sequence[Json]) -> Counts:
    phases = [phase_of(pod) for pod in pods if not is_deleting(pod)]
    return Counts(
        there=len(phases),
        bound=sum(bool(pod["spec"].get("nodeName")) for pod in pods if not is_deleting(pod)),
        running=phases.count("Running"),
        succeeded=phases.count("Succeeded"),
        failed=phases.count("Failed"),
    )


def _coscheduling(group: Json, counts: Counts, now: float) -> Json:
    least = group["spec"].get("minMember", 1)
    active = counts.running + counts.succeeded
    if counts.there and counts.succeeded + counts.failed == counts.there >= least:
        phase = "Failed" if counts.failed else "Finished"
    elif active >= least:
        phase = "Running"
    elif counts.bound >= least:
        phase = "Scheduled"
    elif counts.bound:
        phase = "Scheduling"
    else:
        phase = "PreScheduling" if counts.there >= least else "Pending"
    return {
        "phase": phase,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
    }


def _upstream(group: Json, counts: Counts, now: float) -> Json:
    gang = (group["spec"].get("schedulingPolicy") or {}).get("gang") or {}
    least = gang.get("minCount", 1)
    conditions = (group.get("status") or {}).get("conditions")
    if is_true(conditions, _STARTED):  # whatever becomes of its pods later
        return {"conditions": conditions}
    is_placed = counts.bound >= least
    return {
        "conditions": with_condition(
            conditions,
            _STARTED,
            "True" if is_placed else "False",
            "Scheduled" if is_placed else "Unschedulable",
            f"{counts.bound} of {least} pods have a node",
            now=now,
        )
    }


_STATUSES = {COSCHEDULING: _coscheduling, UPSTREAM_GROUP: _upstream}
