"""From a decision to pods on nodes, all of a gang or none (placement §10).

    Planned ──every slot has a pod──▶ Committing ──all bound──▶ Committed
       │                                  │
       └──── too late, a node is gone ────┴──▶ evicted, back in the queue

A gang that runs and loses a node is repaired (`repairing.py`), not sent back.

The phase stands on the Workload, next to the nodes. No pod is bound before Committing is stored;
from then on everything follows from what is stored, so that whoever comes after a crash finishes
the work. A gang that cannot become whole in time is evicted as a whole.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from unisono.control import gpu_seats, names
from unisono.control.actions import Again, Bind, Delete, Json, Note, Patch, Ref, Steps, Together
from unisono.control.conditions import find, is_true, seconds, timestamp, with_condition
from unisono.control.controller import Reads, own_key
from unisono.control.gpu_seats import Numbers
from unisono.control.jobs.workload import IN_USE
from unisono.control.repairing import REPAIRING, note_loss, nothing_lost
from unisono.control.scheduler.record import hosts_of, placement, placement_of, with_eviction
from unisono.control.usable import is_host_usable, is_usable, node_name
from unisono.control.view import View
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

BY_WORKLOAD = names.BY_WORKLOAD
BIND_SECONDS = 60
# The wait before a gang that failed to start is tried again: 1 s, 2 s, … five minutes.
_FIRST_RETRY_SECONDS = 1
_LONGEST_RETRY_SECONDS = 300
# Labels and annotations that number the pods of a set.
_INDEXES = (
    "batch.kubernetes.io/job-completion-index",
    "jobset.sigs.k8s.io/job-index",
    "volcano.sh/task-index",
    "training.kubeflow.org/replica-index",
)


def workload_of(pod: Json) -> Iterable[str]:
    """Index pods by the workload they are of, as `namespace/name`."""
    metadata = pod["metadata"]
    name = (metadata.get("annotations") or {}).get(names.WORKLOAD_ANNOTATION)
    return (f"{metadata['namespace']}/{name}",) if name else ()


@dataclass(slots=True)
class Slots:
    """The places of a gang, and which pod has which."""

    free: dict[str, list[str]] = field(default_factory=dict)  # by pod set: nodes with a free place
    bound: int = 0
    unbound: list[tuple[Json, str]] = field(default_factory=list)  # a pod and its node
    released: int = 0  # pods whose gate is lifted, and whom the other scheduler has yet to bind
    astray: list[Json] = field(default_factory=list)  # sent to a node that is no longer theirs
    extra: list[Json] = field(default_factory=list)  # pods without a place
    later: frozenset[str] = frozenset()  # sets that the gang starts without
    # By pod set: nodes with a place that nobody may have yet, as its pod is on its way out.
    held: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether every place has a pod that stays."""
        empty = [*self.free.items(), *self.held.items()]
        return not any(places for name, places in empty if name not in self.later)


def _read_of_workload(workload: Json) -> object:
    """Return what is read of a Workload: where its pods are to be, and whether they may."""
    metadata, status = workload["metadata"], workload.get("status") or {}
    conditions = status.get("conditions") or ()
    return (
        metadata.get("deletionTimestamp"),
        metadata.get("finalizers"),
        metadata.get("annotations"),
        status.get("admission"),
        status.get("unhealthyNodes"),
        find(conditions, names.PLACEMENT),
        is_true(conditions, "Evicted"),
        is_true(conditions, "Admitted"),
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
    )


class GangController:
    """Brings the pods of admitted workloads to their nodes."""

    name = "gangs"
    watches: Sequence[Kind] = (names.WORKLOAD, names.POD, names.NODE)
    is_thorough = True
    minds: Mapping[Kind, Reads] = {
        names.WORKLOAD: _read_of_workload,
        names.POD: _read_of_pod,
    }

    def __init__(self) -> None:
        """Begin with nobody sent anywhere."""
        # Where pods were sent whose binding the view does not show yet, by workload and uid: given
        # another place, one of them would leave its own to somebody else. Who starts anew reads
        # the pods after all that the one before wrote, and needs no memory of it.
        self._sent: dict[str, dict[str, str]] = {}

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
        elif not is_usable(obj):
            for pod in view.by(names.POD, "node", obj["metadata"]["name"]):
                yield from self.touched(names.POD, pod, view)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one gang a step further."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        if workload is None:
            self._sent.pop(f"{key.namespace}/{key.name}", None)
            return
        if "deletionTimestamp" in workload["metadata"]:
            yield from self._let_go(workload, view)
            return
        if not (workload.get("status") or {}).get("admission"):
            return
        conditions = workload["status"].get("conditions") or []
        phase, about = placement_of(conditions)
        if not phase or is_true(conditions, "Evicted") or not is_true(conditions, "Admitted"):
            return
        if is_true(conditions, "Finished"):  # there is nothing left to bring anywhere, or to repair
            return
        slots = self._slots(workload, view)
        lost = [host for host, _ in hosts_of(workload) if not is_host_usable(host, view)]
        deadline = seconds(about.get("deadline", ""))
        if phase in ("Committed", REPAIRING):
            missing = _missing(slots, lost, view)
            if missing and phase == REPAIRING and now >= deadline > 0:
                yield from _roll_back(workload, f"no other node for {missing[0]} in time", now)
                return
            if missing:
                yield from note_loss(workload, missing, now)
                return
            if phase == REPAIRING:
                # Nothing is bound before that is written: others may be giving it other nodes.
                workload = yield Patch(Ref.to(workload), nothing_lost(workload, now), "status")
            phase = "Committed"
        elif lost:
            yield from _roll_back(workload, f"node {lost[0]} is gone or not ready", now)
            return
        if phase == "Planned":
            if not slots.is_full:
                yield from _wait(
                    workload, "not all of its pods were created in time", deadline, now
                )
                return
            workload = yield Patch(
                Ref.to(workload), _phase(workload, "Committing", now + BIND_SECONDS, now), "status"
            )
            phase, deadline = "Committing", now + BIND_SECONDS
        if slots.astray:
            yield Together([Delete(Ref.to(pod)) for pod in slots.astray])
        yield from self._bind(workload, slots, phase, about.get("gen", "1"), view)
        awaited = slots.released + sum(1 for pod, _ in slots.unbound if _is_gated(pod))
        if phase == "Committing":
            if (
                slots.is_full and not awaited
            ):  # and all of them are bound by now, or we would not be here
                yield Patch(
                    Ref.to(workload), _phase(workload, "Committed", deadline, now), "status"
                )
                pods = slots.bound + len(slots.unbound)
                yield Note(Ref.to(workload), "GangCommitted", f"{pods} pods are on their nodes")
            else:
                yield from _wait(workload, "not all of its pods were bound in time", deadline, now)

    def _bind(self, workload: Json, slots: Slots, phase: str, gen: str, view: View) -> Steps:
        """Bind pods to their places: the first time all of them, later whoever comes back.

        A gang that starts over binds only when it is whole again. Pods behind a gate of ours belong
        to another scheduler: it binds them, to the only node that we leave it.
        """
        starts_over = phase == "Committed" and slots.bound == 0
        if not slots.unbound or (starts_over and not slots.is_full):
            return
        numbers = _numbers(workload, view)
        writes: list[Patch | Bind] = []
        metadata = workload["metadata"]
        sent = self._sent.setdefault(f"{metadata['namespace']}/{metadata['name']}", {})
        for pod, node in slots.unbound:
            sent[pod["metadata"]["uid"]] = node
            notes = {names.SLOT: f"{set_of(pod)}/{node}@{gen}", **numbers.take(set_of(pod), node)}
            writes.append(
                _released(pod, node, notes, view)
                if _is_gated(pod)
                else Bind(Ref.to(pod), node, notes)
            )
        yield Together(writes)

    def _let_go(self, workload: Json, view: View) -> Steps:
        """Let a deleted Workload go once none of its pods is left: until then it holds nodes."""
        metadata = workload["metadata"]
        full = f"{metadata['namespace']}/{metadata['name']}"
        if any(not is_over(pod) for pod in view.by(names.POD, BY_WORKLOAD, full)):
            return
        finalizers = metadata.get("finalizers") or []
        if IN_USE in finalizers:
            left = [one for one in finalizers if one != IN_USE]
            yield Patch(Ref.to(workload), {"metadata": {"finalizers": left}}, exact=False)

    def _slots(self, workload: Json, view: View) -> Slots:
        """Give every living pod of the gang a place: bound ones theirs, the others in order."""
        annotations = workload["metadata"].get("annotations") or {}
        later = frozenset(annotations.get(names.LATER_SETS, "").split(","))
        places_of, given_back = _places(workload, view)
        slots = Slots(free=places_of, later=later)
        _, about = placement_of(workload["status"].get("conditions"))
        gen = int(about.get("gen", "1"))
        metadata = workload["metadata"]
        full = f"{metadata['namespace']}/{metadata['name']}"
        waiting, through = [], []
        for pod in sorted(view.by(names.POD, BY_WORKLOAD, full), key=_rank):
            node = pod["spec"].get("nodeName")
            places = slots.free.get(set_of(pod), [])
            if is_living(pod) and not node:
                promised = _promised(pod)
                if not promised:
                    waiting.append(pod)
                elif promised in places:
                    places.remove(promised)
                    slots.released += 1
                else:
                    slots.astray.append(pod)
            elif node in places and not is_over(pod):
                places.remove(node)
                if is_living(pod):
                    slots.bound += 1
                else:
                    slots.held.setdefault(set_of(pod), []).append(node)
            elif is_living(pod) and _gen(pod) < gen:  # the node was gone, others may have its place
                slots.astray.append(pod)
            elif _is_through(pod):
                through.append(pod)
                if node in places:  # others take it last
                    places.remove(node)
                    places.append(node)
        for pod, node in self._on_their_way(full, waiting):
            places = slots.free.get(set_of(pod), [])
            if node in places:
                places.remove(node)
                slots.unbound.append((pod, node))
                waiting.remove(pod)
        for pod in waiting:
            places = slots.free.get(set_of(pod), [])
            if places:
                slots.unbound.append((pod, places.pop(0)))
            else:
                slots.extra.append(pod)
        for pod in through:  # nobody came for its place, wherever the gang has its nodes by now
            name = set_of(pod)
            if given_back.get(name):  # it is no longer the gang's
                given_back[name] -= 1
            else:
                del slots.free.get(name, [])[-1:]
        return slots

    def _on_their_way(self, full: str, waiting: Sequence[Json]) -> list[tuple[Json, str]]:
        """Return the pods that were sent to a node and do not show it yet; forget the others."""
        sent = self._sent.pop(full, {})
        found = [(pod, sent[uid]) for pod in waiting if (uid := pod["metadata"]["uid"]) in sent]
        if found:
            self._sent[full] = {pod["metadata"]["uid"]: node for pod, node in found}
        return found


def _places(workload: Json, view: View) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return the nodes of each set, a place each; and how many pods that are done gave back."""
    found: dict[str, list[str]] = {}
    given_back: dict[str, int] = {}  # (`done_pods.py`)
    for one in workload["status"]["admission"].get("podSetAssignments") or ():
        places: list[str] = []
        for host, count in pods_per_host(one.get("topologyAssignment")):
            places += [node_name(host, view)] * count
        found[one["name"]] = places
        given_back[one["name"]] = max(0, one.get("count", 0) - len(places))
    return found, given_back


def _is_gated(pod: Json) -> bool:
    return {"name": names.GATE} in (pod["spec"].get("schedulingGates") or ())


def _numbers(workload: Json, view: View) -> Numbers:
    """Return the numbers of shared GPUs that pods of a gang have yet to get."""
    _, about = placement_of(workload["status"].get("conditions"))
    devices = gpu_seats.read(about.get("devices", ""))
    if not devices:
        return Numbers({}, {})
    places, _ = _places(workload, view)
    numbers, metadata = Numbers(devices, places), workload["metadata"]
    for pod in view.by(names.POD, BY_WORKLOAD, f"{metadata['namespace']}/{metadata['name']}"):
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


def _promised(pod: Json) -> str:
    """Return the node that an unbound pod was released to, if it was."""
    slot = (pod["metadata"].get("annotations") or {}).get(names.SLOT, "")
    return str(slot).partition("/")[2].rpartition("@")[0]


def _gen(pod: Json) -> int:
    """Return the number of the placement that a bound pod was sent by; a large one if unknown."""
    slot = (pod["metadata"].get("annotations") or {}).get(names.SLOT, "")
    number = str(slot).rpartition("@")[2]
    return int(number) if number.isdecimal() else sys.maxsize


def _wait(workload: Json, why: str, deadline: float, now: float) -> Steps:
    if now >= deadline > 0:
        yield from _roll_back(workload, why, now)
    else:
        yield Again(deadline)


def _roll_back(workload: Json, why: str, now: float) -> Steps:
    """Evict a gang that cannot become whole; its job is stopped and all of its pods go."""
    status = workload["status"]
    count = ((status.get("requeueState") or {}).get("count") or 0) + 1
    wait = min(_FIRST_RETRY_SECONDS << min(count - 1, 20), _LONGEST_RETRY_SECONDS)
    conditions = with_condition(
        status.get("conditions"), "Evicted", "True", "NodeFailures", f"Rolled back: {why}", now=now
    )
    changes = {
        "status": {
            "conditions": conditions,
            "schedulingStats": with_eviction(status, "NodeFailures"),
            "requeueState": {"count": count, "requeueAt": timestamp(now + wait)},
        }
    }
    yield Patch(Ref.to(workload), changes, "status")
    yield Note(Ref.to(workload), "GangRolledBack", why, "Warning")


def _phase(workload: Json, phase: str, deadline: float, now: float) -> Json:
    conditions = workload["status"].get("conditions") or []
    _, about = placement_of(conditions)
    changed = placement(
        conditions,
        phase,
        gen=int(about.get("gen", "1")),
        epoch=int(about.get("epoch", "1")),
        deadline=deadline,
        now=now,
    )
    return {"status": {"conditions": changed}}


def _missing(slots: Slots, lost: Sequence[str], view: View) -> list[str]:
    """Return the lost hosts on which a pod of a running gang has its place but is not."""
    empty = [*slots.free.values(), *slots.held.values()]
    needed = {node for places in empty for node in places} | {node for _, node in slots.unbound}
    return [host for host in lost if node_name(host, view) in needed]


def is_over(pod: Json) -> bool:
    """Say whether nothing of a pod runs any more."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_living(pod: Json) -> bool:
    """Say whether a pod runs or will, as far as anybody knows."""
    return "deletionTimestamp" not in pod["metadata"] and not is_over(pod)


def _is_through(pod: Json) -> bool:
    """Say whether a pod has done its part: nobody comes after it."""
    return bool(pod["status"].get("phase") == "Succeeded")


def set_of(pod: Json) -> str:
    """Return the pod set that a pod is of."""
    return str((pod["metadata"].get("labels") or {}).get(names.POD_SET_LABEL, "main"))


def _rank(pod: Json) -> tuple[int, ...] | tuple[int | str, ...]:
    """Order the pods of a gang by their numbers, then by name."""
    metadata = pod["metadata"]
    texts = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    numbers = [
        int(texts.get(key, "0")) if texts.get(key, "0").isdecimal() else 0 for key in _INDEXES
    ]
    return (*numbers, metadata["name"])
