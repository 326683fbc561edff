"""Admission checks: what besides quota has to agree before a workload starts (quota §12).

    QuotaReserved ──every check of its queue is listed, Pending──▶ … ──all Ready──▶ Admitted
                                                                └──Retry, Rejected──▶ evicted

Here the list is kept and the end is written; a check's own controller sets its state (machines
of an autoscaler: `provision/requesting.py`; others: programs of other people). Retry and Rejected
are the engine's to judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from unisono.control import names
from unisono.control.actions import Json, Note, Patch, Ref, Steps
from unisono.control.admission import kueue_messages
from unisono.control.admission.evictions import checks_after
from unisono.control.admission.placement import (
    PLANNED,
    PODS_CREATED_SECONDS,
    number_of,
    placement_of,
    with_placement,
)
from unisono.control.admission.purchases import UNDER_WAY, is_holding, purchase_of
from unisono.control.conditions import is_true, timestamp, with_condition
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.kinds.kueue.flavors import PROVISIONING
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

BY_QUEUE = "reserved-in"


def reserved_in(workload: Json) -> Iterable[str]:
    """Index workloads that hold quota and are not admitted by their ClusterQueue."""
    status = workload.get("status") or {}
    admission = status.get("admission")
    if not admission or is_true(status.get("conditions"), "Admitted"):
        return ()
    return (admission["clusterQueue"],)


def checks_of(workload: Json, view: View) -> list[str]:
    """Return the checks that apply to the flavors that a workload was given."""
    admission = (workload.get("status") or {}).get("admission")
    queue = view.get(names.CLUSTER_QUEUE, admission["clusterQueue"]) if admission else None
    if admission is None or queue is None:
        return []
    strategy = queue["spec"].get("admissionChecksStrategy") or {}
    given = {
        flavor
        for one in admission.get("podSetAssignments") or ()
        for flavor in (one.get("flavors") or {}).values()
    }
    return [
        rule["name"]
        for rule in strategy.get("admissionChecks") or ()
        if not rule.get("onFlavors") or given.intersection(rule["onFlavors"])
    ]


def open_checks(workload: Json, view: View) -> list[str]:
    """Return the checks that have not agreed yet."""
    state_of = {one["name"]: one["state"] for one in states_of(workload)}
    return [name for name in checks_of(workload, view) if state_of.get(name) != "Ready"]


def states_of(workload: Json) -> list[Json]:
    """Return what the checks say of a workload."""
    return (workload.get("status") or {}).get("admissionChecks") or []


def waits_for_nodes(workload: Json, view: View) -> bool:
    """Say whether a workload has no nodes because a check was to bring them."""
    assignments = workload["status"]["admission"].get("podSetAssignments") or ()
    if any(one.get("topologyAssignment") for one in assignments):
        return False
    checks = (view.get(names.ADMISSION_CHECK, name) for name in checks_of(workload, view))
    return any(
        check is not None and check["spec"].get("controllerName") == PROVISIONING
        for check in checks
    )


@dataclass(frozen=True, slots=True)
class Additions:
    """What checks add to the pods of a set."""

    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: list[Json] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


def additions(workload: Json, pod_set: str) -> Additions:
    """Return what all checks of a workload add to the pods of one set; a later check wins."""
    made = Additions()
    for state in states_of(workload):
        for update in state.get("podSetUpdates") or ():
            if update.get("name") == pod_set:
                made.node_selector.update(update.get("nodeSelector") or {})
                made.tolerations.extend(update.get("tolerations") or ())
                made.labels.update(update.get("labels") or {})
                made.annotations.update(update.get("annotations") or {})
    return made


def _pending(name: str, now: float) -> Json:
    return {"name": name, "state": "Pending", "message": "", "lastTransitionTime": timestamp(now)}


def _is_to_be_reset(workload: Json) -> bool:
    """Say whether a check still wants an eviction that is over; else it would never queue again.

    An eviction resets them, but a check may answer after it, when the quota is given back. A
    foreign owner's controller may leave `admission` there; the condition says whether quota is
    held.
    """
    conditions = (workload.get("status") or {}).get("conditions")
    return (
        any(one["state"] == "Retry" for one in states_of(workload))
        and not is_true(conditions, "QuotaReserved")
        and is_true(conditions, "Evicted")
        and not is_true(conditions, "Finished")
    )


class AdmissionChecks:
    """Lists the checks that a workload waits for, and admits it when all agree."""

    name = "admission-checks"
    watches: Sequence[Kind] = (names.WORKLOAD, names.CLUSTER_QUEUE)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A workload that holds quota and is not admitted, one to reset, or those of a queue."""
        if kind == names.WORKLOAD:
            if any(reserved_in(obj)) or _is_to_be_reset(obj):
                yield own_key(obj)
            return
        for workload in view.by(names.WORKLOAD, BY_QUEUE, obj["metadata"]["name"]):
            yield own_key(workload)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one workload a step further."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        if workload is None or "deletionTimestamp" in workload["metadata"]:
            return
        conditions = (workload.get("status") or {}).get("conditions")
        if _is_to_be_reset(workload):
            yield Patch(
                Ref.to(workload), {"status": checks_after(workload["status"], now)}, "status"
            )
            return
        if not is_holding(workload) or is_true(conditions, "Finished"):
            return
        if is_true(conditions, "Admitted"):
            return
        wanted = checks_of(workload, view)
        listed = {one["name"]: one for one in states_of(workload)}
        if wanted and list(listed) != wanted:
            states = [listed.get(name) or _pending(name, now) for name in wanted]
            yield Patch(Ref.to(workload), {"status": {"admissionChecks": states}}, "status")
            return
        found = purchase_of(workload)
        is_buying = found is not None and found[0] in UNDER_WAY
        if not wanted or is_buying or open_checks(workload, view):
            return
        if not waits_for_nodes(workload, view):
            yield from admit(workload, now)


def admit(workload: Json, now: float) -> Steps:
    """Write that every check is Ready; the timeout of its pods starts here."""
    queue = workload["status"]["admission"]["clusterQueue"]
    conditions = admitted(workload, workload["status"]["conditions"], now)
    yield Patch(Ref.to(workload), {"status": {"conditions": conditions}}, "status")
    note = f"Admitted by ClusterQueue {queue}, all admission checks are ready"
    yield Note(Ref.to(workload), "Admitted", note)


def admitted(workload: Json, conditions: list[Json], now: float) -> list[Json]:
    """Return the conditions of a workload that may start now."""
    generation = workload["metadata"].get("generation")
    conditions = with_condition(
        conditions,
        "Admitted",
        "True",
        "Admitted",
        kueue_messages.ADMITTED,
        now=now,
        generation=generation,
    )
    conditions = with_condition(
        conditions,
        "PodsReady",
        "False",
        "WaitForStart",
        kueue_messages.NOT_READY,
        now=now,
        generation=generation,
    )
    phase, about = placement_of(conditions)
    if not phase:
        return conditions
    return with_placement(
        conditions,
        PLANNED,
        gen=number_of(about, "gen", 1),
        epoch=number_of(about, "epoch", 1),
        deadline=now + PODS_CREATED_SECONDS,
        now=now,
    )
