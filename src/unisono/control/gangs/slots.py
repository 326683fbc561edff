"""The places that a gang was given, and which of its pods has which.

Everything is read from the Workload and the pods, so that a restarted controller gives every pod
the place that it would have got before.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unisono.control import names
from unisono.control.actions import Json, Note, Ref
from unisono.control.admission.counts import whole_counts
from unisono.control.admission.placement import (
    COMMITTED,
    COMMITTING,
    hosts_of,
    in_phase,
    number_of,
    placement_of,
    places,
)
from unisono.control.gangs.recovery import was_turned_away
from unisono.control.nodes import node_name
from unisono.control.view import View
from unisono.kinds.digits import whole_number
from unisono.kinds.kueue.topology_assignment import pods_per_host

# Labels and annotations that number the pods of a set.
_INDEXES = (
    "batch.kubernetes.io/job-completion-index",
    "jobset.sigs.k8s.io/job-index",
    "volcano.sh/task-index",
    "training.kubeflow.org/replica-index",
)


@dataclass(slots=True)
class Slots:
    """The places of a gang, and which pod has which."""

    free: dict[str, list[str]] = field(default_factory=dict)  # by pod set: nodes with a free place
    bound: int = 0
    unbound: list[tuple[Json, str]] = field(default_factory=list)  # a pod and its node
    # Pods whose gate is lifted, each for a node, that the other scheduler has yet to bind.
    released: list[tuple[Json, str]] = field(default_factory=list)
    astray: list[Json] = field(default_factory=list)  # sent to a node that is no longer theirs
    extra: list[Json] = field(default_factory=list)  # pods without a place
    later: frozenset[str] = frozenset()  # sets that the gang starts without
    # By pod set: nodes with a place that is not free yet, as its pod is terminating.
    held: dict[str, list[str]] = field(default_factory=dict)
    turned_away: list[Json] = field(default_factory=list)  # pods that their nodes did not run

    def refused_by(self, workload: Json, view: View) -> list[str]:
        """Return the hosts that turned pods of this very placement away."""
        if not self.turned_away:
            return []
        gen = gen_of(workload)
        by = {pod["spec"]["nodeName"] for pod in self.turned_away if _gen(pod) == gen}
        return [host for host, _ in hosts_of(workload) if node_name(host, view) in by]

    @property
    def is_full(self) -> bool:
        """Whether every place has a pod that stays."""
        empty = [*self.free.items(), *self.held.items()]
        return not any(places for name, places in empty if name not in self.later)

    @property
    def is_empty(self) -> bool:
        """Whether there is not a single pod that is, or will be, anywhere."""
        waiting = (self.unbound, self.released, self.astray, self.extra)
        return not self.bound and not any(self.held.values()) and not any(waiting)

    @property
    def is_whole(self) -> bool:
        """Whether every place has a pod that stays and is there."""
        return self.is_full and not self.unbound and not self.released and not self.astray


def slots_of(workload: Json, view: View, sent: Mapping[str, str] | None = None) -> Slots:
    """Give every active pod of the gang a place: bound ones theirs, the others in order.

    `sent` knows the nodes of pods, by uid, whose binding the view does not show yet.
    """
    metadata = workload["metadata"]
    annotations = metadata.get("annotations") or {}
    later = frozenset(annotations.get(names.LATER_SETS, "").split(","))
    free, given_back = places_of(workload, view)
    slots = Slots(free=free, later=later)
    gen = gen_of(workload)
    waiting, through = [], []
    full = f"{metadata['namespace']}/{metadata['name']}"
    for pod in sorted(view.by(names.POD, names.BY_WORKLOAD, full), key=_rank):
        node = pod["spec"].get("nodeName")
        places = slots.free.get(set_of(pod), [])
        if is_active(pod) and not node:
            promised = _promised(pod)
            if not promised:
                waiting.append(pod)
            elif promised in places:
                places.remove(promised)
                slots.released.append((pod, promised))
            else:
                slots.astray.append(pod)
        elif node in places and not is_over(pod):
            places.remove(node)
            if is_active(pod):
                slots.bound += 1
            else:
                slots.held.setdefault(set_of(pod), []).append(node)
        elif is_active(pod) and _gen(pod) < gen:  # the node was gone, others may have its place
            slots.astray.append(pod)
        elif was_turned_away(pod):
            slots.turned_away.append(pod)
        elif _is_through(pod):
            if _gen(pod) >= gen:
                through.append(pod)
            if node in places:  # others take it last
                places.remove(node)
                places.append(node)
    _assign(slots, waiting, sent or {})
    # No pod comes for the place of one that is done. Of pods of an earlier placement only the job
    # knows whether others follow (a Job with more completions than parallelism makes more),
    # and some of them are not there any more: what it says of them counts (`reclaimablePods`).
    done = Counter(set_of(pod) for pod in through)
    for one in workload["status"].get("reclaimablePods") or ():
        done[one["name"]] = max(done[one["name"]], one["count"])
    for name, pods in done.items():
        places = slots.free.get(name, [])
        left = pods - given_back.get(name, 0)  # the others' places are no longer the gang's
        if left > 0:
            del places[max(0, len(places) - left) :]
    return slots


def places_of(workload: Json, view: View) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return the nodes of each set, a place each; and how many pods that are done gave back."""
    found: dict[str, list[str]] = {}
    given_back: dict[str, int] = {}  # see below, pods that are done
    counts = whole_counts(workload)
    for one in workload["status"]["admission"].get("podSetAssignments") or ():
        places: list[str] = []
        for host, count in pods_per_host(one.get("topologyAssignment")):
            places += [node_name(host, view)] * count
        found[one["name"]] = places
        given_back[one["name"]] = max(0, counts[one["name"]] - len(places))
    return found, given_back


def gen_of(workload: Json) -> int:
    """Return the number of a gang's placement."""
    _, about = placement_of(workload["status"].get("conditions"))
    return number_of(about, "gen", 1)


def _assign(slots: Slots, waiting: list[Json], sent: Mapping[str, str]) -> None:
    """Give pods that are nowhere a place: first those that are on their way to one."""
    others = []
    for pod in waiting:
        node = sent.get(pod["metadata"]["uid"], "")
        places = slots.free.get(set_of(pod), [])
        if node in places:
            places.remove(node)
            slots.unbound.append((pod, node))
        else:
            others.append(pod)
    for pod in others:
        places = slots.free.get(set_of(pod), [])
        if places:
            slots.unbound.append((pod, places.pop(0)))
        else:
            slots.extra.append(pod)


def _promised(pod: Json) -> str:
    """Return the node that an unbound pod was released to, if it was."""
    slot = (pod["metadata"].get("annotations") or {}).get(names.SLOT, "")
    return str(slot).partition("/")[2].rpartition("@")[0]


def _gen(pod: Json) -> int:
    """Return the number of the placement that a bound pod was sent by; a large one if unknown."""
    slot = (pod["metadata"].get("annotations") or {}).get(names.SLOT, "")
    number = str(slot).rpartition("@")[2]
    known = whole_number(number)
    return sys.maxsize if known is None else known


def is_over(pod: Json) -> bool:
    """Say whether nothing of a pod runs any more."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_active(pod: Json) -> bool:
    """Say whether a pod runs or will run."""
    return "deletionTimestamp" not in pod["metadata"] and not is_over(pod)


def _is_through(pod: Json) -> bool:
    """Say whether a pod has done its part and needs no successor."""
    return bool(pod["status"].get("phase") == "Succeeded")


def set_of(pod: Json) -> str:
    """Return the pod set that a pod is of."""
    return str((pod["metadata"].get("labels") or {}).get(names.POD_SET_LABEL, "main"))


def _rank(pod: Json) -> tuple[int, ...] | tuple[int | str, ...]:
    """Order the pods of a gang by their numbers, then by name."""
    metadata = pod["metadata"]
    texts = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    numbers = [whole_number(texts.get(key)) or 0 for key in _INDEXES]
    return (*numbers, metadata["name"])


# ---- finished pods, and a whole gang -------------------------------------------------------------
#
# The places of finished pods are released one by one (placement §9). Quota follows from their
# count (`status.reclaimablePods`); which places are free again has to stand on the Workload as
# well, or they would be kept until the last pod is done.
#
# That a gang is whole (Committed) may be written a little later than it is, by the controller
# that notices first; so it shares a write with PodsReady, if the pods are ready soon.


def assignments_left(workload: Json, done: Mapping[str, int], view: View) -> list[Json] | None:
    """Return a running gang's assignments without the places of pods that are done.

    None where there is nothing to give back, or not yet.
    """
    status = workload["status"]
    phase, about = placement_of(status.get("conditions"))
    if phase != COMMITTED or about.get("devices"):  # parts of GPUs are counted with their places
        return None
    metadata = workload["metadata"]
    pods = view.by(names.POD, names.BY_WORKLOAD, f"{metadata['namespace']}/{metadata['name']}")
    before = status["admission"].get("podSetAssignments") or []
    counts = whole_counts(workload)
    after = [
        _left(one, counts[name], [pod for pod in pods if set_of(pod) == name], done[name], view)
        if done.get(name := one["name"])
        else one
        for one in before
    ]
    return after if after != before else None


def _left(one: Json, of: int, pods: Sequence[Json], done: int, view: View) -> Json:
    """Return the assignment of one set `of` so many pods, with at least one place."""
    on: Counter[str] = Counter()
    for host, count in pods_per_host(one.get("topologyAssignment")):
        on[host] += count
    there = sum(on.values())
    free = min(done - (of - there), there - 1)
    if free <= 0 or any(is_active(pod) and not pod["spec"].get("nodeName") for pod in pods):
        return one  # a pod is on its way to one of the places, and it is not known which
    nodes = {host: node_name(host, view) for host in on}
    taken = Counter(pod["spec"].get("nodeName") for pod in pods if not is_over(pod))
    for host in reversed(list(on)):
        gone = min(free, max(0, on[host] - taken[nodes[host]]))
        on[host] -= gone
        free -= gone
    left = ((host, count) for host, count in on.items() if count)
    return {**one, "topologyAssignment": places(left)}


def with_commitment(workload: Json, conditions: list[Json], view: View, now: float) -> list[Json]:
    """Return conditions that also say Committed, if that is so and was not said yet."""
    if placement_of(conditions)[0] != COMMITTING or not slots_of(workload, view).is_whole:
        return conditions
    return in_phase(conditions, COMMITTED, now, now)


def committed_event(workload: Json) -> Note:
    """Return the event of a gang whose pods are all bound."""
    admission = workload["status"]["admission"]
    pods = sum(one.get("count", 0) for one in admission.get("podSetAssignments") or ())
    bound = "Its pod is" if pods == 1 else f"All {pods} pods are"
    message = f"{bound} bound; quota reserved in ClusterQueue {admission['clusterQueue']}"
    return Note(Ref.to(workload), "GangCommitted", message, instead_of=("QuotaReserved",))
