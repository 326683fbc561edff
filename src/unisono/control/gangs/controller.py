"""From a decision to pods on nodes, all of a gang or none (placement §10).

    Planned ──every slot has a pod──▶ Committing ──all bound──▶ Committed
       │                                  │
       └──── too late, a node is gone ────┴──▶ evicted, back in the queue

A gang that has begun and loses a node is repaired (`repair.py`), not sent back.

The phase stands on the Workload, next to the nodes. No pod is bound before Committing is stored and
every slot has a pod; from then on everything follows from what is stored, so that a restarted
controller finishes the work. A gang that cannot become whole in time is evicted as a whole.

The pods of an unsuspended job exist only after its admission, and are gone before its next one. Its
placement cannot be mistaken for an older one, so its admission is stored as Committing already.
Pods that existed before it may have been planned for other nodes: their gang is Planned first, and
a controller that read an older plan fails to write Committing (ADR 0018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from unisono.control import names
from unisono.control.actions import Again, Bind, Delete, Json, Note, Patch, Ref, Steps, Together
from unisono.control.admission import kueue_messages
from unisono.control.admission.evictions import evicted_for
from unisono.control.admission.placement import (
    COMMITTED,
    COMMITTING,
    PLANNED,
    WAS,
    SharedGpuNumbers,
    hosts_of,
    in_phase,
    placement_of,
    read_devices,
)
from unisono.control.admission.purchases import nodes_to_come
from unisono.control.conditions import find, is_true, seconds, timestamp
from unisono.control.controller import Reads, own_key
from unisono.control.gangs.repair import (
    BIND_SECONDS,
    REPAIRING,
    first_of,
    note_loss,
    nothing_lost,
    refused,
    unhealthy,
)
from unisono.control.gangs.slots import Slots, committed_event, is_over, places_of, set_of, slots_of
from unisono.control.nodes import is_host_usable, is_usable, node_name
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

BY_WORKLOAD = names.BY_WORKLOAD
# The index of Workloads without a job of ours by their hosts.
BY_HOST = "host-without-job"
# The wait before a gang that failed to start is tried again: 1 s, 2 s, … five minutes.
_FIRST_RETRY_SECONDS = 1
_LONGEST_RETRY_SECONDS = 300
# Pods that are bound are mostly ready within that time, images included; then one write says both.
_READY_SOON_SECONDS = 30


@dataclass(slots=True)
class _Start:
    """What was seen of a starting gang, in seconds; a restarted controller counts anew."""

    gen: str  # which of its placements
    partly: float = 0.0  # since when some of its pods may be on their nodes
    whole: float = 0.0  # since when all of them are


def workload_of(pod: Json) -> Iterable[str]:
    """Index pods by the workload they are of, as `namespace/name`."""
    metadata = pod["metadata"]
    name = (metadata.get("annotations") or {}).get(names.WORKLOAD_ANNOTATION)
    return (f"{metadata['namespace']}/{name}",) if name else ()


def _read_of_workload(workload: Json) -> object:
    """Return what is read of a Workload: where its pods are to be, and whether they may."""
    metadata, status = workload["metadata"], workload.get("status") or {}
    conditions = status.get("conditions") or ()
    return (
        metadata.get("deletionTimestamp"),
        metadata.get("finalizers"),
        metadata.get("annotations"),
        status.get("admission"),
        status.get("reclaimablePods"),
        status.get("unhealthyNodes"),
        find(conditions, names.PLACEMENT),
        is_true(conditions, "Evicted"),
        is_true(conditions, "Admitted"),
        nodes_to_come(workload),
        is_true(conditions, "Finished"),
    )


def _read_of_pod(pod: Json) -> object:
    """Return what is read of a pod: its place, and whether it is still to have it."""
    metadata, spec = pod["metadata"], pod["spec"]
    phase = (pod.get("status") or {}).get("phase")
    return (
        metadata.get("deletionTimestamp"),
        metadata.get("labels"),
        metadata.get("annotations"),
        spec.get("nodeName"),
        spec.get("schedulingGates"),
        phase if phase in ("Succeeded", "Failed") else None,
        not spec.get("nodeName") and is_unschedulable(pod),
    )


class GangController:
    """Brings the pods of admitted workloads to their nodes."""

    name = "gangs"
    watches: Sequence[Kind] = (names.WORKLOAD, names.POD, names.NODE)
    ignores_own_writes = True
    reads: Mapping[Kind, Reads] = {
        names.WORKLOAD: _read_of_workload,
        names.POD: _read_of_pod,
    }

    def __init__(
        self,
        is_made_elsewhere: Callable[[Json], bool] = lambda workload: False,
        came_late: Callable[[Json], bool] = lambda workload: False,
    ) -> None:
        """Begin without binds in flight.

        `is_made_elsewhere` says that no controller of ours makes the pods of a workload. They may
        come late or never: its quota is its own. `came_late` says that an admission was written by
        an earlier leader after this one had taken over.
        """
        self._is_made_elsewhere = is_made_elsewhere
        self._came_late = came_late
        # The nodes of pods whose binding the view does not show yet, by workload and uid: given
        # another place, one of them would leave its own to another pod. A restarted controller
        # reads the pods after all writes of the one before, and needs no memory of them.
        self._sent: dict[str, dict[str, str]] = {}
        self._starts: dict[str, _Start] = {}
        self.rollbacks: dict[str, int] = {}  # how many gangs gave everything back, by reason
        self._unbindable = Unbindable()

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A workload that has a place or goes, one of its pods, or a node that some are on."""
        if kind == names.WORKLOAD:
            if (obj.get("status") or {}).get("admission") or (
                "deletionTimestamp" in obj["metadata"]
            ):
                yield own_key(obj)
        elif kind == names.POD:
            for full in workload_of(obj):
                namespace, _, name = full.partition("/")
                yield Key(namespace, name)
        else:
            name = obj["metadata"]["name"]
            if not is_usable(obj):
                for pod in view.by(names.POD, "node", name):
                    yield from self.touched(names.POD, pod, view)
            host = (obj["metadata"].get("labels") or {}).get(names.HOSTNAME, name)
            for workload in view.by(names.WORKLOAD, BY_HOST, host):
                yield own_key(workload)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one gang a step further."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        full = f"{key.namespace}/{key.name}"
        if workload is None:
            self._sent.pop(full, None)
            self._starts.pop(full, None)
            self._unbindable.forget(full)
            return
        if "deletionTimestamp" in workload["metadata"]:
            yield from self._release_deleted(workload, view)
            return
        if not (workload.get("status") or {}).get("admission"):
            return
        conditions = workload["status"].get("conditions") or []
        phase, about = placement_of(conditions)
        is_on = is_true(conditions, "Admitted") and not is_true(conditions, "Evicted")
        if is_true(conditions, "Finished"):  # there is nothing left to bring anywhere, or to repair
            is_on = False
        if not is_on or phase != COMMITTING:
            self._starts.pop(full, None)
        if not phase or not is_on:
            return
        gone = self._lost_without_pods(workload, view)
        if gone or (gone is not None and phase == REPAIRING):
            yield from _without_pods(workload, phase, gone, now)
        else:
            yield from self._advance(workload, phase, about, view, now)

    def _lost_without_pods(self, workload: Json, view: View) -> list[str] | None:
        """Return the lost hosts of a workload that has no pods, of an owner that is not ours.

        None: it has pods, or gets them from us, or is to be rolled back.
        """
        if not any(hosts_without_job(workload)) or not self._is_made_elsewhere(workload):
            return None
        pods = view.by(names.POD, BY_WORKLOAD, _full(workload))  # also those of no set of it
        if self._came_late(workload) or any(not is_over(pod) for pod in pods):
            return None
        coming = nodes_to_come(workload)
        every = {host for host, _ in hosts_of(workload)}
        return [
            host for host in sorted(every) if host not in coming and not is_host_usable(host, view)
        ]

    def _advance(
        self, workload: Json, phase: str, about: Mapping[str, str], view: View, now: float
    ) -> Steps:
        """Take an admitted gang a step further: to its nodes, or back if it has lost one."""
        if self._came_late(workload):
            why = "an earlier leader decided it, and the write came after that leader had ended"
            yield from self._roll_back(workload, "LateDecision", why, now)
            return
        slots = self._slots(workload, view)
        coming = nodes_to_come(workload)
        lost = [
            host
            for host, _ in hosts_of(workload)
            if host in coming or not is_host_usable(host, view)
        ]
        deadline = seconds(about.get("deadline", ""))
        start = self._start_of(workload, about) if phase == COMMITTING else None
        if start is not None and start.whole:
            is_as_it_was = not lost and self._is_whole(workload, slots)
            if is_as_it_was and now < start.whole + _READY_SOON_SECONDS:
                yield Again(start.whole + _READY_SOON_SECONDS)
                return
            # Whatever happens to it from now on happens to a gang that has started.
            workload = yield _stored(workload, COMMITTED, deadline, now)
            yield committed_event(workload)
            phase = COMMITTED
        is_begun = phase == COMMITTED or bool(slots.bound or slots.released)
        in_vain, look_at = self._unbindable.seen(_full(workload), slots.released, now)
        if look_at is not None:
            yield Again(look_at)
        if phase == REPAIRING or (is_begun and phase != PLANNED):
            full_up = [host for host, _ in hosts_of(workload) if node_name(host, view) in in_vain]
            unwelcome = [*refused(workload), *slots.refused_by(workload, view), *full_up]
            missing = _missing(slots, [*lost, *unwelcome], in_vain, view)
            if missing and phase == REPAIRING and now >= deadline > 0:
                message = kueue_messages.not_replaced(missing[0])
                yield from self._roll_back(workload, "NoOtherNode", message, now)
                return
            if missing:
                yield from note_loss(workload, missing, unwelcome, now)
                return
            if phase == REPAIRING:
                # Nothing is bound before that is written: others may be giving it other nodes.
                workload = yield Patch(Ref.to(workload), nothing_lost(workload, now), "status")
                phase = about.get(WAS, COMMITTED)
        elif lost and not (slots.is_empty and self._is_made_elsewhere(workload)):
            why = f"Rolled back: node {lost[0]} is gone or not ready"
            yield from self._roll_back(workload, "NodeLost", why, now)
            return
        if not slots.is_full and (phase == PLANNED or not is_begun):
            if self._is_made_elsewhere(workload):
                return  # its pods bring us back
            why = "Rolled back: not all of its pods were created in time"
            yield from self._wait(workload, "PodsMissing", why, deadline, now)
            return
        if phase == PLANNED:
            deadline = now + BIND_SECONDS
            workload = yield _stored(workload, COMMITTING, deadline, now)
            phase = COMMITTING
        if slots.astray:
            yield Together([Delete(Ref.to(pod)) for pod in slots.astray])
        yield from self._bind(workload, slots, phase, about.get("gen", "1"), view)
        if phase == COMMITTING:
            yield from self._follow(workload, slots, self._start_of(workload, about), deadline, now)

    def _follow(
        self, workload: Json, slots: Slots, start: _Start, deadline: float, now: float
    ) -> Steps:
        """See whether a gang whose pods were released is whole, and when to look again."""
        awaited = len(slots.released) + sum(1 for pod, _ in slots.unbound if _is_gated(pod))
        if slots.is_full and not awaited:  # all of them are bound by now, or we would not be here
            start.whole = now
            yield Again(now + _READY_SOON_SECONDS)
            return
        start.partly = start.partly or now
        late = min(deadline or start.partly, start.partly) + BIND_SECONDS
        why = "Rolled back: not all of its pods were bound in time"
        yield from self._wait(workload, "NotBound", why, late, now)

    def _bind(self, workload: Json, slots: Slots, phase: str, gen: str, view: View) -> Steps:
        """Bind pods to their places: the first time all of them, later pods that are replaced.

        A gang that starts over binds only when it is whole again. Pods behind a gate of ours belong
        to another scheduler: it binds them, to the only node that we leave it.
        """
        starts_over = phase == COMMITTED and slots.bound == 0
        if not slots.unbound or (starts_over and not slots.is_full):
            return
        numbers = _numbers(workload, view)
        writes: list[Patch | Bind] = []
        sent = self._sent.setdefault(_full(workload), {})
        for pod, node in slots.unbound:
            sent[pod["metadata"]["uid"]] = node
            notes = {names.SLOT: f"{set_of(pod)}/{node}@{gen}", **numbers.take(set_of(pod), node)}
            writes.append(
                _released(pod, node, notes, view)
                if _is_gated(pod)
                else Bind(Ref.to(pod), node, notes)
            )
        yield Together(writes)

    def _release_deleted(self, workload: Json, view: View) -> Steps:
        """Release a deleted Workload once its last pod is gone: until then it holds nodes."""
        if any(not is_over(pod) for pod in view.by(names.POD, BY_WORKLOAD, _full(workload))):
            return
        finalizers = workload["metadata"].get("finalizers") or []
        if names.RESOURCE_IN_USE in finalizers:
            left = [one for one in finalizers if one != names.RESOURCE_IN_USE]
            yield Patch(Ref.to(workload), {"metadata": {"finalizers": left}}, exact=False)

    def _slots(self, workload: Json, view: View) -> Slots:
        """Give every pod its place; forget binds in flight that the view shows by now."""
        full = _full(workload)
        sent = self._sent.pop(full, {})
        slots = slots_of(workload, view, sent)
        if sent:
            nowhere = [*(pod for pod, _ in slots.unbound), *slots.extra]
            uids = [uid for pod in nowhere if (uid := pod["metadata"]["uid"]) in sent]
            self._sent.update({full: {uid: sent[uid] for uid in uids}} if uids else {})
        return slots

    def _wait(self, workload: Json, reason: str, why: str, deadline: float, now: float) -> Steps:
        if now >= deadline > 0:
            yield from self._roll_back(workload, reason, why, now)
        else:
            yield Again(deadline)

    def _roll_back(self, workload: Json, reason: str, why: str, now: float) -> Steps:
        """Evict a gang that cannot become whole; its job is stopped and all of its pods go."""
        yield Patch(Ref.to(workload), _rolled_back(workload, why, now), "status")
        self.rollbacks[reason] = self.rollbacks.get(reason, 0) + 1
        yield Note(Ref.to(workload), "GangRolledBack", why, "Warning")

    def _start_of(self, workload: Json, about: Mapping[str, str]) -> _Start:
        """Return what was seen of a gang that starts."""
        full, gen = _full(workload), about.get("gen", "1")
        found = self._starts.get(full)
        if found is None or found.gen != gen:
            found = self._starts[full] = _Start(gen)
        return found

    def _is_whole(self, workload: Json, slots: Slots) -> bool:
        """Say whether every place has a pod that is there, or was bound and does not show it."""
        sent = self._sent.get(_full(workload), {})
        is_there = all(pod["metadata"]["uid"] in sent for pod, _ in slots.unbound)
        return slots.is_full and is_there and not slots.released and not slots.astray


def _full(workload: Json) -> str:
    metadata = workload["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"


def _is_gated(pod: Json) -> bool:
    return {"name": names.GATE} in (pod["spec"].get("schedulingGates") or ())


def _numbers(workload: Json, view: View) -> SharedGpuNumbers:
    """Return the numbers of shared GPUs that pods of a gang have yet to get."""
    _, about = placement_of(workload["status"].get("conditions"))
    devices = read_devices(about.get("devices", ""))
    if not devices:
        return SharedGpuNumbers({}, {})
    numbers = SharedGpuNumbers(devices, places_of(workload, view)[0])
    for pod in view.by(names.POD, BY_WORKLOAD, _full(workload)):
        if not is_over(pod):
            numbers.has(set_of(pod), [pod])
    return numbers


def _released(pod: Json, node: str, notes: dict[str, str], view: View) -> Patch:
    """Lift the gate of a pod, for one node; the uid makes sure that it is this pod."""
    found = view.get(names.NODE, node)
    labels = (found["metadata"].get("labels") or {}) if found is not None else {}
    gates = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] != names.GATE]
    changes = {
        "metadata": {"uid": pod["metadata"]["uid"], "annotations": notes},
        "spec": {
            "schedulingGates": gates or None,
            "nodeSelector": {names.HOSTNAME: labels.get(names.HOSTNAME, node)},
        },
    }
    return Patch(Ref.to(pod), changes, exact=False)


def _rolled_back(workload: Json, why: str, now: float) -> Json:
    """Return what becomes of a gang's status: evicted, and tried again later each time."""
    status = workload["status"]
    count = ((status.get("requeueState") or {}).get("count") or 0) + 1
    wait = min(_FIRST_RETRY_SECONDS << min(count - 1, 20), _LONGEST_RETRY_SECONDS)
    return {
        "status": {
            **evicted_for(workload, "NodeFailures", why, now=now),
            "requeueState": {"count": count, "requeueAt": timestamp(now + wait)},
        }
    }


def _stored(workload: Json, phase: str, deadline: float, now: float) -> Patch:
    conditions = in_phase(workload["status"].get("conditions") or [], phase, deadline, now)
    return Patch(Ref.to(workload), {"status": {"conditions": conditions}}, "status")


def hosts_without_job(workload: Json) -> Iterable[str]:
    """Index Workloads that no job of ours stands for by the hosts that they were given.

    Others have pods there soon, which say that their node is lost.
    """
    if names.JOB_UID_LABEL in (workload["metadata"].get("labels") or {}):
        return ()
    has_place = bool((workload.get("status") or {}).get("admission"))
    return {host for host, _ in hosts_of(workload)} if has_place else ()


def _without_pods(workload: Json, phase: str, gone: Sequence[str], now: float) -> Steps:
    """Have the scheduler find other nodes for a workload whose pods others make, or will make.

    It is not evicted if there are none: nothing of it runs, and it keeps its quota.
    """
    if not gone:
        yield Patch(Ref.to(workload), nothing_lost(workload, now), "status")
    elif phase != REPAIRING or first_of(gone) != unhealthy(workload):
        yield from note_loss(workload, gone, (), now)


def _missing(slots: Slots, lost: Sequence[str], in_vain: set[str], view: View) -> list[str]:
    """Return the lost hosts on which a pod of a running gang has its place but is not."""
    empty = [*slots.free.values(), *slots.held.values()]
    needed = {node for places in empty for node in places} | {node for _, node in slots.unbound}
    needed |= in_vain
    return [host for host in lost if node_name(host, view) in needed]


# ---- pods that cannot be bound -------------------------------------------------------------------
#
# Released pods for which the other scheduler finds no room on the node that we left it.
#
# It may know of something there that we do not: a pod that came first, a port, a volume of
# another zone. If it says `Unschedulable` for half a minute, the place is as lost to the gang as
# one on a node that refused its pod: it gets another, and the pod is replaced, since a gate
# cannot be put back.
#
# The time is counted from what we saw, not from the condition: a pod behind a gate was not
# scheduled either, so lifting the gate leaves that time as it was.

STUCK_SECONDS = 30.0


def is_unschedulable(pod: Json) -> bool:
    """Say whether a scheduler looked at a pod and found no node."""
    found = find((pod.get("status") or {}).get("conditions"), "PodScheduled")
    if found is None or found["status"] != "False":
        return False
    return bool(found.get("reason") == "Unschedulable")  # the reason is optional


class Unbindable:
    """Remembers since when pods are unschedulable; a restarted controller counts anew."""

    def __init__(self) -> None:
        """Begin with none."""
        self._since: dict[str, dict[str, float]] = {}  # by workload and uid

    def forget(self, workload: str) -> None:
        """A workload is no more."""
        self._since.pop(workload, None)

    def seen(
        self, workload: str, promised: Sequence[tuple[Json, str]], now: float
    ) -> tuple[set[str], float | None]:
        """Return the nodes that pods of a gang wait for in vain, and when more may be found."""
        before = self._since.pop(workload, {})
        since = {
            uid: (before.get(uid, now), node)
            for pod, node in promised
            if is_unschedulable(pod) and (uid := pod["metadata"]["uid"])
        }
        if since:
            self._since[workload] = {uid: at for uid, (at, _) in since.items()}
        in_vain = {node for at, node in since.values() if now >= at + STUCK_SECONDS}
        due = [at + STUCK_SECONDS for at, _ in since.values() if now < at + STUCK_SECONDS]
        return in_vain, min(due, default=None)
