"""A running job that is made larger or smaller: its Workload follows without a restart (quota §15).

    more pods     a second Workload asks for all of them, as a slice that replaces the first; the
                  engine charges only what is new. Once admitted, what it got becomes the first
                  one's, and the slice goes. New pods have no place until then. Where some of them
                  are of use without the rest, the slice may get a part, and the next one asks on.
    fewer pods    once the surplus is gone, so is its quota

Every step can be repeated: the counts of the job, of the admission and of the slice say what is
left to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Create, Delete, Json, Note, Patch, Ref, Steps
from unisono.control.admission.elastic import SLICE, SLICE_OF_JOB, pods_to_keep, shrink_done
from unisono.control.admission.placement import (
    COMMITTED,
    number_of,
    placement_of,
    places,
    with_placement,
)
from unisono.control.conditions import is_true
from unisono.control.gangs.slots import is_active, set_of
from unisono.control.jobs.adapter import PodSetOfJob
from unisono.control.nodes import node_name
from unisono.control.view import View
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kinds.kueue.workload_rules import REPLACES
from unisono.kinds.quantity import Quantity, format_amount


def is_growing(workload: Json, sets: Sequence[PodSetOfJob]) -> bool:
    """Say whether a job asks for more pods than it was granted."""
    granted = _granted(workload)
    return any(one.count > granted.get(one.name, one.count) for one in sets)


def scale(job: Json, workload: Json, sets: Sequence[PodSetOfJob], view: View, now: float) -> Steps:
    """Bring an admitted Workload in step with a job whose counts were changed."""
    granted = _granted(workload)
    # A set that is scaled to nothing is none for its job.
    wanted = {**dict.fromkeys(granted, 0), **{one.name: one.count for one in sets}}
    conditions = workload["status"].get("conditions") or []
    if granted.keys() != wanted.keys() or placement_of(conditions)[0] != COMMITTED:
        return  # it starts, or is repaired, or is another gang altogether
    metadata = workload["metadata"]
    slice_ = view.get(names.WORKLOAD, metadata["name"] + SLICE, metadata["namespace"])
    if any(wanted[name] < granted[name] for name in granted):
        fewer = {name: min(wanted[name], granted[name]) for name in granted}
        yield from _shrink(workload, fewer, view, now)
    elif wanted == granted:
        if slice_ is not None:
            yield from _drop(slice_)
    elif slice_ is None:
        yield Create(_new_slice(workload, sets))
        more = sum(wanted.values()) - sum(granted.values())
        yield Note(Ref.to(job), "Scaling", f"requests {more} more pods")
    elif _counts(slice_) != wanted or _is_void(workload, slice_):
        yield from _drop(slice_)
    elif is_true((slice_.get("status") or {}).get("conditions"), "Admitted"):
        yield from _absorb(workload, slice_, now)
        more = sum(_granted(slice_).values())
        yield Note(Ref.to(job), "Scaled", f"has nodes for {more} pods")


def without_slice(workload: Json, view: View) -> Steps:
    """Let go of what a job asked for on top: it does not run any more."""
    metadata = workload["metadata"]
    slice_ = view.get(names.WORKLOAD, metadata["name"] + SLICE, metadata["namespace"])
    if slice_ is not None:
        yield from _drop(slice_)


def _is_void(workload: Json, slice_: Json) -> bool:
    """Say whether a slice was evicted, or counts on places that the job has no more."""
    status = slice_.get("status") or {}
    if is_true(status.get("conditions"), "Evicted"):
        return True
    if not status.get("admission"):
        return False
    granted = {one["name"]: one for one in status["admission"]["podSetAssignments"]}
    for one in workload["status"]["admission"]["podSetAssignments"]:
        beside = dict(pods_per_host(granted[one["name"]].get("topologyAssignment")))
        here = pods_per_host(one.get("topologyAssignment"))
        if any(pods > beside.get(host, 0) for host, pods in here):
            return True  # it was repaired meanwhile
    return False


def _granted(workload: Json) -> dict[str, int]:
    found = workload["status"]["admission"].get("podSetAssignments") or ()
    return {one["name"]: one.get("count", 0) for one in found}


def _counts(workload: Json) -> dict[str, int]:
    return {one["name"]: one["count"] for one in workload["spec"]["podSets"]}


def _with_counts(workload: Json, counts: Mapping[str, int]) -> list[Json]:
    return [{**one, "count": counts[one["name"]]} for one in workload["spec"]["podSets"]]


# ---- more ----------------------------------------------------------------------------------------


def _new_slice(workload: Json, sets: Sequence[PodSetOfJob]) -> Json:
    """Return the Workload that asks for what a job wants now, in the place of what it has."""
    metadata, spec = workload["metadata"], workload["spec"]
    wanted, granted = {one.name: one.count for one in sets}, _granted(workload)
    growing = [one for one in sets if one.count > granted[one.name]]
    # Of several sets that grow none may be left out, so they come together.
    loose = growing[0].name if len(growing) == 1 and growing[0].is_loose else ""
    asked = [_whole(one) for one in _with_counts(workload, wanted)]
    for one in asked:
        if one["name"] == loose:
            one["minCount"] = granted[loose] + 1
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != names.JOB_UID_LABEL}
    return {
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        "metadata": {
            "name": metadata["name"] + SLICE,
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {
                REPLACES: f"{metadata['namespace']}/{metadata['name']}",
                SLICE_OF_JOB: "true",
            },
            "finalizers": [names.RESOURCE_IN_USE],
            "ownerReferences": metadata.get("ownerReferences") or [],
        },
        "spec": {**spec, "podSets": asked},
    }


def _whole(pod_set: Json) -> Json:
    """Unless a part is of use, a slice takes all that it asks for, or stays as it is."""
    return {key: value for key, value in pod_set.items() if key != "minCount"}


def _absorb(workload: Json, slice_: Json, now: float) -> Steps:
    """Give the first Workload what its slice was granted; then the slice may go."""
    if _counts(workload) != _granted(slice_):
        changes = {"spec": {"podSets": _with_counts(workload, _granted(slice_))}}
        workload = yield Patch(Ref.to(workload), changes)
    conditions = workload["status"]["conditions"]
    _, about = placement_of(conditions)
    changed = with_placement(
        conditions,
        COMMITTED,
        gen=number_of(about, "gen", 1) + 1,
        epoch=number_of(about, "epoch", 1),
        deadline=now,
        now=now,
        devices=placement_of(slice_["status"].get("conditions"))[1].get("devices", ""),
    )
    granted = slice_["status"]["admission"]["podSetAssignments"]
    status = {"admission": {"podSetAssignments": granted}, "conditions": changed}
    yield Patch(Ref.to(workload), {"status": status}, "status")
    yield from _drop(slice_)


def _drop(slice_: Json) -> Steps:
    if names.RESOURCE_IN_USE in (slice_["metadata"].get("finalizers") or ()):
        slice_ = yield Patch(Ref.to(slice_), {"metadata": {"finalizers": None}}, exact=False)
    yield Delete(Ref.to(slice_))


# ---- fewer ---------------------------------------------------------------------------------------


def _shrink(workload: Json, wanted: Mapping[str, int], view: View, now: float) -> Steps:
    """Give back the places of pods that are gone; those that are on their way out keep theirs.

    The Workload of a shrunk gang still requests all of them.
    """
    metadata = workload["metadata"]
    on_nodes: dict[str, Counter[str]] = {name: Counter() for name in wanted}
    full = f"{metadata['namespace']}/{metadata['name']}"
    for pod in view.by(names.POD, names.BY_WORKLOAD, full):
        node = pod["spec"].get("nodeName")
        phase = (pod.get("status") or {}).get("phase")
        if node and set_of(pod) in wanted and phase not in ("Succeeded", "Failed"):
            if not is_active(pod):
                return  # its end brings us back
            on_nodes[set_of(pod)][node] += 1
    if any(sum(on_nodes[name].values()) > wanted[name] for name in wanted):
        return
    assignments = [
        _smaller(one, wanted[one["name"]], on_nodes[one["name"]], view)
        for one in workload["status"]["admission"]["podSetAssignments"]
    ]
    status: Json = {"admission": {"podSetAssignments": assignments}}
    is_told = bool(pods_to_keep(workload))
    if is_told:
        status["conditions"] = shrink_done(workload, sum(wanted.values()), now)
    workload = yield Patch(Ref.to(workload), {"status": status}, "status")
    if is_told:
        yield Note(Ref.to(workload), "GaveUpPods", f"Continues with {sum(wanted.values())} pods")
        return
    yield Patch(Ref.to(workload), {"spec": {"podSets": _with_counts(workload, wanted)}})


def _smaller(one: Json, count: int, taken: Counter[str], view: View) -> Json:
    """Return an assignment of fewer pods: places that are taken first, then others in order."""
    old = max(1, one.get("count", 0))
    usage = {
        name: format_amount(Quantity.from_raw(text).amount(name) // old * count, name)
        for name, text in (one.get("resourceUsage") or {}).items()
    }
    smaller = {**one, "count": count, "resourceUsage": usage}
    hosts = pods_per_host(one.get("topologyAssignment"))
    if not hosts:
        return smaller
    spare = count - sum(taken.values())
    kept: list[tuple[str, int]] = []
    for host, pods in hosts:
        here = min(pods, taken[node_name(host, view)])
        more = min(pods - here, max(0, spare))
        spare -= more
        if here + more:
            kept.append((host, here + more))
    return {**smaller, "topologyAssignment": places(kept)}
